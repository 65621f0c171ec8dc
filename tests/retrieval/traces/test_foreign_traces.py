"""A trace that carries code, on its way from a stranger's store: refused, passed over, never compiled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.tensor_world import MATMUL, write_corpus

from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import tune_context
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.retrieval.traces import proposals
from gnnperf.retrieval.traces.proposals import propose
from gnnperf.schedules.traces import TraceDocument, replay
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Neighbour, Record, Store
from gnnperf.store.schema import content_id, rows_of_checked

PRODUCT = TvmWorkload("matmul", {"m": 64, "n": 64, "k": 64})
CODE = 'define void @stranger() { call void asm sideeffect "int3", ""() ret void }'


def with_code(record: Record) -> Record:
    """The same record, of the same trace and one annotation: its id is that of its content."""
    fields = json.loads(record.schedule)
    block = fields["trace"][0][0][3][0]
    fields["trace"][0].append(["Annotate", [block, f'"{CODE}"'], ["pragma_import_llvm"], []])
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    faster = replace(record, schedule=text, record_id="")
    return replace(faster, record_id=content_id(faster))


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_checkpoint(shipped_bundle(), Bundle)


@pytest.fixture
def store(bundle: Bundle, tmp_path: Path) -> Store:
    """A product, whose fastest traces carry code, put there by somebody who may write to the folder."""
    import lancedb

    import_tvm()
    write_corpus(tmp_path / "corpus", (MATMUL,), count=2)
    filled = Store.open(tmp_path / "store", create=True)
    fill_store(read_corpus(tmp_path / "corpus"), bundle, filled)
    bad = [with_code(record) for record in nearest(filled, bundle)[0].records]
    lancedb.connect(tmp_path / "store").open_table("records").add(rows_of_checked(bad))
    return Store.open(tmp_path / "store")


def nearest(store: Store, bundle: Bundle) -> Sequence[Neighbour]:
    vector = bundle.embed([TvmTask("product", PRODUCT.build()).graph])[0]
    return store.nearest(vector, 8, bundle.encoder_id, describe_host().fingerprint)


def test_it_would_be_in_the_program_if_tvm_were_given_it(store: Store, bundle: Bundle) -> None:
    """What the other tests of this file are about is real."""
    good = nearest(store, bundle)[0].records[0]
    fields = json.loads(with_code(good).schedule)
    instructions, decisions = fields["trace"]
    bad = replace(
        TraceDocument.from_json(good.schedule),
        instructions=tuple(map(tuple, instructions)),
        decisions={int(k): v for k, v in decisions},
    )
    assert "pragma_import_llvm" in str(replay(bad, tune_context(PRODUCT.build(), host_target())).mod)
    with pytest.raises(InputError, match="pragma_import_llvm"):
        TraceDocument.from_json(bad.to_json())


def test_a_store_does_not_hand_it_out(store: Store, bundle: Bundle) -> None:
    (found,) = nearest(store, bundle)
    assert len(found.records) == 2
    assert not any("pragma" in record.schedule for record in found.records)
    ((reason, count),) = store.left_out.items()
    assert count == 2 and "Annotate: 'pragma_import_llvm' is not allowed" in reason


def test_it_is_refused_where_it_comes_in(store: Store, bundle: Bundle, tmp_path: Path) -> None:
    copy = Store.open(tmp_path / "copy", create=True)
    added = copy.merge(store)
    assert (added.records, added.refused) == (2, 2)
    assert all("pragma_import_llvm" in refused.reason for refused in added.reasons)


def test_no_candidate_is_made_of_it(store: Store, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a store handed it out."""
    monkeypatch.setattr(proposals, "_drawing", lambda *_: [])
    (found,) = nearest(store, bundle)
    task = TvmTask("product", PRODUCT.build())
    bad = replace(found, records=tuple(map(with_code, found.records)))
    pool = propose(task, [bad], host_target())
    assert not pool.candidates
    assert "pragma_import_llvm" in pool.refused[found.nest.kernel]
    both = propose(task, [replace(found, records=(*bad.records, *found.records))], host_target())
    assert both.candidates
    assert not any("pragma_import" in str(candidate.program) for candidate in both.candidates)
