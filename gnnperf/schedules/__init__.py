"""Schedules of loop nests: recipes written in the roles of loops, applied, emitted, sampled."""

from gnnperf.schedules.apply import apply
from gnnperf.schedules.effects import effect_fields, effects
from gnnperf.schedules.emit import CppFunction, emit
from gnnperf.schedules.features import recipe_features, recipe_fields
from gnnperf.schedules.recipe import Recipe
from gnnperf.schedules.space import DEFAULTS, mutate, random_recipe

__all__ = [
    "DEFAULTS",
    "CppFunction",
    "Recipe",
    "apply",
    "effect_fields",
    "effects",
    "emit",
    "mutate",
    "random_recipe",
    "recipe_features",
    "recipe_fields",
]
