"""Effects of recipes, estimated from graphs: roles as in the nest, quantities as worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, log2, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import examples
from schedules.recipes.kernels import (
    FAMILIES,
    batched_product,
    matrix_product,
    matrix_vector,
    permutation,
    reduce_axis,
    strided_convolution,
)

from gnnperf.nests import LoopNest, normalise
from gnnperf.nests.analysis import band, extent
from gnnperf.nests.to_graph import nest_graph
from gnnperf.schedules.recipes import DEFAULTS, Recipe, effect_fields, effects
from gnnperf.schedules.recipes.roles import assign_roles
from gnnperf.schedules.recipes.statements import statements

GEMM = nest_graph(normalise(matrix_product(64, 96, 80)))  # C[64, 96] += A[64, 80] B[80, 96], doubles


def named(recipe: Recipe, graph: object = GEMM) -> dict[str, float]:
    return dict(zip(effect_fields(), effects(graph, [recipe])[0].tolist(), strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kernel",
    [
        matrix_product(64, 96, 80),
        matrix_product(64, 96, 80, b="jk"),
        matrix_product(64, 96, 80, a="ki", b="jk"),
        matrix_vector(19, 43),
        matrix_vector(19, 43, transposed=True),
        reduce_axis("k", "add"),
        reduce_axis("i", "max"),
        permutation((21, 35), (1, 0)),
        batched_product(),
        examples.conv2d(2, 6, 5, 18, 3),
        strided_convolution(),
        examples.contraction(2),
    ],
)
def test_a_graph_tells_the_roles_of_its_nest(kernel: LoopNest) -> None:
    nest = normalise(kernel)
    stack = max((band(node) for node in nest.body), key=lambda b: len(b.loops))
    roles = assign_roles(stack, nest.buffers)
    sizes = {lp.iterator: extent(lp) or 1 for lp in stack.loops}
    expected = {r: prod(sizes[i] for i in names) for r, names in roles.by_role.items() if names}
    found = statements(nest_graph(nest))[0]
    assert found.extents == expected
    assert found.contiguous == roles.contiguous
    assert found.is_contraction == roles.is_contraction or len(expected) < 3


def test_a_blocked_matrix_product_by_hand() -> None:
    recipe = Recipe(order="blocked", tile_q=16, tile_r=20, register_q=4, register_p=2, vector="p", chunk=2)
    row = named(recipe)
    assert row["costliest_share"] > 0.9
    assert row["lanes/0"] == 8
    assert row["register_trips_p/0"] == pytest.approx(log2(96 / 16), abs=1e-3)
    assert row["register_rest_p/0"] == 0
    assert row["tiles_q/0"] == pytest.approx(log2(4))
    assert row["tile_rest_r/0"] == 0
    assert row["accumulators/0"] == pytest.approx(log2(4 * 2))
    # A: 4 rows, B: 16 columns, C: 4 x 16, for 4 x 16 products.
    assert row["loads_per_operation/0"] == pytest.approx(log2((4 + 16 + 64) / 64), abs=2e-3)
    assert row["tile_bytes/0"] == pytest.approx(log2(1 + 8 * (16 * 20 + 20 * 96 + 16 * 96)))
    assert row["panel_bytes/0"] == pytest.approx(log2(1 + 8 * (4 * 20 + 20 * 16 + 4 * 16)))
    assert row["parallel_trips/0"] == pytest.approx(log2(4.5))  # tiles of q
    assert row["parallel_chunks/0"] == pytest.approx(log2(2.5))
    assert row["innermost_reduces/0"] == 1
    assert row["innermost_stride_bytes/0"] == pytest.approx(log2(1 + 96 * 8))  # down the columns of B


def test_what_is_left_over_counts() -> None:
    row = named(Recipe(register_q=6, register_p=5, tile_r=48, vector="p"))
    assert row["register_rest_q/0"] == pytest.approx(4 / 64)
    assert row["register_rest_p/0"] == pytest.approx(16 / 96)
    assert row["tile_rest_r/0"] == pytest.approx(32 / 80)


def test_what_is_not_there_is_absent() -> None:
    row = named(Recipe(vector="none", parallel="none"))
    assert all(isnan(row[f"{name}/0"]) for name in ("vectors", "vector_unit", "parallel_trips"))
    alone = named(DEFAULTS[0], nest_graph(normalise(permutation((21, 35), (1, 0)))))
    assert all(isnan(value) for name, value in alone.items() if name.endswith("/1"))


def test_libraries_are_for_products() -> None:
    blas = Recipe(library="blas")
    assert named(blas)["library_call/0"] == 1
    sums = named(blas, nest_graph(normalise(reduce_axis("k", "add"))))
    assert (sums["library_call/0"], sums["library_in_vain/0"]) == (0, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kernel_has_effects(family: str) -> None:
    for kernel in FAMILIES[family].values():
        rows = effects(nest_graph(normalise(kernel.nest)), DEFAULTS)
        assert rows.shape == (len(DEFAULTS), len(effect_fields()))
        assert not np.isinf(rows).any()


@given(st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(rng: object) -> None:
    graph = nest_graph(normalise(matrix_product(64, 96, 80)))
    order = list(range(len(graph.nodes)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    place = {old: new for new, old in enumerate(order)}
    edges = [replace(e, source=place[e.source], target=place[e.target]) for e in graph.edges]
    shuffled = replace(graph, nodes=tuple(graph.nodes[i] for i in order), edges=tuple(edges))
    np.testing.assert_array_equal(effects(shuffled, DEFAULTS), effects(graph, DEFAULTS))
