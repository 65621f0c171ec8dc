"""Recipes as rows of numbers."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import numpy as np
import pytest

from gnnperf.schedules.recipes import DEFAULTS, Recipe, recipe_features, recipe_fields


def test_columns_are_named_and_hold_what_they_say() -> None:
    row = dict(zip(recipe_fields(), recipe_features(Recipe(order="row", tile_p=31, pack="qp")), strict=True))
    assert row["order=row"] == row["pack=qp"] == row["tile_p>0"] == row["accumulate"] == 1.0
    assert row["order=dot"] == row["pack="] == row["tile_q>0"] == row["tile_q"] == 0.0
    assert row["tile_p"] == pytest.approx(5.0)
    assert {name.split("=")[0].removesuffix(">0") for name in recipe_fields()} == {
        f.name for f in fields(Recipe)
    }


def test_different_recipes_have_different_rows() -> None:
    rows = {tuple(recipe_features(recipe).tolist()) for recipe in DEFAULTS}
    assert len(rows) == len(set(DEFAULTS))


def test_columns_can_be_chosen_by_name() -> None:
    names = Random(0).sample(recipe_fields(), 7)
    every = dict(zip(recipe_fields(), recipe_features(DEFAULTS[3]), strict=True))
    np.testing.assert_array_equal(recipe_features(DEFAULTS[3], names), [every[name] for name in names])
    with pytest.raises(KeyError):
        recipe_features(DEFAULTS[3], ["no_such_column"])
