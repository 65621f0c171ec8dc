"""Neighbours are exact, and places on the plane keep them."""

from __future__ import annotations

import numpy as np
import pytest
from report.explore.maps import unit_rows

from gnnperf.report.explore import nearest_neighbours, project


@pytest.mark.parametrize("count", [2, 5, 300])
def test_neighbours_are_exact(count: int) -> None:
    rows = unit_rows(count, width=16)
    rows[1] = rows[0]  # equal programs are no neighbours of themselves, but of one another
    near, distances = nearest_neighbours(rows, 8)
    wide = rows.astype(np.float64)
    everything = 1 - wide @ wide.T
    np.fill_diagonal(everything, np.inf)
    expected = np.sort(everything, axis=1)[:, : min(8, count - 1)]
    assert near.shape == distances.shape == expected.shape
    np.testing.assert_allclose(distances, expected, atol=1e-7)
    np.testing.assert_allclose(np.take_along_axis(everything, near, axis=1), expected, atol=1e-7)
    assert near[0, 0] == 1
    assert all(i not in row for i, row in enumerate(near.tolist()))


def test_one_nest_has_no_neighbours() -> None:
    near, distances = nearest_neighbours(unit_rows(1), 8)
    assert near.shape == distances.shape == (1, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 40])
def test_any_number_of_nests_has_places(count: int) -> None:
    places = project(unit_rows(count))
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    if count > 2:
        assert len(np.unique(places, axis=0)) == count
    np.testing.assert_array_equal(places, project(unit_rows(count)))


def test_equal_nests_have_places() -> None:
    assert np.isfinite(project(np.repeat(unit_rows(1), 20, axis=0))).all()


def test_clusters_stay_together() -> None:
    centres = unit_rows(4, width=16)
    rows = np.repeat(centres, 25, axis=0) + 0.1 * unit_rows(100, width=16, seed=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places = project(rows)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (distances.argmin(axis=1) // 25 == np.arange(100) // 25).all()
