"""Trials that recorded searches need to match transferred candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from evaluation.worlds import FAIR, GOOD, line, two_tastes
from helpers.nests import small_nest
from helpers.synthetic import held_nest, nest, nest_like, write_corpus

from gnnperf.evaluation.replay import Answer, Folders
from gnnperf.evaluation.search import (
    compare,
    evaluate_search,
    evolutionary_trials,
    figures_of,
    random_trials,
)
from gnnperf.evaluation.transfer import ReplaySettings
from gnnperf.training import Corpus, load_corpus
from gnnperf.training.regret import Relative


def answers(corpus: Corpus) -> list[Answer]:
    """Ours proposed one candidate per nest, which reached `GOOD`."""
    good = Relative(GOOD, GOOD * 0.99, GOOD * 1.01)
    return [Answer("ours", nest, 0, 0, (good,), True) for nest in range(len(corpus.nests))]


def test_trials_of_a_search(tmp_path: Path) -> None:
    graph = nest_like([64])
    origins = ["default", "random", "foreign", "random", "mutation", "foreign", "mutation", "random"]
    lines = [line(graph.digest, f"s{i}", 0.5, origin=origin) for i, origin in enumerate(origins)]
    recorded = load_corpus(write_corpus(tmp_path, [nest(graph, "f")], lines)).measurements[graph.digest]
    assert random_trials(recorded) == ["s1", "s3", "s7"]
    assert evolutionary_trials(recorded) == ["s0", "s1", "s3", "s4", "s6"]
    without = {schedule: m for schedule, m in recorded.items() if m.origin != "mutation"}
    assert evolutionary_trials(without) == []


def test_random_and_evolutionary_search(tmp_path: Path) -> None:
    """Of three random trials the second ties with ours: it is expected at (3 + 1) / 2. Evolutionary search
    began with two defaults that work, the better one first, and one that fails."""
    own = [("random", 0.9), ("random", GOOD), ("random", 0.8), ("mutation", FAIR)]
    corpus = load_corpus(two_tastes(tmp_path, own))
    compared = compare(corpus, corpus.measurements, answers(corpus))
    for search, trials, recorded in (("random", 2, 3), ("evolutionary", 1, 7)):
        found = [c for c in compared if (c.search, c.k) == (search, 3)]
        assert len(found) == 16
        assert {(c.trials, c.at_least, c.recorded) for c in found} == {(trials, trials, recorded)}
    figures = dict(figures_of(compared))
    assert figures["median_trials_to_match_3"] == figures["max_trials_to_match_3"] == 2
    assert figures["evolutionary_median_trials_to_match_1"] == 1
    assert figures["never_matched_share_3"] == 0
    assert (figures["recorded_trials_median"], figures["nests"]) == (3, 16)
    again = [replace(answer, seed=1) for answer in answers(corpus)]
    of_two_seeds = compare(corpus, corpus.measurements, answers(corpus) + again)
    assert dict(figures_of(of_two_seeds)) == figures


def test_a_search_that_never_matched_counts_with_what_was_recorded(tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path, [("random", 0.9), ("random", 0.8)]))
    compared = compare(corpus, corpus.measurements, answers(corpus)[:1])
    assert [(c.k, c.trials, c.at_least, c.recorded) for c in compared] == [(k, None, 2, 2) for k in (1, 3, 5)]
    figures = dict(figures_of(compared))
    assert (figures["median_trials_to_match_3"], figures["never_matched_share_3"]) == (2, 1)
    assert not [name for name in figures if name.startswith("evolutionary")]


@pytest.mark.slow
def test_longer_searches_of_some_nests(tmp_path: Path) -> None:
    """Only these are compared on. What ours proposes was measured beside them, with another result."""
    corpus = two_tastes(tmp_path / "corpus", sizes=[64])
    nests = [held_nest(small_nest(64, 32, reduction), "f") for reduction in (False, True)]
    lines = []
    for task, shares in zip(nests, ([0.9] * 7, [0.9, 0.2, 0.1]), strict=True):
        names = [f"{share} {i}" for i, share in enumerate(shares)]
        lines += [line(task["task"], name, s, origin="random") for name, s in zip(names, shares, strict=True)]
        lines += [line(task["task"], s, 0.3, origin="foreign") for s in ("tile", "stream")]
    folders = Folders([corpus], trials=write_corpus(tmp_path / "trials", nests, lines))
    settings = ReplaySettings(folds=3, policies=["ours"], workers=1, quick=True)
    result = evaluate_search(folders, folders.load(), settings)
    rows = {row["family"]: row for row in result.rows if row["k"] == 3}
    assert (rows["map_add"]["trials"], rows["map_add"]["recorded"]) == (None, 7)
    assert rows["map_add"]["efficiency"] == pytest.approx(1.0, abs=1e-3)
    assert rows["reduce_add"]["trials"] == pytest.approx(4 / 3)
    assert rows["reduce_add"]["efficiency"] == pytest.approx(0.1 / 0.3, abs=1e-3)
    assert result.figures["median_trials_to_match_3"] == pytest.approx((7 + 4 / 3) / 2)
    assert result.figures["nests"] == 2
