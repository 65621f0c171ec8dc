"""Boosted trees on flat features: what the runtime head is compared with."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from gnnperf.nn.runtime import roofline_s
from gnnperf.nn.runtime.columns import Rows

ROWS = 60_000
"""Rows that the trees are fitted to, chosen at random."""


class TreePredictor:
    """Predicts ln(time / roofline) from logarithms of all sizes and of all numbers of the device."""

    def __init__(self, rows: Rows, seed: int = 0) -> None:
        chosen = np.random.default_rng(seed).permutation(len(rows))[:ROWS]
        sample = rows.take(torch.from_numpy(chosen))
        self.model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.08, random_state=seed)
        self.model.fit(self.features(sample), np.log((sample.seconds / roofline_s(sample.columns)).numpy()))

    @staticmethod
    def features(rows: Rows) -> NDArray[np.float64]:
        columns = [rows.columns[name].numpy() for name in sorted({*rows.columns} - {"variant"})]
        return np.log2(1.0 + np.stack([np.maximum(c, 0.0) for c in columns], axis=1))

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Seconds, f64[n]."""
        ratio: NDArray[np.float64] = np.exp(self.model.predict(self.features(rows)))
        return ratio * roofline_s(rows.columns).numpy()
