"""Schedules of sparse times dense: right on every matrix, and in the form that makes them fast."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from nests.examples import accumulate, add, array, load, loop, mul, nest
from nests.interpret import Memory
from schedules.recipes.running import build, call

from gnnperf.measure.arrays import aligned_empty
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe, apply, emit

ROWS, COLUMNS = 41, 23
ROWTILE = Recipe(order="rowtile", register_p=16, omp_schedule="balanced")
SCHEDULES = (
    ROWTILE,
    replace(ROWTILE, unroll=4),
    replace(ROWTILE, prefetch=12, tile_p=32),
    replace(ROWTILE, prefetch=64, nontemporal=True),
    replace(ROWTILE, prefetch=64, nontemporal=True, parallel="none", omp_schedule="static"),
    replace(ROWTILE, prefetch=32, omp_schedule="dynamic", chunk=4),
    replace(ROWTILE, register_p=1, prefetch=7),
    replace(ROWTILE, register_p=3, nontemporal=True, accumulate=False),
    Recipe(order="row", register_p=8, prefetch=8, omp_schedule="balanced"),
)


def product(nonzeros: int, features: int, dtype: str = "float64", init: float | None = 0.0) -> LoopNest:
    """Y = A X with A in CSR; without `init`, Y += A X."""
    body = accumulate(
        load("Y", "i", "f"), mul(load("values", "k"), load("X", load("indices", "k"), "f")), init=init
    )
    row = loop("k", load("indptr", add("i", 1)), loop("f", features, body), start=load("indptr", "i"))
    buffers = [
        array("indptr", ROWS + 1, dtype="int32"),
        array("indices", nonzeros, dtype="int32"),
        array("values", nonzeros, dtype=dtype),
        array("X", COLUMNS, features, dtype=dtype),
        array("Y", ROWS, features, dtype=dtype),
    ]
    return nest("spmm", buffers, loop("i", ROWS, row))


def matrix(kind: str) -> scipy.sparse.csr_matrix:
    rng = np.random.default_rng(0)
    dense = rng.random((ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.2)
    if kind == "empty rows":
        dense[:9] = dense[-9:] = dense[15] = 0
    elif kind == "one row":
        dense[:7] = dense[8:] = 0
        dense[7] = 1
    found = scipy.sparse.csr_matrix(dense)
    if kind == "unsorted":
        for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
            order = rng.permutation(stop - start) + start
            found.indices[start:stop], found.data[start:stop] = found.indices[order], found.data[order]
    return found


def memory_of(sparse: scipy.sparse.csr_matrix, features: int, dtype: str) -> Memory:
    rng = np.random.default_rng(1)
    return {
        "indptr": sparse.indptr.astype(np.int32),
        "indices": sparse.indices.astype(np.int32),
        "values": sparse.data.astype(dtype),
        "X": rng.random(COLUMNS * features).astype(dtype),
        "Y": rng.random(ROWS * features).astype(dtype),
    }


@pytest.mark.parametrize("kind", ["uniform", "empty rows", "one row", "unsorted"])
def test_results_are_those_of_scipy(kind: str, tmp_path: Path) -> None:
    """Numbers of columns below, at, and beyond a register tile, that divide by the vectors or do not."""
    sparse = matrix(kind)
    cases = [
        (features, dtype, init, recipe)
        for features, dtype, init in (
            (16, "float32", 0.0), (64, "float64", 0.0), (7, "float32", 0.0), (100, "float32", 0.0),
            (45, "float64", None), (131, "float64", 0.0), (1, "float64", 0.0),
        )
        for recipe in SCHEDULES
    ]  # fmt: skip
    nests = [product(sparse.nnz, f, dtype, init) for f, dtype, init, _ in cases]
    functions = [
        emit(apply(recipe, n), f"product_{i}")
        for i, (n, (*_, recipe)) in enumerate(zip(nests, cases, strict=True))
    ]
    library = build(functions, tmp_path)
    for (features, dtype, init, recipe), kernel, function in zip(cases, nests, functions, strict=True):
        memory = memory_of(sparse, features, dtype)
        expected = sparse.astype(dtype) @ memory["X"].reshape(COLUMNS, features)
        if init is None:
            expected += memory["Y"].reshape(ROWS, features)
        got = call(library, function, kernel, memory)["Y"].reshape(ROWS, features)
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=f"{features} {recipe}")


def aligned(values: np.ndarray) -> np.ndarray:
    copy = aligned_empty(values.nbytes).view(values.dtype)
    copy[:] = values
    return copy


def test_what_goes_past_the_caches_arrives(tmp_path: Path) -> None:
    """Where arrays begin on a cache line, as they do when they are measured, and where they do not."""
    sparse = matrix("uniform")
    recipe = replace(ROWTILE, nontemporal=True)
    function = emit(apply(recipe, product(sparse.nnz, 64)), "product")
    library = build([function], tmp_path)
    memory = {name: aligned(values) for name, values in memory_of(sparse, 64, "float64").items()}
    expected = sparse @ memory["X"].reshape(COLUMNS, 64)
    for shift in (0, 1):
        memory["Y"] = aligned(np.zeros(ROWS * 64 + shift))[shift:]
        library.product(*(ctypes.c_void_p(memory[name].ctypes.data) for name in function.buffers))
        np.testing.assert_allclose(memory["Y"].reshape(ROWS, 64), expected, 1e-12)


def body_of(recipe: Recipe, features: int, dtype: str = "float32", init: float | None = 0.0) -> str:
    source = emit(apply(recipe, product(300, features, dtype, init)), "f").source
    return source[source.index("static inline void f_part0") :]


@pytest.mark.parametrize(("features", "accumulators"), [(16, 1), (64, 4), (256, 16), (100, 7), (7, 3)])
def test_a_row_stays_in_registers_whatever_its_length(features: int, accumulators: int) -> None:
    """One pass over the nonzeros: full vectors, then narrower ones, for what the row is long."""
    body = body_of(ROWTILE, features)
    assert body.count("for (int64_t i_k") == 1
    assert len(re.findall(r"^  (?:vec<float, \d+>|float) b_acc_\w+;$", body, re.MULTILINE)) == accumulators
    assert "b_acc_0[" not in body


def test_long_rows_are_walked_in_tiles() -> None:
    body = body_of(ROWTILE, 256 + 40)
    assert body.count("for (int64_t i_k") == 2


def test_prefetching_stays_inside_the_subscripts() -> None:
    body = body_of(replace(ROWTILE, prefetch=64), 64)
    assert body.count("__builtin_prefetch") == 4
    assert "gp_min((i_k + 64), 299)" in body


def test_only_results_that_are_not_read_go_past_the_caches() -> None:
    recipe = replace(ROWTILE, nontemporal=True)
    assert body_of(recipe, 64).count("stream(b_Y") == 4
    assert "stream_fence();" in body_of(recipe, 64)
    assert "stream(b_Y" not in body_of(recipe, 64, init=None)


def test_subscripts_are_as_wide_as_addresses() -> None:
    """A row number times the length of a row may exceed 32 bits."""
    assert "(64 * (int64_t)(b_indices[i_k]))" in body_of(ROWTILE, 64)
