"""Confidence in what was measured: its features, its limit, and what it learns."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.synthetic import nest_like
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.errors import InputError
from gnnperf.nn import Bundle
from gnnperf.retrieval.confidence import (
    FEATURES,
    Confidence,
    Rates,
    TrialOutcome,
    describe,
    fit_confidence,
    safe_limit,
)

RATES = Rates(1e11, 1e10)


def outcome(size: int, shares: list[float | None], baseline_s: float = 1e-3) -> TrialOutcome:
    return TrialOutcome(nest_like([size, size], True, "add"), shares, baseline_s)


def test_features_of_a_nest_worked_by_hand() -> None:
    tried = outcome(64, [0.5, None, 0.25, 2.0], baseline_s=4e-3)
    found = dict(zip(FEATURES, describe(tried, RATES), strict=True))
    assert tried.best_s == 1e-3
    assert found["gain"] == pytest.approx(math.log(4))
    assert found["spread"] == pytest.approx(math.log(2))  # of the best and the second
    assert found["range"] == pytest.approx(math.log(8))
    assert found["runtime"] == pytest.approx(math.log(1e-3))
    assert (found["failures"], found["trials"]) == (1, pytest.approx(math.log(4)))
    values = tried.graph.values
    least_s = max((1 + values["total_flops"]) / 1e11, (1 + values["distinct_bytes"]) / 1e10)
    assert found["headroom"] == pytest.approx(math.log(least_s / 1e-3))


def test_where_all_failed_the_baseline_is_what_there_is() -> None:
    for shares in ([], [None, None]):
        found = dict(zip(FEATURES, describe(outcome(8, shares), RATES), strict=True))
        assert (found["gain"], found["spread"], found["range"]) == (0, 0, 0)
        assert np.isfinite(list(found.values())).all()


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.6, 0.9]), st.booleans()), max_size=40))
def test_a_limit_is_the_lowest_that_is_safe(pairs: list[tuple[float, bool]]) -> None:
    p, good = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs], dtype=bool)
    limit = safe_limit(p, good, 0.9, least=3)
    safe = [c for c in {0.1, 0.4, 0.6, 0.9} if (p >= c).sum() >= 3 and good[p >= c].mean() >= 0.9]
    assert limit == min([c for c in safe if c in p], default=2.0)


def world(seed: int) -> tuple[list[TrialOutcome], np.ndarray, list[str]]:
    """Small nests are always transferred to well; large ones, by chance, half of the time."""
    rng = np.random.default_rng(seed)
    sizes = [int(s) for s in rng.choice([8, 512], 200)]
    outcomes = [outcome(size, [0.5, 0.4, 0.3], 1e-6 * size**2) for size in sizes]
    good = np.array([[size == 8 or rng.random() < 0.5] * 2 for size in sizes])
    return outcomes, good, [f"family_{at % 20}" for at in range(len(sizes))]


def test_it_is_confident_where_it_was_right() -> None:
    outcomes, good, families = world(0)
    confidence = fit_confidence(outcomes, good, (1, 3), families)
    new, right, _ = world(1)
    sure = np.array([confidence.probability(o) >= confidence.limit for o in new])
    assert sure.sum() > 50
    assert right[sure, 0].mean() >= 0.9
    assert {o.graph.values["reduction_iterations"] for o, yes in zip(new, sure, strict=True) if yes} == {8}


def test_where_nothing_tells_it_is_never_confident() -> None:
    outcomes, good, families = world(0)
    good = np.random.default_rng(2).random(good.shape) < 0.7
    confidence = fit_confidence(outcomes, good, (1, 3), families)
    assert not any(confidence.probability(o) >= confidence.limit for o in outcomes)


def test_where_all_is_good_it_is_always_confident() -> None:
    outcomes, good, families = world(0)
    confidence = fit_confidence(outcomes, np.ones_like(good), (1, 3), families)
    assert all(confidence.probability(o) >= confidence.limit for o in outcomes)


def test_it_is_the_same_when_written_and_read() -> None:
    outcomes, good, families = world(0)
    fitted = fit_confidence(outcomes, good, (1, 3), families)
    read = Confidence.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert read == fitted


def test_other_features_are_refused() -> None:
    fitted = Confidence((0.0,) * len(FEATURES), 0.0, 0.5, RATES).to_dict()
    with pytest.raises(ValueError, match="expected a confidence in gain"):
        Confidence.from_dict({**fitted, "features": ["distance"]})


FITTED = Confidence((0.5,) * len(FEATURES), -1.0, 0.9, Rates(1e9, 2e9))


def test_confidence_is_that_of_the_bundle(bundle: Bundle) -> None:
    assert bundle.calibration is None and Confidence.of(bundle) is None
    written = json.loads(json.dumps({"confidence": FITTED.to_dict(), "more": 1}))
    assert Confidence.of(replace(bundle, calibration=written)) == FITTED


@pytest.mark.parametrize(
    "content",
    [
        {}, {"confidence": None}, {"confidence": 0.9}, {"confidence": {"features": ["far"]}},
        {"confidence": {**FITTED.to_dict(), "bias": None}},
        {"confidence": {**FITTED.to_dict(), "limit": "high"}},
        {"confidence": {**FITTED.to_dict(), "weights": [1.0]}},
        {"confidence": {**FITTED.to_dict(), "rates": {"flops_per_s": 1e9}}},
        {"confidence": {**FITTED.to_dict(), "rates": [1e9, 2e9]}},
    ],
)  # fmt: skip
def test_a_damaged_calibration_is_one_clear_line(bundle: Bundle, content: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"damaged calibration of a checkpoint: .*; restore") as error:
        Confidence.of(replace(bundle, calibration=content))
    assert "\n" not in str(error.value)
