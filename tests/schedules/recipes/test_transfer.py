"""A recipe speaks of roles: it applies to nests of another depth, and means the same there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from nests import examples
from nests.examples import array, assign, load, loop, op
from nests.interpret import interpret
from schedules.recipes.kernels import (
    Kernel,
    batched_product,
    csr,
    filters,
    forces,
    matrix_product,
    matrix_vector,
    permutation,
    product_and_bias,
    random_numbers,
    reduce_axis,
    sampled_product,
    softmax,
    strided_convolution,
    triangular,
    triangular_in_place,
)
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import Loop, LoopNest, Statement, normalise
from gnnperf.nests.analysis import band
from gnnperf.nests.ir import walk
from gnnperf.schedules.recipes import DEFAULTS, Recipe, apply, emit
from gnnperf.schedules.recipes.roles import Roles, assign_roles

TUNED_ON_GEMM = Recipe(
    order="blocked", tile_q=8, tile_p=16, tile_r=4, register_q=3, register_p=1, vector="p", pack="qp", chunk=2
)

TARGETS = {
    "batched": Kernel(batched_product()),
    "conv2d": Kernel(examples.conv2d(2, 6, 5, 18, 3)),
    "contraction": Kernel(examples.contraction(2)),
    "gemv": Kernel(matrix_vector(19, 43)),
    "row_sums": Kernel(reduce_axis("k", "add")),
    "transpose": Kernel(permutation((21, 35), (1, 0))),
    "softmax": Kernel(softmax(7, 21)),
    "dense_layer": Kernel(product_and_bias()),
    "triangular": Kernel(triangular()),
    "spmm": Kernel(examples.spmm(15, 11, 60, 19), csr(11)),
}


def test_a_recipe_for_gemm_applies_everywhere(tmp_path: Path) -> None:
    nests = {name: normalise(kernel.nest) for name, kernel in TARGETS.items()}
    functions = {name: emit(apply(TUNED_ON_GEMM, nest), name) for name, nest in nests.items()}
    library = build(list(functions.values()), tmp_path)
    for name, kernel in TARGETS.items():
        memory = kernel.memory(np.random.default_rng(0))
        expected = interpret(kernel.nest, memory)
        assert not differences(expected, call(library, functions[name], nests[name], memory)), name


def roles_of(nest: LoopNest) -> Roles:
    (only,) = normalise(nest).body
    return assign_roles(band(only), nest.buffers)


def test_roles_of_a_matrix_product() -> None:
    roles = roles_of(matrix_product(64, 96, 80))
    assert roles.by_role == {"P": (), "q": ("i",), "p": ("j",), "R": (), "r": ("k",)}
    assert roles.is_contraction


def test_a_batch_is_one_more_outer_loop() -> None:
    assert roles_of(batched_product()).by_role == {
        "P": ("b",),
        "q": ("i",),
        "p": ("j",),
        "R": (),
        "r": ("k",),
    }


def test_roles_of_a_convolution() -> None:
    roles = roles_of(examples.conv2d())
    assert roles.by_role["p"] == ("f",)
    assert set(roles.by_role["R"] + roles.by_role["r"]) == {"r", "s", "c"}
    assert set(roles.by_role["P"] + roles.by_role["q"]) == {"n", "h", "w"}


def test_vectors_of_an_image_are_reused_by_all_filters() -> None:
    """Channels first: what is contiguous is the image, so the loop over filters is the one with reuse."""
    roles = roles_of(strided_convolution())
    assert (roles.by_role["p"], roles.by_role["q"]) == (("w",), ("f",))


@pytest.mark.parametrize(
    ("kernel", "along"),
    [
        (matrix_product(64, 96, 80), "p"),  # C += A[i, k] B[k, j]: rows of B
        (matrix_product(64, 96, 80, b="jk"), "r"),  # dot products of rows
        (matrix_product(64, 96, 80, a="ki", b="jk"), "p"),  # neither: then no sum across lanes
        (matrix_vector(19, 43), "r"),
        (matrix_vector(19, 43, transposed=True), "p"),
        (reduce_axis("k", "add"), "r"),  # the sums are contiguous, but stay in registers
        (reduce_axis("k", "add", (5, 40, 3)), "p"),  # too short
        (reduce_axis("i", "max"), "p"),
        (examples.spmm(15, 11, 60, 19), "p"),
        (strided_convolution(), "p"),
    ],
)
def test_vectors_run_along_what_is_contiguous_inside_the_reduction(kernel: LoopNest, along: str) -> None:
    assert roles_of(kernel).contiguous == along


def test_roles_do_not_depend_on_names() -> None:
    roles = roles_of(matrix_product(64, 96, 80, a="ki", b="jk"))
    assert {roles.role(x) for x in "ij"} == {"q", "p"}
    assert roles.role("k") == "r"


def test_rows_of_a_sparse_matrix_stay_inside_their_row() -> None:
    roles = roles_of(examples.spmm())
    assert roles.by_role == {"P": (), "q": ("i",), "p": ("f",), "R": (), "r": ("p",)}
    assert "i" in roles.pinned


def test_threads_share_rows_not_the_entries_of_one() -> None:
    (rows,) = apply(Recipe(order="row"), normalise(sampled_product())).body
    assert isinstance(rows, Loop)
    assert rows.iterator == "i"
    assert rows.annotation is not None
    assert rows.annotation.kind == "parallel"


def test_sequential_loops_have_no_role() -> None:
    assert roles_of(examples.recurrence()).sequential == ("t",)


def test_what_does_not_fit_is_refused_with_a_reason() -> None:
    nest = normalise(permutation((21, 35), (1, 0)))
    with pytest.raises(NotApplicable, match="no reduction loop"):
        apply(Recipe(parallel="reduction"), nest)


def test_nests_inside_a_sequential_loop_are_fused_as_far_as_they_share_loops() -> None:
    """The move of all bodies waits for the forces on all; scratch is one row at a time until then."""
    scheduled = apply(Recipe(order="row", fuse=1, vector="none"), normalise(forces(n=50)))
    (time,) = scheduled.body
    assert isinstance(time, Loop)
    fused, move = time.body
    assert isinstance(fused, Loop) and fused.annotation is not None and fused.annotation.kind == "parallel"
    assert [s.target.buffer for s in walk((move,)) if isinstance(s, Statement)] == ["x"]
    assert scheduled.buffers["f"].shape == (1,)


def test_columns_of_an_imperfect_nest_become_vectors() -> None:
    """43 columns as two strips of 16, which threads share, and one of 11; each has scratch of its own."""
    scheduled = apply(Recipe(order="row", register_p=2), normalise(triangular_in_place(columns=43)))
    strips = [n for n in scheduled.body if isinstance(n, Loop)]
    assert [(lp.step, lp.annotation and lp.annotation.kind) for lp in strips] == [
        (16, "parallel"),
        (11, None),
    ]
    for strip in strips:
        products = [
            n for n in walk((strip,)) if isinstance(n, Loop) and len(n.body) == 1 and n.iterator == "k"
        ]
        assert [lp.annotation and lp.annotation.kind for k in products for lp in k.body] == ["vectorized"]  # type: ignore[union-attr]
    widths = {b.shape for n, b in scheduled.buffers.items() if n.startswith("w_")}
    assert widths == {(2, 16), (2, 11)}


@pytest.mark.parametrize("contiguous", ["samples", "channels"])
def test_channels_go_on_side_by_side_where_samples_wait_for_each_other(contiguous: str) -> None:
    """21 channels: in vectors where these are contiguous, else four at a time and one left over."""
    nest = normalise(filters(channels=21, contiguous=contiguous))
    scheduled = apply(Recipe(order="row", register_p=1, register_q=4), nest)
    strips = [n for n in scheduled.body if isinstance(n, Loop)]
    kind, step = ("vectorized", 8) if contiguous == "channels" else ("unrolled", 4)
    assert strips[0].step == step and strips[0].annotation and strips[0].annotation.kind == "parallel"
    points = [n for n in walk((strips[0],)) if isinstance(n, Loop) and n.iterator == "c"]
    assert {lp.annotation and lp.annotation.kind for lp in points} == {kind}
    code = emit(scheduled, "unit").source
    assert not re.search(r"\bb_(one|two)_\d+\[", code), "states are registers"


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_integers_with_states_are_vectors(dtype: str) -> None:
    scheduled = apply(Recipe(order="row", register_p=1), normalise(random_numbers(dtype=dtype)))
    code = emit(scheduled, "unit").source
    lanes = 512 // int(dtype.removeprefix("uint"))
    assert f"vec<{dtype}_t, {lanes}> b_state" in code
    assert "omp simd" not in code.split("extern", 1)[0].rsplit("#endif", 1)[1]


def test_nests_that_share_no_loop_are_not_fused() -> None:
    n = 9
    mirrored = load("t", op("sub", n - 1, "i"))
    nest = LoopNest(
        "mirror",
        {x: array(x, n) for x in ("x", "t", "y")},
        (
            loop("i", n, assign(load("t", "i"), load("x", "i"))),
            loop("i", n, assign(load("y", "i"), mirrored)),
        ),
    )
    with pytest.raises(NotApplicable, match="share"):
        apply(Recipe(fuse=4), normalise(nest))


@pytest.mark.parametrize("recipe", [r for r in DEFAULTS if r.parallel != "reduction"], ids=lambda r: r.id)
def test_scheduling_does_not_change_the_interface(recipe: Recipe) -> None:
    nest = normalise(product_and_bias(7, 21, 15) if recipe.library else softmax(7, 21))
    scheduled = apply(recipe, nest)
    assert scheduled.arguments == nest.arguments
    function = emit(scheduled, "unit")
    assert function.buffers == (("A", "B", "D", "b") if recipe.library else ("X", "Y"))
    assert emit(apply(recipe, nest), "unit") == function, "the same text every time"


def test_threads_sum_in_copies_of_their_own_where_nests_share_a_loop(tmp_path: Path) -> None:
    """y = A x; z += A.T y, and the norm of y."""
    m, n = 37, 23
    row, column = load("A", "i", "j"), load("x", "j")
    kernel = normalise(
        examples.nest(
            "normal",
            [array("A", m, n), array("x", n), array("y", m), array("z", n), array("norm")],
            examples.loops(
                {"i": m, "j": n}, examples.accumulate(load("y", "i"), op("mul", row, column), init=0.0)
            ),
            examples.loops(
                {"j": n, "i": m}, examples.accumulate(load("z", "j"), op("mul", row, load("y", "i")))
            ),
            loop(
                "i", m, examples.accumulate(load("norm"), op("mul", load("y", "i"), load("y", "i")), init=0.0)
            ),
        )
    )
    recipes = [Recipe(order="row", fuse=f, vector=v) for f in (1, 4, 8) for v in ("auto", "none")]
    scheduled = [apply(recipe, kernel) for recipe in recipes]
    for nest in scheduled:
        threads = [lp for lp in nest.loops() if lp.annotation and lp.annotation.kind == "parallel"]
        assert [lp.iterator for lp in threads] == ["i_f"]
    functions = [emit(nest, f"f{k}") for k, nest in enumerate(scheduled)]
    library = build(functions, tmp_path)
    memory = Kernel(kernel).memory(np.random.default_rng(0))
    expected = interpret(kernel, memory)
    for function in functions:
        assert "reduction(+" in function.source
        assert not differences(expected, call(library, function, kernel, memory))


def test_what_lives_for_one_iteration_does_so_in_tiles_that_nests_share(tmp_path: Path) -> None:
    """A sum between limits of its own for every bin, beside the bins' initial values."""
    bins, n = 10, 23
    low, high, total = load("low"), load("high"), load("total")
    inside = op("and", op("le", low, load("radius", "j")), op("lt", load("radius", "j"), high))
    kernel = examples.nest(
        "bins",
        [
            array("radius", n),
            array("count", bins),
            array("out", bins),
            *(array(name, transient=True, scope="local") for name in ("low", "high", "total")),
        ],
        loop("i", bins, examples.assign(load("count", "i"), 0.0)),
        loop(
            "i",
            bins,
            examples.assign(low, op("mul", op("cast:float64", "i"), 0.1)),
            examples.assign(high, op("add", low, 0.1)),
            examples.assign(total, 0.0),
            loop(
                "j",
                n,
                examples.accumulate(total, op("select", inside, load("radius", "j"), 0.0)),
                examples.accumulate(load("count", "i"), op("select", inside, 1.0, 0.0)),
            ),
            examples.assign(load("out", "i"), total),
        ),
    )
    memory = Kernel(kernel).memory(np.random.default_rng(0))
    memory["radius"] = np.random.default_rng(1).random(n)
    expected = interpret(kernel, memory)
    recipes = [Recipe(order="row", fuse=f, vector=v) for f in (1, 3, 4) for v in ("auto", "none")]
    functions = [emit(apply(recipe, kernel), f"f{k}") for k, recipe in enumerate(recipes)]
    library = build(functions, tmp_path)
    for function in functions:
        assert not differences(expected, call(library, function, kernel, memory))


