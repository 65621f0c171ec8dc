"""The process that runs schedules of one packed workload: `python -m gnnperf.measure.remote.worker`.

It receives its job, one JSON object, and reports before and after every schedule. It ends itself after a run
that failed, because an error of a GPU stays with the process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnnperf.documents import replacing
from gnnperf.measure.outcome import Outcome, Sampling, timed
from gnnperf.measure.problem import OUTPUT, Arrays, Problem, random_inputs
from gnnperf.measure.protocol import receive
from gnnperf.measure.supervisor import Report, reporter, spawned

if TYPE_CHECKING:
    from gnnperf.measure.remote.runtime import DeviceRuntime

BASELINE = "baseline"
"""Stands for the baseline among the ids of a workload's schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackLimits(Sampling):
    """start_s: for loading, and for running the unscheduled function on the host."""

    start_s: float = 300.0
    run_s: float = 20.0
    repeats: int = 5
    sample_s: float = 0.005
    cutoff: float = 4.0
    hopeless_s: float = 1e-4


def main() -> None:
    """Do the job that is sent."""
    channel = spawned()
    job, _ = receive(channel)
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # tvm_ffi would import it, for nothing
    Worker(job, reporter(channel)).run()


class Worker:
    """job: `pack`, `device`, `arch`, `workload` (its line), `schedules` (id -> line), `numbers`, ids in
    the order of running, `kept` (folder of references), `best_s`, and the fields of PackLimits."""

    def __init__(self, job: Mapping[str, Any], report: Report) -> None:
        from gnnperf.measure.remote.runtime import CPU, DeviceRuntime

        self.job, self._report = job, report
        self.limits = PackLimits(**job["limits"])
        self.pack = Path(job["pack"])
        folder = self.pack / "runtime"
        host = DeviceRuntime(folder, CPU, self.pack, job["arch"])
        self.problem = solved(job["workload"], self.pack, host, Path(job["kept"]))
        self.runtime = DeviceRuntime(folder, job["device"], self.pack, job["arch"])
        self.best_s = float(job["best_s"])
        self._last: tuple[str, Any] | None = None
        self._inputs = [self.runtime.tensor(array) for array in self.problem.inputs.values()]

    def run(self) -> None:
        """Run what is asked for, until something fails to run."""
        for number in self.job["numbers"]:
            self._report(begin=number, limit_s=self.limits.run_s)
            outcome = self._outcome(*self._place(number))
            self._report(end=number, outcome=outcome.to_dict())
            if outcome.status == "run_error":
                return
            self.best_s = min([self.best_s, *outcome.samples_s])

    def _outcome(self, library: str, name: str) -> Outcome:
        reference = self.problem.reference[OUTPUT]
        arguments = [*self._inputs, self.runtime.empty(reference.shape, reference.dtype)]

        def run() -> Arrays:
            self._library(library)[name](*arguments)
            return {OUTPUT: self.runtime.numpy(arguments[-1])}

        def times_s(repeats: int, sample_s: float) -> list[float]:
            return self.runtime.times_s(self._library(library), name, arguments, repeats, sample_s)

        return timed(run, times_s, self.problem, self.limits, self.best_s)

    def _library(self, name: str) -> Any:
        """The library, which holds the schedules after this one too."""
        if self._last is None or self._last[0] != name:
            self._last = name, self.runtime.load(self.pack / name)
        return self._last[1]

    def _place(self, number: str) -> tuple[str, str]:
        if number == BASELINE:
            return self.job["workload"]["baseline_library"], "main"
        line = self.job["schedules"][number]
        return line["library"], line["function"]


def solved(about: Mapping[str, Any], folder: Path, host: DeviceRuntime, kept: Path) -> Problem:
    """The problem of a packed workload: inputs from their seed, and the reference from the unscheduled
    function, run on the host.

    about: the workload's line. kept: a folder in which references stay, for the next process.
    """
    *shapes, out = [(shape, np.dtype(dtype)) for shape, dtype in about["arguments"]]
    inputs = random_inputs(shapes, about["seed"])
    file = kept / f"{about['task']}.npz"
    if not file.is_file():
        function = host.load(folder / about["reference"])["main"]

        def solve(arrays: Arrays) -> Arrays:
            result = host.empty(*out)
            function(*map(host.tensor, arrays.values()), result)
            return {OUTPUT: host.numpy(result)}

        found = Problem.solved(inputs, solve, about["reduction_length"])
        with replacing(file) as partial, partial.open("wb") as opened:
            np.savez(opened, reference=found.reference[OUTPUT], length=found.reduction_length)
    with np.load(file) as known:
        return Problem(inputs, [OUTPUT], {OUTPUT: known["reference"]}, int(known["length"]))


if __name__ == "__main__":
    main()
