"""Measuring a pack: every workload's schedules in processes that may crash or hang, into a log."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.devices import FoundGpu
from gnnperf.errors import InputError, MeasureError
from gnnperf.measure.remote.lines import LineLog
from gnnperf.measure.remote.pack import BUILT_KEYS, HOW_KEYS, Pack, PackedWorkload
from gnnperf.measure.remote.process import WorkerProcess
from gnnperf.measure.remote.worker import BASELINE

LOG_FILES = ("workloads", "schedules", "done")
"""Of the log: those of a corpus of TVM schedules."""


@dataclass(frozen=True, slots=True)
class PackLimits:
    """start_s: for loading, and for running the unscheduled function on the host. run_s: for one schedule
    with its verification. repeats, sample_s: timed samples, and the least length of each. cutoff: a schedule
    this many times slower than the best so far, and slower than hopeless_s, is timed by one run alone."""

    start_s: float = 300.0
    run_s: float = 20.0
    repeats: int = 5
    sample_s: float = 0.005
    cutoff: float = 4.0
    hopeless_s: float = 1e-4


def machine_of(gpu: FoundGpu, arch: str) -> dict[str, Any]:
    """What a log says of the GPU that it was measured on. Raises InputError where it does not run code for
    `arch`."""
    spec = gpu.spec
    if not _runs(arch, spec.isa):
        raise InputError(
            f"expected a GPU that runs {arch}, which the pack was built for, got {spec.name} ({spec.isa}); "
            f"pack for it: --arch {spec.isa}"
        )
    word = "-".join(re.findall("[a-z0-9]+", spec.name.lower()))
    known: dict[str, Any] = {"threads": spec.threads, "device": f"cuda/{spec.isa}/{word}"}
    return {**known, "machine": spec.name, "driver": gpu.driver}


def _runs(arch: str, isa: str) -> bool:
    """Machine code runs on later GPUs of the same generation; that for one architecture alone only there."""
    (wanted, alone), found = (int(arch[3:].rstrip("a")), arch.endswith("a")), int(isa[3:])
    return found == wanted or (not alone and found // 10 == wanted // 10 and found > wanted)


def measure_pack(
    pack: Pack,
    log: LineLog,
    device: str,
    machine: Mapping[str, Any],
    limits: PackLimits | None = None,
    report: Callable[[str], None] = print,
) -> None:
    """Measure what the log does not have yet.

    device: "cuda" or "cpu". machine: what the log says of it in every workload's line (`device`, its
    fingerprint, `machine`, `threads`). report: gets a line after each workload.
    """
    with tempfile.TemporaryDirectory(prefix="gnnperf-pack-") as kept:
        measuring = _Measuring(pack, log, device, machine, limits or PackLimits(), Path(kept))
        for position, workload in enumerate(pack.workloads, start=1):
            said = measuring.workload(workload)
            report(f"{position}/{len(pack.workloads)} {workload.name}: {said}")


@dataclass
class _Measuring:
    pack: Pack
    log: LineLog
    device: str
    machine: Mapping[str, Any]
    limits: PackLimits
    kept: Path

    def workload(self, workload: PackedWorkload) -> str:
        """Measure what is missing of one; a word on how it went."""
        known = [line for line in self.log.lines["schedules"] if line["workload"] == workload.name]
        done = {line["n"] for line in known}
        self._note_failed_builds(workload, done)
        missing = [n for n, line in workload.schedules.items() if n not in done and "library" in line]
        samples = [s for line in known for s in line.get("samples_s", ())]
        new = all(line["workload"] != workload.name for line in self.log.lines["workloads"])
        try:
            if new:
                self._baseline(workload)
            self._run(workload, missing, min(samples, default=float("inf")))
        except MeasureError as error:
            return str(error)
        mine = [line for line in self.log.lines["schedules"] if line["workload"] == workload.name]
        return f"{len(mine)} schedules, {sum(line['status'] == 'ok' for line in mine)} ok"

    def _note_failed_builds(self, workload: PackedWorkload, done: set[int]) -> None:
        failed = [line for n, line in workload.schedules.items() if n not in done and "library" not in line]
        self.log.add("schedules", *failed)

    def _baseline(self, workload: PackedWorkload) -> None:
        """Time it, and add the workload to the log. Raises MeasureError where it does not run."""
        found: dict[int, Mapping[str, Any]] = {}
        self._follow(workload, [BASELINE], float("inf"), found.__setitem__)
        outcome = found[BASELINE]
        if outcome["status"] != "ok":
            raise MeasureError(f"the baseline: {outcome['status']}, {outcome.get('detail', '')}")
        about = {key: value for key, value in workload.about.items() if key not in HOW_KEYS}
        collected = time.strftime("%Y-%m-%d", time.gmtime())
        measured = {"baseline_samples_s": outcome["samples_s"], **self.machine, "collected": collected}
        self.log.add("workloads", {**about, **measured})

    def _run(self, workload: PackedWorkload, numbers: Sequence[int], best_s: float) -> None:
        def keep(n: int, outcome: Mapping[str, Any]) -> None:
            line = {key: value for key, value in workload.schedules[n].items() if key not in BUILT_KEYS}
            self.log.add("schedules", {**line, **outcome})
            found.add(n)

        found: set[int] = set()
        while left := [n for n in numbers if n not in found]:
            self._follow(workload, left, best_s, keep)

    def _follow(
        self,
        workload: PackedWorkload,
        numbers: Sequence[int],
        best_s: float,
        keep: Callable[[int, Mapping[str, Any]], None],
    ) -> None:
        """Have a process run schedules for as long as it lives. Raises MeasureError where it does not begin
        with any: what it needs first fails."""
        begun: int | None = None
        answered = False
        with WorkerProcess(self._job(workload, numbers, best_s)) as process:
            for message in process.messages(self.limits.start_s, self.limits.run_s):
                if message["event"] == "begin":
                    begun, answered = message["n"], True
                elif message["event"] == "end":
                    begun = None
                    keep(message["n"], message["outcome"])
            if begun is not None:
                keep(begun, {"status": "timeout"} if process.hung else process.failure())
            elif not answered:
                raise MeasureError(process.complaint())

    def _job(self, workload: PackedWorkload, numbers: Sequence[int], best_s: float) -> dict[str, Any]:
        placed = {n: {key: workload.schedules[n][key] for key in BUILT_KEYS} for n in numbers if n >= 0}
        return {
            "pack": str(self.pack.folder), "device": self.device, "arch": self.pack.arch,
            "workload": workload.about, "schedules": placed,
            "numbers": list(numbers), "kept": str(self.kept), "best_s": min(best_s, 1e9),
            "limits": dataclasses.asdict(self.limits),
        }  # fmt: skip
