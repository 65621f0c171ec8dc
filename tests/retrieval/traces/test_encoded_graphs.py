"""Graphs of many modules are described by several processes, and are what one process finds."""

from __future__ import annotations

import os
import signal
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.graph import EncodedGraph, encode
from gnnperf.retrieval.traces import cost_model
from gnnperf.retrieval.traces.cost_model import SHARE, encoded_graphs

PROCESSES = 2


@pytest.fixture(scope="module")
def modules() -> dict[int, Any]:
    """As many as two processes share; every eighth cannot be described."""
    built = [TvmWorkload("matmul", {"m": 16 * (1 + n), "n": 32, "k": 8}).build() for n in range(7)]
    return {n: built[n % 8] if n % 8 < 7 else None for n in range(PROCESSES * SHARE)}


@pytest.fixture
def pids(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """A folder with a file for each process that describes modules; a module that is None has no graph."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(PROCESSES))

    def described(module: Any) -> Any:
        (tmp_path / str(os.getpid())).touch()
        if module is None:
            raise UnsupportedConstruct("nothing")
        return scheduled_graph(module)

    monkeypatch.setattr(cost_model, "scheduled_graph", described)
    return tmp_path


def check(found: dict[int, EncodedGraph | None], modules: dict[int, Any]) -> None:
    assert list(found) == list(modules)
    wanted = {id(m): None if m is None else astuple(encode(scheduled_graph(m))) for m in modules.values()}
    for key, module in modules.items():
        graph, want = found[key], wanted[id(module)]
        assert (graph is None) == (want is None)
        if graph is not None and want is not None:
            for array, expected in zip(astuple(graph), want, strict=True):
                np.testing.assert_array_equal(array, expected)


def test_processes_find_what_one_process_finds(modules: dict[int, Any], pids: Any) -> None:
    check(encoded_graphs(modules), modules)
    workers = {path.name for path in pids.iterdir()}
    assert len(workers) == PROCESSES and str(os.getpid()) not in workers


def test_few_modules_are_not_worth_a_process(modules: dict[int, Any], pids: Any) -> None:
    few = dict(list(modules.items())[: PROCESSES * SHARE - 1])
    check(encoded_graphs(few), few)
    assert [path.name for path in pids.iterdir()] == [str(os.getpid())]


def test_what_a_killed_process_leaves_undone_is_not_lost(
    modules: dict[int, Any], pids: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, last = os.getpid(), scheduled_graph(modules[1])

    def killed(graph: Any) -> EncodedGraph:
        if os.getpid() != parent and graph == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(graph)

    monkeypatch.setattr(cost_model, "encode", killed)
    check(encoded_graphs(modules), modules)
    assert len(list(pids.iterdir())) == PROCESSES + 1
