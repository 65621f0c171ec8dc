"""Traces: kept as documents, replayed, and transferred to shapes and operators they were not made for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import InputError, NotApplicable
from gnnperf.frontends.tvm import scheduled_graph, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.schedules.traces import (
    TraceDocument,
    document_of_json,
    program_key,
    replay,
    roles_of,
    trace_document,
    transfer,
)
from gnnperf.schedules.traces.document import anchor_tiles

tvm = import_tvm()
from frontends.tvm import functions  # noqa: E402
from tvm import te, topi  # noqa: E402
from tvm.s_tir import Schedule  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.s_tir.schedule import Trace  # noqa: E402


def context(thing: Any, cores: int = 2) -> Any:
    (task,) = tasks_of(thing, "f")
    target = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": cores})
    return ms.TuneContext(
        mod=task.module,
        target=target,
        space_generator="post-order-apply",
        search_strategy="evolutionary",
        num_threads=1,
    )


def sampled(where: Any, design: int = 0, seed: int = 1) -> Schedule:
    """A random schedule of a context, post-processed."""
    designs = where.generate_design_space()
    for attempt in range(seed, seed + 40):
        s = Schedule(where.mod, seed=attempt)
        Trace(designs[design % len(designs)].trace.insts, {}).apply_to_schedule(s, remove_postproc=True)
        s.enter_postproc()
        if all(p.apply(s) for p in where.space_generator.postprocs):
            return s
    raise AssertionError("no sampled schedule is valid")


def document(where: Any, design: int = 0) -> TraceDocument:
    return trace_document(sampled(where, design), where.mod, where.target)


def batched(n: int = 3, m: int = 20, k: int = 24, p: int = 16) -> list[Any]:
    a, b = functions.placeholder("a", n, m, k), functions.placeholder("b", n, p, k)
    return [a, b, topi.nn.batch_matmul(a, b)]


def transposed(n: int = 12, m: int = 30, k: int = 28) -> list[Any]:
    """The product of functions.matmul under other names, the second matrix transposed."""
    left, right = functions.placeholder("left", n, k), functions.placeholder("right", m, k)
    r = te.reduce_axis((0, k), "r")
    return [left, right, te.compute((n, m), lambda y, x: te.sum(left[y, r] * right[x, r], axis=r), "out")]


def normalised(x: Any) -> Any:
    """The softmax of rows."""
    shifted = np.exp(x - x.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


REFERENCES = {
    "matmul": lambda a, b: a @ b,
    "transposed": lambda a, b: a @ b.T,
    "batched": lambda a, b: np.einsum("nmk,npk->nmp", a, b),
    "dense_chain": lambda a, b, bias: np.maximum(a @ b.T + bias, 0),
    "softmax": normalised,
}


def convolved(x: Any, w: Any) -> Any:
    """NHWC, 3x3, padded by one."""
    size = x.shape[1]
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    parts = (
        np.einsum("nhwc,cf->nhwf", x[:, r : r + size, s : s + size], w[r, s])
        for r in range(3)
        for s in range(3)
    )
    return sum(parts)


def verified(schedule: Schedule, expected: Any) -> bool:
    """Does the compiled function compute what NumPy computes?"""
    function = schedule.mod["main"]
    rng = np.random.default_rng(0)
    arrays = [rng.random([int(s) for s in p.shape], dtype=np.float32) - 0.5 for p in function.params]
    library = tvm.tirx.build(schedule.mod, tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3"}))
    values = [tvm.runtime.tensor(a) for a in arrays]
    library.get_function("main")(*values)
    return bool(np.allclose(values[-1].numpy(), expected(*arrays[:-1]), rtol=1e-4, atol=1e-4))


@pytest.fixture(scope="module")
def product() -> Any:
    return context(functions.matmul())


@pytest.fixture(scope="module")
def documents(product: Any) -> list[TraceDocument]:
    """One of every sketch of a product."""
    return [document(product, design) for design in range(len(product.generate_design_space()))]


# --------------------------------------------------------------------------- roles


def test_blocks_have_roles_whatever_their_names() -> None:
    padded = roles_of(context(functions.conv2d(14, padding=1)).mod["main"])
    assert list(padded.blocks.values()) == ["root", "padding before 1", "anchor"]
    assert padded.loops == "SSSSRRR"
    chain = roles_of(context(functions.dense_chain()).mod["main"])
    assert sorted(chain.blocks.values()) == ["anchor", "output", "pointwise after 1", "root"]
    one, two = (roles_of(functions.matmul(names=n)) for n in ("ABCijk", "XYZuvw"))
    assert list(one.blocks.values()) == list(two.blocks.values())
    assert one.blocks.keys() != two.blocks.keys()


def test_rows_that_are_reduced_twice_have_two_reductions() -> None:
    roles = roles_of(context(functions.softmax()).mod["main"]).blocks
    assert sorted(roles.values()) == ["anchor", "output", "pointwise after 1", "reduction after 1", "root"]


# --------------------------------------------------------------------------- documents


def test_a_document_survives_json(documents: list[TraceDocument]) -> None:
    for one in documents:
        text = one.to_json()
        assert "\n" not in text
        assert TraceDocument.from_json(text).to_json() == text


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"trace": 3}', '{"trace":[[],[]],"blocks":{},"loops":"S"}']
)
def test_other_text_is_no_document(text: str) -> None:
    with pytest.raises(InputError, match="expected a trace as JSON"):
        TraceDocument.from_json(text)


def test_a_replayed_trace_is_the_schedule(product: Any) -> None:
    import tvm_ffi

    for design in range(3):
        made = sampled(product, design)
        kept = TraceDocument.from_json(trace_document(made, product.mod, product.target).to_json())
        assert tvm_ffi.structural_equal(replay(kept, product).mod, made.mod)


def test_records_of_metaschedule_are_documents_too(product: Any) -> None:
    made = sampled(product)
    assert document_of_json(made.trace.as_json(), product.mod, product.target) == trace_document(
        made, product.mod, product.target
    )


def test_a_trace_does_not_replay_on_another_operator(product: Any) -> None:
    with pytest.raises(NotApplicable, match="the trace does not fit"):
        replay(document(product), context(functions.conv2d()))


# --------------------------------------------------------------------------- other shapes


def test_names_do_not_matter(documents: list[TraceDocument], product: Any) -> None:
    other = context(functions.matmul(names="XYZuvw"))
    for one in documents:
        (same,) = transfer(one, other, 1)
        assert scheduled_graph(same.schedule.mod).digest == scheduled_graph(replay(one, product).mod).digest


def test_the_same_shape_gets_the_same_schedule_first(documents: list[TraceDocument], product: Any) -> None:
    import tvm_ffi

    for one in documents:
        first = transfer(one, product, 1)[0]
        assert first.policy == "nearest"
        assert tvm_ffi.structural_equal(first.schedule.mod, replay(one, product).mod)


def test_a_proposal_has_the_document_of_its_schedule(documents: list[TraceDocument], product: Any) -> None:
    """As TVM would write it."""
    for other in (product, context(functions.matmul(40, 24, 56)), context(batched(3, 24, 16, 40))):
        for proposal in [found for one in documents for found in transfer(one, other, 4)]:
            written = trace_document(proposal.schedule, other.mod, other.target)
            assert program_key(replay(proposal.document, other).mod) == program_key(proposal.schedule.mod)
            assert anchor_tiles(proposal.document) == anchor_tiles(written)
            assert (proposal.document.blocks, proposal.document.cores) == (written.blocks, written.cores)
            if other is product or proposal.policy != "remainder":
                assert proposal.document.to_json() == written.to_json()


@pytest.mark.parametrize("shape", [(37, 41, 29), (50, 50, 50)])
def test_products_of_other_shapes_are_right(
    documents: list[TraceDocument], shape: tuple[int, int, int]
) -> None:
    """Shapes that no tile of the trace divides."""
    n, m, k = shape
    other = context(functions.matmul(n, m, k))
    found = [p for one in documents for p in transfer(one, other, 3)]
    assert {p.policy for p in found} == {"nearest", "remainder", "near"}
    assert len({scheduled_graph(p.schedule.mod).digest for p in found}) >= len(documents)
    assert all(verified(p.schedule, REFERENCES["matmul"]) for p in found)


def test_tiles_with_a_remainder_keep_the_tuned_ones() -> None:
    where = context(functions.matmul(64, 64, 64))
    decided = document(where)
    tuned = [i for i, x in enumerate(decided.instructions) if x[0] == "SamplePerfectTile"]
    decisions = {
        **decided.decisions,
        **dict(zip(tuned, ([1, 1, 4, 16], [1, 1, 2, 32], [16, 4]), strict=True)),
    }
    decided = TraceDocument(decided.instructions, decisions, decided.blocks, decided.loops, decided.cores)
    found = {p.policy: p.schedule for p in transfer(decided, context(functions.matmul(100, 98, 64)), 2)}
    assert verified(found["remainder"], REFERENCES["matmul"])
    extents = extents_of(found["remainder"])
    assert {16, 32, 4, 2} <= extents
    graph = scheduled_graph(found["remainder"].mod)
    assert any(n["guarded"] for n in graph.nodes if n.kind == "compute")


def extents_of(schedule: Schedule) -> set[Any]:
    return {n["extent"] for n in scheduled_graph(schedule.mod).nodes if n.kind == "loop"}


def test_a_factored_reduction_gets_no_partial_tile() -> None:
    """TVM would leave the lanes that such a tile misses without an initial value: wrong sums."""
    designs = (document(context(functions.softmax(64, 1024)), design) for design in range(8))
    one = next(d for d in designs if any(kind == "RFactor" for kind, *_ in d.instructions))
    found = transfer(one, context(functions.softmax(16, 701)), 6)
    assert "remainder" not in {p.policy for p in found}
    assert all(verified(p.schedule, REFERENCES["softmax"]) for p in found)


def test_rows_of_other_lengths_are_right() -> None:
    one = document(context(functions.softmax()))
    found = transfer(one, context(functions.softmax(21, 50)), 2)
    assert all(verified(p.schedule, REFERENCES["softmax"]) for p in found)


@pytest.mark.parametrize("design", [0, 1, 2])
def test_rows_of_a_batch_are_rows(design: int) -> None:
    """A softmax over four dimensions, with a copy behind it, follows one of a matrix."""
    one = document(context(functions.softmax()), design)
    x = te.placeholder((1, 3, 7, 50), name="x")
    rows = topi.nn.softmax(x, axis=-1)
    copied = te.compute(rows.shape, lambda *i: rows(*i), name="copied")
    found = transfer(one, context([x, copied]), 2)
    assert all(verified(p.schedule, lambda x: normalised(x.reshape(-1, 50)).reshape(x.shape)) for p in found)
    assert any("parallel" in str(p.schedule.trace) for p in found)


def test_a_layer_norm_of_sentences_follows_one_of_rows() -> None:
    def norm(*shape: int) -> Any:
        data = te.placeholder(shape, name="data")
        gamma, beta = (te.placeholder(shape[-1:], name=name) for name in ("gamma", "beta"))
        return context([data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, [len(shape) - 1], 1e-5)])

    def expected(x: Any, gamma: Any, beta: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta

    (found,) = transfer(document(norm(16, 40)), norm(1, 12, 40), 1)
    assert verified(found.schedule, expected)
    with pytest.raises(NotApplicable, match="loops SSR differ"):
        transfer(document(norm(2, 16, 40)), norm(12, 40), 1)


def test_more_cores_are_asked_for_more_parallel_work(documents: list[TraceDocument]) -> None:
    wide = context(functions.matmul(256, 256, 64), cores=8)
    traces = (p.schedule.trace for one in documents for p in transfer(one, wide, 1))
    notes = {int(i.inputs[1]) for t in traces for i in t.insts if annotates_parallel(i)}
    assert notes == {16 * 8}


def annotates_parallel(instruction: Any) -> bool:
    kind, attributes = instruction.kind.name, [str(a) for a in instruction.attrs]
    return bool(kind == "Annotate" and attributes == ["meta_schedule.parallel"])


# --------------------------------------------------------------------------- other operators


@pytest.mark.parametrize(
    ("name", "thing"),
    [
        ("transposed", transposed()),
        ("batched", batched()),
        ("dense_chain", functions.dense_chain(20, 30, 40)),
    ],
)
def test_traces_of_a_product_serve_other_products(
    documents: list[TraceDocument], name: str, thing: list[Any]
) -> None:
    other = context(thing)
    for one in documents:
        found = transfer(one, other, 2)
        assert all(verified(p.schedule, REFERENCES[name]) for p in found)


def test_traces_of_a_product_serve_a_convolution(documents: list[TraceDocument]) -> None:
    other = context(functions.conv2d(10, 8, 12, padding=1))
    found = [p for one in documents for p in transfer(one, other, 2)]
    assert all(verified(p.schedule, convolved) for p in found)


def test_a_convolution_takes_over_the_tiles_of_matching_loops() -> None:
    """The innermost loops match: columns and filters, the reduced rows and channels."""
    source = context(functions.matmul(64, 64, 64))
    decided = document(source)
    tuned = [i for i, x in enumerate(decided.instructions) if x[0] == "SamplePerfectTile"]
    decisions = {**decided.decisions, **dict(zip(tuned, ([16, 1, 1, 4], [2, 1, 2, 16], [8, 8]), strict=True))}
    decided = TraceDocument(decided.instructions, decisions, decided.blocks, decided.loops, decided.cores)
    (first,) = transfer(decided, context(functions.conv2d(18, 64, 64)), 1)
    tiles = [[int(v) for v in d] for i, d in first.schedule.trace.decisions.items() if is_tile(i)]
    assert tiles == [[1, 1, 1, 1], [16, 1, 1, 1], [4, 1, 1, 4], [2, 1, 2, 16], [3, 1], [3, 1], [8, 8]]


def is_tile(instruction: Any) -> bool:
    return bool(instruction.kind.name == "SamplePerfectTile")


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (functions.softmax(), functions.matmul(), "no tiles to take over"),
        (functions.matmul(), functions.softmax(), "no sketch of the structure SSRSRS"),
    ],
    ids=["rows", "product"],
)
def test_where_structures_differ_that_is_said(source: Any, target: Any, reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        transfer(document(context(source)), context(target))


def chain(*steps: str, n: int = 24, m: int = 40) -> list[Any]:
    """An elementwise block for each step."""
    x, y = functions.placeholder("x", n, m), functions.placeholder("y", n, m)
    work = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "tanh": lambda a, b: te.tanh(a)}
    last = x
    for number, step in enumerate(steps):
        element = partial(lambda do, before, i, j: do(before[i, j], y[i, j]), work[step], last)
        last = te.compute((n, m), lambda i, j: element(i, j), name=f"{step}{number}")  # noqa: B023
    return [x, y, last]


CHAINS = {
    ("add", "tanh"): lambda x, y: np.tanh(x + y),
    ("mul",): lambda x, y: x * y,
    ("add", "tanh", "mul", "add"): lambda x, y: np.tanh(x + y) * y + y,
}


@pytest.mark.parametrize("source", CHAINS, ids="-".join)
@pytest.mark.parametrize("target", CHAINS, ids="-".join)
def test_chains_of_other_lengths_are_tiled_alike(source: tuple[str, ...], target: tuple[str, ...]) -> None:
    from gnnperf.frontends.tvm.spaces import spatial_generator

    where = context(chain(*source))
    tiling = ms.TuneContext(
        mod=where.mod, target=where.target, space_generator=spatial_generator(), num_threads=1
    )
    one = document(tiling)
    found = transfer(one, context(chain(*target, n=32, m=56)), 2)
    assert all(verified(p.schedule, CHAINS[target]) for p in found)
    blocks = [n for n in scheduled_graph(found[0].schedule.mod).nodes if n.kind == "compute"]
    assert len(blocks) == 1  # the others are inlined
    tiles = [i for i in found[0].schedule.trace.insts if is_tile(i)]
    assert len(tiles) == len([i for i in one.instructions if i[0] == "SamplePerfectTile"]) == 2


# --------------------------------------------------------------------------- tensor instructions


def int8_context(thing: Any) -> Any:
    """A context whose rules tile for VNNI, too."""
    from tvm.s_tir.meta_schedule import postproc, schedule_rule
    from tvm.s_tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN

    tiles: dict[str, Any] = {
        "structure": "SSRSRS",
        "max_innermost_factor": 64,
        "reuse_write": schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global"),
    }
    generator = ms.space_generator.PostOrderApply(
        sch_rules=[
            schedule_rule.MultiLevelTilingWithIntrin(VNNI_DOT_16x4_INTRIN, **tiles),
            schedule_rule.MultiLevelTiling(**tiles),
        ],
        postprocs=[postproc.RewriteReductionBlock(), postproc.RewriteTensorize(vectorize_init_loop=True)],
        mutator_probs="llvm",
    )
    (task,) = tasks_of(thing, "f")
    target = tvm.target.Target({"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2})
    return ms.TuneContext(
        mod=task.module,
        target=target,
        space_generator=generator,
        search_strategy="evolutionary",
        num_threads=1,
    )


def instructions(proposal: Any) -> int:
    return sum(n.kind == "intrinsic" for n in scheduled_graph(proposal.schedule.mod).nodes)


def test_a_plain_trace_becomes_a_tensorized_one_where_the_types_allow(documents: list[TraceDocument]) -> None:
    other = int8_context(functions.packed(96, 128, 64))
    for one in documents:
        found = transfer(one, other, 4)
        assert instructions(found[0]) == 1
        assert {instructions(p) for p in found} == {0, 1}


def test_a_tensorized_trace_keeps_its_instruction_or_gives_it_up() -> None:
    source = int8_context(functions.packed())
    one = next(
        d for d in (document(source, n) for n in range(3)) if any(i[0] == "Blockize" for i in d.instructions)
    )
    assert all(instructions(p) == 1 for p in transfer(one, int8_context(functions.packed(80, 160, 96)), 3))
    plain = transfer(one, context(functions.matmul(64, 64, 64)), 2)
    assert all(instructions(p) == 0 and verified(p.schedule, REFERENCES["matmul"]) for p in plain)
