"""The search of the schedule space, on a machine that answers at once."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from backends.cpp.fakes import Workshop, bench
from nests.examples import EXAMPLES
from numpy.typing import NDArray

from gnnperf.backends.cpp.trials import Trial
from gnnperf.measure import Measurement
from gnnperf.schedules.recipes import DEFAULTS, Recipe, random_recipe
from gnnperf.search.mutation import BATCH, DRAWN, SearchBudget, SearchResult, default_starts, search

LONG = 3600.0


def result(
    budget: SearchBudget,
    workshop: Workshop | None = None,
    starts: list[tuple[Recipe, str]] | None = None,
    seed: int = 0,
    example: str = "gemm",
) -> SearchResult:
    starts = default_starts() if starts is None else starts
    return search(bench(workshop or Workshop(), EXAMPLES[example]()), starts, budget, Random(seed))


def run(
    budget: SearchBudget,
    workshop: Workshop | None = None,
    starts: list[tuple[Recipe, str]] | None = None,
    seed: int = 0,
    example: str = "gemm",
) -> list[Trial]:
    return result(budget, workshop, starts, seed, example).trials


@pytest.mark.parametrize("example", EXAMPLES)
def test_search_runs_its_budget_without_repeats(example: str) -> None:
    trials = run(SearchBudget(trials=40, seconds=LONG), example=example)
    assert len(trials) <= 40
    assert len({t.recipe for t in trials}) == len(trials)
    assert [t.recipe for t in trials[: len(DEFAULTS)]] == list(DEFAULTS)


def test_budget_is_spent() -> None:
    assert len(run(SearchBudget(trials=40, seconds=LONG))) == 40


def test_starts_come_first_then_random_then_mutations() -> None:
    trials = run(SearchBudget(trials=len(DEFAULTS) + 20, seconds=LONG, random_share=0.3))
    origins = [t.origin for t in trials]
    assert origins[: len(DEFAULTS)] == ["default"] * len(DEFAULTS)
    rest = origins[len(DEFAULTS) :]
    assert rest == sorted(rest, key=["random", "mutation"].index)
    assert (rest.count("random"), rest.count("mutation")) == (6, 14)


def test_starts_given_twice_are_tried_once() -> None:
    one, two = Recipe(order="row"), Recipe(order="dot")
    starts = [(one, "neighbour"), (two, "neighbour"), (one, "default")]
    trials = run(SearchBudget(trials=2, seconds=LONG), starts=starts)
    assert [(t.recipe, t.origin) for t in trials] == [(one, "neighbour"), (two, "neighbour")]


def test_fewer_trials_than_starts() -> None:
    assert [t.recipe for t in run(SearchBudget(trials=3, seconds=LONG))] == list(DEFAULTS[:3])
    assert run(SearchBudget(trials=0, seconds=LONG)) == []


def test_equal_seeds_search_alike() -> None:
    budget = SearchBudget(trials=30, seconds=LONG)
    first, again, other = (run(budget, seed=seed) for seed in (1, 1, 2))
    assert [t.recipe for t in first] == [t.recipe for t in again] != [t.recipe for t in other]


def test_mutations_go_on_from_what_was_fast() -> None:
    """One thread is fast here, which few random recipes ask for."""
    workshop = Workshop(lambda text: 1.0 if "omp parallel" in text else 0.1)
    trials = run(SearchBudget(trials=80, seconds=LONG), workshop, starts=[])
    fast = Counter(t.origin for t in trials if t.runtime_s < 1.0)
    tried = Counter(t.origin for t in trials)
    assert 0 < fast["random"] / tried["random"] < 0.5 < fast["mutation"] / tried["mutation"]


def test_when_everything_fails_it_keeps_drawing() -> None:
    trials = run(SearchBudget(trials=30, seconds=LONG), Workshop(lambda _: None))
    assert len(trials) == 30
    assert {t.origin for t in trials} == {"default", "random"}


def test_patience_ends_a_search_that_gains_nothing() -> None:
    """The first is the best: ten mutations later it stops, after the random part."""
    budget = SearchBudget(trials=200, seconds=LONG, random_share=0.0, patience=10)
    found = result(budget, Workshop(lambda _: 0.5), starts=[(Recipe(order="row"), "default")])
    assert (len(found.trials), found.ended) == (11, "converged")
    explored = SearchBudget(trials=200, seconds=LONG, random_share=0.2, patience=10)
    found = result(explored, Workshop(lambda _: 0.5), starts=[])
    assert Counter(t.origin for t in found.trials) == {"random": 40, "mutation": 10}


def test_patience_begins_anew_with_every_improvement_of_two_percent() -> None:
    """Every candidate is faster than the one before, by a tenth or by a thousandth."""
    for step, ended in ((0.9, "trials"), (0.999, "converged")):
        workshop = Workshop()
        workshop.runtime_s = lambda _, w=workshop, step=step: step ** len(w.timed)
        budget = SearchBudget(trials=40, seconds=LONG, random_share=0.0, patience=10)
        found = result(budget, workshop, starts=[(Recipe(order="row"), "default")])
        assert found.ended == ended


def test_a_converged_search_goes_on_with_more_patience_only() -> None:
    budget = SearchBudget(trials=200, seconds=LONG, random_share=0.0, patience=10)
    known = run(budget, Workshop(lambda _: 0.5))
    nest = bench(Workshop(lambda _: 0.5))
    again = search(nest, default_starts(), budget, Random(0), known=known)
    assert (again.trials, again.ended) == (known, "converged")
    more = search(nest, default_starts(), replace(budget, patience=20), Random(0), known=known)
    assert (len(more.trials), more.ended) == (len(known) + 10, "converged")


def test_no_patience_is_endless_patience() -> None:
    assert len(run(SearchBudget(trials=60, seconds=LONG, patience=0), Workshop(lambda _: 0.5))) == 60


def test_out_of_time_stops_after_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still but for the trials, which take a second each."""
    workshop = Workshop()
    clock = SimpleNamespace(monotonic=lambda: float(len(workshop.timed)))
    monkeypatch.setattr(sys.modules[search.__module__], "time", clock)
    found = result(SearchBudget(trials=100, seconds=4.5), workshop)
    assert len(workshop.timed) == 5
    assert len(found.trials) >= 5  # recipes of equal code cost no time
    assert (found.ended, found.seconds) == ("seconds", 5.0)


