"""Nests of one or several stores, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from report.explore.maps import GRAPHS
from retrieval.records import make_record, recipe

from gnnperf.nn import Bundle
from gnnperf.report.explore import gather
from gnnperf.report.explore.picture import picture
from gnnperf.store import Nest, Store


def add(store: Store, name: str, encoder_id: str, embedding: np.ndarray, *speedups: float | None) -> str:
    """Digest of the example of that name, now in the store with records of recipes 1, 2, ..."""
    graph = GRAPHS[name]
    store.add_nest(Nest(graph.digest, name, f"{name}s", "dace"), graph.to_json(), embedding, encoder_id)
    store.add_records(
        replace(make_record(name, recipe(number), speedup), nest_digest=graph.digest)
        for number, speedup in enumerate(speedups, 1)
    )
    return graph.digest


def test_the_best_record_of_all_stores_is_found(tmp_path: Path, bundle: Bundle) -> None:
    one, other = (Store.open(tmp_path / name, create=True) for name in ("one", "other"))
    vector = np.full(4, 0.5, np.float32)
    for store, speedups in ((one, (2.0, None)), (other, (1.5, 7.0, 3.0))):
        add(store, "gemm", bundle.encoder_id, vector, *speedups)
    digest = add(other, "softmax", bundle.encoder_id, vector, None)
    one.merge(other)  # what is in both is counted once

    steps: list[None] = []
    nests = gather([one, other], bundle, lambda: steps.append(None))

    assert len(steps) == 4
    gemm, softmax = nests
    assert (gemm.nest.kernel, gemm.nest.family, gemm.measurements) == ("gemm", "gemms", 5)
    assert gemm.best is not None
    assert (gemm.best.speedup, gemm.best.schedule) == (7.0, make_record("gemm", recipe(2), 7.0).schedule)
    assert gemm.picture == picture(GRAPHS["gemm"])
    np.testing.assert_allclose(gemm.embedding, vector)
    assert (softmax.nest.digest, softmax.best, softmax.measurements) == (digest, None, 1)
    assert [n.nest for n in gather([other, one], bundle)] == [n.nest for n in nests]


def test_what_has_no_embedding_yet_is_embedded_for_the_page_alone(tmp_path: Path, bundle: Bundle) -> None:
    store = Store.open(tmp_path / "store", create=True)
    known = bundle.embed([GRAPHS["gemm"]])[0]
    add(store, "gemm", bundle.encoder_id, known)
    add(store, "softmax", "an earlier encoder", np.ones(4, np.float32))
    gemm, softmax = gather([store], bundle)
    np.testing.assert_allclose(gemm.embedding, known, atol=1e-6)
    np.testing.assert_allclose(softmax.embedding, bundle.embed([GRAPHS["softmax"]])[0], atol=1e-6)
    assert len(store.stale(bundle.encoder_id)) == 1


def test_an_embedding_in_any_store_will_do(tmp_path: Path, bundle: Bundle) -> None:
    stale, fresh = (Store.open(tmp_path / name, create=True) for name in ("stale", "fresh"))
    add(stale, "gemm", "an earlier encoder", np.ones(4, np.float32))
    add(fresh, "gemm", bundle.encoder_id, np.ones(4, np.float32))
    (gemm,) = gather([stale, fresh], bundle)
    np.testing.assert_allclose(gemm.embedding, 0.5)
