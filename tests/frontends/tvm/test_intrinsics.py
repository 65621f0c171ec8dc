"""Tensor instructions in program graphs: what they are, what they move, which loops they are mapped to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nests.test_to_graph import dump

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph, scheduled_nest, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.graph import ProgramGraph, encode
from gnnperf.graph.program_graph import Node
from gnnperf.nests import Loop, LoopNest, nest_graph

tvm = import_tvm()
from frontends.tvm import functions  # noqa: E402
from tvm import te  # noqa: E402
from tvm.s_tir import Schedule, TensorIntrin  # noqa: E402
from tvm.s_tir import tensor_intrin as ti  # noqa: E402
from tvm.s_tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN  # noqa: E402


def assigned(graph: ProgramGraph, node: Node | None = None) -> Counter[tuple[Any, Any, Any]]:
    """(axis, tile extent, extent of the loop) of the edges to an instruction."""
    return Counter(
        (e["axis"], e["tile_extent"], graph.nodes[e.source]["extent"])
        for e in graph.edges
        if e.kind == "assigns" and (node is None or graph.nodes[e.target] is node)
    )


def instructions(graph: ProgramGraph) -> list[Node]:
    return [n for n in graph.nodes if n.kind == "intrinsic"]


def moved(graph: ProgramGraph, node: Node) -> Counter[Any]:
    """Footprints, in bytes, of what an instruction reads and writes."""
    index = graph.nodes.index(node)
    ends = [e.source for e in graph.edges if e.kind == "reads" and e.target == index]
    ends += [e.target for e in graph.edges if e.kind == "writes" and e.source == index]
    return Counter(graph.nodes[i]["footprint_bytes"] for i in ends)


# --------------------------------------------------------------------------- VNNI


def vnni(function: Any = None) -> Schedule:
    s = Schedule(function or functions.packed())
    block = s.get_sblock("C")
    i, j, k = s.get_loops(block)
    j0, j1 = s.split(j, [None, 16])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i, j0, k0, j1, k1)
    s.decompose_reduction(block, k0)
    s.tensorize(j1, VNNI_DOT_16x4_INTRIN)
    return s


def test_vnni_multiplies_sixteen_rows_of_four() -> None:
    graph = scheduled_graph(vnni().mod)
    (dot,) = instructions(graph)
    assert (dot["m_extent"], dot["n_extent"], dot["k_extent"]) == (0, 16, 4)
    assert (dot["dtype"], dot["accumulator_dtype"]) == ("uint8", "int32")
    assert (dot["flops"], dot["instances"]) == (2 * 16 * 4, 64 * 4 * 16)


def test_vnni_says_which_loops_it_covers_and_which_step_over_its_tiles() -> None:
    graph = scheduled_graph(vnni().mod)
    assert assigned(graph) == Counter({("n", 16, 16): 1, ("n", 1, 4): 1, ("k", 4, 4): 1, ("k", 1, 16): 1})


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("graphs/tvm_vnni.json", dump(scheduled_graph(vnni().mod)))


def test_a_graph_with_an_instruction_is_a_graph_like_others(tmp_path: Path) -> None:
    graph = scheduled_graph(vnni().mod)
    assert ProgramGraph.from_json(graph.to_json()) == graph
    assert ProgramGraph.from_networkx(graph.to_networkx()).digest == graph.digest
    graph.draw(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").stat().st_size > 1000


def test_loops_that_step_over_tiles_are_tile_loops() -> None:
    graph = scheduled_graph(vnni().mod)
    levels = {n.label: n["tile_level"] for n in graph.nodes if n.kind == "loop"}
    assert levels == {"i": 0, "j_0": 1, "j_1_init": 0, "k_0": 1, "tile_n": 0, "tile_k": 0}


def test_vnni_moves_all_of_its_arrays() -> None:
    graph = scheduled_graph(vnni().mod)
    assert moved(graph, instructions(graph)[0]) == Counter({64 * 64: 2, 64 * 64 * 4: 1})


def test_a_tensorized_function_does_the_work_of_the_plain_one() -> None:
    (task,) = tasks_of(functions.packed(), "packed")
    work = {float(n["flops"]) * float(n["instances"]) for n in instructions(scheduled_graph(vnni().mod))}
    assert work == {float(task.graph.values["total_flops"])}


# --------------------------------------------------------------------------- two mappings


def register() -> str:
    """A made-up instruction C[m, n] += A[m, k] B[n, k] of 4x4x4 that takes rows at any distance."""
    from tvm.script import tirx as T

    name = "test_product_4x4x4"
    if TensorIntrin.get(name, allow_missing=True) is not None:
        return name

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        B = T.match_buffer(b, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        C = T.match_buffer(c, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        with T.sblock("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for i, j, k in T.grid(4, 4, 4):
                with T.sblock("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

    @T.prim_func(s_tir=True)
    def call(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        B = T.match_buffer(b, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        C = T.match_buffer(c, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
        with T.sblock("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            T.evaluate(T.call_extern("int32", "product", A.data, B.data, C.data))

    TensorIntrin.register(name, description, call)
    return name


def gram(exchanged: bool) -> Schedule:
    """C = A B^T, the loops over its rows mapped to m and those over its columns to n, or the other way
    round, into a transposed cache."""
    a, b = functions.placeholder("A", 32, 16), functions.placeholder("B", 64, 16)
    r = te.reduce_axis((0, 16), "k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(b[j, r] * a[i, r] if exchanged else a[i, r] * b[j, r], axis=r)

    s = Schedule(te.create_prim_func([a, b, te.compute((32, 64), element, name="C")]))
    block = s.get_sblock("C")
    s.cache_write(block, 0, "global")
    if exchanged:
        s.transform_layout(block, ("write", 0), lambda i, j: (j, i))
        s.reorder_block_iter_var(block, [1, 0, 2])
    i, j, k = s.get_loops(block)
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 4])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i0, j0, k0, *((j1, i1) if exchanged else (i1, j1)), k1)
    s.decompose_reduction(block, k0)
    s.tensorize(j1 if exchanged else i1, register())
    return s


def test_two_mappings_of_the_same_loops_to_the_same_instruction_differ() -> None:
    plain, exchanged = scheduled_graph(gram(False).mod), scheduled_graph(gram(True).mod)
    assert assigned(plain) == Counter(
        {("m", 4, 4): 1, ("n", 4, 4): 1, ("k", 4, 4): 1, ("m", 1, 8): 1, ("n", 1, 16): 1, ("k", 1, 4): 1}
    )
    assert assigned(exchanged) == Counter(
        {("m", 4, 4): 1, ("n", 4, 4): 1, ("k", 4, 4): 1, ("m", 1, 16): 1, ("n", 1, 8): 1, ("k", 1, 4): 1}
    )
    assert plain.digest != exchanged.digest
    assert [n["instances"] for n in instructions(plain)] == [n["instances"] for n in instructions(exchanged)]


def relabelled(nest: LoopNest, axes: dict[str, str]) -> LoopNest:
    """The nest with the axes of its instruction exchanged, and nothing else."""

    def change(node: Any) -> Any:
        if not isinstance(node, Loop):
            return node
        note = node.annotation
        if note is not None and note.axis in axes:
            note = replace(note, axis=axes[note.axis])  # type: ignore[arg-type]
        return replace(node, annotation=note, body=tuple(map(change, node.body)))

    return replace(nest, body=tuple(map(change, nest.body)))


def test_the_mapping_alone_is_encoded() -> None:
    nest = scheduled_nest(gram(False).mod)
    one, two = nest_graph(nest), nest_graph(relabelled(nest, {"m": "n", "n": "m"}))
    assert one.digest != two.digest
    encoded = [encode(g) for g in (one, two)]
    assert encoded[0].edge_features.shape == encoded[1].edge_features.shape
    rows = [np.concatenate([e.edge_index.T.astype(np.float32), e.edge_features], axis=1) for e in encoded]
    assert {tuple(r) for r in rows[0]} != {tuple(r) for r in rows[1]}


# --------------------------------------------------------------------------- tensor cores, built without one


@pytest.fixture(scope="module")
def tensor_core_graph() -> ProgramGraph:
    """A half precision product that MetaSchedule tensorized for sm_80."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.schedule_rule import MultiLevelTilingTensorCore, ReuseType

    target = tvm.target.Target(
        {
            "kind": "cuda",
            "arch": "sm_80",
            "max_threads_per_block": 1024,
            "max_shared_memory_per_block": 49152,
            "registers_per_block": 65536,
            "thread_warp_size": 32,
            "l2_cache_size_bytes": 40 << 20,
        }
    )
    group = ti.cuda.get_wmma_intrin_group(
        load_scope="shared", store_scope="shared", in_dtype="float16", out_dtype="float32", trans_b=False
    )
    rule = MultiLevelTilingTensorCore(
        intrin_groups=[group],
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 4, 8],
        reuse_read=ReuseType(req="must", levels=[4], scope="shared"),
        reuse_write=ReuseType(req="must", levels=[2], scope="shared"),
        use_software_pipeline=False,
    )
    module = tasks_of(functions.matmul(256, 256, 256, "float16"), "half")[0].module
    context = ms.TuneContext(
        mod=module,
        target=target,
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[rule, *ms.ScheduleRule.create("cuda")],
            postprocs="cuda-tensorcore",
            mutator_probs="cuda-tensorcore",
        ),
        search_strategy="evolutionary",
        num_threads=1,
    )
    (design, *_) = context.generate_design_space()
    for seed in range(1, 40):
        s = Schedule(module, seed=seed)
        tvm.s_tir.schedule.Trace(design.trace.insts, {}).apply_to_schedule(s, remove_postproc=True)
        s.enter_postproc()
        if all(p.apply(s) for p in context.space_generator.postprocs):
            return scheduled_graph(s.mod)
    raise AssertionError("no sampled schedule is valid")


