"""What happens inside the process of one candidate: load, run, verify, time.

The process was forked for this one job and is thrown away after it; the arrays it inherited from
the server are shared copy-on-write, so nothing it does reaches another candidate.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from gnnperf.devices.lock import MachineLock
from gnnperf.measure import complex_scalars
from gnnperf.measure.arrays import Bytes, GuardedCopy, Layout, content_id
from gnnperf.measure.confine import limit_files, limit_memory, prefer_this_process, thread_environment
from gnnperf.measure.counters import HARDWARE_EVENTS, Counters
from gnnperf.measure.isolation import isolate
from gnnperf.measure.library import CTYPES
from gnnperf.measure.statistics import relative_half_width
from gnnperf.measure.supervisor import Report
from gnnperf.measure.team_copy import team_copy
from gnnperf.measure.verification import verify

Call = Callable[[], None]


class Arrays:
    """A job's data: inputs shared with the server, outputs in private guarded copies."""

    def __init__(self, job: Mapping[str, Any], blobs: Mapping[str, Bytes]) -> None:
        self.values: dict[str, NDArray[Any]] = {}
        self.outputs: dict[str, GuardedCopy] = {}
        self._inouts: list[str] = job["inouts"]
        self._updated: list[str] = job["updated"]
        self._copy = team_copy(job["team_copy"])
        described = (job["reference"] or {}).items()
        self._reference = {n: Layout(*layout).view(blobs[blob]) for n, (blob, *layout) in described}
        self._reduction_length: int = job["reduction_length"]
        self._quantised: list[str] = job["quantised"]
        self._inputs: dict[str, tuple[str, Bytes]] = {}
        for name, (blob, *layout) in job["data"].items():
            where = Layout(*layout)
            if name in job["outputs"] or name in job["inouts"]:
                self.outputs[name] = GuardedCopy(where, blobs[blob])
                self.values[name] = self.outputs[name].array
            else:
                self.values[name] = where.view(blobs[blob])
                self._inputs[name] = blob, blobs[blob]

    def reset(self) -> None:
        """As before the program ran; outputs that it must not read are poisoned."""
        for name, copy in self.outputs.items():
            copy.reset()
            if name not in self._inouts:
                copy.poison()

    def restore_updated(self) -> None:
        """What the next run reads is as it was before the first. The rest stays where the last run left it,
        in the caches of the processors that wrote it, as where a program calls a function again."""
        for name in self._updated:
            self.outputs[name].restore(self._copy)

    def fault(self, found: Mapping[str, NDArray[Any]]) -> str | None:
        """What is wrong with what was computed, or was written that is no output, in one line."""
        return self._trespass() or verify(self._reference, found, self._reduction_length, self._quantised)

    def fault_of(self, call: Call) -> str | None:
        """The same of another run: what keeps something from run to run may be wrong in a later one."""
        self.reset()
        call()
        return self.fault(self.values)

    def _trespass(self) -> str | None:
        for name, copy in self.outputs.items():
            if not copy.intact():
                return f"{name}: written out of bounds"
        for name, (before, memory) in self._inputs.items():
            if content_id(memory) != before:
                return f"{name}: an input was overwritten"
        return None


def bind(library: Mapping[str, Any], values: Mapping[str, NDArray[Any]]) -> Call:
    """A call of the library's function on these arrays, with every argument converted in advance.

    Calling through ctypes adds 0.4 us, and 0.03 us an argument, to every run of every function.
    """
    handle = ctypes.CDLL(library["path"])
    arguments = [_argument(values, *a) for a in library["arguments"]]
    if library["protocol"] == "plain":
        function = getattr(handle, library["symbol"])
    else:
        initialise = getattr(handle, "__dace_init_" + library["symbol"])
        initialise.restype = ctypes.c_void_p
        state = initialise(*[_argument(values, *a) for a in library["init"]])
        if not state:
            raise RuntimeError(f"initialisation of {library['symbol']} failed")
        function = getattr(handle, "__program_" + library["symbol"])
        arguments.insert(0, ctypes.c_void_p(state))
    function.restype = None
    return lambda: function(*arguments)


def _argument(values: Mapping[str, NDArray[Any]], name: str, ctype: str) -> Any:
    value = values[name]
    if ctype == "*":
        return ctypes.c_void_p(value.ctypes.data)
    kind = CTYPES[ctype]
    return getattr(complex_scalars if hasattr(complex_scalars, kind) else ctypes, kind)(value.item())


