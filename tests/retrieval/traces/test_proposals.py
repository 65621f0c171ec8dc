"""Candidates for a task: right schedules of it, the same ones every time, whatever processes make them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from helpers.tensor_world import MATMUL, write_corpus

from gnnperf.backends.tvm.server import BenchServer
from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import describe_host
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.confine import available_threads
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.retrieval.traces import proposals
from gnnperf.retrieval.traces.candidates import TraceCandidate
from gnnperf.retrieval.traces.proposals import DRAWN, RULES, propose
from gnnperf.schedules.traces import program_key
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Neighbour, Store

PRODUCT = TvmWorkload("matmul", {"m": 32, "n": 48, "k": 24})


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "LOTS", 2)
    monkeypatch.setattr(proposals, "LOT", 6)
    monkeypatch.setattr(proposals, "available_threads", lambda: 2)


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Neighbour]:
    """One neighbour with traces: a product."""
    import_tvm()
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, (MATMUL,))
    store, bundle = Store.open(folder / "store", create=True), load_checkpoint(shipped_bundle(), Bundle)
    fill_store(read_corpus(folder), bundle, store)
    vector = bundle.embed([TvmTask("product", PRODUCT.build()).graph])[0]
    return store.nearest(vector, 8, bundle.encoder_id, describe_host().fingerprint)


def keys(candidates: Sequence[TraceCandidate]) -> list[int]:
    return [candidate.key for candidate in candidates]


def test_they_are_different_and_the_same_every_time(
    near: Sequence[Neighbour], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TvmTask("product", PRODUCT.build())
    found = propose(task, near, host_target()).candidates
    drawn = [candidate for candidate in found if candidate.policy == DRAWN]
    assert 6 <= len(drawn) < len(found) == len(set(keys(found)))
    assert program_key(task.module) not in keys(found)
    assert found[-len(drawn) :] == drawn and drawn[0].turn > max(c.turn for c in found[: -len(drawn)])
    assert {candidate.neighbour_kernel for candidate in drawn} == {RULES}
    monkeypatch.setattr(proposals, "available_threads", lambda: 1)  # and no other process
    again = propose(task, near, host_target()).candidates
    assert keys(again) == keys(found) and [c.turn for c in again] == [c.turn for c in found]


def test_fewer_are_drawn_beside_as_many_as_are_wanted(
    near: Sequence[Neighbour], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "LOTS", 4)
    monkeypatch.setattr(proposals, "LOT", 3)
    task = TvmTask("product", PRODUCT.build())

    def drawn(pool: int) -> set[int]:
        found = propose(task, near, host_target(), pool).candidates
        return {candidate.key for candidate in found if candidate.policy == DRAWN}

    assert len(drawn(1)) <= 3 < len(drawn(1000))
    assert drawn(1) < drawn(1000)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("matmul", PRODUCT.params),
        ("conv2d", {"h": 8, "w": 8, "ci": 6, "co": 12, "kernel": 3, "padding": 1}),
        ("reduce", {"m": 60, "n": 90, "op": "sum", "axis": 1}),
        ("softmax", {"m": 20, "n": 50}),
        ("elementwise", {"m": 40, "n": 60, "chain": "bias_gelu"}),
        ("matmul_int8", {"m": 32, "n": 64, "k": 64}),
    ],
)
def test_they_compute_what_the_task_does(
    near: Sequence[Neighbour], kind: str, params: dict[str, Any]
) -> None:
    task = TvmTask(kind, TvmWorkload(kind, params).build())
    found = propose(task, near, host_target()).candidates
    assert [program_key(candidate.scheduled.mod) for candidate in found] == keys(found)  # made once more
    with BenchServer([task.module], host_target(available_threads())) as server:
        server.baseline(0)
        outcomes = server.measure(0, [found[n].program for n in (0, 1, -2, -1)])
    assert {outcome.status for outcome in outcomes} == {"ok"}


def test_without_neighbours_there_are_none(near: Sequence[Neighbour]) -> None:
    assert propose(TvmTask("product", PRODUCT.build()), [], host_target()).candidates == []


def test_where_the_rules_fail_nothing_is_drawn(
    near: Sequence[Neighbour], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("InternalError: no rule")

    monkeypatch.setattr(proposals, "DesignSpace", fails)
    found = propose(TvmTask("product", PRODUCT.build()), near, host_target()).candidates
    assert found and DRAWN not in {candidate.policy for candidate in found}


def test_a_killed_process_costs_what_it_was_at(
    near: Sequence[Neighbour], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, parent = proposals.transfer, os.getpid()

    def killed(*arguments: Any) -> Any:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    monkeypatch.setattr(proposals, "transfer", killed)
    pool = propose(TvmTask("product", PRODUCT.build()), near, host_target())
    assert pool.candidates and {candidate.policy for candidate in pool.candidates} == {DRAWN}
    assert pool.refused == {MATMUL.name: "the process that tried its traces was killed"}
