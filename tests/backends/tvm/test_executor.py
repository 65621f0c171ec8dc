"""The last round of a TVM task: who may win."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gnnperf.backends.tvm.executor import FINALISTS, TvmBench
from gnnperf.backends.tvm.server import Rehearsed
from gnnperf.errors import MeasureError
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.outcome import Outcome
from gnnperf.retrieval.pipeline import fastest


class Quicker:
    """A machine that is free at last: in the last round the baseline takes 2 s, not 4, and candidates 2.1."""

    def baseline(self, number: int) -> Outcome:
        return Outcome("ok", (4.0, 4.0, 4.0))

    def measure(self, number: int, modules: Any, best_s: float) -> list[Outcome]:
        return [Outcome("ok", (seconds,) * 3) for seconds in modules]

    @contextmanager
    def rehearsed(self, number: int, modules: Any) -> Iterator[Rehearsed]:
        turns = {player: partial(float, 2.1 if player else 2.0) for player in range(1 + len(modules))}
        yield Rehearsed([Outcome("ok")] * len(turns), turns)


def test_nobody_wins_by_a_baseline_of_when_the_machine_was_slower() -> None:
    task: Any = SimpleNamespace(constant_weights=False)
    bench = TvmBench(task, 0, Quicker(), None, Pace(6, 0.01))  # type: ignore[arg-type]
    candidates = [SimpleNamespace(program=2.5)] * FINALISTS + [SimpleNamespace(program=3.0)]
    tried = [*bench.measure(candidates, len(candidates))]
    assert all(measurement.faster_beyond_noise for _, measurement in tried)
    found, _ = bench.finals(tried, ())
    assert bench.baseline.runtime_s == 2.0 and fastest(found) is None


class Unsteady(Quicker):
    """An unscheduled function whose results differ from run to run."""

    @contextmanager
    def rehearsed(self, number: int, modules: Any) -> Iterator[Rehearsed]:
        yield Rehearsed([Outcome("wrong_result", detail="1 of 4 elements differ"), Outcome("ok")], {1: float})


def test_an_unscheduled_function_that_is_wrong_is_named() -> None:
    task: Any = SimpleNamespace(constant_weights=False)
    bench = TvmBench(task, 0, Unsteady(), None, Pace(6, 0.01))  # type: ignore[arg-type]
    tried = [*bench.measure([SimpleNamespace(program=2.5)], 1)]
    with pytest.raises(MeasureError, match="the unscheduled function: wrong_result, 1 of 4"):
        bench.finals(tried, ())
