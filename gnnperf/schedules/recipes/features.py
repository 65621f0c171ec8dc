"""A recipe as a row of numbers, for networks and trees that compare schedules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.recipes.effects import effect_fields, effects
from gnnperf.schedules.recipes.recipe import ORDERS, Recipe, field_types


@cache
def recipe_fields() -> tuple[str, ...]:
    """Names of the columns of `recipe_features`, derived from the fields of `Recipe`.

    `order=row`: 1 where it holds. `tile_p`: log2(1 + size). `tile_p>0`: 1 where the split is made.
    """
    return tuple(name for name, _ in _columns(Recipe()))


def recipe_features(recipe: Recipe) -> NDArray[np.float32]:
    """f32[R]: a column for each of `recipe_fields`."""
    return np.array([value for _, value in _columns(recipe)], dtype=np.float32)


def _columns(recipe: Recipe) -> Iterator[tuple[str, float]]:
    hints = field_types()
    for field in fields(recipe):
        name, value = field.name, getattr(recipe, field.name)
        choices = tuple(ORDERS) if name == "order" else get_args(hints[name])
        if choices:
            yield from ((f"{name}={choice}", float(value == choice)) for choice in choices)
        elif hints[name] is bool:
            yield name, float(value)
        else:
            yield name, math.log2(1 + value)
            yield f"{name}>0", float(value > 0)


@cache
def fact_fields() -> tuple[str, ...]:
    """Names of the columns of `schedule_facts`."""
    return (*effect_fields(), *recipe_fields())


def schedule_facts(
    graph: ProgramGraph, recipes: Sequence[Recipe], vectors: VectorUnit = AVX512
) -> NDArray[np.float32]:
    """f32[s, F]: the effects of s recipes on the nest of a graph, and what the recipes say; NaN where
    absent. vectors: of the machine."""
    rows = np.stack([recipe_features(recipe) for recipe in recipes])
    return np.concatenate([effects(graph, recipes, vectors), rows], axis=1)
