"""From a recorded trace to what models read: the scheduled program graph, and MetaSchedule's own features.

Replaying costs milliseconds a schedule, so what comes out is kept in a cache folder, a file per workload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float32

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusTask
from gnnperf.devices import gnnperf_cache_dir
from gnnperf.documents import read_parquet, replacing
from gnnperf.errors import GnnperfError, InputError
from gnnperf.graph import EDGE_FEATURES, NODE_FEATURES, EncodedGraph
from gnnperf.schedules.traces.allowed import check_trace
from gnnperf.training.code import code_digest

STORE_FEATURES = 164
"""Width of a row of MetaSchedule's PerStoreFeature: one row per statement that stores."""

DESCRIBING = ("graph", "nests", "frontends/tvm")
"""Folders with the code that features depend on."""
Progress = Callable[[int, str], None]
"""Called with workloads done since the last call, and the name of the one that comes."""


@dataclass(frozen=True)
class ScheduleFeatures:
    """Of one schedule: its graph, encoded, and the rows of PerStoreFeature.

    Both are None where TVM cannot replay the trace any more, or the function has no graph.
    """

    graph: EncodedGraph | None
    stores: Float32[np.ndarray, "rows 164"] | None


def default_cache() -> Path:
    """Where features are kept by default. Raises InputError where the user's cache cannot be written."""
    return gnnperf_cache_dir() / "tensor"


def corpus_features(
    corpus: MeasuredTasks, cache: Path, report: Progress = lambda done, name: None
) -> list[list[ScheduleFeatures]]:
    """By workload, of its schedules in their order. cache: a folder; what it lacks is computed and added.
    Raises InputError where it cannot be written."""
    found = []
    for workload in corpus.tasks.values():
        report(0, workload.name)
        traces = [record.schedule["trace"] for record in corpus.records[workload.task].values()]
        found.append(_cached(workload, traces, cache))
        report(1, workload.name)
    return found


def _cached(workload: CorpusTask, traces: Sequence[Any], cache: Path) -> list[ScheduleFeatures]:
    made_by = f"{code_digest(*DESCRIBING)} {version('apache-tvm')}"
    key = hashlib.sha256(f"{workload.name} {made_by}".encode()).hexdigest()[:16]
    path = cache / f"{workload.family}-{key}.parquet"
    known = _read(path)[: len(traces)]
    marks = [_mark(trace) for trace in traces]
    if [mark for mark, _ in known] != marks[: len(known)]:  # another corpus with workloads of these names
        known = []
    features = [f for _, f in known]
    if len(features) < len(traces):
        features += replayed(workload, traces[len(features) :])
        _write(path, marks, features)
    return features


def replayed(workload: CorpusTask, traces: Sequence[Any]) -> list[ScheduleFeatures]:
    """Features of traces of a workload, replayed. Loads TVM."""
    from gnnperf.frontends.tvm.fast_import import import_tvm
    from gnnperf.frontends.tvm.target import host_target
    from gnnperf.frontends.tvm.workloads import TvmWorkload

    import_tvm()
    from tvm.s_tir import meta_schedule as ms

    module = TvmWorkload(workload.family, workload.parameters).build()
    context = ms.TuneContext(mod=module, target=host_target(workload.threads), num_threads=1)
    extractor = ms.feature_extractor.PerStoreFeature()
    arguments = ms.arg_info.ArgInfo.from_entry_func(module, remove_preproc=True)
    found = []
    for trace in traces:
        try:
            schedule = _replay(module, trace)
        except Exception:  # TVM raises anything, and what is not allowed is refused
            found.append(ScheduleFeatures(None, None))
            continue
        candidate = ms.MeasureCandidate(schedule, arguments)
        stores = extractor.extract_from(context, [candidate])[0].numpy().astype(np.float32)
        found.append(ScheduleFeatures(_graph(schedule.mod), stores))
    return found


def _replay(module: Any, trace: Any) -> Any:
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    instructions, decisions = trace
    check_trace(instructions, dict(decisions))
    schedule = Schedule(module)
    Trace.apply_json_to_schedule(trace, schedule)
    return schedule


def _graph(module: Any) -> EncodedGraph | None:
    from gnnperf.frontends.tvm import scheduled_graph
    from gnnperf.graph import encode

    try:
        return encode(scheduled_graph(module))
    except GnnperfError:
        return None


# --------------------------------------------------------------------------- files

_COLUMNS: dict[str, tuple[type, tuple[int, ...]]] = {
    "node_kind": (np.int64, (-1,)),
    "node_features": (np.float32, (-1, NODE_FEATURES)),
    "edge_index": (np.int64, (2, -1)),
    "edge_kind": (np.int64, (-1,)),
    "edge_features": (np.float32, (-1, EDGE_FEATURES)),
    "graph_features": (np.float32, (-1,)),
    "stores": (np.float32, (-1, STORE_FEATURES)),
}
"""Of a file with a row for each schedule: the arrays of its graph and PerStoreFeature's rows, or nulls."""


def _mark(trace: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(trace).encode()).digest()[:6], "big")


def _write(path: Path, marks: Sequence[int], found: Sequence[ScheduleFeatures]) -> None:
    columns: dict[str, Any] = {"mark": marks}
    for name, (dtype, _) in _COLUMNS.items():
        arrays = [f.stores if name == "stores" else getattr(f.graph, name, None) for f in found]
        listed = [None if array is None else array.astype(dtype).tobytes() for array in arrays]
        columns[name] = pa.array(listed, pa.binary())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            pq.write_table(pa.table(columns), partial, compression="zstd", write_page_checksum=True)
    except OSError as error:
        raise InputError(f"cannot write the cache {path}: {error.strerror}; give another folder") from None


def _read(path: Path) -> list[tuple[int, ScheduleFeatures]]:
    """(mark, features) of what a file holds; nothing where it is missing or damaged."""
    try:
        rows = read_parquet(path, ["mark", *_COLUMNS]).to_pylist()
        return [(row.pop("mark"), _features(row)) for row in rows]
    except (OSError, ValueError, pa.ArrowException):
        return []


def _features(row: dict[str, bytes | None]) -> ScheduleFeatures:
    arrays: dict[str, np.ndarray] = {
        name: np.frombuffer(data, dtype).reshape(shape).copy()
        for name, (dtype, shape) in _COLUMNS.items()
        if (data := row[name]) is not None
    }
    stores = arrays.pop("stores", None)
    return ScheduleFeatures(EncodedGraph(**arrays) if arrays else None, stores)
