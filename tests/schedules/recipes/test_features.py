"""Recipes, and what they do to a nest, as rows of numbers."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from nests.examples import gemm, reduction

from gnnperf.nests import nest_graph
from gnnperf.schedules.recipes import (
    DEFAULTS,
    Recipe,
    effect_fields,
    effects,
    fact_fields,
    recipe_features,
    recipe_fields,
    schedule_facts,
)


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


def test_facts_are_effects_on_a_nest_and_then_the_recipe() -> None:
    graph, recipes = nest_graph(gemm()), DEFAULTS[:5]
    facts = schedule_facts(graph, recipes)
    assert facts.dtype == np.float32
    assert facts.shape == (5, len(fact_fields()))
    assert fact_fields() == (*effect_fields(), *recipe_fields())
    assert len(set(fact_fields())) == len(fact_fields())
    width = len(effect_fields())
    np.testing.assert_array_equal(facts[:, :width], effects(graph, recipes))
    for row, recipe in zip(facts, recipes, strict=True):
        np.testing.assert_array_equal(row[width:], recipe_features(recipe))
        np.testing.assert_array_equal(row, schedule_facts(graph, [recipe])[0])  # whoever is beside it


def test_facts_depend_on_the_nest_but_for_what_the_recipe_says() -> None:
    recipe, width = Recipe(tile_p=32), len(effect_fields())
    product, sums = (schedule_facts(nest_graph(nest), [recipe])[0] for nest in (gemm(), reduction()))
    np.testing.assert_array_equal(product[width:], sums[width:])
    assert (product[:width] != sums[:width]).any()
