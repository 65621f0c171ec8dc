"""Whatever recipe is applied to whatever nest, the result is the interpreter's, or NotApplicable."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from nests.interpret import Memory, interpret
from nests.random_programs import random_flow, random_program, random_stencils
from schedules.recipes.kernels import FAMILIES, Kernel
from schedules.recipes.running import build, call, differences, has_single

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.nests import LoopNest, normalise
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, Recipe, apply, emit, random_recipe

RECIPES = int(os.environ.get("GNNPERF_TEST_RECIPES", "5"))
"""Per nest. More of them is a fuzzing session."""
SEED = int(os.environ.get("GNNPERF_TEST_SEED", "1"))


def candidates(nest: LoopNest, rng: Random, label: str) -> list[tuple[Recipe, CppFunction]]:
    """Some of the default recipes, random ones, and one that always applies, for registers of some width."""
    vectors = rng.choice((AVX512, VectorUnit(32, 16), VectorUnit(16, 16)))
    recipes = rng.sample(DEFAULTS, min(len(DEFAULTS), RECIPES // 2))
    recipes += [random_recipe(nest, rng, vectors) for _ in range(RECIPES - len(recipes) - 1)]
    recipes.append(Recipe())
    found = []
    for number, recipe in enumerate(recipes):
        with suppress(NotApplicable):
            found.append((recipe, emit(apply(recipe, nest, vectors), f"{label}_{number}")))
    return found


FAMILIES_AND_PROGRAMS: dict[str, dict[str, Kernel]] = FAMILIES | {
    "programs": {
        f"program_{seed}": Kernel(random_program(Random(100 * SEED + seed)).nest()) for seed in range(15)
    },
    "flows": {f"flow_{seed}": Kernel(random_flow(Random(100 * SEED + seed))) for seed in range(15)},
    "stencils": {
        f"stencils_{seed}": Kernel(random_stencils(Random(100 * SEED + seed))) for seed in range(15)
    },
}


@pytest.mark.parametrize("family", FAMILIES_AND_PROGRAMS)
def test_results_are_those_of_the_interpreter(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    work: list[tuple[str, Kernel, LoopNest, list[tuple[Recipe, CppFunction]]]] = []
    for name, kernel in FAMILIES_AND_PROGRAMS[family].items():
        nest = normalise(kernel.nest)
        work.append((name, kernel, nest, candidates(nest, Random(f"{name} {SEED}"), name)))
    library = build([f for *_, found in work for _, f in found], tmp_path)
    failures = []
    for name, kernel, nest, found in work:
        memory = kernel.memory(np.random.default_rng(SEED))
        expected = interpret(kernel.nest, memory)
        single = has_single(kernel.nest)
        for recipe, function in found:
            got: Memory = call(library, function, nest, memory)
            failures += [f"{name}: {line}: {recipe.to_dict()}" for line in differences(expected, got, single)]
    assert not failures, "\n".join(failures)
