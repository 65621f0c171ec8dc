from __future__ import annotations

import numpy as np
import pytest

from gnnperf.training import oracle_regret, random_regret, transfer_regret, transfer_regrets

NAN = np.nan
REGRET = np.array([[0.3, 0.1, 0.0], [NAN, 0.5, 0.2], [NAN, NAN, NAN]], dtype=np.float32)
SIMILARITY = np.array([[0.9, 0.5, 0.1], [1.0, 0.9, 0.8], [1.0, 0.0, 0.0]], dtype=np.float32)


def test_the_best_of_the_nearest_k_counts_and_unmeasured_pairs_are_passed_over() -> None:
    np.testing.assert_allclose(transfer_regrets(SIMILARITY, REGRET, 1), [0.3, 0.5])
    np.testing.assert_allclose(transfer_regrets(SIMILARITY, REGRET, 2), [0.1, 0.2])
    np.testing.assert_allclose(transfer_regrets(SIMILARITY, REGRET, 9), [0.0, 0.2])
    assert transfer_regret(SIMILARITY, REGRET, 1) == pytest.approx(0.4)


def test_random_and_oracle_frame_what_can_be_reached() -> None:
    assert oracle_regret(REGRET) == pytest.approx((0.0 + 0.2) / 2)
    assert random_regret(REGRET) == pytest.approx(((0.3 + 0.1) / 3 + 0.35) / 2)


def test_nothing_to_replay_is_nan_without_a_warning() -> None:
    nothing = np.full((2, 2), NAN, dtype=np.float32)
    for value in (
        transfer_regret(nothing, nothing, 1),
        random_regret(nothing),
        oracle_regret(nothing),
        transfer_regret(nothing[:, :0], nothing[:, :0], 3),
    ):
        assert np.isnan(value)
