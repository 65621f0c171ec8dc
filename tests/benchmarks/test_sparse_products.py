"""The grid of case-spmm, and the matrices on it."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.comparisons import KERNELS
from benchmarks.sparse_products import DENSE_BYTES, STRUCTURES, grid, scattered

from gnnperf.frontends.dace.source import load_attribute

AXES = ("structure", "size", "dtype", "features")


def test_every_combination_is_there_once() -> None:
    names = [product.name for product in grid()]
    assert len(set(names)) == len(names) == 5 * 2 * 2 * 4


@pytest.mark.parametrize("axis", AXES)
def test_a_quick_run_sees_every_value_of_every_axis(axis: str) -> None:
    assert {getattr(p, axis) for p in grid(quick=True)} == {getattr(p, axis) for p in grid()}
    assert len(grid(quick=True)) < len(grid()) / 5


def test_sizes_are_those_of_the_dense_matrix() -> None:
    for product in grid():
        itemsize = np.dtype(product.dtype).itemsize
        assert product.rows * product.features * itemsize == DENSE_BYTES[product.size]
        assert product.size_bytes > 2 * DENSE_BYTES[product.size]


def csr(structure: str, rows: int = 400, nonzeros: int = 6400) -> tuple[np.ndarray, np.ndarray]:
    make = load_attribute(KERNELS / "spmm.py", "csr", "kernels")
    indptr, indices = make(structure, rows, rows, nonzeros)
    return np.repeat(np.arange(rows), np.diff(indptr)), indices


@pytest.mark.parametrize("structure", STRUCTURES)
def test_matrices_have_distinct_entries_in_order(structure: str) -> None:
    rows, columns = csr(structure)
    keys = rows * 400 + columns
    assert len(keys) == 6400
    assert (np.diff(keys) > 0).all()
    assert columns.min() >= 0 and columns.max() < 400


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_structure_that_has_no_room_is_filled_up(structure: str) -> None:
    rows, columns = csr(structure, 40, 40 * 36)
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == 40 * 36
    with pytest.raises(ValueError, match="expected NNZ <= 1600, got 1601"):
        csr(structure, 40, 1601)


def test_structures_are_what_they_are_called() -> None:
    rows, columns = csr("banded")
    assert np.abs(rows - columns).max() <= 3 * 6400 * 13 // 10 // (2 * 400) + 1
    rows, columns = csr("block")
    blocks = np.unique(rows // 8 * 50 + columns // 8)
    assert len(blocks) < 2 * 6400 / 64
    rows, columns = csr("diagonal")
    assert np.mean(np.isin(rows - columns, [0, 1, -1, 2, -2, 20, -20, 40, -40])) > 0.4
    rows, _ = csr("power_law")
    lengths = np.bincount(rows, minlength=400)
    assert lengths.max() > 5 * np.median(lengths)
    rows, _ = csr("uniform")
    assert np.bincount(rows, minlength=400).max() < 3 * 16


def test_any_beginning_of_a_scattered_grid_has_seen_everything() -> None:
    order = scattered(grid())
    assert sorted(map(repr, order)) == sorted(map(repr, grid()))
    for axis in ("structure", "size", "dtype", "features"):
        assert {getattr(p, axis) for p in order[:16]} == {getattr(p, axis) for p in grid()}
