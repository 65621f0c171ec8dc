"""Schedules of loop nests: recipes written in the roles of loops, applied, emitted, sampled."""

from gnnperf.schedules.recipes.apply import apply
from gnnperf.schedules.recipes.effects import effect_fields, effects
from gnnperf.schedules.recipes.emit import CppFunction, emit
from gnnperf.schedules.recipes.features import fact_fields, recipe_features, recipe_fields, schedule_facts
from gnnperf.schedules.recipes.graphs import scheduled_graphs
from gnnperf.schedules.recipes.recipe import Recipe
from gnnperf.schedules.recipes.space import (
    DEFAULTS,
    copying_recipes,
    library_recipes,
    mutate,
    random_recipe,
    time_recipes,
)

__all__ = [
    "DEFAULTS",
    "CppFunction",
    "Recipe",
    "apply",
    "copying_recipes",
    "effect_fields",
    "effects",
    "emit",
    "fact_fields",
    "library_recipes",
    "mutate",
    "random_recipe",
    "recipe_features",
    "recipe_fields",
    "schedule_facts",
    "scheduled_graphs",
    "time_recipes",
]
