"""`tensor-programs`: the judges of scheduled tensor programs, whose scores are averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import EncodedGraph, GraphBatch, ProgramGraph, collate, encode, schema_digest
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn.checkpoint import UNKNOWN, Contents, ModelProvenance
from gnnperf.nn.graph_net import NETWORK
from gnnperf.nn.head import TIMED
from gnnperf.nn.threads import one_thread
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.numbers import NUMBERS, BatchNumbers, StatementNumbers, batch_numbers
from gnnperf.nn.traces.trees import TreeJudge, program_numbers

TREES = "trees"
"""Name of their tensors in a checkpoint."""
PIECE = 256
"""Graphs scored at a time: what fits into caches."""
JUDGES = ("network", "statements", "trees")
"""A network over the graph, a perceptron on the numbers of statements, and trees."""
WEIGHTS = (3.0, 1.0, 1.0)
"""Of the judges in the score: chosen on kinds and workloads that were held out of those to learn from."""
FEATURES = 2 * len(NUMBERS)
"""Width of what describes a graph beside its score."""


class Described(NamedTuple):
    """scores: f32[n], as `TensorBundle.score` gives them: the judgements' means, by WEIGHTS. judgements:
    f32[j, n], in the order of `TensorBundle.judges`. features: f32[n, f], means and maxima over the
    statements of each graph of their standardised numbers (`gnnperf.nn.traces.numbers`)."""

    scores: Float32[np.ndarray, " n"]
    judgements: Float32[np.ndarray, "j n"]
    features: Float32[np.ndarray, "n f"]


@dataclass(frozen=True)
class TensorBundle:
    """models: at least one; of each judge the mean over them counts. trees: the third judge. vectors: of the
    machine that runs what is scored."""

    MODEL: ClassVar = "tensor-programs"

    models: Sequence[CostModel]
    trees: TreeJudge | None = None
    provenance: ModelProvenance = UNKNOWN
    vectors: VectorUnit = AVX512

    def score(self, graphs: Sequence[ProgramGraph]) -> Float32[np.ndarray, " n"]:
        """Score n scheduled graphs, of one workload: the highest first is the order to try them in.

        A difference is one of ln(1 / runtime). Scores of different workloads do not compare.
        """
        return self.score_encoded([encode(graph) for graph in graphs])

    def score_encoded(self, graphs: Sequence[EncodedGraph]) -> Float32[np.ndarray, " n"]:
        """`score` of graphs that are encoded already."""
        return self.describe(graphs, features=False).scores

    def describe(self, graphs: Sequence[EncodedGraph], features: bool = True) -> Described:
        """Scores, what each judge says, and the numbers that tell which graphs are alike; without features
        none of these."""
        judged = [np.zeros((len(self.judges), 0), np.float32)]
        described = [np.zeros((0, FEATURES), np.float32)]
        with torch.inference_mode(), one_thread():
            for batch, numbers in self._pieces(graphs):
                judged.append(self._judge(batch, numbers))
                if features:
                    described.append(self._pooled(numbers.statements, len(batch.graph_features)).numpy())
        judgements = np.concatenate(judged, axis=1)
        weights = np.array(WEIGHTS[: len(judgements)], np.float32)
        return Described(weights @ judgements / weights.sum(), judgements, np.concatenate(described))

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of the judges."""
        return JUDGES if self.trees is not None else JUDGES[:-1]

    def _pieces(self, graphs: Sequence[EncodedGraph]) -> Iterator[tuple[GraphBatch, BatchNumbers]]:
        for at in range(0, len(graphs), PIECE):
            batch = collate(graphs[at : at + PIECE])
            yield batch, batch_numbers(batch, self.models[0].config.threads, self.vectors)

    def _judge(self, batch: GraphBatch, numbers: BatchNumbers) -> Float32[np.ndarray, "j n"]:
        judged = torch.stack([model(batch, *numbers) for model in self.models]).mean(0).numpy()
        if self.trees is None:
            return judged
        by_trees = self.trees.score(program_numbers(numbers.statements, judged.shape[1]))
        return np.concatenate([judged, by_trees[None]])

    def _pooled(self, numbers: StatementNumbers, graphs: int) -> Tensor:
        rows = self.models[0].by_statements.scale(numbers.rows)
        owner, empty = numbers.graph[:, None].expand_as(rows), rows.new_zeros(graphs, rows.shape[1])
        return torch.cat(
            [empty.scatter_reduce(0, owner, rows, how, include_self=False) for how in ("mean", "amax")], dim=1
        )

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """Layers of the network, fields of graphs and costs, kinds of nodes that take time, the numbers of
        statements, and how trees are kept."""
        return {
            "network": NETWORK,
            "schema_digest": schema_digest(),
            "cost_fields": [field.name for field in COST_FIELDS],
            "timed_nodes": list(TIMED),
            "numbers": NUMBERS,
            "trees": "tensors",
        }

    def contents(self) -> Contents:
        """For `save_checkpoint`."""
        networks = {str(number): model.state_dict() for number, model in enumerate(self.models)}
        if self.trees is not None:
            networks[TREES] = self.trees.state()
        return Contents(
            networks, {"models": [asdict(model.config) for model in self.models]}, self.provenance
        )

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """For `load_checkpoint`."""
        configs = [CostModelConfig(**config) for config in contents.hyperparameters["models"]]
        models = [contents.restore(str(n), CostModel(config, lean=True)) for n, config in enumerate(configs)]
        trees = TreeJudge.of_state(contents.networks[TREES]) if TREES in contents.networks else None
        return cls(models, trees, contents.provenance)
