"""The third judge: boosted trees on the numbers of a program as a whole.

Trees find thresholds (registers that suffice, vectors that do not fit) which the networks smooth over, and
err elsewhere: together they rank better than any alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

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
    """booster: an XGBoost ranker on `program_numbers`. scale: its scores, times this, are in nats."""

    booster: Any
    scale: float

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
        return TreeJudge(booster, above / below if below else 1.0)

    def score(self, programs: Float32[np.ndarray, "n p"]) -> Float32[np.ndarray, " n"]:
        """ln(1 / runtime) of n programs, up to a constant of the workload."""
        import xgboost

        scores: Float32[np.ndarray, " n"] = self.booster.predict(xgboost.DMatrix(programs, nthread=1))
        return scores * np.float32(self.scale)

    def to_bytes(self) -> bytes:
        """The booster as UBJSON, with the scale as an attribute of it."""
        self.booster.set_attr(scale=repr(self.scale))
        return bytes(self.booster.save_raw("ubj"))

    @staticmethod
    def from_bytes(data: bytes) -> TreeJudge:
        """What `to_bytes` gave. Raises ValueError where it is not that."""
        import xgboost

        booster = xgboost.Booster({"nthread": 1})
        try:
            booster.load_model(bytearray(data))
            return TreeJudge(booster, float(booster.attr("scale") or "nan"))
        except xgboost.core.XGBoostError as error:
            raise ValueError(f"not boosted trees: {str(error).splitlines()[-1]}") from error
