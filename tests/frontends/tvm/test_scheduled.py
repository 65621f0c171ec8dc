"""Scheduled graphs: what schedule primitives do to a function is what its graph says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from nests.test_to_graph import dump

from gnnperf.frontends.tvm import scheduled_graph, scheduled_nest, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.graph import ProgramGraph
from gnnperf.nests import nest_graph

tvm = import_tvm()
from frontends.tvm import functions  # noqa: E402
from tvm.s_tir import Schedule  # noqa: E402

NAMES = "ABCijk"


def tiled(names: str = NAMES, unroll: bool = False) -> Schedule:
    """96x128x64: i in 3 tiles of 32, j in 4 of 32, both outer loops on threads, k in 8 of 8, results kept
    in a cache, the update separate from the initial value, the innermost loop in vectors."""
    s = Schedule(functions.matmul(names=names))
    block = s.get_sblock(names[2])
    i, j, k = s.get_loops(block)
    i0, i1 = s.split(i, [3, 32])
    j0, j1 = s.split(j, [4, 32])
    k0, k1 = s.split(k, [8, 8])
    s.reorder(i0, j0, k0, i1, k1, j1)
    cache = s.cache_write(block, 0, "local")
    s.reverse_compute_at(cache, j0)
    s.parallel(s.fuse(i0, j0))
    s.vectorize(j1)
    if unroll:
        s.unroll(k1)
    s.decompose_reduction(block, k0)
    return s


def loops(graph: ProgramGraph, **wanted: Any) -> list[Any]:
    return [n for n in graph.nodes if n.kind == "loop" and all(n[k] == v for k, v in wanted.items())]


def extents(graph: ProgramGraph, **wanted: Any) -> list[Any]:
    return sorted(n["extent"] for n in loops(graph, **wanted))


def test_tiles_have_levels() -> None:
    graph = scheduled_graph(tiled().mod)
    assert extents(graph, tile_level=1) == [3, 4, 8]
    assert extents(graph, tile_level=0) == [8, 32, 32, 32, 32, 32, 32]


def test_fused_parallel_loops_are_seen_as_what_was_fused() -> None:
    graph = scheduled_graph(tiled().mod)
    (parallel,) = loops(graph, annotation="parallel")
    assert (parallel["extent"], parallel["collapse"]) == (3, 2)
    assert not any(n["nonaffine"] for n in graph.nodes if n.kind == "access")
    by_tile = [e for e in graph.edges if e.kind == "indexes" and graph.nodes[e.source] is parallel]
    assert {e["stride_elements"] for e in by_tile if e["subscript"] == "affine"} == {32 * 64, 32 * 128}


def test_vectors_and_unrolled_loops_are_annotated() -> None:
    graph = scheduled_graph(tiled(unroll=True).mod)
    assert extents(graph, annotation="vectorized") == [32, 32]
    assert extents(graph, annotation="unrolled") == [8]


def test_a_pragma_unrolls_what_tvm_then_unrolls() -> None:
    s = tiled()
    outermost = s.get_loops(s.get_sblock("C_update"))[0]
    s.annotate(outermost, "pragma_auto_unroll_max_step", 16)
    noted = scheduled_graph(s.mod)
    assert noted.digest == scheduled_graph(tiled(unroll=True).mod).digest
    s.annotate(outermost, "pragma_unroll_explicit", 1)
    assert scheduled_graph(s.mod).digest == noted.digest


def test_notes_of_metaschedule_are_carried_out() -> None:
    s = Schedule(functions.matmul())
    i, _, k = s.get_loops(s.get_sblock("C"))
    s.reorder(i, k, s.get_loops(s.get_sblock("C"))[1])
    s.annotate(s.get_sblock("root"), "meta_schedule.parallel", 64)
    s.annotate(s.get_sblock("root"), "meta_schedule.vectorize", 256)
    graph = scheduled_graph(s.mod)
    assert extents(graph, annotation="parallel") == [96]
    assert extents(graph, annotation="vectorized") == [128]


def test_a_cache_has_the_size_and_the_place_that_it_is_allocated_with() -> None:
    nest = scheduled_nest(tiled().mod)
    cache = next(b for b in nest.buffers.values() if b.transient)
    assert (cache.shape, cache.scope) == ((32, 32), "local")
    graph = nest_graph(nest)
    (buffer,) = (n for n in graph.nodes if n.kind == "buffer" and n["transient"])
    assert buffer["size_bytes"] == 32 * 32 * 4
    assert Counter(n["reduces"] for n in loops(graph)) == {False: 8, True: 2}


def test_where_a_copy_is_computed_is_where_it_is_nested() -> None:
    def copied_at(level: int) -> ProgramGraph:
        s = Schedule(functions.matmul())
        block = s.get_sblock("C")
        i, j, k = s.get_loops(block)
        k0, k1 = s.split(k, [8, 8])
        s.reorder(k0, i, j, k1)
        s.compute_at(s.cache_read(block, 0, "global"), [k0, i, j][level])
        return scheduled_graph(s.mod)

    graphs = [copied_at(level) for level in range(3)]
    assert [max(int(n["depth"]) for n in loops(g) if n["innermost"]) for g in graphs] == [3, 3, 3]
    copies = [
        min(int(e["nesting_depth"]) for e in g.edges if g.nodes[e.target].kind == "compute" and is_nesting(e))
        for g in graphs
    ]
    sizes = [next(n["size_bytes"] for n in g.nodes if n.kind == "buffer" and n["transient"]) for g in graphs]
    assert copies == [3, 3, 4]
    assert sizes == [96 * 8 * 4, 8 * 4, 8 * 4]


def is_nesting(edge: Any) -> bool:
    return bool(edge.kind == "contains")


def test_a_reduction_owns_its_initial_value_until_it_is_decomposed() -> None:
    s = Schedule(functions.matmul())
    whole = scheduled_graph(s.mod)
    s.decompose_reduction(s.get_sblock("C"), s.get_loops(s.get_sblock("C"))[2])
    parts = scheduled_graph(s.mod)
    assert sum(n.kind == "compute" for n in whole.nodes) == 1
    assert sum(n.kind == "compute" for n in parts.nodes) == 2
    kept = [
        n["initialised"] for g in (whole, parts) for n in g.nodes if n.kind == "access" and is_reduction(n)
    ]
    assert kept == [True, False]


def is_reduction(node: Any) -> bool:
    return bool(node["access_kind"] == "reduction")


def on_gpu() -> Schedule:
    s = Schedule(functions.matmul())
    block = s.get_sblock("C")
    i, j, k = s.get_loops(block)
    i0, iv, i1 = s.split(i, [3, 2, 16])
    j0, j1, j2 = s.split(j, [4, 8, 4])
    k0, k1 = s.split(k, [8, 8])
    s.reorder(i0, j0, iv, i1, j1, k0, k1, j2)
    bound = {"blockIdx.y": i0, "blockIdx.x": j0, "vthread.x": iv, "threadIdx.y": i1, "threadIdx.x": j1}
    for axis, loop in bound.items():
        s.bind(loop, axis)
    s.reverse_compute_at(s.cache_write(block, 0, "local"), j1)
    copy = s.cache_read(block, 0, "shared")
    s.compute_at(copy, k0)
    fused = s.fuse(*s.get_loops(copy)[-2:])
    _, y, x = s.split(fused, [None, 16, 8])
    s.bind(y, "threadIdx.y")
    s.bind(x, "threadIdx.x")
    return s


def test_loops_are_bound_to_blocks_and_threads() -> None:
    graph = scheduled_graph(on_gpu().mod)
    assert {(n["binding"], n["extent"]) for n in loops(graph, annotation="block")} == {("y", 3), ("x", 4)}
    assert extents(graph, annotation="virtual_thread") == [2]
    assert {("y", 16), ("x", 8)} <= {(n["binding"], n["extent"]) for n in loops(graph, annotation="thread")}


def test_memory_of_a_gpu_has_scopes_and_sizes() -> None:
    nest = scheduled_nest(on_gpu().mod)
    caches = {b.scope: b.shape for b in nest.buffers.values() if b.transient}
    assert caches == {"shared": (32, 8), "local": (1, 4)}


# --------------------------------------------------------------------------- invariances


def test_names_do_not_matter() -> None:
    assert scheduled_graph(tiled("XYZuvw").mod).digest == scheduled_graph(tiled().mod).digest


def test_loops_of_one_iteration_do_not_matter() -> None:
    s = tiled()
    s.split(s.get_loops(s.get_sblock("C_update"))[2], [None, 1])
    assert scheduled_graph(s.mod).digest == scheduled_graph(tiled().mod).digest


def test_what_is_scheduled_does_matter() -> None:
    plain = Schedule(functions.matmul())
    made = [plain, tiled(), tiled(unroll=True), on_gpu()]
    assert len({scheduled_graph(s.mod).digest for s in made}) == len(made)


@pytest.mark.parametrize("name", ["matmul", "conv2d", "softmax", "dense_chain"])
def test_schedules_that_metaschedule_samples_do_the_same_work(name: str) -> None:
    """Arguments keep their sizes, and no work is lost; caches and padding add some."""
    from tvm.s_tir import meta_schedule as ms

    (task,) = tasks_of(getattr(functions, name)(), name)
    target = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2})
    context = ms.TuneContext(
        mod=task.module,
        target=target,
        space_generator="post-order-apply",
        search_strategy="evolutionary",
        num_threads=1,
    )
    seen = set()
    for seed, design in enumerate([*context.generate_design_space()] * 2, 1):
        s = Schedule(task.module, seed=seed)
        tvm.s_tir.schedule.Trace(design.trace.insts, {}).apply_to_schedule(s, remove_postproc=True)
        s.enter_postproc()
        if not all(p.apply(s) for p in context.space_generator.postprocs):
            continue
        graph = scheduled_graph(s.mod)
        seen.add(graph.digest)
        assert float(graph.values["total_flops"]) >= float(task.graph.values["total_flops"]) * 0.9
        assert arguments(graph)[-1] == arguments(task.graph)[-1]
    assert seen


def arguments(graph: ProgramGraph) -> list[int]:
    return sorted(int(n["size_bytes"]) for n in graph.nodes if n.kind == "buffer" and not n["transient"])


@pytest.mark.parametrize("make", [tiled, on_gpu])
def test_golden(make: Callable[[], Schedule], golden: Callable[[str, str], None]) -> None:
    golden(f"graphs/tvm_{make.__name__}.json", dump(scheduled_graph(make().mod)))
