"""Measuring a pack: every workload's schedules in processes that may crash or hang, into a log."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.devices import FoundGpu
from gnnperf.errors import InputError, MeasureError
from gnnperf.measure.protocol import send
from gnnperf.measure.remote.lines import LineLog
from gnnperf.measure.remote.pack import BUILT_KEYS, HOW_KEYS, Pack, PackedWorkload
from gnnperf.measure.remote.worker import BASELINE, PackLimits
from gnnperf.measure.supervisor import Child, Failed, Message, in_succession

LOG_FILES = ("workloads", "schedules", "done")
"""Of the log: those of a corpus of TVM schedules."""


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
        ((_, outcome),) = self._outcomes(workload, [BASELINE], float("inf"))
        if outcome["status"] != "ok":
            raise MeasureError(f"the baseline: {outcome['status']}, {outcome.get('detail', '')}")
        about = {key: value for key, value in workload.about.items() if key not in HOW_KEYS}
        collected = time.strftime("%Y-%m-%d", time.gmtime())
        measured = {"baseline_samples_s": outcome["samples_s"], **self.machine, "collected": collected}
        self.log.add("workloads", {**about, **measured})

    def _run(self, workload: PackedWorkload, numbers: Sequence[int], best_s: float) -> None:
        for n, outcome in self._outcomes(workload, numbers, best_s):
            line = {key: value for key, value in workload.schedules[n].items() if key not in BUILT_KEYS}
            self.log.add("schedules", {**line, **outcome})

    def _outcomes(
        self, workload: PackedWorkload, numbers: Sequence[int], best_s: float
    ) -> Iterator[tuple[int, Message]]:
        """Run schedules in processes that each live until one fails. Raises MeasureError where what they need
        first does."""

        def start(left: Sequence[int]) -> Child:
            child = Child.spawn("gnnperf.measure.remote.worker")
            with suppress(OSError):  # it died, which is found out next
                send(child.channel, self._job(workload, left, best_s))
            return child

        try:
            yield from in_succession(numbers, start, self.limits.start_s)
        except Failed as failure:
            raise MeasureError(f"no schedule could be run: {failure}") from None

    def _job(self, workload: PackedWorkload, numbers: Sequence[int], best_s: float) -> dict[str, Any]:
        placed = {n: {key: workload.schedules[n][key] for key in BUILT_KEYS} for n in numbers if n >= 0}
        return {
            "pack": str(self.pack.folder), "device": self.device, "arch": self.pack.arch,
            "workload": workload.about, "schedules": placed,
            "numbers": list(numbers), "kept": str(self.kept), "best_s": min(best_s, 1e9),
            "limits": dataclasses.asdict(self.limits),
        }  # fmt: skip
