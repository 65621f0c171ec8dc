"""The released cost model of tensor programs: a folder with `weights.pt`, `trees.ubj` and `metadata.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

import gnnperf
from gnnperf.errors import InputError
from gnnperf.graph import EncodedGraph, GraphBatch, ProgramGraph, collate, encode, schema_digest
from gnnperf.nn.threads import one_thread
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers, statement_numbers
from gnnperf.nn.traces.trees import TreeJudge, program_numbers

VERSION = 2
WEIGHTS, TREES, METADATA = "weights.pt", "trees.ubj", "metadata.json"
PIECE = 256
"""Graphs scored at a time: what fits into caches."""
JUDGES = ("graph", "statements", "trees")
FEATURES = 2 * len(NUMBERS)
"""Width of what describes a graph beside its score."""


class Described(NamedTuple):
    """scores: f32[n], as `TensorBundle.score` gives them, the means of the judgements. judgements: f32[j, n],
    in the order of `TensorBundle.judges`. features: f32[n, f], means and maxima over the statements of each
    graph of their standardised numbers (`gnnperf.nn.traces.numbers`)."""

    scores: Float32[np.ndarray, " n"]
    judgements: Float32[np.ndarray, "j n"]
    features: Float32[np.ndarray, "n f"]


@dataclass(frozen=True)
class TensorBundle:
    """models, trees: all their judges' scores are averaged. corpus: what they were trained on. figures: on
    held-out workloads, of the same training without them."""

    models: Sequence[CostModel]
    corpus: Mapping[str, Any]
    figures: Mapping[str, float]
    trees: TreeJudge | None = None

    def score(self, graphs: Sequence[ProgramGraph]) -> Float32[np.ndarray, " n"]:
        """Score n scheduled graphs, of one workload: the highest first is the order to try them in.

        A difference is one of ln(1 / runtime). Scores of different workloads do not compare.
        """
        return self.score_encoded([encode(graph) for graph in graphs])

    def score_encoded(self, graphs: Sequence[EncodedGraph]) -> Float32[np.ndarray, " n"]:
        """The same of graphs that are encoded already."""
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
                    described.append(self._pooled(numbers, len(batch.graph_features)).numpy())
        judgements = np.concatenate(judged, axis=1)
        return Described(judgements.mean(0), judgements, np.concatenate(described))

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of the judges."""
        return JUDGES if self.trees is not None else JUDGES[:-1]

    def _pieces(self, graphs: Sequence[EncodedGraph]) -> Iterator[tuple[GraphBatch, StatementNumbers]]:
        for at in range(0, len(graphs), PIECE):
            batch = collate(graphs[at : at + PIECE])
            yield batch, statement_numbers(batch, self.models[0].config.threads)

    def _judge(self, batch: GraphBatch, numbers: StatementNumbers) -> Float32[np.ndarray, "j n"]:
        judged = torch.stack([model.judgements(batch, numbers) for model in self.models]).mean(0).numpy()
        if self.trees is None:
            return judged
        by_trees = self.trees.score(program_numbers(numbers, judged.shape[1]))
        return np.concatenate([judged, by_trees[None]])

    def _pooled(self, numbers: StatementNumbers, graphs: int) -> Tensor:
        rows = self.models[0].by_statements.scale(numbers.rows)
        owner, empty = numbers.graph[:, None].expand_as(rows), rows.new_zeros(graphs, rows.shape[1])
        return torch.cat(
            [empty.scatter_reduce(0, owner, rows, how, include_self=False) for how in ("mean", "amax")], dim=1
        )


def save_tensor_bundle(folder: Path, bundle: TensorBundle) -> None:
    """Write a bundle. Raises InputError where the folder cannot be written."""
    metadata = {
        "version": VERSION,
        "schema_digest": schema_digest(),
        "numbers": NUMBERS,
        "models": [asdict(model.config) for model in bundle.models],
        "trees": bundle.trees is not None,
        "corpus": dict(bundle.corpus),
        "figures": dict(bundle.figures),
        "versions": {"gnnperf": gnnperf.__version__, "torch": torch.__version__},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save([model.state_dict() for model in bundle.models], folder / WEIGHTS)
        if bundle.trees is not None:
            (folder / TREES).write_bytes(bundle.trees.to_bytes())
        (folder / METADATA).write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}; choose another folder") from error


def load_tensor_bundle(folder: Path) -> TensorBundle:
    """Read a bundle. Raises InputError: not one, damaged, or made for other graphs (got / expected)."""
    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        states = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
    except Exception as error:  # torch.load raises a dozen types for a damaged file
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"expected a cost model of tensor programs in {folder}: {reason}") from error
    for what, expected in (
        ("version", VERSION), ("schema_digest", schema_digest()), ("numbers", list(NUMBERS)),
    ):  # fmt: skip
        if (got := metadata.get(what)) != expected:
            raise InputError(
                f"{folder}: {what}: got {_short(got)}, expected {_short(expected)}; "
                "train it anew with scripts/train_tensor.py"
            )
    try:
        models = []
        for config, state in zip(metadata["models"], states, strict=True):
            model = CostModel(CostModelConfig(**config))
            model.load_state_dict(state)
            models.append(model.eval())
        trees = TreeJudge.from_bytes((folder / TREES).read_bytes()) if metadata["trees"] else None
        return TensorBundle(models, metadata["corpus"], metadata["figures"], trees)
    except (InputError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"damaged {folder}: {reason}; restore or train it anew") from error


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
