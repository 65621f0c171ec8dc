"""What a run on TVM kernels learned, as records for the schedule store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from gnnperf.devices import DeviceSpec
from gnnperf.measure.confine import available_threads
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.retrieval.stores import USER_FAMILY
from gnnperf.retrieval.tensor.candidates import KIND
from gnnperf.retrieval.tensor.query import TaskQuery
from gnnperf.retrieval.tensor.release import FRONTEND
from gnnperf.store import Nest, Record, Store
from gnnperf.tuning.tensor.collect import BASELINE


def remember(
    store: Store, queries: Sequence[TaskQuery], kernel: str, bundle: Bundle, device: DeviceSpec, target: Any
) -> int:
    """Append the tasks that were measured and all their measurements; how many records."""
    measured = [q for q in queries if q.tried]
    if not measured:
        return 0
    graphs = [q.task.graph for q in measured]
    about = json.dumps(
        {
            "tvm": version("apache-tvm"),
            "target": {"kind": "llvm", "mcpu": str(target.attrs["mcpu"])},
            "threads": available_threads(),
        }
    )
    records = [record for query in measured for record in _records(query, kernel, device, about)]
    nests = [Nest(graph.digest, kernel, USER_FAMILY, FRONTEND) for graph in graphs]
    add_to_store(store, bundle, nests, graphs, records)
    return len(records)


def _records(query: TaskQuery, kernel: str, device: DeviceSpec, about: str) -> Iterator[Record]:
    for candidate, measurement in query.tried:
        yield record_of(
            measurement,
            nest_digest=query.task.graph.digest,
            kernel=kernel,
            family=USER_FAMILY,
            frontend=FRONTEND,
            device_fingerprint=device.fingerprint,
            device_name=device.name,
            baseline=BASELINE,
            schedule=candidate.document.to_json(),
            schedule_kind=KIND,
            provenance=about,
        )
