"""What retrieval for DaCe kernels and for TVM kernels have in common: reports, times, records in stores."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from gnnperf.devices import DeviceSpec
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.report import Tried
from gnnperf.retrieval.stores import USER_FAMILY
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


@dataclass
class Memory:
    """A store that takes what is measured on nests. kernel: that they are of. frontend, schedule_kind: of all
    records. count: records added."""

    store: Store
    kernel: str
    bundle: Bundle
    device: DeviceSpec
    frontend: str
    schedule_kind: str
    count: int = 0
    _known: set[str] = field(default_factory=set)

    def add(
        self,
        graph: ProgramGraph,
        baseline: str,
        tried: Iterable[tuple[str, Measurement]],
        provenance: Callable[[Measurement], Mapping[str, Any]],
    ) -> None:
        """tried: schedules, as JSON, of the nest that the graph is of. Raises StoreError."""
        records = [
            record_of(
                measurement,
                nest_digest=graph.digest,
                kernel=self.kernel,
                family=USER_FAMILY,
                frontend=self.frontend,
                device_fingerprint=self.device.fingerprint,
                device_name=self.device.name,
                baseline=baseline,
                schedule=schedule,
                schedule_kind=self.schedule_kind,
                provenance=json.dumps(provenance(measurement)),
            )
            for schedule, measurement in tried
        ]
        if graph.digest in self._known:
            self.store.add_records(records)
        elif records:
            nest = Nest(graph.digest, self.kernel, USER_FAMILY, self.frontend)
            add_to_store(self.store, self.bundle, [nest], [graph], records)
            self._known.add(graph.digest)
        self.count += len(records)

    def known(self, digest: str, baseline: str) -> Iterator[Record]:
        """What the store knows of the very nest on such a machine beside such a baseline, the fastest first,
        each schedule once."""
        seen: set[str] = set()
        for record in self.store.records(digest, self.device.fingerprint):
            fits = record.schedule_kind == self.schedule_kind and record.baseline == baseline
            if fits and record.schedule not in seen:
                seen.add(record.schedule)
                yield record
