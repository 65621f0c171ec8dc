"""Scheduled nests as C++ for this machine."""

from __future__ import annotations

from gnnperf.devices import describe_host
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import CppFunction, Recipe, apply, emit


def native_function(recipe: Recipe, nest: LoopNest, symbol: str) -> CppFunction:
    """C++ of a recipe on a nest, in vectors of this machine. Raises NotApplicable."""
    return emit(apply(recipe, nest, describe_host().vectors), symbol)