def test_every_trial_is_reported_as_it_happens() -> None:
    reported: list[Trial] = []
    found = search(
        bench(Workshop()), default_starts(), SearchBudget(20, LONG), Random(0), on_trial=reported.append
    )
    assert reported == found.trials


def test_an_interrupted_search_goes_on() -> None:
    budget = SearchBudget(trials=40, seconds=LONG)
    whole = run(budget)
    workshop = Workshop()
    for done in (3, len(DEFAULTS) + 5, 30, 40):
        fresh: list[Trial] = []
        found = search(
            bench(workshop), default_starts(), budget, Random(0), on_trial=fresh.append, known=whole[:done]
        )
        trials = found.trials
        assert trials[:done] == whole[:done]
        assert trials[done:] == fresh
        assert len(trials) == len({t.recipe for t in trials}) == 40
        assert [t.origin for t in trials] == [t.origin for t in whole]


def test_more_known_than_wanted() -> None:
    known = run(SearchBudget(trials=20, seconds=LONG))
    workshop = Workshop()
    budget = SearchBudget(trials=10, seconds=LONG)
    found = search(bench(workshop), default_starts(), budget, Random(0), known=known)
    assert (found.trials, found.ended) == (known, "trials")
    assert not workshop.timed


def pseudo_random_score(recipe: Recipe) -> float:
    return hashlib.sha256(recipe.id.encode()).digest()[0] / 256


