"""Trust in what a policy reached: learned from the nests of other folds."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import worlds
from evaluation.worlds import FAIR, GOOD, two_tastes

from gnnperf.evaluation.confidence import Trust
from gnnperf.evaluation.replay import Answer
from gnnperf.training import Corpus, load_corpus

SIZES = range(16, 336, 16)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return load_corpus(two_tastes(tmp_path_factory.mktemp("corpus"), sizes=SIZES))


def answers(corpus: Corpus, reached: np.ndarray, seed: int = 0) -> list[Answer]:
    """What was reached on every nest with one candidate."""
    return worlds.answers(corpus, "ours", reached.tolist(), seed)


def test_it_is_confident_of_what_was_right_in_other_folds(corpus: Corpus) -> None:
    """Maps reach the best, reductions half of it."""
    maps = np.array([nest.family.startswith("map") for nest in corpus.nests])
    trust = Trust.of(corpus, answers(corpus, np.where(maps, GOOD, FAIR)), 3)
    assert (trust.good[0] == maps).all()
    assert (trust.confident[0] == maps).all()
    assert trust.surest(0.5)[0].sum() == len(maps) // 2
    assert trust.surest(0.5)[0][maps].all()


def test_a_fold_does_not_vouch_for_itself(corpus: Corpus) -> None:
    """Only the maps of fold 0 are bad; the others say that maps are good, and are believed."""
    families = [nest.family for nest in corpus.nests]
    bad = np.array([f.startswith("map") and corpus.families.index(f) % 4 == 0 for f in families])
    maps = np.array([f.startswith("map") for f in families])
    trust = Trust.of(corpus, answers(corpus, np.where(maps & ~bad, GOOD, FAIR)), 3)
    assert bad.any()
    assert trust.confident[0][bad].all()
    assert not trust.good[0][bad].any()


def test_seeds_are_judged_apart(corpus: Corpus) -> None:
    """For one seed all was good, for the other nothing."""
    n = len(corpus.nests)
    both = [*answers(corpus, np.full(n, GOOD), 3), *answers(corpus, np.full(n, FAIR), 4)]
    trust = Trust.of(corpus, both, 3)
    assert trust.confident[0].all()
    assert not trust.confident[1].any()
