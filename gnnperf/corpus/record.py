"""What a corpus says: tasks, and how a schedule did on one of them. For every kind of task the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gnnperf.devices import DeviceSpec
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.measure.measurement import STATUSES, Measurement, Status
from gnnperf.measure.statistics import Interval, median_interval
from gnnperf.nests import LoopNest
from gnnperf.nests.document import nest_from_dict

TASK_KEYS = ("task", "name", "family", "frontend", "parameters", "baseline", "device")
RECORD_KEYS = ("task", "schedule_id", "schedule", "status")

SINGLE_SPREAD = 0.1
"""Half-width of the interval of a single run, relative to it: hopeless schedules are run but once."""


@dataclass(frozen=True)
class CorpusTask:
    """What schedules were measured on, from one line of `tasks.jsonl`.

    Attributes:
        task: identifies it in the corpus: the digest of a nest's graph, the name of a TVM workload or of a
            kernel at one size.
        name: of its kernel. family: of like kernels, for a TVM workload its kind.
        frontend: "dace", "tvm" or "gpu_kernels".
        parameters: the sizes that it was specialised to.
        graph: with its dynamic profile, where the corpus has it; others are extracted from the kernel.
        nest: what recipes were applied to, where the corpus has it. trip_counts: measured means of its loops
            whose bounds depend on data, by iterator.
        baseline: its name. baseline_s, baseline_interval_s: median runtime and its 95% interval.
        device: fingerprint of the machine. machine: its name. spec: its caches, cores and peaks, where the
            corpus has them. threads: that it ran on; 0: not recorded.
        split: "training" or "held_out" where the corpus says so; "" where models choose.
        about: the other keys of the line: versions, target, date.
    """

    task: str
    name: str
    family: str
    frontend: str
    parameters: Mapping[str, Any]
    graph: ProgramGraph | None
    baseline: str
    baseline_s: float
    baseline_interval_s: Interval
    device: str
    machine: str = ""
    spec: DeviceSpec | None = None
    threads: int = 0
    split: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    nest: LoopNest | None = None
    trip_counts: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def from_line(where: str, line: Mapping[str, Any]) -> CorpusTask:
        """Raises InputError, which says `where`."""
        _require(where, line, TASK_KEYS)
        try:
            graph = ProgramGraph.from_dict(line["graph"]) if "graph" in line else None
            if graph is not None:
                graph = replace(graph, profile=line.get("profile") or graph.profile)
            baseline, device = line["baseline"], line["device"]
            if "samples_s" in baseline:
                baseline_s, low, high = median_interval(baseline["samples_s"])
            else:
                baseline_s = low = high = float(baseline["runtime_s"])
            return CorpusTask(
                task=line["task"], name=line["name"], family=line["family"], frontend=line["frontend"],
                parameters=dict(line["parameters"]), graph=graph,
                baseline=baseline["name"], baseline_s=baseline_s, baseline_interval_s=(low, high),
                device=device["fingerprint"], machine=device.get("name", ""),
                spec=DeviceSpec.from_record(device, where),
                threads=int(line.get("threads", 0)), split=line.get("split", ""), about=line,
                nest=nest_from_dict(line["nest"]) if "nest" in line else None,
                trip_counts={name: float(mean) for name, mean in line.get("trip_counts", {}).items()},
            )  # fmt: skip
        except (AttributeError, InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not a task of this version ({error}); collect it again") from error


@dataclass(frozen=True)
class CorpusRecord:
    """One schedule on one task, from one line of `records.jsonl`.

    Runtimes and intervals (95% of the medians) are in seconds, and None unless `status` is "ok": what failed
    may not have been timed.

    Attributes:
        schedule_id: names the schedule among those of its task.
        schedule: `kind` ("recipe", "trace" or "configuration") and what it consists of.
        samples: timed runs; 1: it was so slow that it was given up.
        samples_s: of every run, where they were kept.
        baseline_s, baseline_interval_s: of the baseline timed beside it, else of the task's.
        origin: how it was found. device: fingerprint of the machine.
    """

    task: str
    schedule_id: str
    schedule: Mapping[str, Any]
    status: Status
    runtime_s: float | None
    interval_s: Interval | None
    baseline_s: float | None
    baseline_interval_s: Interval | None
    origin: str
    device: str = ""
    samples: int = 0
    samples_s: tuple[float, ...] = ()

    @property
    def speedup(self) -> float | None:
        """Over the baseline; None where it failed."""
        return self.baseline_s / self.runtime_s if self.baseline_s and self.runtime_s else None

    @property
    def measurement(self) -> Measurement:
        """Its figures."""
        return Measurement(
            self.status, self.runtime_s, self.interval_s, self.samples, self.baseline_s,
            self.baseline_interval_s, self.speedup,
        )  # fmt: skip

    @staticmethod
    def from_line(where: str, line: Mapping[str, Any], task: CorpusTask | None = None) -> CorpusRecord:
        """task: that it is of. Raises InputError, which says `where`."""
        _require(where, line, RECORD_KEYS)
        if line["status"] not in STATUSES:
            known = ", ".join(sorted(STATUSES))
            raise InputError(
                f"{where}: expected a status among {known}, got {line['status']!r}; collect it again"
            )
        try:
            found = CorpusRecord(
                line["task"], line["schedule_id"], line["schedule"], line["status"], None, None, None, None,
                line.get("origin", ""), line.get("device", task.device if task else ""),
            )  # fmt: skip
            return found if line["status"] != "ok" else _timed(found, line, task)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not a record of this version ({error}); collect it again") from error


def _timed(record: CorpusRecord, line: Mapping[str, Any], task: CorpusTask | None) -> CorpusRecord:
    samples_s = tuple(float(s) for s in line.get("samples_s", ()))
    if "runtime_s" in line:
        runtime_s, interval_s = float(line["runtime_s"]), _pair(line["interval_s"])
    else:
        runtime_s, low, high = median_interval(samples_s)
        interval_s = (low, high)
    if len(samples_s) == 1:
        interval_s = runtime_s * (1 - SINGLE_SPREAD), runtime_s * (1 + SINGLE_SPREAD)
    baseline_s: float | None = None
    baseline_interval_s: Interval | None = None
    if "baseline_s" in line:
        baseline_s, baseline_interval_s = float(line["baseline_s"]), _pair(line["baseline_interval_s"])
    elif task is not None:
        baseline_s, baseline_interval_s = task.baseline_s, task.baseline_interval_s
    return replace(
        record, runtime_s=runtime_s, interval_s=interval_s, baseline_s=baseline_s,
        baseline_interval_s=baseline_interval_s, samples=int(line.get("samples", len(samples_s))),
        samples_s=samples_s,
    )  # fmt: skip


def _require(where: str, line: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    if missing := [key for key in keys if key not in line]:
        raise InputError(f"{where}: expected the key {missing[0]!r}, got none; collect it again")


def _pair(raw: Any) -> Interval:
    low, high = raw
    return float(low), float(high)
