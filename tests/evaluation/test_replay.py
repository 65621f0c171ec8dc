"""What is replayed, and what is said of the distances of a policy."""

from __future__ import annotations

from dataclasses import replace
from math import nan, sqrt
from pathlib import Path

import numpy as np
import pytest
from evaluation.worlds import two_tastes
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.devices import VectorUnit
from gnnperf.errors import InputError
from gnnperf.evaluation import rankers
from gnnperf.evaluation.rankers import PolicyProposal
from gnnperf.evaluation.reference import Reference
from gnnperf.evaluation.replay import Folders, ReplayTask, rank_correlation, replay
from gnnperf.evaluation.splits import make_folds
from gnnperf.nn import scheduled_programs
from gnnperf.schedules.recipes import Recipe


def test_several_corpora_are_replayed_as_one(tmp_path: Path) -> None:
    one, other = two_tastes(tmp_path / "one"), two_tastes(tmp_path / "two", sizes=(32,))
    both = Folders([one, other]).load()
    assert len(both.nests) == 16 + 8
    assert len(Folders([one]).load().nests) == 16
    assert Folders([one, other]).load_trials(both) is both
    trials = Folders([one], trials=other).load_trials(both).measurements
    assert set(trials) == {n.digest for n in Folders([other]).load().nests}


def test_nests_of_which_the_loops_are_unknown_are_left_out(tmp_path: Path) -> None:
    graph = nest_like([64])
    bare = write_corpus(tmp_path / "bare", [nest(graph, "f")], [measurement(graph.digest, "tile", 0.5)])
    held = two_tastes(tmp_path / "held")
    mixed = Folders([bare, held]).load()
    assert len(mixed.nests) == 16
    assert all(n.nest is not None for n in mixed.nests)
    with pytest.raises(InputError, match=r"expected corpora that hold their nests, got .*bare; collect"):
        Folders([bare]).load()


@pytest.mark.parametrize(
    ("distances", "regret", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.5, 0.6], 1.0),
        ([0.1, 0.2, 0.3, 0.4], [3.0, 2.0, 1.0, 0.0], -1.0),
        ([0.1, 0.2, 0.3, 0.4], [0.0, 2.0, 1.0, 3.0], 0.8),  # 1 - 6 * 2 / (4 * 15)
        ([1.0, 2.0, 3.0], [0.0, 0.0, 1.0], sqrt(3) / 2),  # ties have the mean of their ranks
        ([0.1, 9.0, 0.2, 0.3], [0.0, nan, 0.1, 0.2], 1.0),  # one was not measured
        ([0.1, 0.2, 0.3], [0.0, nan, 0.1], None),  # too few were
        ([0.1, 0.2, 0.3], [0.5, 0.5, 0.5], None),  # all are as good
        ([0.1, 0.1, 0.1], [0.1, 0.2, 0.3], None),  # all are as near
        ([], [], None),
    ],
)
def test_rank_correlation_by_hand(
    distances: list[float], regret: list[float], expected: float | None
) -> None:
    found = rank_correlation(np.array(distances), np.array(regret))
    assert found == (None if expected is None else pytest.approx(expected))


def test_answers_say_how_well_distances_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is near what has the taste of the query, beside one without distances."""
    corpus = Folders([two_tastes(tmp_path)]).load()

    def tasteful(reference: Reference, seed: int) -> object:
        worlds = [n.family.split("_")[0] for n in reference.nests]

        def near(query: object, pool: list[str]) -> PolicyProposal:
            own = query.family.split("_")[0]  # type: ignore[attr-defined]
            return PolicyProposal(pool, distances=np.array([0.1 if w == own else 0.9 for w in worlds]))

        return {"near": near, "blind": lambda query, pool: PolicyProposal(pool, ordered=False)}

    monkeypatch.setattr(rankers, "make_policy", lambda *_: tasteful)
    fold = make_folds(corpus.nests, "family", 4, 0)[1]
    found = replay(corpus, corpus, ReplayTask("tasteful", fold, 1, 7))
    assert [(a.row, a.nest) for a in found] == [(row, q) for q in fold.queries for row in ("near", "blind")]
    assert {(a.fold, a.seed) for a in found} == {(1, 7)}
    for answer in found:
        near = answer.row == "near"
        assert answer.spearman == (pytest.approx(1.0) if near else None)
        assert answer.ordered == near
        assert len(answer.tried) == 3
    # Queries that nothing is known of are not asked.
    one = corpus.nests[fold.queries[0]].digest
    judge = replace(corpus, measurements={one: corpus.measurements[one]})
    few = replay(corpus, judge, ReplayTask("tasteful", fold, 1, 7))
    assert [a.nest for a in few] == [fold.queries[0]] * 2


def test_queries_are_scheduled_for_the_machine_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corpus of AVX-512, judged by what a machine with AVX2 measured: 4 vectors are 32 floats, not 64."""
    corpus = Folders([two_tastes(tmp_path)]).load()
    tiled, fold = Recipe(order="row", register_p=4), make_folds(corpus.nests, "family", 4, 0)[0]
    asked, seen = corpus.nests[fold.queries[0]], []

    def watching(reference: Reference, seed: int) -> object:
        seen.append([made.of(asked, {"tiled": tiled})[0] for made in (reference.queries, corpus.scheduled)])
        return {"watching": lambda query, pool: PolicyProposal(pool)}

    monkeypatch.setattr(rankers, "make_policy", lambda *_: watching)
    for device in ("cpu/x86_64/avx2", corpus.device):
        replay(corpus, replace(corpus, device=device), ReplayTask("watching", fold, 0, 0))
    (narrow, wide), (same, as_learned) = seen
    assert asked.nest is not None and narrow is not None and wide is not None
    (expected,) = scheduled_programs(asked.nest, asked.graph, [tiled], vectors=VectorUnit(32, 16))
    assert expected is not None
    np.testing.assert_array_equal(narrow.node_costs, expected.node_costs)
    assert not np.array_equal(narrow.node_costs, wide.node_costs)
    assert same is as_learned