def test_channels_of_a_large_image_go_on_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where an image is too large for a core's cache, what is handed on is of one channel at a time."""
    images, channels, points = 5, 4, 37
    shape = {"n": images, "c": channels, "i": points}
    element = ("n", "c", "i")
    kernel = normalise(
        examples.nest(
            "centred",
            [array(name, images, channels, points) for name in ("x", "out")]
            + [array("d", images, channels, points, transient=True)]
            + [array(name, images, channels, transient=True) for name in ("m", "v")],
            examples.loops(shape, examples.accumulate(load("m", "n", "c"), load("x", *element), init=0.0)),
            examples.loops(
                shape, assign(load("d", *element), op("sub", load("x", *element), load("m", "n", "c")))
            ),
            examples.loops(
                shape, examples.accumulate(load("v", "n", "c"), op("abs", load("d", *element)), init=0.0)
            ),
            examples.loops(
                shape, assign(load("out", *element), op("div", load("d", *element), load("v", "n", "c")))
            ),
        )
    )
    recipe = Recipe(order="row", fuse=2)
    assert apply(recipe, kernel).buffers["d"].shape == (2, channels, points)
    monkeypatch.setattr(sys.modules["gnnperf.schedules.recipes.apply"], "CACHE_BYTES", 8 * channels * points)
    scheduled = apply(recipe, kernel)
    assert scheduled.buffers["d"].shape == (1, 2, points)
    function = emit(scheduled, "centred")
    library = build([function], tmp_path)
    memory = Kernel(kernel).memory(np.random.default_rng(0))
    assert not differences(interpret(kernel, memory), call(library, function, kernel, memory))


