"""What a run learned, as records for schedule stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gnnperf.backends.base import Tried
from gnnperf.devices import DeviceSpec
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.stores import USER_FAMILY
from gnnperf.store import Nest, Record, Store
from gnnperf.store.checks import record_problem
from gnnperf.store.schema import plain_name

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

Provenance = Callable[[Measurement], Mapping[str, Any]]
"""What a record says of how it was measured."""


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
    """A store that takes what is measured on the tasks of a program. kernel, frontend: of the program, as
    names that a store takes; count: records added."""

    store: Store
    kernel: str
    frontend: str
    bundle: Bundle
    device: DeviceSpec
    count: int = 0
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kernel, self.frontend = plain_name(self.kernel), plain_name(self.frontend)

    def add(self, query: Query, tried: Iterable[Tried], provenance: Provenance, origin: str) -> None:
        """Measurements of a task whose baseline was run. provenance: of a measurement; origin: how the
        candidates were found. Raises StoreError."""
        graph = query.graph
        records = [
            record_of(
                measurement,
                nest_digest=graph.digest,
                kernel=self.kernel,
                family=USER_FAMILY,
                frontend=self.frontend,
                device_fingerprint=self.device.fingerprint,
                device_name=plain_name(self.device.name),
                baseline=query.baseline_name,
                schedule=candidate.schedule.to_json(),
                schedule_kind=candidate.schedule.kind,
                provenance=json.dumps({**provenance(measurement), "origin": origin}),
            )
            for candidate, measurement in tried
        ]
        records = [record for record in records if not record_problem(record)]  # no store would use them
        if graph.digest in self._known:
            self.store.add_records(records)
        elif records:
            nest = Nest(graph.digest, self.kernel, USER_FAMILY, self.frontend)
            add_to_store(self.store, self.bundle, [nest], [graph], records)
            self._known.add(graph.digest)
        self.count += len(records)

    def remember(self, queries: Sequence[Query], provenance: Provenance) -> None:
        """All that was measured on tasks."""
        for query in queries:
            self.add(query, query.tried, provenance, "transfer")

    def known(self, query: Query, kind: str) -> Iterator[Record]:
        """What the store knows of the very task on such a machine beside such a baseline, of schedules of one
        kind: the fastest first, each schedule once."""
        seen: set[str] = set()
        for record in self.store.records(query.graph.digest, self.device.fingerprint):
            fits = record.schedule_kind == kind and record.baseline == query.baseline_name
            if fits and record.schedule not in seen:
                seen.add(record.schedule)
                yield record
