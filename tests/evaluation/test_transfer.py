"""The whole replay on a corpus whose table is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluation.worlds import FAIR, GOOD, OWN, answers, two_tastes

from gnnperf.errors import InputError
from gnnperf.evaluation import transfer
from gnnperf.evaluation.ablation.table import WITHOUT
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.rankers import PARTS
from gnnperf.evaluation.replay import Folders
from gnnperf.evaluation.transfer import KS, ROWS, ReplaySettings, evaluate_transfer, tabulate
from gnnperf.training import load_corpus

CHEAP = ("random", "constant", "lookup", "flat", "oracle")


def run(folder: Path, trials: Path | None = None, **settings: Any) -> BenchmarkResult:
    folders = Folders([folder], trials=trials)
    chosen: dict[str, Any] = {"folds": 4, "policies": CHEAP, "workers": 1, **settings}
    return evaluate_transfer(folders, folders.load(), ReplaySettings(**chosen))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkResult:
    return run(two_tastes(tmp_path_factory.mktemp("corpus")))


def cells(result: BenchmarkResult, row: str, column: str, subset: str = "all") -> Mapping[int, Any]:
    """k -> value."""
    return {r["k"]: r[column] for r in result.rows if (r["policy"], r["subset"]) == (row, subset)}


def test_the_oracle_is_always_best(result: BenchmarkResult) -> None:
    assert cells(result, "oracle", "efficiency") == dict.fromkeys(KS, pytest.approx(1.0, abs=1e-3))
    assert cells(result, "oracle", "within_5pct") == dict.fromkeys(KS, 1.0)


def test_random_is_the_expectation_over_orders(result: BenchmarkResult) -> None:
    """Of three trials, one is best, one half as fast, one fails: the baseline, a quarter as fast, is kept."""
    expected = {1: (1 * 0.5 * 0.25) ** (1 / 3), 3: 1.0, 5: 1.0, 10: 1.0}
    assert cells(result, "random", "efficiency") == pytest.approx(expected, abs=1e-3)
    assert cells(result, "random", "within_5pct") == pytest.approx({1: 1 / 3, 3: 1.0, 5: 1.0, 10: 1.0})


def test_a_single_schedule_is_all_there_is_of_it(result: BenchmarkResult) -> None:
    single, order = (cells(result, row, "efficiency") for row in ("best single", "fixed order"))
    assert single == dict.fromkeys(KS, order[1])
    assert GOOD / FAIR - 1e-3 <= single[1] < order[3] == pytest.approx(1.0, abs=1e-3)


def test_lookup_finds_nothing_of_other_families_but_other_sizes(tmp_path: Path) -> None:
    corpus = two_tastes(tmp_path)
    by_family, by_size = run(corpus, policies=["lookup"]), run(corpus, policies=["lookup"], split="size")
    assert cells(by_family, "exact lookup", "efficiency") == dict.fromkeys(KS, pytest.approx(GOOD, abs=1e-3))
    assert cells(by_size, "exact lookup", "efficiency") == dict.fromkeys(KS, pytest.approx(1.0, abs=1e-3))


def test_what_only_the_query_knows_is_not_transferred_but_counts_as_best_known(tmp_path: Path) -> None:
    result = run(two_tastes(tmp_path, own=[("mutation", OWN)]), policies=["oracle"])
    assert cells(result, "oracle", "efficiency")[10] == pytest.approx(OWN / GOOD, abs=1e-3)


def test_judged_by_another_machine(tmp_path: Path) -> None:
    """Which measured half of the nests, and wants the other schedule: the first choice is half as fast, the
    second is right."""
    here, there = two_tastes(tmp_path / "a"), two_tastes(tmp_path / "b", sizes=(64,), contrary=True)
    result = run(here, there, policies=["oracle"])
    assert cells(result, "oracle", "efficiency") == pytest.approx(
        {1: GOOD / FAIR, 3: 1, 5: 1, 10: 1}, abs=1e-3
    )
    assert result.figures["nests"] == 8
    assert result.settings["judged_by"] == there


def test_trials_of_other_nests_are_refused_before_anything_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = two_tastes(tmp_path / "a"), two_tastes(tmp_path / "b", sizes=(32,))
    monkeypatch.setattr(transfer, "replay_all", lambda *_: pytest.fail("replayed"))
    with pytest.raises(InputError, match=r"--trials: expected measurements of nests of .*a, got .*b, which"):
        run(here, other)


def test_rows_of_families_and_figures(result: BenchmarkResult) -> None:
    assert result.figures == {"nests": 16, "families": 8}  # no figure without ours
    assert cells(result, "oracle", "nests", "family map_add") == dict.fromkeys(KS, 2)
    assert len({tuple(row) for row in result.rows}) == 1  # the same columns everywhere
    assert result.settings["split"] == "family"
    assert sorted(name for fold in result.settings["held_out"] for name in fold) == sorted(
        f"{world}_{operation}" for world in ("map", "reduce") for operation in ("add", "mul", "exp", "div")
    )


def test_figures_of_ours_and_its_spread_over_seeds(tmp_path: Path) -> None:
    """The best known is a quarter of the baseline: ours gets there for one seed, half way for another."""
    corpus = load_corpus(two_tastes(tmp_path))
    figures, rows = tabulate(
        corpus,
        [
            *answers(corpus, "fixed order", [FAIR] * 16),
            *answers(corpus, "ours", [GOOD] * 16, seed=3),
            *answers(corpus, "ours", [FAIR] * 16, seed=4),
        ],
    )
    of_all = {r["policy"]: r for r in rows if (r["k"], r["subset"]) == (3, "all")}
    ours, fixed = of_all["ours"], of_all["fixed order"]
    assert (ours["low"], ours["efficiency"], ours["high"]) == pytest.approx((0.5, 0.75, 1.0), abs=1e-3)
    assert (fixed["low"], fixed["efficiency"], fixed["high"]) == (None, pytest.approx(0.5, abs=1e-3), None)
    assert (ours["within_10pct"], ours["worst"]) == (0.5, pytest.approx(0.5, abs=1e-3))
    assert figures["efficiency_at_3"] == ours["efficiency"]
    assert figures["vs_fixed_order_at_3"] == pytest.approx(1.5, abs=1e-2)
    assert "vs_boosted_trees_at_3" not in figures  # was not asked for
    # All was good for the first seed, nothing for the second.
    assert (figures["confident_share"], figures["confident_within_10pct"]) == (0.5, 1.0)


def test_what_learning_the_encoder_is_worth_to_its_neighbours(tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path))
    drawn = answers(corpus, "nearest nest, untrained encoder", [FAIR] * 16)
    figures, _ = tabulate(corpus, [*answers(corpus, "nearest nest", [GOOD] * 16), *drawn])
    ratio = [figures[f"nearest_nest_vs_untrained_at_1{end}"] for end in ("", "_low", "_high")]
    assert ratio == pytest.approx([2.0, 2.0, 2.0], abs=1e-2)
    figures, _ = tabulate(corpus, drawn)
    assert figures.keys() == {"nests", "families"}


def test_precision_against_coverage(tmp_path: Path) -> None:
    """Twelve of sixteen nests are good; the curve ends with all of them."""
    corpus = load_corpus(two_tastes(tmp_path))
    _, rows = tabulate(corpus, answers(corpus, "ours", [GOOD] * 12 + [FAIR] * 4))
    curve = [(r["subset"], r["nests"], r["within_10pct"]) for r in rows if r["subset"].startswith("surest")]
    assert [(name, nests) for name, nests, _ in curve] == [
        (f"surest {tenth * 10}%", round(1.6 * tenth)) for tenth in range(1, 11)
    ]
    assert curve[9][2] == 0.75


def test_parts_are_replayed_only_when_asked_for(tmp_path: Path) -> None:
    """They are for `gnnperf eval ablation`."""
    corpus = load_corpus(two_tastes(tmp_path))
    policies = {task.policy for task in ReplaySettings(folds=3).tasks(corpus)}
    assert {"ours", "perceptron", "trees", "oracle"} <= policies
    assert not policies & set(PARTS)
    tasks = ReplaySettings(folds=3, policies=PARTS, seeds=2).tasks(corpus)
    assert len(tasks) == 3 * 3 * 2  # they learn: for each seed


def test_every_row_has_a_place_in_the_table(tmp_path: Path) -> None:
    assert {*WITHOUT, *(row for row, _ in PARTS.values())} <= set(ROWS)
    corpus = load_corpus(two_tastes(tmp_path))
    for row in ROWS:
        _, rows = tabulate(corpus, answers(corpus, row, [GOOD] * 16))
        assert {r["policy"] for r in rows} == {row}


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ours", "perceptron", "trees"])
def test_what_learns_is_trained_for_each_fold(policy: str, tmp_path: Path) -> None:
    result = run(two_tastes(tmp_path), policies=[policy], folds=3)
    for row in {r["policy"] for r in result.rows}:
        assert cells(result, row, "efficiency")[3] == pytest.approx(1.0, abs=1e-3)  # all there is
        assert cells(result, row, "efficiency")[1] >= GOOD - 1e-3
    assert result.figures["nests"] == 16