def test_tensor_cores_multiply_fill_load_and_store_tiles(tensor_core_graph: ProgramGraph) -> None:
    found = instructions(tensor_core_graph)
    (product,) = (n for n in found if n["flops"])
    assert (product["m_extent"], product["n_extent"], product["k_extent"]) == (16, 16, 16)
    assert (product["dtype"], product["accumulator_dtype"]) == ("float16", "float32")
    assert product["instances"] == 16**3
    assert len(found) == 5
    assert {(n["m_extent"], n["n_extent"], n["k_extent"]) for n in found if n is not product} == {(16, 16, 0)}


def test_every_axis_of_a_tensor_core_has_the_loops_that_step_along_it(
    tensor_core_graph: ProgramGraph,
) -> None:
    (product,) = (n for n in instructions(tensor_core_graph) if n["flops"])
    steps = dict.fromkeys("mnk", 1)
    for (axis, covered, extent), count in assigned(tensor_core_graph, product).items():
        if covered == 1:
            steps[axis] *= int(extent) ** count
        else:
            assert (covered, extent, count) == (16, 16, 1)
    assert steps == {"m": 16, "n": 16, "k": 16}


def test_tiles_pass_through_shared_memory_and_registers(tensor_core_graph: ProgramGraph) -> None:
    scopes = Counter(n["scope"] for n in tensor_core_graph.nodes if n.kind == "buffer")
    assert scopes == Counter({"global": 3, "shared": 3, "local": 3})
    levels = {n["annotation"] for n in tensor_core_graph.nodes if n.kind == "loop"}
    assert {"block", "thread"} <= levels


