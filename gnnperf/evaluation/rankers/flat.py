"""Flat features of a program graph, and retrieval by their distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.kernel_regression import KernelRegression, choose_bandwidth
from gnnperf.evaluation.rankers.policy import Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.graph import NODE_KINDS, ProgramGraph, encode
from gnnperf.nn import ScheduledProgram, collate_programs
from gnnperf.nn.graph_net import CostInput
from gnnperf.nn.pooling import pool_costs
from gnnperf.training import CorpusNest

ABSENT = -100.0
"""Stands for a fact that is absent: below every other, so that trees tell it apart."""


def flat_features(nests: Sequence[CorpusNest]) -> NDArray[np.float32]:
    """What graphs say without their edges: f32[nests, features].

    The graph-level values, and per kind of node the number of nodes, and the mean and the maximum of each
    node feature, all encoded as for the network (logarithms, one-hot categories); 0 where a kind is absent.
    """
    return np.stack([_row(nest.graph) for nest in nests])


def _row(graph: ProgramGraph) -> NDArray[np.float32]:
    encoded = encode(graph)
    parts = [encoded.graph_features]
    for kind in range(len(NODE_KINDS)):
        rows = encoded.node_features[encoded.node_kind == kind]
        parts.append(np.array([len(rows)], dtype=np.float32))
        if not len(rows):
            rows = np.zeros((1, encoded.node_features.shape[1]), dtype=np.float32)
        parts += [rows.mean(0), rows.max(0)]
    return np.concatenate(parts)


def flat_programs(programs: Sequence[ScheduledProgram]) -> Float[NDArray, "b f"]:
    """What b scheduled programs, at least one, say without their edges: pooled costs, facts about the
    schedules, and the values of their graphs."""
    graphs, node_costs, facts = collate_programs(programs)
    carried = CostInput().carried.index_select(0, graphs.node_kind)
    pooled = pool_costs(node_costs, carried, graphs.batch, len(programs))
    return torch.cat([pooled, facts.nan_to_num(ABSENT), graphs.graph_features], 1).numpy()


class Standardised:
    """Flat features in deviations from their mean over some nests; those that never vary are left out."""

    def __init__(self, nests: Sequence[CorpusNest]) -> None:
        rows = flat_features(nests)
        self.mean, self.deviation = rows.mean(0), rows.std(0)
        self.kept = self.deviation > 1e-6

    def __call__(self, nests: Sequence[CorpusNest]) -> NDArray[np.float32]:
        """b nests -> f32[b, features]."""
        return ((flat_features(nests) - self.mean) / self.deviation.clip(1e-6))[:, self.kept]


class Flat:
    """Nearest by standardised flat features."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        locate = Standardised(reference.nests)
        points = locate(reference.nests)
        bandwidth = choose_bandwidth(reference, points)
        return {"flat features": KernelRegression(reference, points, locate, bandwidth)}
