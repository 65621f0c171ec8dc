"""Groups of best schedules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.explore.maps import record

from gnnperf.report.explore.recipes import (
    MAX_GROUPS,
    NO_GAIN,
    OTHER,
    UNMEASURED,
    gains,
    group,
    in_words,
    traits,
)
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.recipes.recipe import ORDERS


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe(order="row", tile_p=64), "row order"),
        (Recipe(order="panel", library="blas"), "panel order, library calls"),
        (Recipe(order="panel", pack="qp", register_q=6), "panel order, packed"),
        (Recipe(order="row", fuse=4, parallel="none"), "row order, fused, one thread"),
        (Recipe(order="dot", parallel="reduction"), "dot order, parallel reduction"),
    ],
)
def test_traits_leave_numbers_out(recipe: Recipe, words: str) -> None:
    assert traits(record(2.0, recipe)) == words
    assert in_words(record(2.0, recipe)) == recipe.describe()


def test_a_gain_lies_beyond_noise() -> None:
    best = record(1.1)
    assert gains(best)
    assert not gains(replace(best, interval_hi_s=best.baseline_s))
    assert not gains(record(0.9))


def test_groups_come_by_size_and_what_is_none_comes_last() -> None:
    row, dot = record(2.0, Recipe(order="row")), record(3.0, Recipe(order="dot", tile_r=64))
    groups = group([None, dot, row, record(0.9), record(2.0, Recipe(order="dot"))])
    assert groups.names == ("dot order", "row order", NO_GAIN, UNMEASURED)
    assert groups.of == (3, 0, 1, 2, 0)


def test_rare_groups_share_a_colour() -> None:
    recipes = [
        Recipe(order=order, fuse=fuse, pack=pack)  # type: ignore[arg-type]
        for order in ORDERS
        for fuse in (0, 1)
        for pack in ("", "q")
    ]
    assert len(recipes) > MAX_GROUPS + 1
    common = recipes[-1]
    groups = group([record(2.0, recipe) for recipe in [*recipes, common]])
    assert len(groups.names) == MAX_GROUPS + 1
    assert (groups.names[0], groups.names[-1]) == (traits(record(2.0, common)), OTHER)
    assert groups.of.count(MAX_GROUPS) == len(recipes) - MAX_GROUPS


def test_schedules_of_other_kinds_and_versions_are_shown_as_they_are() -> None:
    trace = replace(record(2.0), schedule='{"kind":"trace"}', schedule_kind="trace")
    assert (traits(trace), in_words(trace)) == ("trace", 'trace {"kind":"trace"}')
    newer = replace(record(2.0), schedule='{"kind":"recipe","version":99}')
    assert in_words(newer) == 'recipe {"kind":"recipe","version":99}'