def test_heads_of_attention_go_on_one_by_one_in_tiles_of_their_rows(tmp_path: Path) -> None:
    """A tile that would be all heads is no tile: threads take heads, and the nests of a head share rows."""
    heads, rows, columns, width = 3, 21, 18, 10
    shape = {"h": heads, "i": rows}
    e = op("exp", op("sub", load("S", "h", "i", "j"), load("top", "h", "i")))
    kernel = normalise(
        examples.nest(
            "attention",
            [array("Q", heads, rows, width), array("K", heads, columns, width)]
            + [array("V", heads, columns, width), array("out", heads, rows, width)]
            + [array(name, heads, rows, columns, transient=True) for name in "SE"]
            + [array(name, heads, rows, transient=True) for name in ("top", "total")],
            examples.loops(
                {**shape, "j": columns, "k": width},
                examples.accumulate(
                    load("S", "h", "i", "j"),
                    op("mul", load("Q", "h", "i", "k"), load("K", "h", "j", "k")),
                    init=0.0,
                ),
            ),
            examples.loops(
                {**shape, "j": columns},
                examples.accumulate(load("top", "h", "i"), load("S", "h", "i", "j"), "max", init=-1e30),
            ),
            examples.loops({**shape, "j": columns}, examples.assign(load("E", "h", "i", "j"), e)),
            examples.loops(
                {**shape, "j": columns},
                examples.accumulate(load("total", "h", "i"), load("E", "h", "i", "j"), init=0.0),
            ),
            examples.loops(
                {**shape, "k": width, "j": columns},
                examples.accumulate(
                    load("out", "h", "i", "k"),
                    op("mul", load("E", "h", "i", "j"), load("V", "h", "j", "k")),
                    init=0.0,
                ),
            ),
            examples.loops(
                {**shape, "k": width},
                examples.assign(
                    load("out", "h", "i", "k"), op("div", load("out", "h", "i", "k"), load("total", "h", "i"))
                ),
            ),
        )
    )
    recipes = [Recipe(order=order, fuse=4, vector=v) for order in ("row", "panel") for v in ("auto", "none")]
    scheduled = [apply(recipe, kernel) for recipe in (*recipes, Recipe(order="row", fuse=4, parallel="none"))]
    for nest, threads in zip(scheduled, (1, 1, 1, 1, 0), strict=True):
        (heads_loop,) = nest.body
        assert isinstance(heads_loop, Loop) and (heads_loop.step, len(heads_loop.body)) == (1, 1)
        (tiles,) = heads_loop.body
        assert isinstance(tiles, Loop) and tiles.step == 4
        assert nest.buffers["S"].shape == (1, 4, columns)
        shared = [lp for lp in nest.loops() if lp.annotation and lp.annotation.kind == "parallel"]
        assert shared == [heads_loop][:threads]
    functions = [emit(nest, f"f{k}") for k, nest in enumerate(scheduled)]
    library = build(functions, tmp_path)
    memory = Kernel(kernel).memory(np.random.default_rng(0))
    expected = interpret(kernel, memory)
    for function in functions:
        assert not differences(expected, call(library, function, kernel, memory))


