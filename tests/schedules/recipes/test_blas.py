"""Bands that are BLAS routines become calls of OpenBLAS; nothing else does."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from nests import examples
from nests.examples import Operand, accumulate, add, array, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.kernels import (
    batched_product,
    matrix_product,
    matrix_vector,
    product_and_bias,
    reduce_axis,
    softmax,
    triangular,
)
from schedules.recipes.running import build, differences
from schedules.recipes.running import call as run

from gnnperf.errors import NotApplicable
from gnnperf.nests import LoopNest, normalise
from gnnperf.nests.analysis import band
from gnnperf.nests.ir import Expr
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, Recipe, apply, emit, mutate, random_recipe
from gnnperf.schedules.recipes.blas import match
from gnnperf.schedules.recipes.library_calls import libraries
from gnnperf.schedules.recipes.space import relevant_fields

(BLAS,) = (recipe for recipe in DEFAULTS if recipe.library == "blas")


def contraction(
    target: str,
    left: str,
    right: str,
    sizes: Mapping[str, int],
    dtype: str = "float64",
    alpha: Operand = 1.0,
    init: Operand | None = None,
    **strides: tuple[int, ...],
) -> LoopNest:
    """C[target] += alpha A[left] B[right], every letter a loop, in the order of `sizes`."""
    names = dict(zip("CAB", (target, left, right), strict=True))
    buffers = [
        array(n, *(sizes[x] for x in letters), dtype=dtype, strides=strides.get(n))
        for n, letters in names.items()
    ]
    value = mul(mul(alpha, load("A", *left)), load("B", *right))
    if isinstance(alpha, Expr):
        buffers.append(array("alpha", dtype=dtype))
    return nest("contraction", buffers, loops(sizes, accumulate(load("C", *target), value, init=init)))


def found(kernel: LoopNest) -> list[str]:
    """Routines with the layouts of their matrices (N: by rows, T: transposed), `*` for loops around."""
    calls = [c for node in kernel.body for c in match(band(node), kernel.buffers)]
    return [
        c.routine
        + "".join(" T" if x.transposed else " N" for x in c.layouts)
        + "*" * len(c.batch + c.repeats)
        for c in calls
    ]


def check(folder: Path, kernels: Mapping[str, LoopNest], *recipes: Recipe, poison: bool = True) -> None:
    """Calls compute what the interpreter does; outputs that must not be read start as NaN."""
    functions: dict[tuple[str, int], CppFunction] = {}
    for name, kernel in kernels.items():
        for number, recipe in enumerate(recipes):
            functions[name, number] = emit(apply(recipe, kernel), f"f_{name}_{number}")
    library = build(list(functions.values()), folder)
    for (name, _), function in functions.items():
        assert "gp_blas<" in function.source
        memory = random_memory(kernels[name], np.random.default_rng(1))
        for statement in kernels[name].statements():
            if poison and statement.init is not None and statement.target.buffer in memory:
                memory[statement.target.buffer][:] = np.nan
        expected = interpret(kernels[name], memory)
        assert not differences(expected, run(library, function, kernels[name], memory)), function.symbol


# --------------------------------------------------------------------------- what is a routine

ORIENTATIONS = {("ik", "kj"): "N N", ("ki", "kj"): "T N", ("ik", "jk"): "N T", ("ki", "jk"): "T T"}


@pytest.mark.parametrize("order", ["".join(p) for p in itertools.permutations("ijk")])
@pytest.mark.parametrize(("operands", "layouts"), ORIENTATIONS.items())
def test_products_match_in_every_orientation_and_loop_order(
    operands: tuple[str, str], layouts: str, order: str
) -> None:
    sizes = {"i": 5, "j": 6, "k": 7}
    kernel = contraction("ij", *operands, {x: sizes[x] for x in order})
    assert found(kernel) == [f"gemm {layouts} N"]
    flipped = contraction("ij", *reversed(operands), {x: sizes[x] for x in order})
    assert found(flipped) == [f"gemm {layouts} N"], "the product of two numbers commutes"


SIZES = {"b": 3, "c": 2, "i": 5, "j": 6, "k": 7, "l": 4}


def sized(letters: str) -> dict[str, int]:
    return {x: SIZES[x] for x in letters}


MATCHES = {
    "column-major result": (contraction("ji", "ik", "kj", sized("ijk")), ["gemm T T N"]),
    "batched": (contraction("bij", "bik", "bkj", sized("bijk")), ["gemm N N N*"]),
    "batched twice": (contraction("bcij", "bcik", "bcjk", sized("bcijk")), ["gemm N T N**"]),
    "batch into rows": (contraction("bij", "bik", "kj", sized("bijk")), ["gemm N N N"]),
    "batch not into rows": (contraction("bij", "bik", "kj", sized("bijk"), A=(64, 7, 1)), ["gemm N N N*"]),
    "two reductions in one": (contraction("ij", "ikl", "klj", sized("ijkl")), ["gemm N N N"]),
    "two reductions apart": (contraction("ij", "ikl", "lkj", sized("ijkl")), ["gemm N N N*"]),
    "batch in the middle": (contraction("ibj", "ibk", "bkj", sized("ibjk")), ["gemm N N N*"]),
    "matrix-vector": (contraction("i", "ik", "k", sized("ik")), ["gemv N"]),
    "matrix-vector, swapped": (contraction("i", "k", "ik", sized("ik")), ["gemv N"]),
    "vector-matrix": (contraction("j", "k", "kj", sized("jk")), ["gemv T"]),
    "batched matrix-vector": (contraction("bi", "bik", "bk", sized("bik")), ["gemv N*"]),
    "strided vectors": (contraction("i", "ik", "k", sized("ik"), C=(3,), B=(2,)), ["gemv N"]),
    "rank-one update": (contraction("ij", "i", "j", sized("ij")), ["ger N"]),
    "rank-one update, swapped": (contraction("ij", "j", "i", sized("ij")), ["ger N"]),
    "inner product": (contraction("", "k", "k", sized("k")), ["dot"]),
    "whole matrices": (contraction("", "ik", "ik", sized("ik")), ["dot"]),
    "fp32": (contraction("ij", "ik", "kj", sized("ijk"), "float32"), ["gemm N N N"]),
    "complex": (contraction("ij", "ki", "kj", sized("ijk"), "complex128"), ["gemm T N N"]),
    "complex matrix-vector": (contraction("i", "ik", "k", sized("ik"), "complex64"), ["gemv N"]),
    "row pitch": (contraction("ij", "ik", "kj", sized("ijk"), A=(9, 1), B=(8, 1), C=(16, 1)), ["gemm N N N"]),
    "a row only": (contraction("bj", "bk", "kj", {"b": 1, "j": 6, "k": 7}), ["gemv T*"]),
    "convolution": (examples.conv2d(2, 6, 5, 18, 3), None),
}


@pytest.mark.parametrize("name", MATCHES)
def test_what_is_a_routine(name: str) -> None:
    kernel, expected = MATCHES[name]
    routines = found(kernel)
    assert routines and (expected is None or routines == expected)


def test_several_products_in_a_sum_are_several_calls() -> None:
    pairs = [("A", "B"), ("B", "A"), ("A", "A")]
    terms = [mul(load(a, "i", "k"), load(b, "j", "k")) for a, b in pairs]
    value = op("sub", add(terms[0], terms[1]), op("neg", terms[2]))
    arrays = [array("A", 5, 7), array("B", 5, 7), array("C", 5, 5)]
    body = accumulate(load("C", "i", "j"), value, init=0.0)
    kernel = nest("syr2k", arrays, loops({"i": 5, "j": 5, "k": 7}, body))
    assert found(kernel) == ["gemm N T N"] * 3


def with_statement(kernel: LoopNest, **changes: object) -> LoopNest:
    nodes = band(kernel.body[0])
    (statement,) = nodes.statements
    body = replace(statement, **changes)  # type: ignore[arg-type]
    return replace(kernel, body=(loops({lp.iterator: lp.stop for lp in nodes.loops}, body),))


PRODUCT = contraction("ij", "ik", "kj", sized("ijk"))
SQUARE = dict.fromkeys("ijk", 6)
NO_MATCHES = {
    "integers": contraction("ij", "ik", "kj", sized("ijk"), "int32"),
    "another reduction": with_statement(PRODUCT, reduce="max"),
    "a store": with_statement(PRODUCT, reduce=None),
    "a guard": with_statement(PRODUCT, guard=op("lt", "k", 3)),
    "three factors": with_statement(
        PRODUCT, value=mul(mul(load("A", "i", "k"), load("B", "k", "j")), load("B", "k", "j"))
    ),
    "one factor": with_statement(PRODUCT, value=load("A", "i", "k")),
    "a function of a factor": with_statement(
        PRODUCT, value=mul(op("sqrt", load("A", "i", "k")), load("B", "k", "j"))
    ),
    "a factor that is the iterator": with_statement(
        PRODUCT, value=mul(mul(load("A", "i", "k"), load("B", "k", "j")), "k")
    ),
    "no matrix contiguous": contraction("ij", "ik", "kj", sized("ijk"), A=(64, 3)),
    "rows that overlap": contraction("ij", "ik", "kj", sized("ijk"), A=(4, 1)),
    "the result is an operand": replace(
        with_statement(
            contraction("ij", "ik", "kj", SQUARE), value=mul(load("C", "i", "k"), load("B", "k", "j"))
        )
    ),
    "alpha is an element of the result": with_statement(
        PRODUCT, value=mul(load("C", 0, 0), mul(load("A", "i", "k"), load("B", "k", "j")))
    ),
    "mixed types": replace(PRODUCT, buffers={**PRODUCT.buffers, "A": array("A", 5, 7, dtype="float32")}),
    "a single-precision alpha": replace(
        contraction("ij", "ik", "kj", sized("ijk"), alpha=load("alpha")),
        buffers={
            **contraction("ij", "ik", "kj", sized("ijk")).buffers,
            "alpha": array("alpha", dtype="float32"),
        },
    ),
    "backwards": with_statement(
        PRODUCT, value=mul(load("A", "i", op("sub", 6, "k")), load("B", op("sub", 6, "k"), "j"))
    ),
    "gathered rows": replace(
        with_statement(PRODUCT, value=mul(load("A", load("rows", "i"), "k"), load("B", "k", "j"))),
        buffers={**PRODUCT.buffers, "rows": array("rows", 5, dtype="int64")},
    ),
    "triangular": triangular(),
    "sums of rows": reduce_axis("k", "add"),
    "complex rank-one update": contraction("ij", "i", "j", sized("ij"), "complex128"),
    "complex inner product": contraction("", "k", "k", sized("k"), "complex128"),
    "inner products of rows": contraction("i", "ik", "ik", sized("ik")),
    "sparse": examples.spmm(15, 11, 60, 19),
    "softmax": softmax(7, 21),
}


@pytest.mark.parametrize("name", NO_MATCHES)
def test_what_is_none(name: str) -> None:
    kernel = NO_MATCHES[name]
    assert found(kernel) == []
    with pytest.raises(NotApplicable, match="no part of the nest is a BLAS routine"):
        apply(BLAS, kernel)
    assert "library" not in relevant_fields(kernel)


def test_other_steps_than_one_are_none() -> None:
    node = PRODUCT.body[0]
    assert found(replace(PRODUCT, body=(replace(node, step=2),))) == []


# --------------------------------------------------------------------------- what is computed


@pytest.mark.parametrize("threads", [1, 3])
def test_calls_compute_what_the_loops_do(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    kernels = {f"match_{number}": kernel for number, (kernel, _) in enumerate(MATCHES.values())}
    check(tmp_path, kernels, BLAS, replace(BLAS, parallel="none"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_sizes_that_threads_share(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large enough that every thread gets a piece; sizes that no piece divides. Against NumPy."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    big = {"i": 131, "j": 77, "k": 67}
    products = {f"gemm_{left}_{right}": ("ij", left, right, big) for left, right in ORIENTATIONS} | {
        "gemv": ("i", "ik", "k", {"i": 301, "k": 219}),
        "gemv_t": ("i", "ki", "k", {"i": 301, "k": 219}),
        "batched": ("bij", "bik", "bkj", {"b": 17, "i": 9, "j": 10, "k": 11}),
    }
    if dtype != "complex128":
        products["ger"] = ("ij", "i", "j", {"i": 301, "j": 219})
        products["dot"] = ("", "k", "k", {"k": 70001})
    kernels = {name: contraction(*arguments, dtype) for name, arguments in products.items()}
    functions = {name: emit(apply(BLAS, kernel), name) for name, kernel in kernels.items()}
    library = build(list(functions.values()), tmp_path)
    for name, (target, left, right, sizes) in products.items():
        memory = random_memory(kernels[name], np.random.default_rng(2))
        a, b = (memory[n].reshape([sizes[x] for x in ix]) for n, ix in (("A", left), ("B", right)))
        product = np.einsum(f"{left},{right}->{target}", a, b)
        expected = {"C": memory["C"] + product.astype(dtype).ravel()}
        assert not differences(expected, run(library, functions[name], kernels[name], memory)), name


@pytest.mark.parametrize("init", [None, 0, 0.0, 1.5])
def test_initial_values_and_scalars(init: float | None, tmp_path: Path) -> None:
    """The result starts from what memory holds, from zero (whatever it held), or from another value."""
    alphas: list[Operand] = [1, -1, 0.5, load("alpha"), mul(2, load("alpha")), op("neg", load("alpha"))]
    kernels = {
        f"{name}_{number}": contraction(*operands, sized(letters), alpha=alpha, init=init)
        for number, alpha in enumerate(alphas)
        for name, operands, letters in (
            ("gemm", ("ij", "ik", "kj"), "ijk"),
            ("gemv", ("i", "ik", "k"), "ik"),
            ("ger", ("ij", "i", "j"), "ij"),
            ("dot", ("", "k", "k"), "k"),
            ("apart", ("ij", "ikl", "lkj"), "ijkl"),
        )
    }
    check(tmp_path, kernels, BLAS)


def test_random_shapes_and_layouts(tmp_path: Path) -> None:
    """Views with row pitches, loops in any order, batches anywhere, fp32 and fp64."""
    rng, kernels = Random(4), {}
    for number in range(40):
        letters = ["bijk", "cbijk", "ijkl", "ik", "bik", "ij", "k"][number % 7]
        sizes = {x: rng.choice([1, 2, 3, 8, 17, 33]) for x in letters}
        order = rng.sample(letters, len(letters))

        def operand(keep: str, letters: str = letters) -> str:
            return "".join(rng.sample([x for x in letters if x in keep], len(set(letters) & set(keep))))

        indices = [operand("bcij"), operand("bcikl"), operand("bcjkl")]
        if "k" not in letters:
            indices = ["ij", "i", "j"]
        pitches = {}
        for name, ix in zip("CAB", indices, strict=True):
            steps = [1]
            for x in reversed(ix[1:]):
                steps.insert(0, steps[0] * sizes[x] + rng.choice([0, 0, 5]))
            pitches[name] = tuple(steps) if ix else ()
        kernel = contraction(
            *indices, {x: sizes[x] for x in order}, rng.choice(["float64", "float32"]),
            init=rng.choice([None, 0.0]), **pitches,
        )  # fmt: skip
        if found(kernel):
            kernels[f"random_{number}"] = kernel
    assert len(kernels) >= 20
    check(tmp_path, kernels, BLAS)


def test_sizes_known_only_at_run_time(tmp_path: Path) -> None:
    """Trailing updates: C[i, j] -= A[i, p] ... for i and j after p, and products that are empty."""
    n = 12

    def trailing(name: str, p: int) -> LoopNest:
        body = accumulate(load("C", "i", "j"), op("neg", mul(load("A", "i", "k"), load("B", "k", "j"))))
        inner = loop("i", n, loop("j", n, loop("k", "p", body)), start=add("p", 1))
        kernel = nest(name, [array(x, n, n) for x in "ABC"], inner)
        return replace(kernel, parameters={"p": p})

    kernels = {f"trailing_{p}": trailing(f"trailing_{p}", p) for p in (0, 1, 5, n - 2, n - 1)}
    assert all(found(kernel) == ["gemm N N N"] for kernel in kernels.values())
    check(tmp_path, kernels, BLAS)


def test_empty_reductions_still_start(tmp_path: Path) -> None:
    kernels = {
        name: replace(
            nest(name, [array("A", 9, 9), array("B", *shape), array("C", *target)], body), parameters={"p": 0}
        )
        for name, shape, target, body in (
            ("gemm", (9, 9), (9, 9), loops(
                {"i": 9, "j": 9, "k": "p"},
                accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("B", "k", "j")), init=0.0),
            )),
            ("gemv", (9,), (9,), loops(
                {"i": 9, "k": "p"},
                accumulate(load("C", "i"), mul(load("A", "i", "k"), load("B", "k")), init=0.0),
            )),
        )
    }  # fmt: skip
    check(tmp_path, kernels, BLAS)


def test_the_rest_of_a_unit_follows_the_other_fields(tmp_path: Path) -> None:
    kernel = normalise(product_and_bias(37, 41, 29))
    recipes = [BLAS, replace(BLAS, fuse=8), replace(BLAS, fuse=5, parallel="none")]
    check(tmp_path, {"dense": kernel}, *recipes)
    scheduled = apply(replace(BLAS, fuse=8), kernel)
    kinds = [(lp.annotation.kind, lp.annotation.library) for lp in scheduled.loops() if lp.annotation]
    assert kinds[:2] == [("parallel", ""), ("none", "blas")], "tiles are shared, each has a call of its own"


def test_batches_are_shared_where_there_are_many() -> None:
    few, many = (
        apply(BLAS, contraction("bij", "bik", "bkj", {"b": b, "i": 100, "j": 100, "k": 100})) for b in (4, 40)
    )
    assert [lp.iterator for lp in few.loops() if lp.annotation and lp.annotation.kind == "parallel"] == ["i"]
    assert next(lp for lp in many.loops()).annotation.kind == "parallel"  # type: ignore[union-attr]


def test_batches_that_meet_in_one_element_do_not_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C[b + i, j] += A[b, i, k] B[k, j]: calls of different b add to the same rows."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    sizes = {"b": 40, "i": 5, "k": 6, "j": 7}
    body = accumulate(
        load("C", add("b", "i"), "j"), mul(load("A", "b", "i", "k"), load("B", "b", "k", "j")), init=0.0
    )
    arrays = [array("A", 40, 5, 6), array("B", 40, 6, 7), array("C", 44, 7)]
    kernel = nest("overlapping", arrays, loops(sizes, body))
    assert found(kernel)
    check(tmp_path, {"overlapping": kernel}, BLAS)


# --------------------------------------------------------------------------- as a recipe


def test_absent_means_none_and_ids_stay() -> None:
    assert "library" not in Recipe().to_dict()
    assert Recipe(order="row", accumulate=False).id == "d460aac49175"
    assert BLAS.to_dict()["library"] == "blas"
    assert Recipe.from_dict(json.loads(json.dumps(BLAS.to_dict()))) == BLAS
    assert "BLAS" in BLAS.describe() and "BLAS" not in Recipe().describe()


def test_searches_try_it_where_it_matches() -> None:
    kernel, rng = normalise(matrix_product(20, 20, 20)), Random(0)
    assert "library" in relevant_fields(kernel)
    assert any(random_recipe(kernel, rng).library for _ in range(100))
    assert any(mutate(Recipe(), kernel, rng).library for _ in range(400))


def test_emitted_code_says_what_it_opens() -> None:
    kernel = normalise(matrix_vector(20, 30))
    (library,) = libraries(emit(apply(BLAS, kernel), "f").source)
    assert library.is_file() and library.name.startswith("libscipy_openblas")
    assert libraries(emit(apply(Recipe(), kernel), "f").source) == []


def test_batched_products_of_the_normal_form() -> None:
    assert found(normalise(batched_product(3, 7, 19, 11))) == ["gemm N N N*"]


# --------------------------------------------------------------------------- symmetric results


def gram(by_rows: bool, weighted: bool, n: int, k: int, init: float | None = 0.0, **extra: int) -> LoopNest:
    """C[i, j] = 2 times the sum over k of A[i, k] A[j, k], or A[k, i] A[k, j], times w[k] if weighted."""
    sizes = {"i": n, "j": n, "k": k, **extra}
    left, right = (load("A", x, "k") if by_rows else load("A", "k", x) for x in "ij")
    value = mul(mul(2.0, left), mul(load("w", "k"), right) if weighted else right)
    buffers = [array("C", n, n), array("A", *((n, k) if by_rows else (k, n))), array("w", k)]
    return nest("gram", buffers, loops(sizes, accumulate(load("C", "i", "j"), value, init=init)))


GRAMS = {
    (by_rows, weighted, n, k): gram(by_rows, weighted, n, k)
    for by_rows, weighted in itertools.product((False, True), repeat=2)
    for n, k in ((9, 5), (70, 300), (130, 64))
}


@pytest.mark.parametrize("parallel", ["spatial", "none"])
def test_products_with_the_own_transpose_compute_half(parallel: str, tmp_path: Path) -> None:
    recipe = replace(BLAS, parallel=parallel)
    functions = {key: emit(apply(recipe, g), f"f{n}") for n, (key, g) in enumerate(GRAMS.items())}
    assert all("  gp_gram<double>(" in f.source for f in functions.values())
    library = build([*functions.values()], tmp_path)
    for key, function in functions.items():
        by_rows, weighted, n, k = key
        memory = random_memory(GRAMS[key], np.random.default_rng(2))
        a = memory["A"].reshape((n, k) if by_rows else (k, n))
        rows = a if by_rows else a.T
        memory["C"][:] = np.nan
        found = run(library, function, GRAMS[key], memory)["C"].reshape(n, n)
        expected = 2.0 * (rows * memory["w"] if weighted else rows) @ rows.T
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found, found.T)


def test_what_is_added_to_a_matrix_is_not_taken_to_be_symmetric() -> None:
    assert "  gp_gemm<double>(" in emit(apply(BLAS, gram(False, False, 9, 5, init=None)), "f").source
    assert found(gram(False, True, 9, 5, init=None)) == [], "no routine weighs the terms of other products"
    assert found(gram(False, True, 9, 5, init=1.0)) == []
    rectangle = contraction("ij", "ki", "kj", {"i": 5, "j": 5, "k": 7})
    assert not any(call.is_symmetric for n in rectangle.body for call in match(band(n), rectangle.buffers))
    short = gram(False, False, 9, 5, j=8)
    assert "  gp_gemm<double>(" in emit(apply(BLAS, short), "f").source
