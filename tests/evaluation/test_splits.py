"""Folds: everything is asked for once, and nothing that is like it is known then."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation.worlds import two_tastes

from gnnperf.errors import InputError
from gnnperf.evaluation.splits import SPLITS, Fold, SplitName, make_folds
from gnnperf.training import Corpus, load_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return load_corpus(two_tastes(tmp_path_factory.mktemp("corpus")))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("count", [3, 4, 8])
def test_every_nest_is_a_query_once_and_never_known_to_its_fold(
    corpus: Corpus, split: SplitName, count: int
) -> None:
    folds = make_folds(corpus.nests, split, count, 0)
    assert sorted(q for fold in folds for q in fold.queries) == list(range(len(corpus.nests)))
    for fold in folds:
        parts = [set(fold.queries), set(fold.validation), set(fold.train)]
        assert set.union(*parts) == set(range(len(corpus.nests)))
        assert sum(map(len, parts)) == len(corpus.nests)
        assert all(parts)


def test_no_family_of_a_fold_is_known_or_shared_with_what_stops_the_training(corpus: Corpus) -> None:
    def families(positions: tuple[int, ...]) -> set[str]:
        return {corpus.nests[i].family for i in positions}

    for fold in make_folds(corpus.nests, "family", 4, 0):
        assert not families(fold.queries) & families(fold.reference)
        assert not families(fold.validation) & families(fold.train)


def test_another_size_of_the_same_kernel_is_known(corpus: Corpus) -> None:
    nests = corpus.nests
    for fold in make_folds(nests, "size", 4, 0):
        known = {(nests[i].kernel, nests[i].symbols["N"]) for i in fold.reference}
        for i in fold.queries:
            other = {64: 128, 128: 64}[int(nests[i].symbols["N"])]
            assert (nests[i].kernel, other) in known
            assert (nests[i].kernel, nests[i].symbols["N"]) not in known


def test_a_seed_gives_the_same_folds_again(corpus: Corpus) -> None:
    def queries(folds: list[Fold]) -> list[tuple[int, ...]]:
        return [fold.queries for fold in folds]

    first, again, other = (queries(make_folds(corpus.nests, "family", 3, seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("split", "count", "message"),
    [
        ("family", 2, "at least 3 folds"),
        ("family", 9, "at most 8, the families"),
        ("size", 17, "kernel sizes"),
    ],
)
def test_folds_that_cannot_be(corpus: Corpus, split: SplitName, count: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_folds(corpus.nests, split, count, 0)


def test_a_corpus_of_two_families_cannot_be_split(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a larger corpus"):
        make_folds(corpus.nests[:4], "family", 3, 0)
