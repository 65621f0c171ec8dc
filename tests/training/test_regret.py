"""The regret matrix on cases worked by hand; all baselines take 1 s, all intervals are +-0.5%."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.nn import REGRET_CAP
from gnnperf.training import load_corpus

GRAPHS = [nest_like([8]), nest_like([9]), nest_like([10])]
NAN = float("nan")


@pytest.fixture
def regret_of(tmp_path: Any) -> Any:
    def regret(*schedules: dict[str, float | None], **changes: dict[str, Any]) -> Any:
        """The matrix of nests, given what each schedule took on each of them (None: wrong result).

        `changes`: schedule -> changes to its lines.
        """
        lines = [
            measurement(graph.digest, schedule, runtime_s, **changes.get(schedule, {}))
            for graph, runtimes in zip(GRAPHS, schedules, strict=False)
            for schedule, runtime_s in runtimes.items()
        ]
        nests = [nest(graph, "f") for graph in GRAPHS[: len(schedules)]]
        return load_corpus(write_corpus(tmp_path, nests, lines)).regret

    return regret


def test_regret_is_the_log_of_the_slowdown(regret_of: Any) -> None:
    matrix = regret_of({"x": 0.5, "y": 0.8}, {"x": 0.6, "y": 0.25})
    expected = [[NAN, math.log(0.8 / 0.5)], [math.log(0.6 / 0.25), NAN]]
    np.testing.assert_allclose(matrix, expected, rtol=1e-6)


def test_what_was_not_measured_is_nan(regret_of: Any) -> None:
    assert np.isnan(regret_of({"x": 0.5}, {"y": 0.5})).all()


def test_a_tie_is_no_regret(regret_of: Any) -> None:
    matrix = regret_of({"x": 0.5, "y": 0.505}, {"y": 0.25})
    assert matrix[0, 1] == 0.0


def test_any_of_the_tied_best_schedules_will_do(regret_of: Any) -> None:
    """On nest 1, z is best and y ties with it; on nest 0 only y was tried."""
    matrix = regret_of({"x": 0.5, "y": 0.8}, {"z": 0.25, "y": 0.251})
    assert matrix[0, 1] == pytest.approx(math.log(0.8 / 0.5), rel=1e-6)


def test_a_failure_costs_the_cap_and_so_does_a_disaster(regret_of: Any) -> None:
    matrix = regret_of({"x": 0.5, "y": None, "z": 1000.0}, {"y": 0.5}, {"z": 0.5})
    np.testing.assert_allclose(matrix[0, 1:], REGRET_CAP)


def test_a_failure_is_no_best_known_runtime(regret_of: Any) -> None:
    """Nest 0 has no working schedule: its best is the baseline, which is then what it lends."""
    matrix = regret_of({"x": None}, {"x": 0.5})
    np.testing.assert_allclose(matrix, [[NAN, REGRET_CAP], [math.log(2.0), NAN]], rtol=1e-6)


def test_runtimes_are_compared_relative_to_their_own_baseline(regret_of: Any) -> None:
    """x is measured while the machine is four times slower: 2 s of x are better than 0.8 s of y."""
    slow = {"baseline_s": 4.0, "baseline_interval_s": [3.98, 4.02]}
    matrix = regret_of({"x": 2.0, "y": 0.8}, {"y": 0.5}, x=slow)
    assert matrix[0, 1] == pytest.approx(math.log(0.8 / 0.5), rel=1e-6)
