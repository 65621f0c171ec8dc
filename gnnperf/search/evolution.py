"""The search over the schedules of one function: given ones and random ones, then what MetaSchedule finds.

MetaSchedule's evolutionary search, driven a round at a time, with measurements by `Bench`. It may be stopped
after any round: a later one starts from what was measured.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.measure.outcome import Outcome
from gnnperf.schedules.traces import program_key

Measure = Callable[[Sequence[Any], float], list[Outcome]]
"""Scheduled modules, the best runtime so far -> outcomes."""
Keep = Callable[[str, Sequence[Any], Sequence[Outcome]], None]
"""Where a round of `MeasureCandidate`s came from (GIVEN, RANDOM, SEARCH), they, and their outcomes."""

GIVEN, RANDOM, SEARCH = "given", "random", "search"

_POPULATION = dict(population_size=64, init_measured_ratio=0.2, init_min_unmeasured=32, genetic_num_iters=2)
"""An eighth of MetaSchedule's: most of a search with cheap measurements is evolution."""

_WARMUP = 24  # measured schedules before the cost model has a say
_FRUITLESS = 3  # rounds without a new schedule: the space is exhausted


class Tuner:
    """Measures schedules of a function, some of which may be known already.

    keep: told of what was measured, a round at a time. seed: of everything that is sampled. model: a cost
    model of MetaSchedule's, which learns from what is measured; None for its own, which knows nothing before.

    Attributes:
        exhausted: the search found nothing new. seconds: wall time by what it was spent on. counts: schedules
            by where they came from.
    """

    def __init__(
        self, space: DesignSpace, target: Any, measure: Measure, keep: Keep, seed: int = 0, model: Any = None
    ) -> None:
        from tvm.s_tir import meta_schedule as ms

        self.space, self.measure, self.keep = space, measure, keep
        self.exhausted = False
        self.seconds = {"sample": 0.0, "search": 0.0, "measure": 0.0, "learn": 0.0}
        self.counts: Counter[str] = Counter()
        self._target = target
        self._seed = seed
        self._known: dict[int, Outcome] = {}
        self._best_s = float("inf")
        self._model = model or ms.cost_model.XGBModel(num_warmup_samples=_WARMUP, num_tuning_cores=1)
        self._database = ms.database.MemoryDatabase()
        self._entry = self._database.commit_workload(space.module)
        self._context = ms.TuneContext(
            mod=space.module,
            target=target,
            space_generator=space.generator,
            search_strategy=ms.search_strategy.EvolutionarySearch(**_POPULATION),
            num_threads=1,
            rand_state=seed + 1,
        )

    def restore(self, origins: Iterable[str], candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
        """Take note of what was measured before."""
        self.counts.update(origins)
        if candidates:
            self._learn(candidates, outcomes)

    def run(
        self,
        total: int,
        random_share: float,
        batch: int,
        given: Sequence[Any] = (),
        going: Callable[[], bool] = lambda: True,
    ) -> None:
        """Measure until there are `total` schedules, the space is exhausted, or `going` says no.

        given: `MeasureCandidate`s that are measured first. random_share: of the total, sampled at random.
        """
        self._measure_given(given, total, batch, going)
        while (missing := round(random_share * total) - self.counts[RANDOM]) > 0 and going():
            started = time.monotonic()
            count = sum(self.counts.values())
            found = self._new(self.space.sample(min(batch, missing), self._seed + 1000 * count))
            self.seconds["sample"] += time.monotonic() - started
            if not found:
                break
            self._measure(found, RANDOM)
        self._context.pre_tuning(2 * total, batch, self.space.designs, self._database, self._model)
        fruitless = 0
        while (missing := total - self.counts.total()) > 0 and fruitless < _FRUITLESS and going():
            started = time.monotonic()
            with uninterrupted():
                proposed = self._context.generate_measure_candidates()
            found = self._new(proposed or ())[:missing]
            self.seconds["search"] += time.monotonic() - started
            if proposed is None:
                break
            fruitless = 0 if found else fruitless + 1
            self._measure(found, SEARCH)
            results = [_result(self._known.get(_key(c))) for c in proposed]
            with uninterrupted():
                self._context.notify_runner_results(proposed, results)
        self._context.post_tuning()
        self.exhausted = self.counts.total() < total and going()

    def _measure_given(self, given: Sequence[Any], total: int, batch: int, going: Callable[[], bool]) -> None:
        new = self._new(given)[: max(0, total - self.counts.total())]
        for begin in range(0, len(new), batch):
            if going():
                self._measure(new[begin : begin + batch], GIVEN)

    def _new(self, candidates: Iterable[Any]) -> list[Any]:
        """Those that were not measured, each once."""
        found: dict[int, Any] = {}
        for candidate in candidates:
            found.setdefault(_key(candidate), candidate)
        return [candidate for key, candidate in found.items() if key not in self._known]

    def _measure(self, candidates: Sequence[Any], origin: str) -> None:
        if not candidates:
            return
        started = time.monotonic()
        outcomes = self.measure([candidate.sch.mod for candidate in candidates], self._best_s)
        self.seconds["measure"] += time.monotonic() - started
        with uninterrupted():
            self.keep(origin, candidates, outcomes)
            self.counts[origin] += len(candidates)
            self._learn(candidates, outcomes)

    def _learn(self, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
        """Tell the database and the cost model."""
        from tvm.s_tir.meta_schedule.database import TuningRecord

        started = time.monotonic()
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            self._known[_key(candidate)] = outcome
            if outcome.runtime_s is not None:
                self._best_s = min(self._best_s, outcome.runtime_s)
            record = TuningRecord(
                candidate.sch.trace, self._entry, _run_s(outcome), self._target, self.space.arguments
            )
            self._database.commit_tuning_record(record)
        self._model.update(self._context, list(candidates), [_result(outcome) for outcome in outcomes])
        self.seconds["learn"] += time.monotonic() - started


def _key(candidate: Any) -> int:
    """Names the scheduled function: schedules that come to the same code are one."""
    return program_key(candidate.sch.mod)


def _run_s(outcome: Outcome) -> list[float]:
    return [1e10] if outcome.runtime_s is None else [outcome.runtime_s]  # MetaSchedule's mark of a failure


def _result(outcome: Outcome | None) -> Any:
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    if outcome is None or outcome.runtime_s is None:
        return RunnerResult(None, "failed" if outcome is None else outcome.detail or outcome.status)
    return RunnerResult([outcome.runtime_s], None)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt that comes inside is raised at the end. In other threads than the first it does nothing:
    they are not interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
