"""What a run on DaCe kernels learned, as records for the schedule store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from gnnperf.devices import DeviceSpec
from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import Memory
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import Candidate
from gnnperf.store import Store


def memory_of(store: Store, kernel: str, bundle: Bundle, device: DeviceSpec) -> Memory:
    """The store, as it takes what is measured on the nests of a kernel."""
    return Memory(store, kernel, bundle, device, "dace", "recipe")


def add_tried(memory: Memory, query: Query, tried: Iterable[tuple[Candidate, Measurement]]) -> None:
    """Append measurements of a nest that has a case. Raises StoreError."""
    assert query.case is not None
    schedules = [(json.dumps(candidate.schedule.to_dict()), m) for candidate, m in tried]
    memory.add(query.graph, query.case.baseline_name, schedules, _provenance)


def remember(store: Store, queries: Sequence[Query], kernel: str, bundle: Bundle, device: DeviceSpec) -> int:
    """Append the nests that were measured and all their measurements; how many records."""
    memory = memory_of(store, kernel, bundle, device)
    for query in queries:
        if query.case is not None:
            add_tried(memory, query, query.tried)
    return memory.count


def _provenance(m: Measurement) -> dict[str, Any]:
    return {"compiler": m.compiler, "flags": m.flags, "threads": m.threads, "dace": version("dace")}