def work(job: Mapping[str, Any], blobs: Mapping[str, Bytes], outbox: Bytes | None, report: Report) -> None:
    """Do a job and report each stage when it begins and, at the end, a `status`.

    Stages: "wait" (for the machine), "load", "baseline", "candidate", "verify", "time" (again every half
    second, or after a run that took longer).
    """
    timeout_s = job["limits"]["timeout_s"]
    os.environ.update(thread_environment(job["threads"]))
    lock = MachineLock(job["lock"])
    report(stage="wait", limit_s=None)
    lock.acquire()  # first of all: what runs before others must not run beside what is being timed
    prefer_this_process()  # threads inherit it, so before there are any
    report(stage="load", limit_s=timeout_s)
    arrays = Arrays(job, blobs)
    limit_files(1 << 16)
    allowed = limit_memory(job["memory_bytes"], job["threads"])
    report(stage="load", limit_s=timeout_s, memory_bytes=allowed)
    isolate()
    gc.disable()
    calls: list[Call] = []
    first_s: list[float] = []
    if job["baseline"]:
        report(stage="baseline")
        calls.append(bind(job["baseline"], arrays.values))
        arrays.reset()
        first_s.append(_clock(calls[0]))
    elif job["baseline_s"]:
        first_s.append(job["baseline_s"])
    report(stage="candidate")
    calls.append(bind(job["candidate"], arrays.values))
    arrays.reset()
    first_s.append(_clock(calls[-1]))
    report(stage="verify")
    if fault := arrays.fault(arrays.values):
        report(status="wrong_result", detail=fault)
    elif outbox is not None:
        _deliver(arrays, job["outputs"], outbox)
        report(status="ok", candidate=first_s)
    else:
        alive = partial(report, stage="time", limit_s=2 * timeout_s + 1.0)
        samples = sample(calls, first_s, arrays.restore_updated, job["limits"], alive)
        counters = count(calls[-1], arrays.restore_updated) if job["counters"] else None
        lock.release()
        if len(samples[-1]) > 1 and (fault := arrays.fault_of(calls[-1])):
            report(status="wrong_result", detail=f"after {len(samples[-1])} runs: {fault}")
            return
        baseline = samples[0] if len(samples) > 1 else []
        report(status="ok", baseline=baseline, candidate=samples[-1], counters=counters)


def _deliver(arrays: Arrays, outputs: list[str], outbox: Bytes) -> None:
    position = 0
    for name in outputs:
        memory = arrays.outputs[name].memory
        outbox[position : position + memory.nbytes] = memory
        position += memory.nbytes


LONG_RUN_S, OUTCLASSED, BEHIND = 0.1, 5.0, 3.0
"""What takes longer than the first, and `OUTCLASSED` times as long as a candidate, need not be known
precisely. A candidate whose first run does, and takes `BEHIND` times as long as the baseline's, will not
win."""

VERY_LONG_RUN_S, SLOWER = 1.0, 1.25
"""What takes longer than that needs no run to warm up, and a candidate that then takes so many times as long
as the baseline will not win."""


def sample(
    calls: list[Call], first_s: list[float], restore: Call, limits: Mapping[str, Any], alive: Call
) -> list[list[float]]:
    """Runtimes in seconds, one list per call, taken in turn: first, second, second, first, ...

    As `interleaved.in_turns`, but for calls of microseconds: nothing comes between two runs that is not
    needed. Turning the order round cancels what one call leaves behind for the next (caches, clocks). Stops
    when the median of every call is known to `target`, or when the budget is spent; a baseline that takes
    long, and `OUTCLASSED` times as long, is run twice, a very long one not again. `alive` is called between
    runs, so that a time limit can be one on a single run.

    first_s: of the first run of every call; one more, ahead, of a baseline that ran before and is no call.
    """
    alive()
    if len(first_s) == 1 and first_s[0] > VERY_LONG_RUN_S:
        return [first_s]
    known_s = first_s[: -len(calls)]
    cutoff = min(limits["cutoff"], SLOWER if first_s[-1] > VERY_LONG_RUN_S else BEHIND)
    if _hopeless(first_s, cutoff) and first_s[-1] > LONG_RUN_S:  # no cold start takes that long
        return [[t] for t in first_s]
    called_s = first_s[len(known_s) :]
    warm_s = [t if t > VERY_LONG_RUN_S else _run(c, restore) for c, t in zip(calls, called_s, strict=True)]
    if _hopeless([*known_s, *warm_s], limits["cutoff"]):  # unless something came in between: look again
        warm_s = [min(t, _run(call, restore)) for t, call in zip(warm_s, calls, strict=True)]
        if _hopeless([*known_s, *warm_s], limits["cutoff"]):
            return [[t] for t in (*known_s, *warm_s)]
    alive()
    samples: list[list[float]] = [[] for _ in calls]
    start = reported = time.perf_counter()
    # A burst of noise is longer than a few short runs: look at a fifth of the budget at least.
    enough_s, n, check_at = limits["budget_s"] / 5, 0, limits["min_samples"]
    turn = list(range(len(calls)))
    outclassed = len(calls) == 2 and warm_s[0] > max(LONG_RUN_S, OUTCLASSED * warm_s[1])
    if outclassed and first_s[0] > VERY_LONG_RUN_S:
        samples[0], turn = [first_s[0]], [1]
    while True:
        for i in turn:
            samples[i].append(_run(calls[i], restore))
        turn.reverse()
        n += 1
        if outclassed and n == 2:
            turn = [1]
        now = time.perf_counter()
        elapsed_s = now - start
        if now - reported > 0.5:
            alive()
            reported = now
        if n < limits["min_samples"]:
            continue
        if elapsed_s > limits["budget_s"] or n >= limits["max_samples"]:
            break
        if n >= check_at and elapsed_s > enough_s:
            if all(relative_half_width(samples[i]) <= limits["target"] for i in turn):
                break
            check_at = n + max(1, n // 4)  # seldom: every look is one more chance to stop by luck
    return [*([t] for t in known_s), *samples]


def _hopeless(times_s: list[float], cutoff: float) -> bool:
    return len(times_s) == 2 and times_s[1] > cutoff * times_s[0]


def count(call: Call, restore: Call) -> dict[str, float] | None:
    """Hardware events of one run, or None where the machine does not let us count."""
    counters = Counters.open(HARDWARE_EVENTS)
    if counters is None:
        return None
    restore()
    with counters:
        call()
    return counters.values


def _run(call: Call, restore: Call) -> float:
    restore()
    return _clock(call)


def _clock(call: Call) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) * 1e-9
