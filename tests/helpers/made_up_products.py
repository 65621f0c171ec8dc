"""Made-up schedules of matrix products, as graphs, and pools of them with runtimes from a formula."""

from __future__ import annotations

import numpy as np

from gnnperf.corpus.record import CorpusTask
from gnnperf.graph import EncodedGraph, ProgramGraph, encode
from gnnperf.nests import Annotation, Buffer, Const, Load, Loop, LoopNest, Op, Statement, Symbol, nest_graph
from gnnperf.training.traces.data import SchedulePool

PARALLEL, VECTORIZED, UNROLLED = (Annotation(kind) for kind in ("parallel", "vectorized", "unrolled"))


def product(
    tasks: int, rows: int, depth: int, columns: int,
    vectorized: bool = True, unrolled: bool = False, order: str = "tikj", transposed: bool = False,
) -> ProgramGraph:  # fmt: skip
    """C[t * rows + i, j] += A[t * rows + i, k] B[k, j] with the loops in the order given, outermost first:
    t over tasks in parallel, j in vectors where it is innermost. transposed: B is stored as B[j, k]."""
    extents = {"t": tasks, "i": rows, "k": depth, "j": columns}
    row = Op("add", (Op("mul", (Symbol("t"), Const(rows))), Symbol("i")))
    k, j = Symbol("k"), Symbol("j")
    right = Load("B", (j, k) if transposed else (k, j))
    shapes = {
        "A": (tasks * rows, depth),
        "B": (columns, depth) if transposed else (depth, columns),
        "C": (tasks * rows, columns),
    }
    value = Op("mul", (Load("A", (row, k)), right))
    body: tuple[Loop | Statement, ...] = (Statement(Load("C", (row, j)), value, "add"),)
    for place, name in enumerate(reversed(order)):
        note = PARALLEL if name == "t" else VECTORIZED if name == "j" and place == 0 and vectorized else None
        if unrolled and place == 1:
            note = UNROLLED
        body = (Loop(name, Const(0), Const(extents[name]), body, annotation=note),)
    buffers = {name: Buffer(name, "float32", (n, m), (m, 1)) for name, (n, m) in shapes.items()}
    return nest_graph(LoopNest("product", buffers, body))


def made_up_pool(
    name: str, seed: int, split: str = "training", kind: str = "product", n: int = 10
) -> SchedulePool:
    """n schedules of one product. Vectors, two or more tasks and few rows at a time are fast."""
    rng = np.random.default_rng(seed)
    size, depth = 2 ** int(rng.integers(6, 8)), 2 ** int(rng.integers(4, 8))
    graphs: list[EncodedGraph] = []
    runtimes = []
    for _ in range(n):
        tasks = 2 ** int(rng.integers(0, 5))
        vectorized, order = bool(rng.integers(2)), ("tikj", "tkij", "tijk")[int(rng.integers(3))]
        graphs.append(encode(product(tasks, size // tasks, depth, 64, vectorized, order=order)))
        slow = 1.0 + 7.0 * (order == "tijk") + 1.5 * (not vectorized) + 0.5 * (order == "tkij")
        runtimes.append(size * depth * 1e-9 * slow * (2.0 if tasks == 1 else 1.0 + 0.02 * tasks))
    measured = np.array(runtimes)
    intervals = np.stack([measured * 0.99, measured * 1.01], 1)
    baseline_s = 20 * size * depth * 1e-9
    workload = CorpusTask(
        name, name, kind, "tvm", {}, None, "tvm-default", baseline_s, (baseline_s, baseline_s), "cpu",
        threads=2, split=split,
    )  # fmt: skip
    stores = tuple(np.resize(g.node_features.sum(0), (1, 164)).astype(np.float32) for g in graphs)
    return SchedulePool(workload, tuple(graphs), stores, measured, intervals)
