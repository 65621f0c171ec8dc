"""Flat features of a program graph, and retrieval by their distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.policy import PolicyProposal, Rankers
from gnnperf.evaluation.rankers.simple import UNKNOWN
from gnnperf.evaluation.reference import Reference
from gnnperf.graph import NODE_KINDS, ProgramGraph, encode
from gnnperf.nn import ScheduledProgram, collate_programs
from gnnperf.nn.graph_net import CostInput
from gnnperf.nn.pooling import pool_costs
from gnnperf.training import Corpus, CorpusNest

BANDWIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Tried on the validation nests; in units of the median distance between reference nests."""
TRIALS = 3
"""Candidates whose best the bandwidth is chosen by."""
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


def nearest(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """Nearest by standardised flat features: schedules by their mean ln efficiency on the reference nests,
    weighted by exp(-distance / bandwidth) (Nadaraya-Watson). Distances are Euclidean."""
    locate = Standardised(reference.nests)
    points = locate(reference.nests)
    bandwidth = choose_bandwidth(reference, points)
    schedules = reference.schedules
    log_efficiency = np.nan_to_num(reference.log_efficiency, nan=UNKNOWN)

    def rank(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        distances = np.linalg.norm(points - locate([query])[0], axis=1)
        order = _order(distances, log_efficiency, bandwidth)
        return PolicyProposal([schedules[s] for s in order])

    return {"flat features": rank}


def choose_bandwidth(reference: Reference, points: NDArray[np.float32]) -> float:
    """The bandwidth with which the training nests serve the validation nests best: highest mean over these
    of the ln efficiency of the best of `TRIALS`."""
    train, validation = range(reference.train), reference.validation
    known = np.nan_to_num(reference.log_efficiency[: reference.train], nan=UNKNOWN)
    distances = np.linalg.norm(points[validation][:, None] - points[train][None], axis=2)
    unit = float(np.median(distances))

    def reached(bandwidth: float) -> float:
        best = []
        for row, measured, baseline in zip(
            distances,
            reference.log_efficiency[validation],
            reference.log_baseline[validation],
            strict=True,
        ):
            order = _order(row, known, bandwidth)
            tried = measured[order]
            best.append(max(baseline, *tried[~np.isnan(tried)][:TRIALS]))
        return float(np.mean(best))

    return max((unit * share for share in BANDWIDTHS), key=reached)


def _order(
    distances: NDArray[np.float32], log_efficiency: NDArray[np.float32], bandwidth: float
) -> NDArray[np.int64]:
    weights = np.exp(-(distances - distances.min()) / max(bandwidth, 1e-12))
    return np.argsort(-(weights @ log_efficiency), kind="stable")
