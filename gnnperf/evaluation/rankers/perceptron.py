"""The same without the network: a perceptron on the same numbers, and neighbours by flat features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch

from gnnperf.evaluation.rankers.constant import promising
from gnnperf.evaluation.rankers.flat import Standardised
from gnnperf.evaluation.rankers.kernel_regression import choose_bandwidth
from gnnperf.evaluation.rankers.learned import RetrievalRanker
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.nn import ScheduledProgram, ScheduleHead, collate_programs
from gnnperf.retrieval.ranking import BANDWIDTH, LOOKED_AT
from gnnperf.training import CorpusNest, RetrievalModule, fit_all
from gnnperf.training.refit import QUICK


class NumbersModule(RetrievalModule):
    """Trains the head's judge of numbers and nothing else."""

    def __init__(self) -> None:
        super().__init__(contrastive_weight=0.0, correlation_weight=0.0, frozen_encoder=True)

    def judgements(self, trials: Batch) -> Tensor:
        return self.head.by_numbers(trials.node_kind, trials.node_costs, trials.batch, trials.facts)[None]


class Perceptron:
    """One training, two rows. "perceptron": its scores alone. "without network": in the place of the head,
    with the neighbours that flat features find in the place of the embedding's."""

    def __init__(self, quick: bool = False) -> None:
        self.given = QUICK if quick else {}

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        module, _ = fit_all(reference.corpus, seed, module=NumbersModule, **self.given)
        head = module.head
        locate = Standardised(reference.nests)
        points = locate(reference.nests)
        unit = choose_bandwidth(reference, points) / BANDWIDTH

        def distances(query: CorpusNest) -> Float[NDArray, " r"]:
            return np.linalg.norm(points - locate([query])[0], axis=1) / unit

        def score(programs: Sequence[ScheduledProgram]) -> Float[NDArray, " b"]:
            return score_numbers(head, programs)

        def order(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
            shown = promising(reference, pool, LOOKED_AT)
            recipes = {schedule: reference.recipes[schedule] for schedule in shown}
            programs = reference.queries.of(query, recipes)
            fits = [s for s, program in zip(shown, programs, strict=True) if program is not None]
            scores = score([program for program in programs if program is not None])
            return PolicyProposal([fits[at] for at in np.argsort(-scores, kind="stable")])

        return {"perceptron": order, "without network": RetrievalRanker(reference, distances, score)}


def score_numbers(head: ScheduleHead, programs: Sequence[ScheduledProgram]) -> Float[NDArray, " b"]:
    """What the judge of numbers says of b scheduled programs."""
    if not programs:
        return np.zeros(0, np.float32)
    graphs, node_costs, facts = collate_programs(programs)
    with torch.inference_mode():
        return head.by_numbers(graphs.node_kind, node_costs, graphs.batch, facts).numpy()
