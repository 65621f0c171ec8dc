"""Graphs of nests: golden dumps, invariances, and what each feature says of known programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import examples
from nests.examples import EXAMPLES, add, array, assign, load, loop, loops, mul, nest, op
from nests.random_nests import map_loops, random_nests, renamed, reordered, with_operation

from gnnperf.errors import InputError
from gnnperf.graph import Edge, Node, ProgramGraph, encode
from gnnperf.graph.vocabulary import DTYPES, ELEMENT_BYTES, OPERATIONS, REDUCTIONS
from gnnperf.nests import ir
from gnnperf.nests.to_graph import AS_COSTLY_AS, nest_graph
from gnnperf.nests.trip_counts import measured_trip_counts


def dump(graph: ProgramGraph) -> str:
    """JSON with one node or edge a line, so that a change reads well in a diff."""
    document = {"digest": graph.digest, **graph.to_dict()}
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(item, sort_keys=True)}" for item in value)
            parts.append(f'"{key}": [\n{lines}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value, sort_keys=True)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"graphs/{name}.json", dump(nest_graph(EXAMPLES[name]())))


def test_examples_have_different_digests() -> None:
    assert len({nest_graph(make()).digest for make in EXAMPLES.values()}) == len(EXAMPLES)


def test_the_graph_knows_every_word_of_the_ir() -> None:
    assert (ir.OPERATIONS - AS_COSTLY_AS.keys()) | {"cast"} == OPERATIONS.keys()
    assert set(AS_COSTLY_AS.values()) <= OPERATIONS.keys()
    assert set(ir.Reduction.__args__) | {"none"} == set(REDUCTIONS)
    assert DTYPES.keys() == ELEMENT_BYTES.keys()


# --------------------------------------------------------------------------- invariances


@given(random_nests(parameters=True), st.randoms(use_true_random=False))
def test_names_do_not_matter(program: ir.LoopNest, random: Random) -> None:
    names: dict[str, str] = {}

    def fresh(name: str) -> str:
        return names.setdefault(name, f"{random.choice('abcxyz')}_{len(names)}")

    assert nest_graph(renamed(program, fresh)).digest == nest_graph(program).digest


@pytest.mark.parametrize("name", EXAMPLES)
def test_names_do_not_matter_in_examples(name: str) -> None:
    program = EXAMPLES[name]()
    assert nest_graph(renamed(program, lambda n: f"z{n[::-1]}")).digest == nest_graph(program).digest


@given(random_nests(), st.randoms(use_true_random=False))
def test_order_of_independent_statements_does_not_matter(program: ir.LoopNest, random: Random) -> None:
    def shuffled(body: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
        return tuple(random.sample(body, len(body)))

    assert nest_graph(reordered(program, shuffled)).digest == nest_graph(program).digest


@given(random_nests(), st.data())
def test_an_extent_matters(program: ir.LoopNest, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(list(program.loops())))
    longer = map_loops(program, lambda lp: replace(lp, stop=add(lp.stop, 1)) if _same(lp, chosen) else lp)
    assert nest_graph(longer).digest != nest_graph(program).digest


def _same(loop: ir.Loop, other: ir.Loop) -> bool:
    return (loop.iterator, loop.stop) == (other.iterator, other.stop)


@given(random_nests(), st.data())
def test_a_stride_and_a_dtype_matter(program: ir.LoopNest, data: st.DataObject) -> None:
    used = sorted({ld.buffer for s in program.statements() for ld in (*ir.reads(s), s.target)})
    buffer = program.buffers[data.draw(st.sampled_from(used))]
    first, *others = buffer.strides
    assert isinstance(first, int)
    for changed in (
        replace(buffer, strides=(first + 8, *others)),
        replace(buffer, dtype="float32"),
        replace(buffer, dtype="int64"),
    ):
        other = replace(program, buffers={**program.buffers, buffer.name: changed})
        assert nest_graph(other).digest != nest_graph(program).digest


@given(random_nests(), st.data())
def test_an_operation_matters(program: ir.LoopNest, data: st.DataObject) -> None:
    values = [e for s in program.statements() for e in ir.subexpressions(s.value) if isinstance(e, ir.Op)]
    used = sorted({e.name for e in values} - {"add", "mul"})  # those two occur in subscripts
    old = data.draw(st.sampled_from(used))
    new = data.draw(st.sampled_from(sorted({"max", "sqrt", "pow", "exp"} - {old})))
    assert nest_graph(with_operation(program, old, new)).digest != nest_graph(program).digest


@given(random_nests())
def test_round_trips(program: ir.LoopNest) -> None:
    graph = nest_graph(program)
    assert ProgramGraph.from_json(graph.to_json()) == graph
    assert ProgramGraph.from_networkx(graph.to_networkx()) == graph
    assert ProgramGraph.from_json(graph.to_json()).to_json() == graph.to_json()


@given(random_nests(), st.randoms(use_true_random=False))
def test_order_of_nodes_and_edges_does_not_matter(program: ir.LoopNest, random: Random) -> None:
    graph = nest_graph(program)
    order = random.sample(range(len(graph.nodes)), len(graph.nodes))
    nodes: list[Node] = [graph.nodes[i] for i in order]
    edges = [Edge(order.index(e.source), order.index(e.target), e.kind, e.features) for e in graph.edges]
    random.shuffle(edges)
    assert ProgramGraph(tuple(nodes), tuple(edges), graph.values).digest == graph.digest


def test_order_of_dependent_statements_matters() -> None:
    write, use = assign(load("b", "i"), load("a", "i")), assign(load("c", "i"), load("b", "i"))
    buffers = [array(name, 8) for name in "abc"]
    before = nest("before", buffers, loop("i", 8, write), loop("i", 8, use))
    after = nest("after", buffers, loop("i", 8, use), loop("i", 8, write))
    assert nest_graph(before).digest != nest_graph(after).digest


def test_loops_in_another_order_are_another_graph() -> None:
    body = assign(load("B", "i", "j"), load("A", "i", "j"))
    buffers = [array("A", 8, 8), array("B", 8, 8)]
    rows, columns = (nest("copy", buffers, loops(dict.fromkeys(order, 8), body)) for order in ("ij", "ji"))
    assert nest_graph(rows).digest != nest_graph(columns).digest


# --------------------------------------------------------------------------- what the features say


def found(graph: ProgramGraph, kind: str, label: str) -> Node:
    (node,) = (n for n in graph.nodes if n.kind == kind and n.label == label)
    return node


def strides(graph: ProgramGraph, access: str) -> dict[str, int | str]:
    """Loop -> stride in elements, or how it enters otherwise."""
    return {
        graph.nodes[e.source].label: e["stride_elements"] if e["subscript"] == "affine" else e["subscript"]  # type: ignore[misc]
        for e in graph.edges
        if e.kind == "indexes" and graph.nodes[e.target].label == access
    }


def joined(graph: ProgramGraph, kind: str) -> set[tuple[str, str]]:
    return {(graph.nodes[e.source].label, graph.nodes[e.target].label) for e in graph.edges if e.kind == kind}


def test_gemm() -> None:
    graph = nest_graph(examples.gemm(128, 96, 64))
    assert [found(graph, "loop", it)["loop_kind"] for it in "ikj"] == ["spatial", "reduction", "spatial"]
    assert strides(graph, "A[i, k]") == {"i": 64, "k": 1, "j": "invariant"}
    assert strides(graph, "C[i, j]") == {"i": 96, "k": "invariant", "j": 1}
    target = found(graph, "access", "C[i, j]")
    assert (target["access_kind"], target["initialised"]) == ("reduction", True)
    assert (target["footprint_bytes"], target["touches"]) == (128 * 96 * 8, 128 * 96 * 64)
    compute = found(graph, "compute", "C[i, j] += A[i, k] * B[k, j]")
    assert compute["operations"] == {"add": 1, "mul": 1}
    assert graph.values["total_flops"] == 2 * 128 * 96 * 64
    assert graph.values["distinct_bytes"] == 8 * (128 * 64 + 64 * 96 + 128 * 96)
    assert graph.values["parallel_iterations"] == 128 * 96
    assert graph.values["reduction_iterations"] == 64


def test_tiling_composes_into_strides_and_keeps_the_work() -> None:
    tiled, plain = nest_graph(examples.tiled_gemm(128, 100, 64, 32)), nest_graph(examples.gemm(128, 100, 64))
    assert strides(tiled, "A[i, k]") == {"ii": 32 * 64, "jj": "invariant", "i": 64, "j": "invariant", "k": 1}
    assert found(tiled, "loop", "j")["extent"] == 25  # 32, 32, 32 and 4
    assert found(tiled, "loop", "k")["loop_kind"] == "reduction"
    assert found(tiled, "loop", "j")["loop_kind"] == "spatial"
    outer = found(tiled, "loop", "ii")
    assert [outer[f] for f in ("annotation", "omp_schedule", "collapse", "tile_level")] == [
        "parallel", "dynamic", 2, 1,
    ]  # fmt: skip
    for value in ("total_flops", "distinct_bytes", "parallel_iterations", "reduction_iterations"):
        assert tiled.values[value] == plain.values[value], value


def test_a_register_is_a_flow_and_no_buffer() -> None:
    graph = nest_graph(examples.tiled_gemm())
    assert {n.label for n in graph.nodes if n.kind == "buffer"} == {"A", "B", "C"}
    product = "acc += A[i, k] * B[k, j]"
    assert joined(graph, "flows") == {
        ("acc = 0.0", product), ("acc = 0.0", "C[i, j] = acc"), (product, "C[i, j] = acc"),
    }  # fmt: skip
    chain = nest_graph(examples.elementwise_chain())
    assert joined(chain, "flows") == {
        ("t = (x[i] * y[i]) + 1.0", "u = tanh(t)"), ("u = tanh(t)", "z[i] = u * u"),
    }  # fmt: skip


def test_flows_follow_the_program_order_and_sequential_loops() -> None:
    softmax = joined(nest_graph(examples.softmax()), "flows")
    exponential, division = "Y[i, j] = exp(X[i, j] - top[i])", "Y[i, j] = Y[i, j] / total[i]"
    assert softmax == {
        ("top[i] max= X[i, j]", exponential), (exponential, "total[i] += Y[i, j]"),
        (exponential, division), ("total[i] += Y[i, j]", division),
    }  # fmt: skip
    (carried,) = (e for e in nest_graph(examples.recurrence()).edges if e.kind == "flows")
    assert (carried.source == carried.target, carried["carried"], carried["through"]) == (
        True,
        True,
        "memory",
    )


def test_commuting_reductions_do_not_flow_into_one_another() -> None:
    a, b = (examples.accumulate(load("s"), load(name, "i")) for name in "ab")
    buffers = [array("a", 9), array("b", 9), array("s")]
    assert not joined(nest_graph(nest("sums", buffers, loop("i", 9, a, b))), "flows")


def test_stencil_offsets_are_relative_and_shared_elements_count_once() -> None:
    graph = nest_graph(examples.stencil(1, 66))
    reads = {n.label: n["offset_elements"] for n in graph.nodes if n.kind == "access"}
    assert reads == {"A[i]": 1, "A[i - 1]": 0, "A[i + 1]": 2, "B[i]": 0}
    assert graph.values["distinct_bytes"] == 8 * (66 + 64)
    shifted = loop("i", 64, assign(load("B", add("i", 1)), mul(1 / 3, add(*_window()))))
    same = nest_graph(nest("shifted", [array("A", 66), array("B", 66)], shifted))
    assert same.digest == graph.digest


def _window() -> list[ir.Expr]:
    return [load("A", add("i", shift)) for shift in (1, 0, 2)]


def test_convolution_footprint() -> None:
    image = found(nest_graph(examples.conv2d(2, 28, 16)), "access", "X[n, h + r, w + s, c]")
    assert image["footprint_bytes"] == 2 * 30 * 30 * 16 * 4
    assert image["touches"] == 2 * 28 * 28 * 3 * 3 * 16 * 32


def test_triangular_extent_is_the_mean() -> None:
    graph = nest_graph(examples.triangular(120))
    inner = found(graph, "loop", "j")
    assert (inner["extent"], inner["extent_varies"]) == (60.5, True)
    assert graph.values["total_flops"] == 2 * 64 * 120 * 121 / 2
    assert found(graph, "access", "A[j, k]")["footprint_bytes"] == 120 * 64 * 8


def test_nested_triangles_are_exact_while_they_are_small() -> None:
    body = examples.accumulate(load("s"), load("a", "k"))
    inner = loop("k", "j", body)
    graph = nest_graph(
        nest("tetrahedron", [array("a", 20), array("s")], loop("i", 20, loop("j", "i", inner)))
    )
    assert found(graph, "compute", "s += a[k]")["instances"] == 20 * 19 * 18 / 6


def test_large_triangles_use_the_midpoint_rule() -> None:
    inner = loop("j", "i", examples.accumulate(load("s"), load("a", "j")))
    graph = nest_graph(nest("large", [array("a", 100_000), array("s")], loop("i", 100_000, inner)))
    assert found(graph, "loop", "j")["extent"] == pytest.approx(49_999.5, rel=1e-9)


def test_parameters_take_their_representative_value() -> None:
    graph = nest_graph(examples.trailing_update(100, 40))
    assert found(graph, "loop", "j")["extent"] == 59
    assert strides(graph, "A[k, j]") == {"i": "invariant", "j": 1}
    assert nest_graph(examples.trailing_update(100, 41)).digest != graph.digest


def test_spmm() -> None:
    program = examples.spmm(500, 400, 4000, 32)
    unknown = found(nest_graph(program), "loop", "p")
    assert (unknown["loop_kind"], unknown["extent"], unknown["extent_unknown"]) == ("data-dependent", 0, True)

    rng = np.random.default_rng(0)
    rows = np.concatenate([[0], np.sort(rng.integers(0, 4000, 499)), [4000]])
    counts = measured_trip_counts(program, {"indptr": rows})
    assert counts == {"p": 8.0}
    graph = nest_graph(program, counts)
    assert (found(graph, "loop", "p")["extent"], graph.values["total_flops"]) == (8, 2 * 4000 * 32)
    assert found(graph, "access", "B[indices[p], f]")["indirect"]
    assert strides(graph, "B[indices[p], f]") == {"i": "indirect", "p": "indirect", "f": 1}
    assert strides(graph, "values[p]") == {"i": "indirect", "p": 1, "f": "invariant"}
    assert joined(graph, "reads") >= {
        ("indices[p]", "B[indices[p], f]"), ("indptr[i]", "p"), ("indptr[i + 1]", "p"),
    }  # fmt: skip
    (compute,) = (n for n in graph.nodes if n.kind == "compute")
    assert compute["instances"] == 4000 * 32


def test_trip_counts_need_the_data_of_the_bounds() -> None:
    assert measured_trip_counts(examples.spmm(), {}) == {}
    assert measured_trip_counts(examples.gemm(), {}) == {}


def test_a_subscript_held_in_a_register_is_indirect() -> None:
    row = load("row")
    body = [
        assign(row, load("index", "i")),
        loop("f", 8, assign(load("out", "i", "f"), load("table", row, "f"))),
    ]
    buffers = [
        array("table", 50, 8),
        array("index", 9, dtype="int64"),
        array("out", 9, 8),
        array("row", dtype="int64", transient=True, scope="local"),
    ]
    graph = nest_graph(nest("gather", buffers, loop("i", 9, *body)))
    assert strides(graph, "table[row, f]")["i"] == "indirect"
    assert joined(graph, "flows") == {("row = index[i]", "table[row, f]")}


def test_bounds_held_in_registers() -> None:
    first, last = load("first"), load("last")
    body = [
        assign(first, load("indptr", "i")),
        assign(last, load("indptr", add("i", 1))),
        loop("p", last, examples.accumulate(load("y", "i"), load("values", "p")), start=first),
    ]
    registers = [array(n, dtype="int32", transient=True, scope="local") for n in ("first", "last")]
    buffers = [array("indptr", 10, dtype="int32"), array("values", 50), array("y", 9), *registers]
    graph = nest_graph(nest("row_sums", buffers, loop("i", 9, *body)))
    assert strides(graph, "values[p]") == {"i": "indirect", "p": 1}
    assert joined(graph, "flows") == {("first = indptr[i]", "p"), ("last = indptr[i + 1]", "p")}
    assert found(graph, "loop", "p")["loop_kind"] == "data-dependent"


def test_unknown_dtypes_and_operations_are_input_errors() -> None:
    def scaled(dtype: str, operation: str) -> ir.LoopNest:
        body = assign(load("b"), op(operation, load("a"), 2.0))
        return nest("scaled", [array("a", dtype=dtype), array("b")], body)

    nest_graph(scaled("bfloat16", "pow"))
    with pytest.raises(InputError, match="'quad'"):
        nest_graph(scaled("quad", "pow"))
    with pytest.raises(InputError, match="'hypot'"):
        nest_graph(scaled("float32", "hypot"))


def test_subscripts_that_are_not_affine() -> None:
    graph = nest_graph(examples.upsample(64, 64))
    source = found(graph, "access", "A[i // 2, j // 2]")
    assert (source["nonaffine"], source["indirect"]) == (True, False)
    assert source["operations"] == {"floordiv": 2}
    assert source["footprint_bytes"] == 32 * 32 * 8
    compute = next(n for n in graph.nodes if n.kind == "compute")
    assert (compute["guarded"], compute["operations"]) == (True, {"gt": 1})
    roles = {e["role"] for e in graph.edges if e.kind == "reads" and e["role"] != "memory"}
    assert roles == {"value", "guard"}


def test_modulus_bounds_the_footprint() -> None:
    def ring(size: int) -> ProgramGraph:
        body = assign(load("b", "i"), load("a", op("mod", "i", size)))
        return nest_graph(nest("ring", [array("a", 64), array("b", 64)], loop("i", 64, body)))

    assert [n["footprint_bytes"] for n in ring(4).nodes if n.label == "a[i % 4]"] == [32]
    assert ring(4).digest != ring(8).digest


def test_depth_and_rank_have_no_cap() -> None:
    graph = nest_graph(examples.contraction(6))
    assert graph.values["loop_depth"] == 9
    tensor = strides(graph, "T[a, b, c, f, g, h, m]")
    assert [tensor[i] for i in "abcfghm"] == [6**d for d in reversed(range(7))]
    assert encode(graph).node_features.shape[0] == len(graph.nodes)


def test_a_nest_without_loops() -> None:
    graph = nest_graph(nest("scalar", [array("a"), array("b")], assign(load("b"), op("sqrt", load("a")))))
    assert graph.values["total_flops"] == 1
    assert encode(graph).edge_index.shape == (2, 2 * len(graph.edges))


def test_an_unknown_symbol_is_an_input_error() -> None:
    body = assign(load("b", "i"), load("a", add("i", "offset")))
    with pytest.raises(InputError, match="'offset'"):
        nest_graph(nest("shift", [array("a", 9), array("b", 9)], loop("i", 8, body)))
    with pytest.raises(InputError, match="'n'"):
        nest_graph(nest("size", [array("a", 9), array("b", 9)], loop("i", "n", body)))
