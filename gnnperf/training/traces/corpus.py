"""Reading a corpus of measured TVM schedules: workloads, and what each of their schedules took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gnnperf.corpus.reader import read_corpus
from gnnperf.errors import InputError
from gnnperf.measure.statistics import Interval

HELD_OUT = "held_out"
"""Split of the workloads that models must not learn from."""


@dataclass(frozen=True)
class MeasuredSchedule:
    """trace: as TVM writes it, with its post-processing. runtime_s, interval_s: of the median, in seconds;
    None where status is not "ok"."""

    trace: Sequence[Any]
    status: str
    runtime_s: float | None = None
    interval_s: Interval | None = None


@dataclass(frozen=True)
class MeasuredWorkload:
    """An operator of one kind at one size, and its schedules in the order of measuring. split: "training" or
    HELD_OUT. threads: that they ran on. baseline_s: median runtime of the unscheduled function."""

    name: str
    kind: str
    params: Mapping[str, Any]
    split: str
    threads: int
    baseline_s: float
    schedules: tuple[MeasuredSchedule, ...]


@dataclass(frozen=True)
class TensorCorpus:
    """workloads: in the order of the log. device: fingerprint of the machine. digest: of its
    schedules and their samples."""

    workloads: tuple[MeasuredWorkload, ...]
    device: str
    digest: str

    @cached_property
    def records(self) -> int:
        """Schedules in all, failed ones among them."""
        return sum(len(w.schedules) for w in self.workloads)


def load_tensor_corpus(folder: Path) -> TensorCorpus:
    """Read a corpus folder of TVM workloads, sealed or not.

    Workloads without a schedule that ran are left out: nothing can be said of the others. Raises InputError:
    not such a folder, damaged, or measured on several machines.
    """
    found = read_corpus(folder)
    schedules: dict[str, list[MeasuredSchedule]] = {name: [] for name in found.tasks}
    for record in found.sequence:
        if "trace" not in record.schedule:
            raise InputError(f"expected a corpus of TVM schedules, got one of other schedules in {folder}")
        trace = record.schedule["trace"]
        measured = MeasuredSchedule(trace, record.status, record.runtime_s, record.interval_s)
        schedules[record.task].append(measured)
    workloads = tuple(
        MeasuredWorkload(
            task.name, task.family, task.parameters, task.split, task.threads, task.baseline_s,
            tuple(schedules[name]),
        )
        for name, task in found.tasks.items()
        if any(schedule.status == "ok" for schedule in schedules[name])
    )  # fmt: skip
    if not workloads:
        raise InputError(f"{folder} holds no schedule that ran; collect more with `gnnperf collect`")
    return TensorCorpus(workloads, found.device, found.digest)