def test_a_model_says_which_random_recipes_are_measured() -> None:
    shown: list[float] = []

    def score(recipes: Sequence[Recipe]) -> NDArray[np.float32]:
        shown.extend(map(pseudo_random_score, recipes))
        return np.array(shown[-len(recipes) :], np.float32)

    nest, budget = bench(Workshop(), EXAMPLES["gemm"]()), SearchBudget(16, LONG, random_share=1.0)
    found = search(nest, [], budget, Random(0), score=score).trials
    measured = [pseudo_random_score(trial.recipe) for trial in found]
    for batch in (0, 1):
        of = sorted(shown[batch * DRAWN * BATCH :][: DRAWN * BATCH], reverse=True)
        chosen = measured[batch * BATCH :][:BATCH]
        assert chosen == sorted(chosen, reverse=True) and set(chosen) <= set(of[: 2 * BATCH])


def test_no_code_is_measured_twice_while_a_model_finds_other() -> None:
    """All is liked alike: of what is drawn, what lowers to code that was measured gives way."""
    workshop = Workshop()
    nest, budget = bench(workshop, EXAMPLES["gemm"]()), SearchBudget(64, LONG, random_share=0.5)
    score = lambda recipes: np.zeros(len(recipes), np.float32)  # noqa: E731
    found = search(nest, [], budget, Random(0), score=score).trials
    assert len(found) == len(workshop.timed) == len(set(workshop.timed)) == 64
    plain = Workshop()
    search(bench(plain, EXAMPLES["gemm"]()), [], budget, Random(0))
    assert len(plain.timed) < 64


def test_where_all_code_is_known_the_trials_are_spent_all_the_same() -> None:
    """Loops that must run in order have few schedules."""
    workshop, budget = Workshop(), SearchBudget(200, LONG, random_share=0.5)
    score = lambda recipes: np.zeros(len(recipes), np.float32)  # noqa: E731
    found = search(bench(workshop, EXAMPLES["recurrence"]()), [], budget, Random(0), score=score)
    assert (len(found.trials), found.ended) == (200, "trials") and len(workshop.timed) < 200


def test_mutations_are_expected_to_be_as_much_faster_than_their_parents_as_the_model_says() -> None:
    """Of two parents one is a thousand times faster. Where the model sees no difference its mutations are
    measured; where it says that a field is worth more than that, what has the field, of either."""
    slow, fast = Recipe(order="row"), random_recipe(EXAMPLES["gemm"](), Random(5))
    assert 2 not in (slow.unroll, fast.unroll)
    known = [Trial(r, Measurement.from_samples([s]), "known") for r, s in ((slow, 1.0), (fast, 1e-3))]

    def measured(worth: float) -> list[Recipe]:
        def score(recipes: Sequence[Recipe]) -> NDArray[np.float32]:
            return np.array([worth * (recipe.unroll == 2) for recipe in recipes], np.float32)

        budget = SearchBudget(2 + BATCH, LONG, random_share=0.0)
        nest = bench(Workshop(), EXAMPLES["gemm"]())
        found = search(nest, [], budget, Random(0), known=known, score=score).trials
        return [trial.recipe for trial in found if trial.origin == "mutation"]

    def apart(one: Recipe, two: Recipe) -> int:
        return sum(a != b for a, b in zip(astuple(one), astuple(two), strict=True))

    alike = measured(0.0)
    assert len(alike) == BATCH and all(apart(recipe, fast) < apart(recipe, slow) for recipe in alike)
    assert [recipe.unroll for recipe in measured(20.0)[:2]] == [2, 2]


def test_what_a_model_cannot_read_comes_last() -> None:
    """And what it cannot read of what ran is no reason to take its mutations for anything."""

    def score(recipes: Sequence[Recipe]) -> NDArray[np.float32]:
        return np.array([0.0 if r.unroll > 1 else -np.inf for r in recipes], np.float32)

    known = [Trial(Recipe(order="row"), Measurement.from_samples([1.0]), "known")]
    assert known[0].recipe.unroll <= 1
    nest, budget = bench(Workshop(), EXAMPLES["gemm"]()), SearchBudget(1 + BATCH, LONG, random_share=0.0)
    found = search(nest, [], budget, Random(0), known=known, score=score).trials[1:]
    unrolled = [trial.recipe.unroll > 1 for trial in found]
    assert unrolled == sorted(unrolled, reverse=True) and any(unrolled)
