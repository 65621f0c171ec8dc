"""What a run learned, as records for the schedule store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version

from gnnperf.devices import DeviceSpec
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.stores import USER_FAMILY
from gnnperf.store import Nest, Record, Store


def remember(store: Store, queries: Sequence[Query], kernel: str, bundle: Bundle, device: DeviceSpec) -> int:
    """Append the nests that were measured and all their measurements; how many records."""
    measured = [q for q in queries if q.tried and q.case is not None]
    if not measured:
        return 0
    nests = [Nest(q.graph.digest, kernel, USER_FAMILY, "dace") for q in measured]
    records = [record for query in measured for record in _records(query, kernel, device)]
    add_to_store(store, bundle, nests, [q.graph for q in measured], records)
    return len(records)


def _records(query: Query, kernel: str, device: DeviceSpec) -> list[Record]:
    assert query.case is not None
    return [
        record_of(
            m,
            nest_digest=query.graph.digest,
            kernel=kernel,
            family=USER_FAMILY,
            frontend="dace",
            device_fingerprint=device.fingerprint,
            device_name=device.name,
            baseline=query.case.baseline_name,
            schedule=json.dumps(candidate.schedule.to_dict()),
            schedule_kind="recipe",
            provenance=json.dumps(
                {"compiler": m.compiler, "flags": m.flags, "threads": m.threads, "dace": version("dace")}
            ),
        )
        for candidate, m in query.tried
    ]
