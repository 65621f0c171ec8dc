"""Search of the schedule space of one nest: known starts, random recipes, mutations of the best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.cpp.trials import NestBench, Trial
from gnnperf.devices import VectorUnit, describe_host
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import DEFAULTS, Recipe, mutate, random_recipe

BATCH = 8
"""Recipes compiled together: enough to fill two compilers, few enough to learn from soon."""
DRAWN = 8
"""Recipes drawn for each one that is measured, where a model says which are worth it."""
IMPROVEMENT = 0.02
"""What is less than this faster than the best is no progress."""

Score = Callable[[Sequence[Recipe]], NDArray[np.float32]]
"""s recipes -> f32[s], how fast a model takes them for, in nats, up to a constant of the call; -inf where one
does not fit."""
Ending = Literal["converged", "exhausted", "trials", "seconds"]


@dataclass(frozen=True)
class SearchBudget:
    """When to stop. trials: recipes measured at most; seconds: wall time; random_share: part of the
    trials, after the starts, that is drawn at random before mutation begins; patience: stop after
    that many mutations without an improvement of 2% (0: never)."""

    trials: int = 32
    seconds: float = 20.0
    random_share: float = 0.3
    patience: int = 0


@dataclass(frozen=True)
class SearchResult:
    """Trials in the order they were run, those known before first; what ended the search ("exhausted":
    nothing new to try); the wall time it took."""

    trials: list[Trial]
    ended: Ending
    seconds: float


def search(
    bench: NestBench,
    starts: Sequence[tuple[Recipe, str]],
    budget: SearchBudget,
    rng: Random,
    on_trial: Callable[[Trial], None] = lambda _: None,
    known: Sequence[Trial] = (),
    score: Score | None = None,
) -> SearchResult:
    """Try `starts`, (recipe, origin) each, then random recipes, then mutations of the best.

    known: trials of an earlier search, perhaps one that was interrupted. They count as if they had been
    run just now. score: chooses what is measured among `DRAWN` times as many, mutations by what their parents
    took and by how much faster than those they are taken for; None: all that is drawn is measured.
    """
    started_s = time.monotonic()
    nest, vectors = bench.case.nest, describe_host().vectors
    trials: list[Trial] = []
    seen: set[Recipe] = {t.recipe for t in known}
    best_s, stale = float("inf"), 0  # stale: mutations since the best was found

    def count(trial: Trial) -> None:
        nonlocal best_s, stale
        trials.append(trial)
        if trial.runtime_s < (1 - IMPROVEMENT) * best_s:
            best_s, stale = trial.runtime_s, 0
        else:
            stale += trial.origin == "mutation"

    def out_of_time() -> bool:
        return time.monotonic() > started_s + budget.seconds

    def converged() -> bool:
        return 0 < budget.patience <= stale

    def run(recipes: Sequence[Recipe], origin: str) -> None:
        for trial in bench.run(recipes, origin):
            count(trial)
            on_trial(trial)
            if out_of_time() or (origin == "mutation" and converged()):
                return

    def fresh(draw: Callable[[], tuple[Recipe, Trial | None]], count: int) -> list[Recipe]:
        """New recipes, at most so many, of those that are drawn with what they are mutations of."""
        parents: dict[Recipe, Trial | None] = {}
        drawn = count if score is None else DRAWN * count
        for _ in range(20 * drawn):
            recipe, parent = draw()
            if recipe not in seen:
                parents.setdefault(recipe, parent)
            if len(parents) == drawn:
                break
        found = list(parents)
        if score is not None:
            found = list(islice(bench.distinct(_most_promising(parents, score)), count)) or found[:count]
        seen.update(found)
        return found

    def result(ended: Ending) -> SearchResult:
        return SearchResult(trials, ended, time.monotonic() - started_s)

    for trial in known:
        count(trial)
    by_origin: dict[str, list[Recipe]] = {}
    for recipe, origin in starts:
        if recipe not in seen:
            seen.add(recipe)
            by_origin.setdefault(origin, []).append(recipe)
    for origin, recipes in by_origin.items():
        given = recipes[: max(0, budget.trials - len(trials))]
        for begin in range(0, len(given), BATCH):
            if begin == 0 or not out_of_time():
                run(given[begin : begin + BATCH], origin)
    begun = len({recipe for recipe, _ in starts})
    explore_until = begun + int(budget.random_share * (budget.trials - begun))
    while len(trials) < budget.trials:
        if out_of_time():
            return result("seconds")
        exploring = len(trials) < explore_until
        if converged() and not exploring:
            return result("converged")
        good = sorted((t for t in trials if t.measurement.status == "ok"), key=lambda t: t.runtime_s)
        wanted = min(BATCH, (explore_until if exploring else budget.trials) - len(trials))
        if exploring or not good:
            recipes, origin = fresh(lambda: (random_recipe(nest, rng, vectors), None), wanted), "random"
        else:
            recipes, origin = fresh(partial(_mutant, good[:4], nest, rng, vectors), wanted), "mutation"
        if not recipes:
            return result("exhausted")
        run(recipes, origin)
    return result("converged" if converged() else "trials")


def _mutant(
    parents: Sequence[Trial], nest: LoopNest, rng: Random, vectors: VectorUnit
) -> tuple[Recipe, Trial]:
    parent = rng.choice(parents)
    return mutate(parent.recipe, nest, rng, vectors), parent


def _most_promising(drawn: Mapping[Recipe, Trial | None], score: Score) -> list[Recipe]:
    """Recipes with the trials that they are mutations of: that which is expected fastest first."""
    measured = {parent.recipe: parent for parent in drawn.values() if parent is not None}
    recipes = [*drawn, *measured]
    scores = dict(zip(recipes, score(recipes).tolist(), strict=True)) if drawn else {}

    def expected(recipe: Recipe) -> float:
        parent = drawn[recipe]
        if parent is None or scores[recipe] == -math.inf:
            return float(scores[recipe])
        before = scores[parent.recipe]  # -inf where the model cannot read what ran
        return (scores[recipe] - before if before > -math.inf else 0.0) - math.log(parent.runtime_s)

    return sorted(drawn, key=expected, reverse=True)


def default_starts() -> list[tuple[Recipe, str]]:
    """The recipes every search begins with, as `starts` of `search`."""
    return [(recipe, "default") for recipe in DEFAULTS]
