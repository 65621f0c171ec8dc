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
from gnnperf.measure.record_log import Line, RecordLog
from gnnperf.measure.remote.pack import BUILT_KEYS, HOW_KEYS, Pack, PackedWorkload
from gnnperf.measure.remote.worker import BASELINE, PackLimits
from gnnperf.measure.supervisor import Child, Failed, Message, in_succession


def machine_of(gpu: FoundGpu, arch: str) -> dict[str, Any]:
    """What a log says of the GPU that it was measured on. Raises InputError where it does not run code for
    `arch`."""
    spec = gpu.spec
    if not _runs(arch, spec.isa):
        raise InputError(
            f"expected a GPU that runs {arch}, which the pack was built for, got {spec.name} ({spec.isa}); "
            f"pack for it: --arch {spec.isa}"
        )
    return {"threads": spec.threads, "device": gpu_device(gpu), "driver": gpu.driver}


def gpu_device(gpu: FoundGpu) -> dict[str, str]:
    """What tells a log's GPU from others: fingerprint and name."""
    word = "-".join(re.findall("[a-z0-9]+", gpu.spec.name.lower()))
    return {"fingerprint": f"cuda/{gpu.spec.isa}/{word}", "name": gpu.spec.name}


def _runs(arch: str, isa: str) -> bool:
    """Machine code runs on later GPUs of the same generation; that for one architecture alone only there."""
    (wanted, alone), found = (int(arch[3:].rstrip("a")), arch.endswith("a")), int(isa[3:])
    return found == wanted or (not alone and found // 10 == wanted // 10 and found > wanted)


def measure_pack(
    pack: Pack,
    log: RecordLog,
    device: str,
    machine: Mapping[str, Any],
    limits: PackLimits | None = None,
    report: Callable[[str], None] = print,
) -> None:
    """Measure what the log does not have yet.

    device: "cuda" or "cpu". machine: what the log says of it in every workload's line: `device` with its
    fingerprint and name, `threads`. report: gets a line after each workload. Raises InputError where the log
    is of another machine.
    """
    log.require_device(machine["device"]["fingerprint"])
    with tempfile.TemporaryDirectory(prefix="gnnperf-pack-") as kept:
        measuring = _Measuring(pack, log, device, machine, limits or PackLimits(), Path(kept))
        for position, workload in enumerate(pack.workloads, start=1):
            said = measuring.workload(workload)
            report(f"{position}/{len(pack.workloads)} {workload.name}: {said}")


@dataclass
class _Measuring:
    pack: Pack
    log: RecordLog
    device: str
    machine: Mapping[str, Any]
    limits: PackLimits
    kept: Path

    def workload(self, workload: PackedWorkload) -> str:
        """Measure what is missing of one; a word on how it went."""
        known = self._known(workload)
        self._note_failed_builds(workload, known)
        missing = [n for n, line in workload.schedules.items() if n not in known and "library" in line]
        samples = [s for line in known.values() for s in line.get("samples_s", ())]
        try:
            if workload.name not in self.log.tasks:
                self._baseline(workload)
            self._run(workload, missing, min(samples, default=float("inf")))
        except MeasureError as error:
            return str(error)
        mine = self._known(workload).values()
        return f"{len(mine)} schedules, {sum(line['status'] == 'ok' for line in mine)} ok"

    def _known(self, workload: PackedWorkload) -> dict[str, Line]:
        return self.log.records.get(workload.name, {})

    def _note_failed_builds(self, workload: PackedWorkload, known: Mapping[str, Line]) -> None:
        failed = [line for n, line in workload.schedules.items() if n not in known and "library" not in line]
        self.log.add("records", *failed)

    def _baseline(self, workload: PackedWorkload) -> None:
        """Time it, and add the workload to the log. Raises MeasureError where it does not run."""
        ((_, outcome),) = self._outcomes(workload, [BASELINE], float("inf"))
        if outcome["status"] != "ok":
            raise MeasureError(f"the baseline: {outcome['status']}, {outcome.get('detail', '')}")
        about = {key: value for key, value in workload.about.items() if key not in HOW_KEYS}
        collected = time.strftime("%Y-%m-%d", time.gmtime())
        baseline = {**about["baseline"], "samples_s": outcome["samples_s"]}
        self.log.add("tasks", {**about, **self.machine, "baseline": baseline, "collected": collected})

    def _run(self, workload: PackedWorkload, numbers: Sequence[str], best_s: float) -> None:
        for n, outcome in self._outcomes(workload, numbers, best_s):
            line = {key: value for key, value in workload.schedules[n].items() if key not in BUILT_KEYS}
            self.log.add("records", {**line, **outcome})

    def _outcomes(
        self, workload: PackedWorkload, numbers: Sequence[str], best_s: float
    ) -> Iterator[tuple[str, Message]]:
        """Run schedules in processes that each live until one fails. Raises MeasureError where what they need
        first does."""

        def start(left: Sequence[str]) -> Child:
            child = Child.spawn("gnnperf.measure.remote.worker")
            with suppress(OSError):  # it died, which is found out next
                send(child.channel, self._job(workload, left, best_s))
            return child

        try:
            yield from in_succession(numbers, start, self.limits.start_s)
        except Failed as failure:
            raise MeasureError(f"no schedule could be run: {failure}") from None

    def _job(self, workload: PackedWorkload, numbers: Sequence[str], best_s: float) -> dict[str, Any]:
        built = [n for n in numbers if n != BASELINE]
        placed = {n: {key: workload.schedules[n][key] for key in BUILT_KEYS} for n in built}
        return {
            "pack": str(self.pack.folder), "device": self.device, "arch": self.pack.arch,
            "workload": workload.about, "schedules": placed,
            "numbers": list(numbers), "kept": str(self.kept), "best_s": min(best_s, 1e9),
            "limits": dataclasses.asdict(self.limits),
        }  # fmt: skip
