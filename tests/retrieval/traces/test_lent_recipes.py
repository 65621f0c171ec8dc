"""Recipes of DaCe nests for TVM tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.tensor_world import MATMUL, write_corpus
from numpy.typing import NDArray
from retrieval.records import make_nest, make_record, neighbour, recipe

from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import describe_host
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.graph import EncodedGraph
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.retrieval.memory import add_to_store
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.traces.lent_recipes import lent
from gnnperf.retrieval.traces.proposals import RULES
from gnnperf.retrieval.traces.proposer import TraceProposer
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store


class Undecided:
    """A cost model that sees no difference."""

    def score_encoded(self, graphs: Sequence[EncodedGraph]) -> NDArray[np.float32]:
        return np.zeros(len(graphs), np.float32)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    import_tvm()
    return load_checkpoint(shipped_bundle(), Bundle)


@pytest.fixture(scope="module")
def stencil() -> TvmTask:
    from tvm import IRModule, te

    size = 64
    source = te.placeholder((size + 2,), name="source")
    mean = te.compute((size,), lambda i: (source[i] + source[i + 1] + source[i + 2]) / 3, name="mean")
    return TvmTask("stencil", IRModule({"main": te.create_prim_func([source, mean])}))


def lenders(folder: Path, task: TvmTask, bundle: Bundle) -> Store:
    """A store where a DaCe nest with the task's own graph ran well with a recipe."""
    store = Store.open(folder, create=True)
    nest = replace(make_nest("mean"), digest=task.graph.digest)
    record = make_record(
        "mean", recipe(1), 2.0, nest_digest=nest.digest, device_fingerprint=describe_host().fingerprint
    )
    add_to_store(store, bundle, [nest], [task.graph], [record])
    return store


def asked(task: TvmTask, bundle: Bundle, traces: Store, recipes: Sequence[Store]) -> Query:
    query = Query(task, task.graph)
    proposer = TraceProposer(bundle, Undecided(), [traces], describe_host(), host_target(), recipes)
    proposer.ask(query, bundle.embed([query.graph])[0], k=4)
    return query


def test_recipes_become_candidates(stencil: TvmTask) -> None:
    near = [neighbour("near", 0.01, {1: 2.0, 2: None}), neighbour("farther", 0.02, {3: 1.5})]

    def expected(recipes: Sequence[object]) -> NDArray[np.float32]:
        return np.zeros(len(recipes), np.float32)

    found = lent(stencil, host_target(), near, expected, Undecided())
    assert {c.neighbour_kernel for c in found} == {
        "near",
        "farther",
    }  # not 2, which is wrong
    assert len({c.key for c in found}) == len(found) == 2
    assert all(c.policy.startswith("DaCe recipe: row order") for c in found)


def test_a_kernel_without_traces_borrows(tmp_path: Path, stencil: TvmTask, bundle: Bundle) -> None:
    empty = Store.open(tmp_path / "empty", create=True)
    assert "no TVM schedule" in asked(stencil, bundle, empty, []).reason
    query = asked(stencil, bundle, empty, [lenders(tmp_path / "dace", stencil, bundle)])
    assert not query.reason
    assert [c.neighbour_kernel for c in query.candidates] == ["mean"]
    assert [n.nest.kernel for n in query.neighbours] == ["mean"]


def test_a_kernel_with_near_traces_does_not(tmp_path: Path, bundle: Bundle) -> None:
    write_corpus(tmp_path / "corpus", [MATMUL])
    traces = Store.open(tmp_path / "traces", create=True)
    fill_store(read_corpus(tmp_path / "corpus"), bundle, traces)
    task = TvmTask("product", MATMUL.build())
    query = asked(task, bundle, traces, [lenders(tmp_path / "dace", task, bundle)])
    assert {c.neighbour_kernel for c in query.candidates} == {MATMUL.name, RULES}
