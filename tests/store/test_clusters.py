"""Approximate search: finds nearly all of the nearest, and says when it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from gnnperf.store.clusters import Clusters, cluster


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, Clusters]:
    """Vectors around fifty points, as programs lie around families; sorted by list."""
    chance = np.random.default_rng(0)
    points = chance.standard_normal((50, 16))
    vectors = points[chance.integers(50, size=20_000)] + 0.3 * chance.standard_normal((20_000, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    clusters, order = cluster(vectors)
    assert sorted(order) == list(range(len(vectors)))
    return vectors[order], clusters


def test_nearly_all_of_the_nearest_are_found(world: tuple[np.ndarray, Clusters]) -> None:
    vectors, clusters = world
    assert clusters.probes < len(clusters.centroids) / 4
    everything = np.ones(len(vectors), bool)
    hits = 0
    for query in vectors[::500]:
        found = clusters.search(vectors, query, 10, everything)
        assert found is not None
        np.testing.assert_allclose(found[1], vectors[found[0]] @ query, rtol=1e-6)
        hits += len(set(found[0]) & set(np.argsort(-(vectors @ query))[:10]))
    assert hits / (10 * len(vectors[::500])) >= 0.98


def test_every_row_is_in_one_list(world: tuple[np.ndarray, Clusters]) -> None:
    vectors, clusters = world
    assert clusters.bounds[0] == 0 and clusters.bounds[-1] == len(vectors)
    assert (np.diff(clusters.bounds) >= 0).all()


def test_where_the_lists_hold_too_few_usable_rows_nothing_is_said(world: tuple[np.ndarray, Clusters]) -> None:
    vectors, clusters = world
    usable = np.zeros(len(vectors), bool)
    assert clusters.search(vectors, vectors[0], 1, usable) is None
    usable[7] = True
    assert clusters.search(vectors, vectors[7], 1, usable) is not None
    assert clusters.search(vectors, vectors[7], 2, usable) is None
