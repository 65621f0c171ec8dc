"""What parts of the ranking are worth, on answers that are made up."""

from __future__ import annotations

from math import exp, log

import pytest
from evaluation.worlds import FAIR, GOOD, answers, two_tastes

from gnnperf.evaluation.ablation.table import (
    POLICIES,
    WITHOUT,
    WITHOUT_NETWORK,
    compare,
    embedding_figures,
    network_figures,
)
from gnnperf.evaluation.metrics import mean_interval
from gnnperf.evaluation.rankers import make_policy
from gnnperf.evaluation.replay import Folders
from gnnperf.evaluation.transfer import KS, OURS
from gnnperf.training import Corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Eight families of two nests; the best known takes a quarter of the baseline's time."""
    return Folders([two_tastes(tmp_path_factory.mktemp("corpus"))]).load()


def by_family(corpus: Corpus, even: float, odd: float) -> list[float]:
    """A share of the baseline's time for the nests of every other family, and one for those between."""
    return [(even, odd)[corpus.families.index(nest.family) % 2] for nest in corpus.nests]


def test_shares_of_ours_are_paired_by_family(corpus: Corpus) -> None:
    """Half of the families are twice as hard for all; others are slower by a quarter."""
    made = [
        answer
        for row in WITHOUT
        for seed in (0, 1)
        for slower in [1.0 if row == OURS else 1.25]
        for answer in answers(corpus, row, by_family(corpus, 0.25 * slower, 0.5 * slower), seed)
    ]
    rows = list(compare(corpus, made))
    assert [(row["policy"], row["k"]) for row in rows] == [(row, k) for k in KS for row in WITHOUT]
    by_policy = {row["policy"]: row for row in rows[: len(WITHOUT)]}
    ours, other = by_policy[OURS], by_policy["boosted trees"]
    assert (ours["of_ours"], ours["of_ours_low"], ours["of_ours_high"]) == (1.0, 1.0, 1.0)
    for row in (ours, other):
        assert row["low"] < row["efficiency"] < row["high"]
    # Families differ, but each of them loses the same.
    for end in ("of_ours", "of_ours_low", "of_ours_high"):
        assert other[end] == pytest.approx(0.8, rel=1e-3)
    assert other["efficiency"] == pytest.approx(0.8 * ours["efficiency"], rel=1e-3)


def test_the_network_is_compared_with_the_best_that_does_without(corpus: Corpus) -> None:
    """Ours is always best; the perceptron is for half of the families, and takes twice the time for the
    others: a mean of ln sqrt(1/2), less than what the other reaches everywhere."""
    figures = network_figures(
        corpus,
        [
            *answers(corpus, OURS, [GOOD] * 16),
            *answers(corpus, "perceptron", by_family(corpus, GOOD, FAIR)),
            *answers(corpus, "without network", [GOOD / 0.8] * 16),
        ],
    )
    assert figures == {
        **{f"nests_full_at_{k}": pytest.approx(1.0, abs=1e-3) for k in KS},
        "nests_without_network_at_1": pytest.approx(0.8, rel=1e-3),
        **{f"nests_ratio_at_1{end}": pytest.approx(1.25, rel=1e-3) for end in ("", "_low", "_high")},
    }


def test_the_interval_of_the_ratio_is_over_families(corpus: Corpus) -> None:
    """Half of the families gain a factor of 2, the others lose a tenth."""
    figures = network_figures(
        corpus,
        [
            *answers(corpus, OURS, by_family(corpus, GOOD, FAIR / 0.9)),
            *answers(corpus, "perceptron", [FAIR] * 16),
            *answers(corpus, "without network", [0.9] * 16),
        ],
    )
    expected = [exp(end) for end in mean_interval([log(2.0), log(0.9)] * 4)]
    found = [figures[f"nests_ratio_at_1{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx(expected, rel=1e-3)
    assert found[0] == pytest.approx((2.0 * 0.9) ** 0.5, rel=1e-3)
    assert found[1] < found[0] < found[2]


def test_the_embedding_by_itself(corpus: Corpus) -> None:
    """Correlations of ours are averaged where there are any; the nearest nest is right for half."""
    made = [
        *answers(corpus, OURS, [GOOD] * 16, seed=0, spearman=0.75),
        *answers(corpus, OURS, [GOOD] * 16, seed=1, spearman=0.25),
        *answers(corpus, OURS, [GOOD] * 16, seed=2),  # nothing was measured to compare with
        *answers(corpus, "neighbours alone", [GOOD] * 16, spearman=-1.0),
        *answers(corpus, "nearest nest", by_family(corpus, GOOD, FAIR)),
    ]
    assert embedding_figures(corpus, made) == pytest.approx(
        {"spearman": 0.5, "nearest_best": 0.5**0.5}, rel=1e-3
    )


def test_every_row_has_a_policy_that_gives_it(corpus: Corpus) -> None:
    """And what the network is compared with is in the table."""
    assert set(WITHOUT_NETWORK) < set(WITHOUT)
    for policy in POLICIES:
        assert make_policy(policy, corpus) is not None
