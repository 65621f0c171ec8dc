"""What `gnnperf retrieve` found: plain data, the same for people, for `--json` and for the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnnperf.backends.base import Candidate
from gnnperf.measure import Evidence, Measurement, Timing

Interval = tuple[float, float]


@dataclass(frozen=True)
class TriedReport:
    """One candidate schedule of one nest.

    `neighbour` is the digest of the nest it was tuned for. `status` is a measurement status, or
    "not_measured" where the model's word was taken or the budget had ended.
    """

    rank: int
    neighbour: str
    neighbour_kernel: str
    distance: float
    score: float
    schedule: Mapping[str, Any]
    words: str
    status: str
    speedup: float | None = None
    speedup_interval: Interval | None = None
    runtime_s: float | None = None
    detail: str = ""

    @staticmethod
    def of(rank: int, candidate: Candidate, measurement: Measurement | None) -> TriedReport:
        """measurement: None where it was not measured."""
        found = measurement or Measurement("not_applicable")
        return TriedReport(
            rank=rank,
            neighbour=candidate.neighbour,
            neighbour_kernel=candidate.neighbour_kernel,
            distance=candidate.distance,
            score=candidate.score,
            schedule=candidate.schedule.to_dict(),
            words=candidate.words,
            status=measurement.status if measurement else "not_measured",
            speedup=found.speedup,
            speedup_interval=found.speedup_interval,
            runtime_s=found.runtime_s,
            detail=found.detail,
        )


@dataclass(frozen=True)
class Comparison:
    """Another library's implementation. status: of measuring it; "not_applicable" where it has none, and
    `detail` says so. speedup: its median over that of what was kept, which is timed in turn with it."""

    library: str
    status: str
    timing: Timing | None = None
    speedup: float | None = None
    speedup_interval: Interval | None = None
    detail: str = ""


def comparison(name: str, theirs: Measurement, ours: Timing | None) -> Comparison:
    """What is told of another library. ours: of what was kept, where that is not the measurement's
    baseline."""
    found = theirs.over(ours) if ours is not None and theirs.baseline_s is None else theirs
    if found.speedup is None or found.speedup_interval is None:
        return Comparison(name, found.status, detail=found.detail)
    lo, hi = found.speedup_interval
    return Comparison(name, "ok", found.timing, 1 / found.speedup, (1 / hi, 1 / lo))


@dataclass(frozen=True)
class NestReport:
    """One nest: what it was compared with and what became of it. Times are seconds per execution.

    baseline_name, baseline_note: what the nest's own baseline is, which may be faster than what the kernel's
    baseline makes of it, and why.

    confidence: probability that the best measured candidate comes within 10% of the best known schedule;
    confident: whether that is enough to say so. None where nothing was measured, or it was never learned.
    """

    name: str
    digest: str
    baseline_s: float | None
    baseline_name: str
    baseline_note: str
    best_s: float | None
    abstained: bool
    reason: str
    accepted: Mapping[str, Any] | None
    accepted_words: str = ""
    share: float | None = None
    """Of the kernel's runtime that the nest takes, once."""
    confidence: float | None = None
    confident: bool | None = None
    candidates: list[TriedReport] = field(default_factory=list)
    neighbours: list[Mapping[str, Any]] = field(default_factory=list)
    beside: list[Comparison] = field(default_factory=list)
    search: Mapping[str, Any] | None = None
    """Of `gnnperf tune`: `trials` measured now, `known` from before, `origins` and `statuses` with their
    counts, `best_s` after so many of all (`after`)."""


@dataclass(frozen=True)
class RetrievalReport:
    """The whole answer. `speedup` is baseline median / tuned median, measured interleaved; with
    `kept_baseline` the tuned kernel is the baseline itself."""

    kernel: str
    device: str
    baseline_name: str
    baseline_note: str
    baseline: Timing | None
    tuned: Timing | None
    speedup: float | None
    speedup_interval: Interval | None
    verified: bool
    kept_baseline: bool
    note: str
    candidates_measured: int
    wall_s: float
    nests: list[NestReport]
    skipped: list[Mapping[str, str]]
    stages_s: Mapping[str, float] = field(default_factory=dict)
    beside: list[Comparison] = field(default_factory=list)
    """Other libraries' implementations of a whole kernel of several tasks."""
    verification: Evidence | None = None
    """What the results of what is kept were verified on; None where nothing was."""
    failed: bool = False
    """Whether the whole could not be measured; `note` says why."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `gnnperf retrieve --json`."""
        return {
            "kernel": self.kernel,
            "device": self.device,
            "beside": self.beside,
            "baseline": {"name": self.baseline_name, "note": self.baseline_note, **_timing(self.baseline)},
            "tuned": _timing(self.tuned),
            "speedup": self.speedup,
            "speedup_interval": self.speedup_interval,
            "verified": self.verified,
            "verification": self.verification,
            "failed": self.failed,
            "kept_baseline": self.kept_baseline,
            "note": self.note,
            "candidates_measured": self.candidates_measured,
            "wall_s": self.wall_s,
            "stages_s": self.stages_s,
            "nests": self.nests,
            "skipped": self.skipped,
        }


def _timing(timing: Timing | None) -> dict[str, Any]:
    if timing is None:
        return {"runtime_s": None, "interval_s": None}
    return {"runtime_s": timing.runtime_s, "interval_s": list(timing.interval_s)}
