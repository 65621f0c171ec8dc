"""Small program graphs and corpora made up for tests of the network and its training."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from helpers.nests import RECIPES, small_nest

from gnnperf.graph import Edge, Node, ProgramGraph
from gnnperf.nests import LoopNest, nest_graph
from gnnperf.nests.document import nest_to_dict
from gnnperf.schedules.recipes import Recipe

DEVICE = "cpu/x86_64/avx512"


def nest_like(extents: Sequence[int], reduction: bool = False, operation: str = "add") -> ProgramGraph:
    """A graph shaped as a perfect nest that writes one array; the last loop may be a reduction."""
    depth = len(extents)
    kinds = ["spatial"] * depth
    if reduction:
        kinds[-1] = "reduction"
    loops = [{"loop_kind": k, "extent": e} for k, e in zip(kinds, extents, strict=True)]
    nodes = [
        *(Node("loop", {**loop, "depth": d}) for d, loop in enumerate(loops)),
        Node("compute", {"operations": {operation: 1}, "flops": 1, "dtype": "float32"}),
        Node("access", {"access_kind": "reduction" if reduction else "write", "element_bytes": 4}),
        Node("buffer", {"element_bytes": 4, "rank": depth, "scope": "global", "dtype": "float32"}),
    ]
    compute, access, buffer = depth, depth + 1, depth + 2
    edges = [
        *(Edge(d, d + 1, "contains", {"nesting_depth": d + 1}) for d in range(depth)),
        *(Edge(d, access, "indexes", {"subscript": "affine", "stride_elements": 1}) for d in range(depth)),
        Edge(compute, access, "writes"),
        Edge(access, buffer, "writes"),
    ]
    values = {
        "total_flops": extents[0] * depth,
        "distinct_bytes": 4 * math.prod(extents),
        "reduction_iterations": extents[-1] if reduction else 1,
    }
    return ProgramGraph(tuple(nodes), tuple(edges), values)


def lonely(operation: str = "add") -> ProgramGraph:
    """One node, no edge."""
    return ProgramGraph((Node("compute", {"operations": {operation: 1}, "dtype": "float32"}),), (), {})


def measurement(digest: str, schedule: str, runtime_s: float | None, **changes: Any) -> dict[str, Any]:
    """A corpus line: a baseline of 1 s, intervals of 1%; `runtime_s` None is a wrong result. The recipe is
    that of `RECIPES`, and of other schedules one of their own."""
    ok = runtime_s is not None
    recipe = RECIPES.get(schedule) or Recipe(order="row", tile_p=crc32(schedule.encode()) % (1 << 20))
    line: dict[str, Any] = {
        "task": digest,
        "schedule": recipe.to_dict(),
        "schedule_id": schedule,
        "status": "ok" if ok else "wrong_result",
        "device": DEVICE,
        "origin": "foreign",
    }
    if runtime_s is not None:
        line |= {
            "runtime_s": runtime_s,
            "interval_s": [runtime_s * 0.995, runtime_s * 1.005],
            "samples": 10,
            "baseline_s": 1.0,
            "baseline_interval_s": [0.995, 1.005],
        }
    return {**line, **changes}


def nest(graph: ProgramGraph, family: str, **changes: Any) -> dict[str, Any]:
    """A corpus line."""
    line: dict[str, Any] = {
        "task": graph.digest,
        "name": family,
        "family": family,
        "frontend": "dace",
        "parameters": {},
        "graph": graph.to_dict(),
        "baseline": {"name": "dace-auto", "runtime_s": 1.0},
        "profile": None,
        "device": {"fingerprint": DEVICE, "name": "test"},
    }
    return {**line, **changes}


def held_nest(loops: LoopNest, family: str, **changes: Any) -> dict[str, Any]:
    """A corpus line that holds the nest, so that it can be scheduled."""
    return nest(nest_graph(loops), family, nest=nest_to_dict(loops), **changes)


def write_corpus(
    folder: Path, nests: Sequence[Mapping[str, Any]], measurements: Sequence[Mapping[str, Any]]
) -> Path:
    """A corpus folder of plain files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("tasks", nests), ("records", measurements)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def two_worlds(folder: Path, sizes: Sequence[int] = (64, 128, 256)) -> Path:
    """Real nests that want schedule "tile" (those that reduce) and ones that want "stream" (the others).

    Families: one per operation and world, so that held-out families have partners in training.
    """
    nests, measurements = [], []
    for reduction in (False, True):
        for operation in ("add", "mul", "exp", "div"):
            for size in sizes:
                found = small_nest(size, size // 2, reduction, operation)
                nests.append(held_nest(found, found.name))
                good, bad = ("tile", "stream") if reduction else ("stream", "tile")
                measurements.append(measurement(nests[-1]["task"], good, 0.25))
                measurements.append(measurement(nests[-1]["task"], bad, 0.9))
    return write_corpus(folder, nests, measurements)
