"""The process of one contender: `python -m gnnperf.measure.competitor_process`.

Spawned by `competitors.Player`, it loads one implementation of a kernel, runs it once, verifies what it
computed, and then times it whenever it is told that it is its turn.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnperf.errors import first_line
from gnnperf.measure.arrays import Bytes
from gnnperf.measure.candidate import Arrays, bind
from gnnperf.measure.confine import MEASURED, prefer_this_process
from gnnperf.measure.protocol import receive, send
from gnnperf.measure.python_function import arguments_of, by_name, python_function
from gnnperf.measure.supervisor import spawned

LONG = 20.0
"""Of a run: this many times the warm-up."""

Call = Callable[[], Any]


class Contender:
    """One implementation bound to its arrays. A Python function gets arrays, scalars and symbols by the
    names of its parameters; it updates outputs in place, or returns them: as a mapping, or in the order of
    those called `__return...`."""

    def __init__(self, job: Mapping[str, Any], blobs: Mapping[str, Bytes]) -> None:
        self.arrays = Arrays(job, blobs)
        values: dict[str, Any] = {**self.arrays.values}
        self._call: Call
        if job["library"] is not None:
            self._call = bind(job["library"], values)
        else:
            plain = {n: v if v.ndim else v.item() for n, v in values.items()}
            same = {name: plain[first] for name, first in job["function"]["same"].items()}
            self._call = _function(job["function"], {**plain, **same, **job["function"]["arguments"]})

    def fault(self) -> str | None:
        """Run once; None where what it computed is right, else one line that says what is not."""
        self.arrays.reset()
        shapes = {name: copy.array.shape for name, copy in self.arrays.outputs.items()}
        found = by_name(self._call(), shapes)
        return self.arrays.fault({**self.arrays.values, **found})

    def turn(self, warm_up_s: float, timed_s: float) -> tuple[float, int]:
        """(median of the timed runs in seconds, their number): at least one of each kind. A single run that
        is much longer than the warm-up needs none: what was asleep is up for nearly all of it."""
        runs: list[float] = []
        for least_s in (warm_up_s, timed_s):
            runs, started = [self._run()], time.perf_counter()
            while time.perf_counter() - started < least_s:
                runs.append(self._run())
            if runs[0] > LONG * warm_up_s:
                break
        return statistics.median(runs), len(runs)

    def _run(self) -> float:
        self.arrays.restore_updated()
        started = time.perf_counter_ns()
        self._call()
        return (time.perf_counter_ns() - started) * 1e-9


def _function(where: Mapping[str, Any], values: Mapping[str, Any]) -> Call:
    """A call of a Python function with everything converted in advance."""
    if where["package"] == "torch":
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.set_grad_enabled(False)
        values = {n: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
    path = Path(where["path"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Numba's cache finds functions by the name of their module
    spec.loader.exec_module(module)
    function = python_function(getattr(module, where["name"]), values)
    arguments = arguments_of(getattr(function, "py_func", function), values)
    if where["compiled"] == "numba":
        import numba

        function = numba.njit(parallel=True, fastmath=True)(function)
    elif where["compiled"] == "torch":
        import torch

        function = torch.compile(function)
    return lambda: function(*arguments)


def _prefer_all_threads() -> None:
    """As `prefer_this_process`, for threads that libraries have started already."""
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(MEASURED))
        return
    prefer_this_process()


def serve(client: socket.socket) -> None:
    """Prepare, report, and take turns until the client is gone."""
    job, blobs = receive(client)
    contender = Contender(job, dict(zip(job["keys"], blobs, strict=True)))
    fault = contender.fault()
    send(client, {"status": "wrong_result" if fault else "ok", "detail": fault or ""})
    _prefer_all_threads()
    gc.disable()
    while True:
        request, _ = receive(client)
        median_s, runs = contender.turn(request["warm_up_s"], request["timed_s"])
        send(client, {"median_s": median_s, "runs": runs})


def main() -> None:
    with spawned() as client:
        try:
            serve(client)
        except (EOFError, ConnectionError):
            return  # the match is over
        except Exception as error:
            detail = f"{type(error).__name__}: {first_line(error)}"
            send(client, {"status": "run_error", "detail": detail[:300]})


if __name__ == "__main__":
    main()
