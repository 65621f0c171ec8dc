"""Nearest in the space of an encoder that was trained by regression: what came before this project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.kernel_regression import KernelRegression, choose_bandwidth
from gnnperf.evaluation.rankers.policy import Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.graph import collate, encode
from gnnperf.training import CorpusNest
from gnnperf.training.regression import fit_regression


class Regression:
    """The encoder of `gnnperf.training.regression`, with the same retrieval as the other baselines."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        nests = reference.nests
        encoder = fit_regression(nests[: reference.train], nests[reference.train :], seed)

        def locate(nests: Sequence[CorpusNest]) -> NDArray[np.float32]:
            with torch.inference_mode():
                return encoder.embed(collate([encode(nest.graph) for nest in nests])).numpy()

        points = locate(nests)
        bandwidth = choose_bandwidth(reference, points)
        return {"regression encoder": KernelRegression(reference, points, locate, bandwidth)}
