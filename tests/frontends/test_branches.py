"""Scalars that branches set, and scalars that are known ahead, do not keep a loop's iterations in order."""

from __future__ import annotations

import pytest
from frontends.kit import load

from gnnperf.nests import Loop
from gnnperf.nests.ir import walk


@pytest.mark.parametrize("name", ["around_the_ring", "limited_slopes", "three_ways", "threshold"])
def test_iterations_with_branches_are_independent(name: str) -> None:
    loops = [n for u in load(name).units for n in walk(u.nest.body) if isinstance(n, Loop)]
    assert loops and all(lp.independent for lp in loops)


def test_iterations_with_scalars_that_are_known_ahead_are_independent() -> None:
    loops = [n for u in load("counted_by_hand").units for n in walk(u.nest.body) if isinstance(n, Loop)]
    assert loops and all(lp.independent for lp in loops)
    *_, seen, _, changed = load("now_and_before").units
    assert [lp.independent for lp in walk(seen.nest.body) if isinstance(lp, Loop)] == [True]
    assert not any(lp.independent for lp in walk(changed.nest.body) if isinstance(lp, Loop))


def test_iterations_that_find_their_places_themselves_stay_in_order() -> None:
    (unit,) = load("own_places").units
    assert not any(lp.independent for lp in walk(unit.nest.body) if isinstance(lp, Loop))


def test_neighbours_on_a_ring_are_neighbours_in_most_iterations() -> None:
    bodies = [u.nest.body for u in load("around_the_ring").units]
    assert [len(body) for body in bodies] == [3]
    inner = [n for n in walk(bodies[0]) if isinstance(n, Loop) and n.iterator.startswith("j")]
    assert len(inner) == 1
