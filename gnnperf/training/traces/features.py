"""From a recorded trace to what models read: the scheduled program graph, and MetaSchedule's own features.

Replaying costs milliseconds a schedule, so what comes out is kept in a cache folder, a file per workload.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from gnnperf.errors import GnnperfError, InputError
from gnnperf.graph import EDGE_FEATURES, NODE_FEATURES, EncodedGraph
from gnnperf.schedules.traces.allowed import check_trace
from gnnperf.training.code import code_digest
from gnnperf.training.traces.corpus import MeasuredWorkload, TensorCorpus

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
    """Where features are kept by default: `gnnperf/tensor` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gnnperf" / "tensor"


def corpus_features(
    corpus: TensorCorpus, cache: Path, report: Progress = lambda done, name: None
) -> list[list[ScheduleFeatures]]:
    """By workload, of its schedules in their order. cache: a folder; what it lacks is computed and added.
    Raises InputError where it cannot be written."""
    found = []
    for workload in corpus.workloads:
        report(0, workload.name)
        found.append(_cached(workload, cache))
        report(1, workload.name)
    return found


def _cached(workload: MeasuredWorkload, cache: Path) -> list[ScheduleFeatures]:
    key = hashlib.sha256(f"{workload.name} {code_digest(*DESCRIBING)}".encode()).hexdigest()[:16]
    path = cache / f"{workload.kind}-{key}.npz"
    known = _read(path)[: len(workload.schedules)]
    traces = [schedule.trace for schedule in workload.schedules]
    marks = [_mark(trace) for trace in traces]
    if [mark for mark, _ in known] != marks[: len(known)]:  # another corpus with workloads of these names
        known = []
    features = [f for _, f in known]
    if len(features) < len(traces):
        features += replayed(workload, traces[len(features) :])
        _write(path, marks, features)
    return features


def replayed(workload: MeasuredWorkload, traces: Sequence[Any]) -> list[ScheduleFeatures]:
    """Features of traces of a workload, replayed. Loads TVM."""
    from gnnperf.frontends.tvm.fast_import import import_tvm
    from gnnperf.frontends.tvm.target import host_target
    from gnnperf.frontends.tvm.workloads import TvmWorkload

    import_tvm()
    from tvm.s_tir import meta_schedule as ms

    module = TvmWorkload(workload.kind, workload.params).build()
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

_SIZES = ("node_kind", "edge_kind")
_NAMES = tuple(f.name for f in fields(EncodedGraph))
_WIDTHS = {"node_features": NODE_FEATURES, "edge_features": EDGE_FEATURES}


def _mark(trace: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(trace).encode()).digest()[:6], "big")


def _write(path: Path, marks: Sequence[int], found: Sequence[ScheduleFeatures]) -> None:
    graphs = [f.graph for f in found if f.graph is not None]
    stores = [f.stores for f in found if f.stores is not None]
    arrays: dict[str, np.ndarray] = {
        "marks": np.array(marks, dtype=np.int64),
        "nodes": np.array([-1 if f.graph is None else len(f.graph.node_kind) for f in found]),
        "edges": np.array([-1 if f.graph is None else len(f.graph.edge_kind) for f in found]),
        "rows": np.array([-1 if f.stores is None else len(f.stores) for f in found]),
        "stores": np.concatenate([np.zeros((0, STORE_FEATURES), np.float32), *stores]),
    }
    if graphs:
        for name in _NAMES:
            along = 1 if name == "edge_index" else 0
            parts = [
                np.atleast_2d(getattr(g, name)) if name == "graph_features" else getattr(g, name)
                for g in graphs
            ]
            arrays[name] = np.concatenate(parts, axis=along)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write the cache {path}: {error.strerror}; give another folder") from None


def _read(path: Path) -> list[tuple[int, ScheduleFeatures]]:
    """(mark, features) of what a file holds; nothing where it is missing or damaged."""
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError):
        return []
    found = []
    node = edge = graph = row = 0
    sizes = zip(arrays["marks"], arrays["nodes"], arrays["edges"], arrays["rows"], strict=True)
    for mark, nodes, edges, rows in sizes:
        encoded = stores = None
        if nodes >= 0:
            encoded = EncodedGraph(
                arrays["node_kind"][node : node + nodes],
                arrays["node_features"][node : node + nodes],
                arrays["edge_index"][:, edge : edge + edges],
                arrays["edge_kind"][edge : edge + edges],
                arrays["edge_features"][edge : edge + edges],
                arrays["graph_features"][graph],
            )
            node, edge, graph = node + nodes, edge + edges, graph + 1
        if rows >= 0:
            stores = arrays["stores"][row : row + rows]
            row += rows
        found.append((int(mark), ScheduleFeatures(encoded, stores)))
    return found
