"""Reading a corpus of measured TVM schedules: workloads, and what each of their schedules took."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gnnperf.corpus.lines import read_corpus_lines
from gnnperf.errors import InputError
from gnnperf.measure.measurement import STATUSES
from gnnperf.measure.statistics import Interval, median_interval

HELD_OUT = "held_out"
"""Split of the workloads that models must not learn from."""

SINGLE_SPREAD = 0.1
"""Half-width of the interval of a single run, relative to it: hopeless schedules are run but once."""

WORKLOAD_KEYS = ("workload", "kind", "params", "split", "threads", "device", "baseline_samples_s")
SCHEDULE_KEYS = ("workload", "n", "status", "trace")


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
    """workloads: in the order of the log. device: fingerprint of the machine. digest: of all lines."""

    workloads: tuple[MeasuredWorkload, ...]
    device: str
    digest: str

    @cached_property
    def records(self) -> int:
        """Schedules in all, failed ones among them."""
        return sum(len(w.schedules) for w in self.workloads)

    def of_kinds(self, kinds: Sequence[str]) -> TensorCorpus:
        """Only workloads of these kinds. Raises InputError for a kind that there is not."""
        known = sorted({w.kind for w in self.workloads})
        if unknown := [kind for kind in kinds if kind not in known]:
            raise InputError(f"expected kinds out of {', '.join(known)}, got {unknown[0]!r}")
        return replace(self, workloads=tuple(w for w in self.workloads if w.kind in kinds))


def load_tensor_corpus(folder: Path) -> TensorCorpus:
    """Read the folder that `scripts/collect_tensor.py` wrote, sealed or not.

    Workloads without a schedule that ran are left out: nothing can be said of the others. Raises InputError:
    not such a folder, damaged, or measured on several machines.
    """
    digest = hashlib.sha256()
    schedules: dict[str, list[MeasuredSchedule]] = defaultdict(list)
    for where, raw in _lines(folder, "schedules", SCHEDULE_KEYS):
        schedules[raw["workload"]].append(_schedule(where, raw))
        digest.update(json.dumps([raw["workload"], raw["trace"], raw.get("samples_s")]).encode())
    workloads: list[MeasuredWorkload] = []
    devices: set[str] = set()
    for _, raw in _lines(folder, "workloads", WORKLOAD_KEYS):
        mine = tuple(schedules[raw["workload"]])
        devices.add(raw["device"])
        if any(s.status == "ok" for s in mine):
            baseline = statistics.median(raw["baseline_samples_s"])
            workloads.append(
                MeasuredWorkload(
                    raw["workload"],
                    raw["kind"],
                    raw["params"],
                    raw["split"],
                    raw["threads"],
                    baseline,
                    mine,
                )
            )
    if not workloads:
        raise InputError(f"{folder} holds no schedule that ran; collect more with scripts/collect_tensor.py")
    if len(devices) > 1:
        raise InputError(f"expected a corpus of one machine, got {', '.join(sorted(devices))} in {folder}")
    return TensorCorpus(tuple(workloads), devices.pop(), digest.hexdigest()[:16])


def _schedule(where: str, raw: Mapping[str, Any]) -> MeasuredSchedule:
    if raw["status"] not in STATUSES:
        raise InputError(f"{where}: expected a status among {', '.join(STATUSES)}, got {raw['status']!r}")
    if raw["status"] != "ok":
        return MeasuredSchedule(raw["trace"], raw["status"])
    try:
        median, low, high = median_interval(raw["samples_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not a measured schedule ({error}); collect it again") from None
    if len(raw["samples_s"]) == 1:
        low, high = median * (1 - SINGLE_SPREAD), median * (1 + SINGLE_SPREAD)
    return MeasuredSchedule(raw["trace"], "ok", median, (low, high))


def _lines(folder: Path, name: str, keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, line) of a file of the log."""
    return read_corpus_lines(folder, name, keys, "a corpus of TVM schedules", "scripts/collect_tensor.py")
