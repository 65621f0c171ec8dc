"""What retrieval for DaCe kernels and for TVM kernels have in common: reports, times, records in stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.report import Tried
from gnnperf.store import Neighbour, Nest, Record, Store

T = TypeVar("T")


class Borrowed(Protocol):
    """A candidate: a neighbour's schedule."""

    @property
    def neighbour(self) -> str: ...
    @property
    def neighbour_kernel(self) -> str: ...
    @property
    def distance(self) -> float: ...
    @property
    def score(self) -> float: ...


@dataclass
class Stages:
    """seconds: wall time by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        """What the work gives; its time is added to the stage's."""
        started = time.monotonic()
        try:
            return work()
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - started


def fastest(tried: Sequence[tuple[T, Measurement]]) -> tuple[T, Measurement] | None:
    """The fastest candidate that beats the baseline; None where none does."""
    good = [pair for pair in tried if pair[1].faster_beyond_noise]
    return min(good, key=lambda pair: pair[1].runtime_s or 0.0, default=None)


def report_tried(
    rank: int, candidate: Borrowed, schedule: Mapping[str, Any], words: str, measurement: Measurement | None
) -> Tried:
    """What is said of a candidate. measurement: None where it was not measured."""
    found = measurement or Measurement("not_applicable")
    return Tried(
        rank=rank,
        neighbour=candidate.neighbour,
        neighbour_kernel=candidate.neighbour_kernel,
        distance=candidate.distance,
        score=candidate.score,
        schedule=schedule,
        words=words,
        status=measurement.status if measurement else "not_measured",
        speedup=found.speedup,
        speedup_interval=found.speedup_interval,
        runtime_s=found.runtime_s,
        detail=found.detail,
    )


def report_neighbours(
    neighbours: Sequence[Neighbour], refused: Mapping[str, str] | None = None
) -> list[Mapping[str, Any]]:
    """What is said of neighbours. refused: why nothing of theirs fits, by their kernel."""
    found: list[Mapping[str, Any]] = []
    for near in neighbours:
        nest, why = near.nest, (refused or {}).get(near.nest.kernel)
        line = {"digest": nest.digest, "kernel": nest.kernel, "family": nest.family}
        found.append({**line, "distance": near.distance, **({"refused": why} if why else {})})
    return found


def record_of(measurement: Measurement, **about: Any) -> Record:
    """A record with the figures of a measurement: those that did not run have none. about: the other fields
    of `Record`."""
    if measurement.status != "ok":
        return Record(status=measurement.status, **about)
    assert measurement.interval_s is not None
    return Record(
        status="ok",
        baseline_s=measurement.baseline_s,
        runtime_s=measurement.runtime_s,
        interval_lo_s=measurement.interval_s[0],
        interval_hi_s=measurement.interval_s[1],
        samples=measurement.samples,
        speedup=measurement.speedup,
        **about,
    )


def add_to_store(
    store: Store, bundle: Bundle, nests: Sequence[Nest], graphs: Sequence[ProgramGraph],
    records: Sequence[Record],
) -> None:  # fmt: skip
    """Append records, and the nests that they are of, embedded by the bundle. graphs: of the nests."""
    store.add_nests(nests, [g.to_json() for g in graphs], bundle.embed(graphs), bundle.encoder_id)
    store.add_records(records)
