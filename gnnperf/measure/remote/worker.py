"""The process that runs schedules of one packed workload: `python -m gnnperf.measure.remote.worker`.

It reads its job, one JSON object, from standard input and reports in lines of JSON on standard output, each
before and after what it says: what was begun when the process died is what killed it. It ends itself after a
run that failed, because an error of a GPU stays with the process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnperf.measure.remote.runtime import Loaded

BASELINE = -1
"""Number of the baseline among a workload's schedules."""


def main() -> None:
    """Do the job of standard input."""
    job = json.load(sys.stdin)
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not mix with the reports
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # tvm_ffi would import it, for nothing
    Worker(job, channel).run()


class Worker:
    """job: `pack`, `device`, `arch`, `workload` (its line), `schedules` (number -> line), `numbers` in the
    order of running, `kept` (folder of references), `best_s`, and the fields of PackLimits."""

    def __init__(self, job: Mapping[str, Any], channel: IO[str]) -> None:
        from gnnperf.measure.remote.problem import PackedProblem
        from gnnperf.measure.remote.runtime import CPU, Runtime

        self.job, self._channel = job, channel
        self.pack = Path(job["pack"])
        folder = self.pack / "runtime"
        host = Runtime(folder, CPU, self.pack, job["arch"])
        self.problem = PackedProblem.solve(job["workload"], self.pack, host, Path(job["kept"]))
        self.runtime = Runtime(folder, job["device"], self.pack, job["arch"])
        self.best_s = float(job["best_s"])
        self._last: tuple[str, Loaded] | None = None
        self._arguments = [self.runtime.tensor(array) for array in self.problem.inputs]

    def run(self) -> None:
        """Run what is asked for, until something fails to run."""
        self._report(event="ready")
        for number in self.job["numbers"]:
            self._report(event="begin", n=number)
            outcome = self._outcome(number)
            self._report(event="end", n=number, outcome=outcome)
            if outcome["status"] == "run_error":
                return

    def _outcome(self, number: int) -> dict[str, Any]:
        """One schedule, as a log has it."""
        reference = self.problem.reference
        try:
            library, name = self._place(number)
            loaded = self._library(library)
            output = self.runtime.empty(reference.shape, reference.dtype)
            arguments = [*self._arguments, output]
            loaded.function(name)(*arguments)
            if fault := self.problem.fault(self.runtime.numpy(output)):
                return {"status": "wrong_result", "detail": fault[:300]}
            limits = self.job["limits"]

            def times(repeats: int, sample_s: float) -> list[float]:
                found = self.runtime.times_s(loaded, name, arguments, repeats, sample_s)
                return [round(s, 10) for s in found]

            once = times(1, 0.0)
            if once[0] > max(limits["cutoff"] * self.best_s, limits["hopeless_s"]):
                return {"status": "ok", "samples_s": once, "once": True}
            samples = times(limits["repeats"], limits["sample_s"])
        except Exception as error:
            return {"status": "run_error", "detail": last_line(error)}
        self.best_s = min(self.best_s, *samples)
        return {"status": "ok", "samples_s": samples}

    def _library(self, name: str) -> Loaded:
        """The library, which holds the schedules after this one too."""
        if self._last is None or self._last[0] != name:
            self._last = name, self.runtime.load(self.pack / name)
        return self._last[1]

    def _place(self, number: int) -> tuple[str, str]:
        if number == BASELINE:
            return self.job["workload"]["baseline_library"], "main"
        line = self.job["schedules"][str(number)]
        return line["library"], line["function"]

    def _report(self, **message: Any) -> None:
        self._channel.write(json.dumps(message) + "\n")


def last_line(error: BaseException) -> str:
    """The end of an error's message, where TVM puts what went wrong."""
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"[:300]


if __name__ == "__main__":
    main()
