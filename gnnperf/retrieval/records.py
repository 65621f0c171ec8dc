"""What a run learned, as records for the schedule store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version

from gnnperf.devices import DeviceSpec
from gnnperf.nn import Bundle
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.stores import USER_FAMILY
from gnnperf.store import Nest, Record, Store


def remember(store: Store, queries: Sequence[Query], kernel: str, bundle: Bundle, device: DeviceSpec) -> int:
    """Append the nests that were measured and all their measurements; how many records."""
    measured = [q for q in queries if q.tried and q.case is not None]
    if not measured:
        return 0
    vectors = bundle.embed([q.graph for q in measured])
    store.add_nests(
        [Nest(q.graph.digest, kernel, USER_FAMILY, "dace") for q in measured],
        [q.graph.to_json() for q in measured],
        vectors,
        bundle.encoder_id,
    )
    records = [record for query in measured for record in _records(query, kernel, device)]
    store.add_records(records)
    return len(records)


def _records(query: Query, kernel: str, device: DeviceSpec) -> list[Record]:
    assert query.case is not None
    records = []
    for candidate, m in query.tried:
        ok = m.status == "ok"
        records.append(
            Record(
                nest_digest=query.graph.digest,
                kernel=kernel,
                family=USER_FAMILY,
                frontend="dace",
                device_fingerprint=device.fingerprint,
                device_name=device.name,
                baseline=query.case.baseline_name,
                schedule=json.dumps(candidate.schedule.to_dict()),
                schedule_kind="recipe",
                status=m.status,
                baseline_s=m.baseline_s if ok else None,
                runtime_s=m.runtime_s if ok else None,
                interval_lo_s=m.interval_s[0] if ok and m.interval_s else None,
                interval_hi_s=m.interval_s[1] if ok and m.interval_s else None,
                samples=m.samples if ok else 0,
                speedup=m.speedup if ok else None,
                provenance=json.dumps(
                    {"compiler": m.compiler, "flags": m.flags, "threads": m.threads, "dace": version("dace")}
                ),
            )
        )
    return records
