"""The third judge: boosted trees on the numbers of a program as a whole.

Trees find thresholds (registers that suffice, vectors that do not fit) which the networks smooth over, and
err elsewhere: together they rank better than any alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int32
from torch import Tensor

from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers

_COLUMN = {name: column for column, name in enumerate(NUMBERS)}
_COSTS = [
    column
    for name, column in _COLUMN.items()
    if name.endswith("_of_thread")
    or (name.startswith("traffic") and not name.endswith("per_instance"))
    or name in ("instances", "launches", "footprint_lines")
]
"""Logarithms of what adds up over statements."""
_SHAPE = _COLUMN["traffic_2k"]
"""Columns before it describe how a statement runs."""
_FLOPS = _COLUMN["graph_0"]
PROGRAM_NUMBERS = len(NUMBERS) + 2 * _SHAPE + 2 * len(_COSTS) + 1
"""Columns of `program_numbers`."""
GRADES = 31
"""Grades of throughput that are told apart."""


def program_numbers(numbers: StatementNumbers, graphs: int) -> Float32[np.ndarray, "n p"]:
    """Numbers of n programs: those of the statement with most of the operations; how the one with most
    instructions runs; largest values; costs added up, also per operation; how many statements there are."""
    rows, owner = numbers.rows.numpy(), numbers.graph.numpy()
    instructions = rows[:, _COLUMN["instructions_of_thread"]]
    starts = np.searchsorted(owner, np.arange(graphs))
    main = rows[np.lexsort((-instructions, -rows[:, _COLUMN["share_of_flops"]], owner))[starts]]
    busiest = rows[np.lexsort((-instructions, owner))[starts]]
    costs = np.log2(np.add.reduceat(np.exp2(rows[:, _COSTS].astype(np.float64)), starts))
    columns = (
        main,
        busiest[:, :_SHAPE],
        np.maximum.reduceat(rows[:, :_SHAPE], starts),
        costs,
        costs - main[:, [_FLOPS]],
        np.bincount(owner, minlength=graphs)[:, None],
    )
    return np.concatenate(columns, axis=1).astype(np.float32)


@dataclass(frozen=True)
class TreeJudge:
    """Gradient-boosted trees on `program_numbers`: t trees of up to n nodes, the root first, children after
    their parent.

    children: below a node, where its number is less than the threshold and where not; a leaf has itself
    twice. features: the number that a node looks at. values: its threshold, or, of a leaf, what is added to
    the score, in nats.
    """

    children: Int32[np.ndarray, "t n 2"]
    features: Int32[np.ndarray, "t n"]
    values: Float32[np.ndarray, "t n"]

    def __post_init__(self) -> None:
        trees, nodes = self.values.shape
        if self.children.shape != (trees, nodes, 2) or self.features.shape != (trees, nodes) or not nodes:
            raise ValueError(f"trees: got {nodes} thresholds a tree, and other numbers of nodes")
        steps = self.children - np.arange(nodes)[None, :, None]
        if not (((steps > 0).all(-1) | (steps == 0).all(-1)).all() and (self.children < nodes).all()):
            raise ValueError("trees: got a node whose children are not two nodes after it")
        if not ((self.features >= 0) & (self.features < PROGRAM_NUMBERS)).all():
            raise ValueError(f"trees: expected features from 0 to {PROGRAM_NUMBERS - 1}")
        if not np.isfinite(self.values).all():
            raise ValueError("trees: got a threshold or score that is not finite")

    @staticmethod
    def fit(
        programs: Sequence[Float32[np.ndarray, "n p"]],
        log_throughput: Sequence[Float32[np.ndarray, " n"]],
        rounds: int,
        seed: int,
    ) -> TreeJudge:
        """Learn to rank the n schedules of each workload by LambdaMART's pairwise loss.

        Args:
            programs: by workload, numbers of its schedules.
            log_throughput: of them, ln(best runtime / runtime), at most 0.
            rounds: trees.
        """
        import xgboost

        parameters = {
            "objective": "rank:pairwise", "tree_method": "hist", "max_depth": 6, "eta": 0.05,
            "subsample": 0.8, "colsample_bytree": 0.3, "min_child_weight": 3, "reg_lambda": 2.0, "nthread": 1,
            "seed": seed,
        }  # fmt: skip
        grades = np.concatenate([np.round(GRADES * np.exp(truth)) for truth in log_throughput])
        queries = np.repeat(np.arange(len(programs)), [len(rows) for rows in programs])
        data = xgboost.DMatrix(np.concatenate(programs), grades, qid=queries)
        booster = xgboost.train(parameters, data, rounds)
        ends = np.cumsum([len(rows) for rows in programs])[:-1]
        scores = [part - part.mean() for part in np.split(booster.predict(data), ends)]
        truths = [truth - truth.mean() for truth in log_throughput]
        above = sum(float(score @ truth) for score, truth in zip(scores, truths, strict=True))
        below = sum(float(score @ score) for score in scores)
        return TreeJudge.of_booster(booster, above / below if below else 1.0)

    @staticmethod
    def of_booster(booster: Any, scale: float) -> TreeJudge:
        """The trees of an XGBoost model, whose scores, times `scale`, are in nats; without its directions for
        numbers that are missing, which none is."""
        model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
        trees = model["trees"]
        shape = len(trees), max(len(tree["left_children"]) for tree in trees)
        children = np.broadcast_to(np.arange(shape[1], dtype=np.int32)[:, None], (*shape, 2)).copy()
        features, values = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        for number, tree in enumerate(trees):
            below = np.array([tree["left_children"], tree["right_children"]]).T
            size, leaf = len(below), below[:, 0] < 0
            children[number, :size][~leaf] = below[~leaf]
            features[number, :size] = np.where(leaf, 0, tree["split_indices"])
            values[number, :size] = np.array(tree["split_conditions"]) * np.where(leaf, scale, 1.0)
        return TreeJudge(children, features, values)

    def score(self, programs: Float32[np.ndarray, "n p"]) -> Float32[np.ndarray, " n"]:
        """ln(1 / runtime) of n programs, up to a constant of the workload."""
        trees = np.arange(len(self.values))[None, :]
        at = np.zeros((len(programs), len(self.values)), np.int32)
        rows = np.arange(len(programs))[:, None]
        while True:
            right = programs[rows, self.features[trees, at]] >= self.values[trees, at]
            below = self.children[trees, at, right.astype(np.int8)]
            if (below == at).all():
                break
            at = below
        scores: Float32[np.ndarray, " n"] = self.values[trees, at].sum(1, dtype=np.float32)
        return scores

    def state(self) -> dict[str, Tensor]:
        """As tensors, for a checkpoint."""
        return {name: torch.from_numpy(value) for name, value in vars(self).items()}

    @staticmethod
    def of_state(state: Mapping[str, Tensor]) -> TreeJudge:
        """What `state` gave. ValueError where it is not that."""
        expected = {"children": torch.int32, "features": torch.int32, "values": torch.float32}
        if {name: tensor.dtype for name, tensor in state.items()} != expected:
            raise ValueError(f"trees: got {', '.join(state)}; expected {', '.join(expected)}")
        return TreeJudge(**{name: tensor.numpy() for name, tensor in state.items()})
