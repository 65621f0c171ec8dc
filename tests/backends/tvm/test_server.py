"""Benches behind a process of their own, and schedules timed in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gnnperf.backends.tvm import rehearsal
from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.interleaved import Pace, in_turns

PRODUCT = TvmWorkload("matmul", {"m": 16, "n": 16, "k": 16})
SUMS = TvmWorkload("reduce", {"m": 16, "n": 32, "op": "sum", "axis": 1})


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    import_tvm()
    set_runtime_threads()


@pytest.fixture
def server() -> Iterator[BenchServer]:
    limits = BenchLimits(sample_s=0.001)
    with BenchServer([PRODUCT.build(), SUMS.build()], host_target(), limits) as server:
        yield server


def other() -> Any:
    """A product of the same shape that computes something else."""
    from tvm import te

    a, b = (te.placeholder((16, 16), name=name) for name in "AB")
    import tvm

    function = te.create_prim_func([a, b, te.compute((16, 16), lambda i, j: a[i, j] + b[i, j], name="C")])
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def test_modules_are_measured_one_after_the_other(server: BenchServer) -> None:
    server.prepare(1)
    server.prepare(0)
    assert server.baseline(0).status == server.baseline(1).status == "ok"
    assert [o.status for o in server.measure(1, [SUMS.build()])] == ["ok"]
    assert [o.status for o in server.measure(0, [PRODUCT.build(), other()])] == ["ok", "wrong_result"]


def test_schedules_take_turns(server: BenchServer) -> None:
    with server.rehearsed(0, [PRODUCT.build(), other()]) as (outcomes, turns):
        assert [o.status for o in outcomes] == ["ok", "ok", "wrong_result"] and [*turns] == [0, 1]
        found = in_turns({"ab"[n]: turn for n, turn in turns.items()}, Pace(6, 0.01))
    assert all(m.samples >= 6 and (m.runtime_s or 0) > 0 for m in found.values())
    with pytest.raises(MeasureError, match="nothing was rehearsed"):
        turns[0]()


def test_what_takes_turns_is_isolated(server: BenchServer) -> None:
    with server.rehearsed(0, [PRODUCT.build()]):
        states = [Path(f"/proc/{pid}/status").read_text() for pid in descendants(server.child.pid)]
    assert any("\nSeccomp:\t2\n" in state for state in states)


HOLDS_THE_MACHINE = """
import time
from gnnperf.devices import MachineLock

with MachineLock():
    print("held", flush=True)
    time.sleep(4.5)
"""


def test_waiting_for_the_machine_takes_none_of_the_time_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path))
    monkeypatch.setattr(rehearsal, "_PATIENCE_S", 3.0)
    with BenchServer(
        [PRODUCT.build()], host_target(), BenchLimits(reference_s=3.0, sample_s=0.001)
    ) as server:
        with held():
            assert server.baseline(0).status == "ok"
        with held(), server.rehearsed(0, []) as (outcomes, _):
            assert [outcome.status for outcome in outcomes] == ["ok"]


@contextmanager
def held() -> Iterator[None]:
    """Another process has the machine for a while."""
    command = [sys.executable, "-c", HOLDS_THE_MACHINE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) as holder:
        assert holder.stdout is not None and holder.stdout.readline()
        yield


PARALLEL = """
from tvm.s_tir import Schedule
from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import solved
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload

set_runtime_threads(2)
product = TvmWorkload("matmul", {"m": 16, "n": 16, "k": 16}).build()
schedule = Schedule(product)
(block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
schedule.parallel(schedule.get_loops(block)[0])
solved(product, build_kernel(schedule.mod, host_target()))  # TVM's threads are of this process from here on
with BenchServer([product], host_target(), BenchLimits(run_s=2.0, sample_s=0.001)) as server:
    print(*(outcome.status for outcome in server.measure(0, [schedule.mod])))
"""


def test_a_process_that_has_used_tvms_threads_may_measure() -> None:
    done = subprocess.run([sys.executable, "-c", PARALLEL], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_nothing_outlives_the_server(server: BenchServer) -> None:
    server.baseline(0)
    with server.rehearsed(0, []):
        children = [
            server.child.pid,
            *descendants(server.child.pid),
        ]  # other tests may have processes of their own
        assert len(children) >= 2  # the server, the players
        server.close()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/stat").exists() and not zombie(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_dead_server_is_told(server: BenchServer) -> None:
    server.baseline(0)
    os.kill(server.child.pid, signal.SIGKILL)
    with pytest.raises(MeasureError, match="ended"):
        server.measure(0, [PRODUCT.build()])


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
