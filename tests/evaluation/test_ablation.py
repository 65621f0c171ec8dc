"""What parts of the ranking are worth, on answers that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation.worlds import two_tastes

from gnnperf.evaluation.ablation import WITHOUT, compare
from gnnperf.evaluation.replay import Answer, Folders
from gnnperf.evaluation.transfer import KS, OURS
from gnnperf.training.regret import Relative


def test_shares_of_ours_are_paired_by_family(tmp_path: Path) -> None:
    corpus = Folders(two_tastes(tmp_path)).load()
    families = sorted({nest.family for nest in corpus.nests})

    def reached(row: str, nest: int) -> float:
        """In shares of the baseline's runtime; half of the families are twice as hard for all."""
        hard = 2.0 if families.index(corpus.nests[nest].family) % 2 else 1.0
        return 0.25 * hard * (1.0 if row == OURS else 1.25)

    answers = [
        Answer(row, nest, 0, seed, (Relative(share, share, share),), True)
        for row in WITHOUT
        for nest in range(len(corpus.nests))
        for seed in (0, 1)
        if (share := reached(row, nest))
    ]
    rows = list(compare(corpus, answers))
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
