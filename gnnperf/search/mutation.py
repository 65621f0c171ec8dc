"""Search of the schedule space of one nest: known starts, random recipes, mutations of the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from gnnperf.backends.cpp.trials import NestBench, Trial
from gnnperf.devices import VectorUnit, describe_host
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import DEFAULTS, Recipe, mutate, random_recipe

BATCH = 8
"""Recipes compiled together: enough to fill two compilers, few enough to learn from soon."""


IMPROVEMENT = 0.02
"""What is less than this faster than the best is no progress."""

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
) -> SearchResult:
    """Try `starts`, (recipe, origin) each, then random recipes, then mutations of the best.

    known: trials of an earlier search, perhaps one that was interrupted. They count as if they had been
    run just now.
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

    def fresh(propose: Callable[[], Recipe], count: int) -> list[Recipe]:
        found: list[Recipe] = []
        for _ in range(20 * count):
            recipe = propose()
            if recipe not in seen:
                seen.add(recipe)
                found.append(recipe)
            if len(found) == count:
                break
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
            recipes, origin = fresh(partial(random_recipe, nest, rng, vectors), wanted), "random"
        else:
            parents = [t.recipe for t in good[:4]]
            recipes, origin = fresh(partial(_mutant, parents, nest, rng, vectors), wanted), "mutation"
        if not recipes:
            return result("exhausted")
        run(recipes, origin)
    return result("converged" if converged() else "trials")


def _mutant(parents: Sequence[Recipe], nest: LoopNest, rng: Random, vectors: VectorUnit) -> Recipe:
    return mutate(rng.choice(parents), nest, rng, vectors)


def default_starts() -> list[tuple[Recipe, str]]:
    """The recipes every search begins with, as `starts` of `search`."""
    return [(recipe, "default") for recipe in DEFAULTS]
