"""Search of the schedule space of one nest: known starts, random recipes, mutations of the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from gnnperf.nests import LoopNest
from gnnperf.schedules import DEFAULTS, Recipe, mutate, random_recipe
from gnnperf.tuning.trials import Bench, Trial

BATCH = 8
"""Recipes compiled together: enough to fill two compilers, few enough to learn from soon."""


@dataclass(frozen=True)
class SearchBudget:
    """When to stop. trials: recipes measured at most; seconds: wall time; random_share: part of the
    trials, after the starts, that is drawn at random before mutation begins; patience: stop after
    that many trials without an improvement of 2% (0: never)."""

    trials: int = 32
    seconds: float = 20.0
    random_share: float = 0.3
    patience: int = 0


def search(
    bench: Bench,
    starts: Sequence[tuple[Recipe, str]],
    budget: SearchBudget,
    rng: Random,
    on_trial: Callable[[Trial], None] = lambda _: None,
    known: Sequence[Trial] = (),
) -> list[Trial]:
    """Trials in the order they were run. `starts` are (recipe, origin), tried first.

    known: trials of an earlier search that was interrupted. They count as if they had been run just
    now, and come first in the result.
    """
    deadline = time.monotonic() + budget.seconds
    nest = bench.case.nest
    trials: list[Trial] = list(known)
    seen: set[Recipe] = {t.recipe for t in trials}
    best_at, best_s = 0, min((t.runtime_s for t in trials), default=float("inf"))

    def out_of_time() -> bool:
        return time.monotonic() > deadline

    def run(recipes: Sequence[Recipe], origin: str) -> None:
        nonlocal best_at, best_s
        for trial in bench.run(recipes, origin, stop=out_of_time):
            trials.append(trial)
            on_trial(trial)
            if trial.runtime_s < 0.98 * best_s:
                best_at, best_s = len(trials), trial.runtime_s

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

    by_origin: dict[str, list[Recipe]] = {}
    for recipe, origin in starts:
        if recipe not in seen:
            seen.add(recipe)
            by_origin.setdefault(origin, []).append(recipe)
    for origin, recipes in by_origin.items():
        run(recipes[: max(0, budget.trials - len(trials))], origin)
    begun = len({recipe for recipe, _ in starts})
    explore_until = begun + int(budget.random_share * (budget.trials - begun))
    while len(trials) < budget.trials and not out_of_time():
        if budget.patience and len(trials) - best_at >= budget.patience and len(trials) > explore_until:
            break
        good = sorted((t for t in trials if t.measurement.status == "ok"), key=lambda t: t.runtime_s)
        exploring = len(trials) < explore_until
        count = min(BATCH, (explore_until if exploring else budget.trials) - len(trials))
        if exploring or not good:
            recipes, origin = fresh(partial(random_recipe, nest, rng), count), "random"
        else:
            parents = [t.recipe for t in good[:4]]
            recipes, origin = fresh(partial(_mutant, parents, nest, rng), count), "mutation"
        if not recipes:
            break
        run(recipes, origin)
    return trials


def _mutant(parents: Sequence[Recipe], nest: LoopNest, rng: Random) -> Recipe:
    return mutate(rng.choice(parents), nest, rng)


def default_starts() -> list[tuple[Recipe, str]]:
    """The recipes every search begins with, as `starts` of `search`."""
    return [(recipe, "default") for recipe in DEFAULTS]
