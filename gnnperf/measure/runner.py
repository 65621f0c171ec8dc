"""The client of the measuring server: verify a candidate, then time it beside its baseline."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError, TookTooLong
from gnnperf.measure.arrays import Bytes, Layout, as_arrays, describe
from gnnperf.measure.confine import available_threads
from gnnperf.measure.library import CTYPES, Library
from gnnperf.measure.measurement import Limits, Measurement, pool
from gnnperf.measure.protocol import receive, send
from gnnperf.measure.supervisor import Child
from gnnperf.measure.team_copy import team_copy_library


class Runner:
    """Runs compiled functions in processes of their own, on `threads` OpenMP threads each.

    `data` maps every argument to an array, or to a scalar (a numpy scalar where its dtype matters);
    arrays travel to the server once, as long as their contents stay the same. `outputs` are the
    arrays that a function writes; those of them in `inouts` are read before they are written, or
    written in part: they start from `data`, all others start poisoned, in the reference too.

    A candidate that crashes, hangs or eats memory costs itself; a server that dies is started
    again. Use as a context manager, or call `close()`. Safe to share between threads.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_threads()
        self._lock = MachineLock().path
        self._guard = threading.Lock()
        self._server: _ServerProcess | None = None

    def reference(
        self,
        library: Library,
        data: Mapping[str, Any],
        outputs: Collection[str],
        inouts: Collection[str] = (),
        limits: Limits = Limits(timeout_s=60.0),  # noqa: B008  (immutable)
    ) -> dict[str, NDArray[Any]]:
        """Run once and return the outputs, laid out as in `data`. Raises MeasureError if it fails."""
        return self.run_once(library, data, outputs, inouts, limits)[0]

    def run_once(
        self,
        library: Library,
        data: Mapping[str, Any],
        outputs: Collection[str],
        inouts: Collection[str],
        limits: Limits,
    ) -> tuple[dict[str, NDArray[Any]], float]:
        """As `reference`, and the seconds that the run took. Raises TookTooLong where that is what failed."""
        job = self._job(library, data, outputs, inouts, limits, fetch=True)
        arrays = as_arrays(data)
        result, blobs = self._request(job, arrays, {})
        if result["status"] != "ok":
            kind = TookTooLong if result["status"] == "timeout" else MeasureError
            raise kind(f"running {library.symbol} failed: {result['status']}, {result['detail']}")
        found = {n: Layout.of(n, arrays[n]).view(b) for n, b in zip(job["outputs"], blobs, strict=True)}
        return found, result["candidate"][0]

    def measure(
        self,
        baseline: Library | None,
        candidate: Library,
        data: Mapping[str, Any],
        outputs: Collection[str],
        inouts: Collection[str] = (),
        reference: Mapping[str, NDArray[Any]] | None = None,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
        *,
        reduction_length: int = 1,
        threads: int | None = None,
        counters: bool = False,
        baseline_s: float | None = None,
        updated: Collection[str] | None = None,
        quantised: Collection[str] = (),
    ) -> Measurement:
        """Verify the candidate against `reference` (None: only that it runs within bounds), then
        time it and the baseline in turn, in one process.

        reduction_length: terms of the longest sum behind an output; it widens the tolerance. quantised:
        outputs that are integers made of real numbers. baseline_s: of
        a baseline that was timed before and takes too long to be run again; `baseline` is None then. updated:
        those of `inouts`, None for all, that are read before they are written: they start from `data` in
        every timed run, which takes them out of the caches that the last run left them in.
        Never raises for what the candidate does; raises MeasureError when the baseline fails, or
        the machinery.
        """
        threads = threads or self.threads
        updated = list(inouts if updated is None else updated)
        job = self._job(
            candidate, data, outputs, inouts, limits, verify=reference is not None, updated=updated,
            baseline=_described(baseline, data) if baseline else None, baseline_s=baseline_s,
            reduction_length=reduction_length, quantised=list(quantised), threads=threads, counters=counters,
            team_copy=team_copy_library() if updated and threads > 1 else None,
        )  # fmt: skip
        arrays = as_arrays(data)
        runs: list[Measurement] = []
        while len(runs) < limits.processes and all(run.status == "ok" for run in runs):
            result, _ = self._request(job, arrays, reference or {})
            runs.append(_measurement(result, baseline, candidate, threads))
        return pool(runs)

    def start(self) -> None:
        """Start the server, which takes a moment, ahead of the first request."""
        with self._guard:
            self._started()

    def _started(self) -> _ServerProcess:
        if self._server is None:
            self._server = _ServerProcess()
            weakref.finalize(self, self._server.stop)
        return self._server

    def close(self) -> None:
        """End the server, and with it whatever it runs."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _job(
        self,
        candidate: Library,
        data: Mapping[str, Any],
        outputs: Collection[str],
        inouts: Collection[str],
        limits: Limits,
        **given: Any,
    ) -> dict[str, Any]:
        """What the server is asked: to run the candidate once, and what is `given` beyond that."""
        described = _described(candidate, data)
        for name in (*outputs, *inouts):
            if name not in data:
                raise MeasureError(f"output {name!r} has no array in data")
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        total = sum(Layout.of(name, array).nbytes for name, array in as_arrays(data).items())
        return {
            "baseline": None,
            "baseline_s": None,
            "candidate": described,
            "outputs": list(dict.fromkeys((*outputs, *inouts))),
            "inouts": list(inouts),
            "updated": [],
            "verify": False,
            "limits": {**asdict(limits), "budget_s": limits.budget_s / limits.processes},
            "memory_bytes": limits.memory_bytes or max(4 * total, machine // 2),
            "reduction_length": 1,
            "quantised": [],
            "threads": self.threads,
            "team_copy": None,
            "lock": self._lock,
            "fetch": False,
            "counters": False,
            **given,
        }

    def _request(
        self, job: dict[str, Any], data: Mapping[str, NDArray[Any]], reference: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, Any], list[Bytes]]:
        blobs: dict[str, Bytes] = {}
        job = {**job, "data": describe(data, blobs)}
        job["reference"] = describe(reference, blobs) if job["verify"] else None
        with self._guard:
            for last_try in (False, True):
                server = self._started()
                try:
                    return server.ask(job, blobs)
                except (EOFError, ConnectionError):
                    self.close()
                    if last_try:
                        raise MeasureError("the measuring server died twice on one request") from None
                except BaseException:  # Ctrl-C: an answer is still to come, so this server is of no more use
                    self.close()
                    raise
        raise AssertionError("unreachable")


def _described(library: Library, data: Mapping[str, Any]) -> dict[str, Any]:
    """For the server. Raises MeasureError where an argument has no value, or a type that nothing passes."""
    for argument in (*library.arguments, *library.init):
        if argument.name not in data:
            raise MeasureError(f"argument {argument.name!r} of {library.symbol} has no value in data")
        if argument.ctype != "*" and argument.ctype not in CTYPES:
            raise MeasureError(
                f"argument {argument.name!r} of {library.symbol}: expected '*' or one of "
                f"{', '.join(CTYPES)}, got {argument.ctype!r}"
            )
    return library.to_dict()


def _measurement(
    result: Mapping[str, Any], baseline: Library | None, candidate: Library, threads: int
) -> Measurement:
    if result["status"] == "ok":
        measured = Measurement.from_samples(result["candidate"], result["baseline"])
    elif result["blame"] == "candidate":
        measured = Measurement(result["status"], detail=result["detail"])
    else:
        whose = f"the baseline {baseline.symbol}" if baseline else "the measuring process"
        raise MeasureError(f"{whose} failed: {result['status']}, {result['detail']}")
    return replace(
        measured,
        threads=threads,
        compiler=candidate.compiler,
        flags=candidate.flags,
        counters=result.get("counters"),
    )


class _ServerProcess:
    """A running server and what it is known to hold."""

    def __init__(self) -> None:
        # numpy's own BLAS would start threads there, and threads do not survive a fork.
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.child = Child.spawn("gnnperf.measure.server", environment)
        self._held: set[str] = set()

    def ask(self, job: Mapping[str, Any], blobs: Mapping[str, Bytes]) -> tuple[dict[str, Any], list[Bytes]]:
        new = [key for key in blobs if key not in self._held]
        message = {**job, "keep": list(blobs), "new": new}
        send(self.child.channel, message, *(np.ascontiguousarray(blobs[key]) for key in new))
        self._held = set(blobs)
        return receive(self.child.channel)

    def stop(self) -> None:
        """Hung up on, the server ends its child, with all that this one started, and itself."""
        self.child.end(patience_s=2.0)