@pytest.mark.parametrize("reads", ["B", "D"])
def test_a_scalar_set_before_nests_that_share_most_rows_reaches_them(reads: str, tmp_path: Path) -> None:
    """In steps: B = A inside, C = A and D = C with the borders, whose rows run apart; s times B or D."""
    n, m = 40, 9
    scale = load("s")
    factor = {name: scale if name == reads else 1.0 for name in "BD"}
    kernel = examples.nest(
        "steps",
        [array(x, n, m) for x in "ABCD"] + [array("s", transient=True, scope="local"), array("dt", 3)],
        loop(
            "t",
            3,
            examples.assign(scale, op("div", 1.0, load("dt", "t"))),
            examples.loops(
                {"i": n - 2, "j": m},
                examples.assign(
                    load("B", examples.add("i", 1), "j"),
                    op("mul", factor["B"], load("A", examples.add("i", 1), "j")),
                ),
            ),
            examples.loops({"i": n, "j": m}, examples.assign(load("C", "i", "j"), load("A", "i", "j"))),
            examples.loops(
                {"i": n, "j": m},
                examples.assign(load("D", "i", "j"), op("mul", factor["D"], load("C", "i", "j"))),
            ),
            independent=False,
        ),
    )
    memory = Kernel(kernel).memory(np.random.default_rng(0))
    expected = interpret(kernel, memory)
    recipes = [Recipe(order="row", fuse=f, vector=v) for f in (1, 4) for v in ("auto", "none")]
    recipes.append(Recipe(order="dot", register_q=2, register_p=8, vector="none", accumulate=False, fuse=1))
    scheduled = [apply(recipe, kernel) for recipe in recipes]
    assert all(len([s for s in nest.statements() if s.target.buffer == "D"]) > 1 for nest in scheduled)
    functions = [emit(nest, f"f{k}") for k, nest in enumerate(scheduled)]
    library = build(functions, tmp_path)
    for function in functions:
        assert not differences(expected, call(library, function, kernel, memory))
