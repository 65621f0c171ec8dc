"""Tile factors for other extents."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gnnperf.schedules.traces.factors import distance, factorisations, nearest, with_remainder

FACTORS = st.lists(st.sampled_from([1, 2, 3, 4, 8, 16]), min_size=2, max_size=4).map(tuple)


def test_all_factorisations_of_a_number() -> None:
    assert set(factorisations(12, 2)) == {(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)}
    assert len(factorisations(8, 3)) == 10


@given(st.integers(1, 600), FACTORS, st.sampled_from([0, 4, 64]))
def test_the_nearest_come_first_and_cover_the_extent(
    extent: int, old: tuple[int, ...], innermost: int
) -> None:
    found = nearest(extent, old, innermost, 5)
    assert all(math.prod(f) == extent for f in found)
    assert all(not innermost or f[-1] <= innermost for f in found)
    away = [distance(f, old) for f in found]
    assert away == sorted(away)
    assert away[0] == min(
        distance(f, old) for f in factorisations(extent, len(old)) if not innermost or f[-1] <= innermost
    )


@given(FACTORS)
def test_the_same_extent_keeps_its_tiles(old: tuple[int, ...]) -> None:
    assert nearest(math.prod(old), old, 0, 1) == (old,)


def test_inner_tiles_are_kept_before_outer_ones() -> None:
    assert nearest(768, (8, 1, 4, 16), 64, 1) == ((12, 1, 4, 16),)
    assert nearest(500, (64, 8), 64, 2)[0] == (50, 10)


@given(st.integers(1, 600), FACTORS)
def test_a_remainder_keeps_the_inner_tiles(extent: int, old: tuple[int, ...]) -> None:
    found = with_remainder(extent, old)
    inner = math.prod(old[1:])
    if found is None:
        assert extent % inner == 0 or inner >= extent
    else:
        assert found[1:] == old[1:]
        assert math.prod(found) - inner < extent < math.prod(found)
