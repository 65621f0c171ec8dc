"""What a run on TVM kernels learned, as records for the schedule store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from gnnperf.devices import DeviceSpec
from gnnperf.frontends.tvm import TvmTask
from gnnperf.measure import Measurement
from gnnperf.measure.confine import available_threads
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.retrieval.stores import USER_FAMILY
from gnnperf.retrieval.tensor.candidates import KIND, TraceCandidate
from gnnperf.retrieval.tensor.query import TaskQuery
from gnnperf.retrieval.tensor.release import FRONTEND
from gnnperf.store import Nest, Record, Store
from gnnperf.tuning.tensor.collect import BASELINE


@dataclass
class Memory:
    """Adds what was measured on tasks to a store. kernel: that they are of. count: records added."""

    store: Store
    kernel: str
    bundle: Bundle
    device: DeviceSpec
    target: Any
    count: int = 0
    _known: set[str] = field(default_factory=set)

    def add(self, task: TvmTask, tried: Iterable[tuple[TraceCandidate, Measurement]], origin: str) -> None:
        """origin: how the candidates were found. Raises StoreError."""
        graph = task.graph
        records = [self._record(graph.digest, *pair, origin) for pair in tried]
        if graph.digest in self._known:
            self.store.add_records(records)
        elif records:
            nest = Nest(graph.digest, self.kernel, USER_FAMILY, FRONTEND)
            add_to_store(self.store, self.bundle, [nest], [graph], records)
            self._known.add(graph.digest)
        self.count += len(records)

    def _record(self, digest: str, candidate: TraceCandidate, found: Measurement, origin: str) -> Record:
        return record_of(
            found,
            nest_digest=digest,
            kernel=self.kernel,
            family=USER_FAMILY,
            frontend=FRONTEND,
            device_fingerprint=self.device.fingerprint,
            device_name=self.device.name,
            baseline=BASELINE,
            schedule=candidate.document.to_json(),
            schedule_kind=KIND,
            provenance=json.dumps(
                {
                    "tvm": version("apache-tvm"),
                    "target": {"kind": "llvm", "mcpu": str(self.target.attrs["mcpu"])},
                    "threads": available_threads(),
                    "origin": origin,
                }
            ),
        )


def remember(memory: Memory, queries: Sequence[TaskQuery]) -> None:
    """Append the tasks that were measured and all their measurements."""
    for query in queries:
        memory.add(query.task, query.tried, "transfer")
