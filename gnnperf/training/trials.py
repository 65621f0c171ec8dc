"""Trials to learn from: scheduled programs, and how fast each was measured to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from torch_geometric.data import Data

from gnnperf.graph.collation import tensors_of
from gnnperf.nn import ScheduledProgram
from gnnperf.training.corpus import Corpus


def trials_of(corpus: Corpus) -> list[list[Data]]:
    """The measured recipes of each nest of a corpus as data of torch-geometric; none where the corpus does
    not hold the nest.

    Each has the tensors of its graph (named as in `GraphBatch`), `node_costs`, f32[n, C], `facts`, f32[1, F],
    `nest`, i64[1], its position in the corpus, and `log_efficiency`, f32[1], of the best known schedule.
    """
    table = corpus.efficiency
    found = []
    for position, (nest, row) in enumerate(zip(corpus.nests, table.log_efficiency, strict=True)):
        measured = {s: r for (s, r), value in zip(table.recipes.items(), row, strict=True) if value == value}
        programs = corpus.scheduled.of(nest, measured)
        values = row[~np.isnan(row)]
        found.append(
            [
                data_of(program, position, float(value))
                for program, value in zip(programs, values, strict=True)
                if program is not None
            ]
        )
    return found


def data_of(program: ScheduledProgram, nest: int, log_efficiency: float) -> Data:
    """One trial; see `trials_of`."""
    return Data(
        **tensors_of(program.graph),
        node_costs=torch.from_numpy(program.node_costs),
        facts=torch.from_numpy(program.facts[None]),
        nest=torch.tensor([nest]),
        log_efficiency=torch.tensor([log_efficiency]),
        num_nodes=len(program.graph.node_kind),
    )


def by_nest(values: Tensor, nest: Tensor) -> Tensor:
    """Values of trials as a table with a row for each nest, NaN where one has fewer trials than others.

    values: f32[..., b]. nest: i64[b], of each trial; trials of a nest lie next to each other.
    Returns f32[..., nests, most trials of a nest].
    """
    _, row, count = torch.unique_consecutive(nest, return_inverse=True, return_counts=True)
    start = count.cumsum(0) - count
    column = torch.arange(len(nest), device=nest.device) - start[row]
    shape = (*values.shape[:-1], len(count), int(count.max()))
    table = values.new_full(shape, float("nan"))
    table[..., row, column] = values
    return table


class TrialSampler(Sampler[list[int]]):
    """Batches of trials: every nest once an epoch, some nests in a batch, some trials of each, drawn anew.

    Args:
        counts: trials of each nest; they are numbered nest by nest.
        nests: in a batch.
        trials: of a nest in a batch, at most.
        seed: of what is drawn; epochs differ.
    """

    def __init__(self, counts: Sequence[int], nests: int, trials: int, seed: int = 0) -> None:
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.several = np.flatnonzero(np.asarray(counts) > 1)  # one trial alone is neither fast nor slow
        self.nests, self.trials = nests, trials
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.several) // self.nests)

    def __iter__(self) -> Iterator[list[int]]:
        order = self.rng.permutation(self.several)
        for at in range(0, len(order), self.nests):
            batch: list[int] = []
            for nest in order[at : at + self.nests]:
                every = np.arange(self.starts[nest], self.starts[nest + 1])
                batch += self.rng.permutation(every)[: self.trials].tolist()
            yield batch
