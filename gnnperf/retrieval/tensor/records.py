"""What a run on TVM kernels learned, as records for the schedule store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from gnnperf.corpus.traces import BASELINE
from gnnperf.devices import DeviceSpec
from gnnperf.frontends.tvm import TvmTask
from gnnperf.measure import Measurement
from gnnperf.measure.confine import available_threads
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import Memory
from gnnperf.retrieval.tensor.candidates import KIND, TraceCandidate
from gnnperf.retrieval.tensor.query import TaskQuery
from gnnperf.store import Store


def memory_of(store: Store, kernel: str, bundle: Bundle, device: DeviceSpec) -> Memory:
    """The store, as it takes what is measured on the tasks of a kernel."""
    return Memory(store, kernel, bundle, device, "tvm", KIND)


def add_tried(
    memory: Memory,
    task: TvmTask,
    tried: Iterable[tuple[TraceCandidate, Measurement]],
    target: Any,
    origin: str,
) -> None:
    """Append measurements of a task. origin: how the candidates were found. Raises StoreError."""
    about = {
        "tvm": version("apache-tvm"),
        "target": {"kind": "llvm", "mcpu": str(target.attrs["mcpu"])},
        "threads": available_threads(),
        "origin": origin,
    }
    schedules = [(candidate.document.to_json(), measurement) for candidate, measurement in tried]
    memory.add(task.graph, BASELINE, schedules, lambda _: about)


def remember(memory: Memory, queries: Sequence[TaskQuery], target: Any) -> None:
    """Append the tasks that were measured and all their measurements."""
    for query in queries:
        add_tried(memory, query.task, query.tried, target, "transfer")
