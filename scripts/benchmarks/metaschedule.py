"""MetaSchedule's own search, as it would be used without gnnperf, with the project's way of measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.measure import Measurement
from gnnperf.measure.confine import available_threads
from gnnperf.measure.outcome import Outcome

ROUND = 16
"""Trials a round, and trials after which the cost model has a say. By default MetaSchedule takes 64 and 100,
of which a search of 128 trials would hardly profit."""

Measure = Callable[[Sequence[Any], float], list[Outcome]]
"""Scheduled modules, the best runtime so far -> outcomes."""


@dataclass(frozen=True)
class SearchTrial:
    """One schedule that a search measured. after_s: wall time since the search began."""

    module: Any
    outcome: Outcome | Measurement
    after_s: float = 0.0


def metaschedule(
    module: Any,
    target: Any,
    trials: int,
    measure: Measure,
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
    model: Any = None,
    generator: Any = None,
) -> list[SearchTrial]:
    """So many trials (fewer where the space is exhausted) of the evolutionary search with MetaSchedule's own
    settings but for `ROUND`. model: the cost model; None for `xgboost_model`. generator: of `DesignSpace`."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.database import TuningRecord
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    space = DesignSpace(module, target, generator)
    model = xgboost_model() if model is None else model
    database = ms.database.MemoryDatabase()
    entry = database.commit_workload(module)
    context = ms.TuneContext(
        mod=module,
        target=target,
        space_generator=space.generator,
        search_strategy=evolution(),
        num_threads=available_threads(),
        rand_state=seed + 1,
    )
    context.pre_tuning(trials, ROUND, space.designs, database, model)
    found: list[SearchTrial] = []
    best_s, started_s = float("inf"), time.monotonic()
    while proposed := context.generate_measure_candidates():
        notify(f"MetaSchedule: {len(found)} of {trials} trials")
        outcomes = measure([candidate.sch.mod for candidate in proposed], best_s)
        results = []
        for candidate, outcome in zip(proposed, outcomes, strict=True):
            found.append(SearchTrial(candidate.sch.mod, outcome, time.monotonic() - started_s))
            best_s = min(best_s, outcome.runtime_s or best_s)
            run_s = [outcome.runtime_s or 1e10]  # MetaSchedule's mark of a failure
            database.commit_tuning_record(
                TuningRecord(candidate.sch.trace, entry, run_s, target, space.arguments)
            )
            failed = outcome.runtime_s is None
            results.append(RunnerResult(None if failed else run_s, outcome.status if failed else None))
        model.update(context, list(proposed), results)
        context.notify_runner_results(proposed, results)
    context.post_tuning()
    return found[:trials]


def evolution() -> Any:
    """MetaSchedule's search with its own settings."""
    from tvm.s_tir import meta_schedule as ms

    return ms.search_strategy.EvolutionarySearch()


def xgboost_model() -> Any:
    """MetaSchedule's own cost model with its own settings, but for `ROUND`."""
    from tvm.s_tir import meta_schedule as ms

    return ms.cost_model.XGBModel(num_warmup_samples=ROUND, num_tuning_cores=available_threads())


def best_of(trials: Sequence[SearchTrial]) -> SearchTrial | None:
    """The fastest that was right."""
    right = [trial for trial in trials if trial.outcome.runtime_s]
    return min(right, key=lambda trial: trial.outcome.runtime_s or 0.0, default=None)


def trials_to_reach(trials: Sequence[SearchTrial], runtime_s: float) -> int | None:
    """Trials until one ran as fast; None where none did."""
    times = [trial.outcome.runtime_s or float("inf") for trial in trials]
    return next((n for n, time_s in enumerate(times, 1) if time_s <= runtime_s), None)


def best_s(trials: Sequence[SearchTrial]) -> float | None:
    """Runtime of the fastest that was right, as measured during the search."""
    found = best_of(trials)
    return found.outcome.runtime_s if found else None
