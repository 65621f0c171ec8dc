"""How sure retrieval is, once it has measured: is the best of what was tried near the best there is?

Distance to the neighbours does not tell (AUC about 0.5 on held-out families); what was measured does. A nest
that runs near the fastest rates ever seen has little left to gain, one that computes a long reduction slowly
has much. A logistic regression on a dozen such numbers says how likely it is that the best measured candidate
comes within `WITHIN` of the best known schedule; above a limit, calibrated on held-out families, retrieval
calls itself confident.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

WITHIN = 0.10
"""Share of the best known speed that may be missed."""
WANTED = 0.92
"""Share of the nests called confident where no more is missed, when the limit is found. Promised are 90%: a
limit that was found on a few hundred nests is a little too low for others."""
LEAST = 10
"""Nests that a limit must rest on."""
STRENGTH = 0.03
"""Inverse of the L2 penalty on standardised weights: a few hundred nests bear no more."""
FOLDS = 5
"""Of families, to find the limit."""
FEATURES = (
    "gain", "spread", "range", "runtime", "headroom", "bytes", "flops", "parallel", "reduction", "depth",
    "statements", "failures", "trials",
)  # fmt: skip


@dataclass(frozen=True)
class TrialOutcome:
    """What measuring k candidates on a nest gave.

    shares: runtimes as shares of the baseline's, in the order of the trials; None failed.
    baseline_s: runtime of the baseline, in seconds.
    """

    graph: ProgramGraph
    shares: Sequence[float | None]
    baseline_s: float

    @property
    def best_s(self) -> float:
        """Runtime of the best, the baseline included, in seconds."""
        return self.baseline_s * min(1.0, *(s for s in self.shares if s is not None), math.inf)

    def first(self, k: int) -> TrialOutcome:
        """Had only k candidates been tried."""
        return TrialOutcome(self.graph, self.shares[:k], self.baseline_s)


@dataclass(frozen=True)
class Rates:
    """The fastest that any nest of the corpus was seen to compute and to move its distinct bytes."""

    flops_per_s: float
    bytes_per_s: float

    @staticmethod
    def of(outcomes: Sequence[TrialOutcome]) -> Rates:
        """99th percentiles: a single lucky measurement is no limit of the machine."""
        flops = [_flops(outcome) / outcome.best_s for outcome in outcomes]
        moved = [_bytes(outcome) / outcome.best_s for outcome in outcomes]
        return Rates(float(np.quantile(flops, 0.99)), float(np.quantile(moved, 0.99)))

    def least_s(self, outcome: TrialOutcome) -> float:
        """The roofline: the runtime of the nest at these rates, in seconds."""
        return max(_flops(outcome) / self.flops_per_s, _bytes(outcome) / self.bytes_per_s)


def describe(outcome: TrialOutcome, rates: Rates) -> Float[NDArray, " f"]:
    """`FEATURES` of an outcome; magnitudes as natural logarithms."""
    values = outcome.graph.values
    worked = sorted([1.0, *(share for share in outcome.shares if share is not None)])
    return np.array([
        -math.log(worked[0]),
        math.log(worked[1] / worked[0]) if len(worked) > 1 else 0.0,
        math.log(worked[-1] / worked[0]),
        math.log(outcome.best_s),
        math.log(rates.least_s(outcome) / outcome.best_s),
        math.log(_bytes(outcome)),
        math.log(_flops(outcome)),
        math.log1p(_number(values, "parallel_iterations")),
        math.log1p(_number(values, "reduction_iterations")),
        _number(values, "loop_depth"),
        _number(values, "statements"),
        sum(share is None for share in outcome.shares),
        math.log(max(1, len(outcome.shares))),
    ])  # fmt: skip


def _number(values: Mapping[str, Any], name: str) -> float:
    return float(values.get(name) or 0.0)


def _flops(outcome: TrialOutcome) -> float:
    return 1.0 + _number(outcome.graph.values, "total_flops")


def _bytes(outcome: TrialOutcome) -> float:
    return 1.0 + _number(outcome.graph.values, "distinct_bytes")


@dataclass(frozen=True)
class Confidence:
    """The fitted judgement. `weights` and `bias` apply to `FEATURES` as they are, unstandardised.

    limit: probability from which on retrieval calls itself confident; above 1 where no limit is safe.
    """

    weights: Sequence[float]
    bias: float
    limit: float
    rates: Rates

    def probability(self, outcome: TrialOutcome) -> float:
        """That the best measured candidate comes within `WITHIN` of the best known schedule, in (0, 1)."""
        score = float(np.dot(self.weights, describe(outcome, self.rates))) + self.bias
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, score))))

    @classmethod
    def of(cls, bundle: Bundle) -> Self | None:
        """As it was released with a bundle; None where it was never learned. InputError where it is
        damaged."""
        if bundle.calibration is None:
            return None
        try:
            return cls.from_dict(bundle.calibration["confidence"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"damaged calibration of a checkpoint: {error}; restore or retrain it") from None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "features": list(FEATURES)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """ValueError where it was fitted on other features, KeyError or TypeError where it is damaged."""
        if tuple(raw["features"]) != FEATURES or len(raw["weights"]) != len(FEATURES):
            raise ValueError(f"expected a confidence in {', '.join(FEATURES)}, got {raw['features']}")
        rates = Rates(**{name: float(rate) for name, rate in raw["rates"].items()})
        return cls(tuple(map(float, raw["weights"])), float(raw["bias"]), float(raw["limit"]), rates)


def fit_confidence(
    outcomes: Sequence[TrialOutcome], good: Bool[NDArray, "n k"], ks: Sequence[int], families: Sequence[str]
) -> Confidence:
    """Fit on nests that were transferred to by models which had not seen their families.

    Args:
        outcomes: of n nests, at least max(ks) trials each where there were so many.
        good: whether the best of the first k trials came within `WITHIN`, for each of `ks`.
        ks: numbers of trials; all are learned from together.
        families: of the nests. None of them is judged by itself when the limit is found.
    """
    rates = Rates.of(outcomes)
    rows = np.stack([[describe(o.first(k), rates) for k in ks] for o in outcomes])  # [n, k, f]
    fold = _fold_of(families)
    probability = np.zeros(good.shape)
    for number in np.unique(fold):
        own = fold == number
        weights, bias = _regress(rows[~own], good[~own])
        probability[own] = 1.0 / (1.0 + np.exp(-(rows[own] @ weights + bias)))
    weights, bias = _regress(rows, good)
    return Confidence(
        tuple(weights.tolist()), bias, safe_limit(probability, good, WANTED, LEAST * len(ks)), rates
    )


def safe_limit(
    probability: Float[NDArray, "n k"], good: Bool[NDArray, "n k"], wanted: float, least: int
) -> float:
    """The lowest limit that a share `wanted` of what lies at or above it is good; 2 where fewer than `least`
    do, or none."""
    order = np.argsort(-probability, axis=None, kind="stable")
    p, right = probability.ravel()[order], good.ravel()[order]
    count = np.arange(1, len(p) + 1)
    ends = np.append(p[1:] < p[:-1], True)  # equal probabilities are trusted together or not at all
    safe = np.flatnonzero(ends & (np.cumsum(right) >= wanted * count) & (count >= least))
    return float(p[safe[-1]]) if safe.size else 2.0


def _fold_of(families: Sequence[str]) -> NDArray[np.int64]:
    """Whole families in `FOLDS` folds, shuffled: the order of names must not decide."""
    names = sorted(set(families))
    place = np.random.default_rng(0).permutation(len(names)) % FOLDS
    return np.array([place[names.index(family)] for family in families], dtype=np.int64)


def _regress(rows: Float[NDArray, "n k f"], good: Bool[NDArray, "n k"]) -> tuple[Float[NDArray, " f"], float]:
    """Weights and bias of unstandardised features."""
    from sklearn.linear_model import LogisticRegression

    flat, target = rows.reshape(-1, rows.shape[-1]), good.ravel()
    mean, scale = flat.mean(0), flat.std(0)
    scale[scale == 0] = 1.0
    if target.all() or not target.any():  # nothing to tell apart
        return np.zeros(flat.shape[1]), 50.0 if target.all() else -50.0
    fitted = LogisticRegression(C=STRENGTH, max_iter=1000).fit((flat - mean) / scale, target)
    weights = fitted.coef_[0] / scale
    return weights, float(fitted.intercept_[0] - weights @ mean)
