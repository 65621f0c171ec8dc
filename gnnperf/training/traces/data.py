"""Schedules of a corpus as a cost model learns from them: graphs, numbers, and how fast each ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusTask
from gnnperf.devices import AVX512, VectorUnit, vectors_of
from gnnperf.graph import EncodedGraph, GraphBatch, collate
from gnnperf.nn.traces.numbers import StatementNumbers, batch_numbers
from gnnperf.training.traces.features import STORE_FEATURES, ScheduleFeatures

FAILED = 1.0
"""A failed schedule is learned as this many nats slower than the slowest that ran."""
_PIECE = 512


@dataclass(frozen=True)
class SchedulePool:
    """The schedules of one workload that have features, n of them.

    runtime_s, interval_s: f64[n], f64[n, 2]; NaN where it failed. log_throughput: f32[n, 3],
    ln(best runtime / runtime) and the ends of its interval. vectors: of the machine that
    they were measured on.
    """

    workload: CorpusTask
    graphs: tuple[EncodedGraph, ...]
    stores: tuple[Float32[np.ndarray, "rows 164"], ...]
    runtime_s: np.ndarray
    interval_s: np.ndarray
    vectors: VectorUnit = AVX512

    @property
    def log_throughput(self) -> Float32[np.ndarray, "n 3"]:
        best = np.nanmin(self.runtime_s)
        slowest = np.nanmax(self.runtime_s) * np.exp(FAILED)
        known = np.stack([self.runtime_s, self.interval_s[:, 1], self.interval_s[:, 0]], 1)
        return np.log(best / np.where(np.isnan(known), slowest, known)).astype(np.float32)

    @cached_property
    def ran(self) -> np.ndarray:
        """Positions of the schedules that ran."""
        return np.flatnonzero(~np.isnan(self.runtime_s))


def pools_of(corpus: MeasuredTasks, features: Sequence[Sequence[ScheduleFeatures]]) -> list[SchedulePool]:
    """Workloads with at least two schedules that ran. Schedules whose trace could not be replayed, or that
    have no graph, are left out."""
    pools = []
    for workload, found in zip(corpus.tasks.values(), features, strict=True):
        kept = [
            (record, f.graph, f.stores)
            for record, f in zip(corpus.records[workload.task].values(), found, strict=True)
            if f.graph is not None and f.stores is not None
        ]
        runtimes = np.array([r.runtime_s if r.runtime_s else np.nan for r, _, _ in kept])
        intervals = np.array([r.interval_s or (np.nan, np.nan) for r, _, _ in kept]).reshape(-1, 2)
        pool = SchedulePool(
            workload,
            tuple(g for _, g, _ in kept),
            tuple(s if len(s) else np.zeros((1, STORE_FEATURES), np.float32) for _, _, s in kept),
            runtimes,
            intervals,
            vectors_of(corpus.device),
        )
        if len(pool.ran) > 1:
            pools.append(pool)
    return pools


class RankingData:
    """Pools laid out for training: `batch` gives any groups of schedules of them.

    Args:
        pools: of the workloads to learn from, all measured on one machine.
        threads: that they were measured on.
    """

    def __init__(self, pools: Sequence[SchedulePool], threads: int) -> None:
        self.graphs = [graph for pool in pools for graph in pool.graphs]
        self.truth = torch.from_numpy(np.concatenate([pool.log_throughput for pool in pools]))
        ends = np.cumsum([0, *(len(pool.graphs) for pool in pools)])
        self.members = [np.arange(a, b) for a, b in pairwise(ends)]
        rows, counts = [], []
        self.costs: list[np.ndarray] = []
        for at in range(0, len(self.graphs), _PIECE):
            piece = self.graphs[at : at + _PIECE]
            batch = collate(piece)
            node_costs, numbers = batch_numbers(batch, threads, pools[0].vectors)
            self.costs += np.split(node_costs.numpy(), batch.ptr[1:-1].numpy())
            rows.append(numbers.rows)
            counts.append(torch.bincount(numbers.graph, minlength=len(piece)))
        self.rows = torch.cat(rows)
        self.counts = torch.cat(counts)
        self.starts = self.counts.cumsum(0) - self.counts

    def groups(self, size: int, rng: np.random.Generator) -> list[np.ndarray]:
        """All schedules in groups of one workload each, of at most `size`, in random order."""
        found = []
        for members in self.members:
            shuffled = rng.permutation(members)
            found += np.array_split(shuffled, -(-len(shuffled) // size))
        return [found[i] for i in rng.permutation(len(found))]

    def graph_batch(self, groups: Sequence[np.ndarray]) -> GraphBatch:
        """The graphs of some groups, one after the other."""
        return collate([self.graphs[i] for group in groups for i in group])

    def node_costs(self, groups: Sequence[np.ndarray]) -> Tensor:
        """What their nodes cost, f32[n, C]."""
        return torch.from_numpy(np.concatenate([self.costs[i] for group in groups for i in group]))

    def numbers(self, groups: Sequence[np.ndarray]) -> StatementNumbers:
        """The numbers of their statements."""
        chosen = torch.from_numpy(np.concatenate(groups))
        counts = self.counts[chosen]
        graph = torch.repeat_interleave(torch.arange(len(chosen)), counts)
        within = torch.arange(len(graph)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        return StatementNumbers(self.rows[self.starts[chosen][graph] + within], graph)

    def padded(self, groups: Sequence[np.ndarray]) -> Tensor:
        """What the groups reached: f32[w, m, 3], ln throughput and the ends of its interval; NaN beyond a
        group's end."""
        result = torch.full((len(groups), max(map(len, groups)), 3), float("nan"))
        for row, group in zip(result, groups, strict=True):
            row[: len(group)] = self.truth[torch.from_numpy(group)]
        return result


def padded_scores(scores: Tensor, groups: Sequence[np.ndarray]) -> Tensor:
    """f32[n] of groups one after the other -> f32[w, m], 0 beyond a group's end."""
    parts = [*torch.split(scores, [len(group) for group in groups])]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