def mma() -> Schedule:
    """A half precision product on fragments that lie in the lanes of a warp (mma.sync, ldmatrix)."""

    def spread(i: Any, j: Any) -> list[Any]:
        return [i // 16, j // 16, *ti.cuda.shared_16x16_to_ldmatrix_32x8_layout(i % 16, j % 16)]

    s = Schedule(functions.matmul(64, 48, 32, "float16"))
    block = s.get_sblock("C")
    i, j, k = s.get_loops(block)
    (i0, i1), (j0, j1), (k0, k1) = (s.split(loop, [None, 16]) for loop in (i, j, k))
    s.reorder(i0, j0, k0, i1, j1, k1)
    s.bind(i0, "blockIdx.x")
    outer = s.blockize(i1)
    for operand in range(2):
        s.compute_at(s.cache_read(outer, operand, "shared"), k0)
    fragments = [s.cache_read(outer, operand, "warp") for operand in range(2)]
    result = s.cache_write(outer, 0, "warp")
    s.reverse_compute_at(result, j0)
    for fragment in fragments:
        s.transform_layout(fragment, ("write", 0), spread)
    s.transform_layout(result, ("read", 0), spread)
    s.decompose_reduction(outer, k0)
    s.tensorize(s.get_loops(s.get_sblock("C_init"))[-2], "mma_fill_16x16_f32")
    for fragment, operand in zip(fragments, "ab", strict=True):
        s.tensorize(s.get_loops(fragment)[-2], f"mma_ldmatrix_f16_{operand}")
    s.tensorize(s.get_loops(block)[-3], "mma_f16f16f32")
    s.tensorize(s.get_loops(result)[-2], "mma_store_16x16_f32_global_")
    return s


def test_fragments_in_the_lanes_of_a_warp_are_tiles_too() -> None:
    graph = scheduled_graph(mma().mod)
    found = instructions(graph)
    (product,) = (n for n in found if n["flops"])
    assert (product["m_extent"], product["n_extent"], product["k_extent"]) == (16, 16, 16)
    assert (product["instances"], product["flops"]) == (4 * 3 * 2, 2 * 16**3)
    assert assigned(graph, product) == Counter(
        {("m", 16, 16): 1, ("n", 16, 16): 1, ("k", 16, 16): 1, ("m", 1, 4): 1, ("n", 1, 3): 1, ("k", 1, 2): 1}
    )
    assert len(found) == 5


def test_fragments_have_the_size_of_one_tile() -> None:
    fragments = [b for b in scheduled_nest(mma().mod).buffers.values() if b.scope == "local"]
    assert {b.shape for b in fragments} == {(1, 1, 32, 8)}


def test_what_is_no_tensor_instruction_is_said() -> None:
    s = vnni()
    function = s.mod["main"]
    with pytest.raises(UnsupportedConstruct, match="tensor instruction"):
        tasks_of(function, "f")[0].graph  # noqa: B018
