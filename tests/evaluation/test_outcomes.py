"""What a trial gives, looked up: which trials count, and how."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.training import load_corpus

GRAPH = nest_like([64])


@pytest.fixture
def outcomes(tmp_path: Path) -> Outcomes:
    lines = [
        measurement(GRAPH.digest, "fast", 0.25),
        measurement(GRAPH.digest, "same code as fast", 0.25),
        measurement(GRAPH.digest, "slow", 2.0),
        measurement(GRAPH.digest, "wrong", None),
        measurement(GRAPH.digest, "also wrong", None),
        measurement(GRAPH.digest, "unfit", None, status="not_applicable"),
    ]
    corpus = load_corpus(write_corpus(tmp_path, [nest(GRAPH, "f")], lines))
    return Outcomes(corpus.measurements[GRAPH.digest])


def shares(outcomes: Outcomes, *order: str) -> list[float | None]:
    return [None if r is None else r.share for r in outcomes.tried(order)]


def test_failures_are_trials_and_what_does_not_fit_or_is_not_recorded_is_not(outcomes: Outcomes) -> None:
    assert shares(outcomes, "unfit", "wrong", "unknown", "slow", "fast") == [None, 2.0, 0.25]
    assert shares(outcomes, "wrong", "also wrong") == [None, None]


def test_equal_code_is_tried_once(outcomes: Outcomes) -> None:
    assert shares(outcomes, "same code as fast", "slow", "fast") == [0.25, 2.0]


def test_best_known(outcomes: Outcomes) -> None:
    assert outcomes.best.share == 0.25
    assert Outcomes({}).best.share == 1.0  # the baseline is always known


def test_an_oracle_tries_failures_last(outcomes: Outcomes) -> None:
    assert outcomes.fastest_first(outcomes.measured) == [
        "fast", "same code as fast", "slow", "also wrong", "wrong",
    ]  # fmt: skip
