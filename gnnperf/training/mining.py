"""Which nests meet in a training batch, and who of several processes trains on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler


class PairBatchSampler(Sampler[list[int]]):
    """Batches in which most pairs were measured.

    The loss learns from measured pairs only, and a large corpus has measured few of all pairs: a
    batch drawn at random would hold next to none. So a batch is made of anchors, each bringing the
    partner to pull in (least regret), the one to push away (most regret), and others drawn from
    those measured with it. Every nest that has a measured partner is an anchor once per epoch. A
    corpus that fits in one batch is one batch.

    Args:
        regret: f32[n, n] of the nests to train on, NaN where unmeasured.
        batch_size: nests per batch, at least 2.
        partners: room kept in a batch for the partners of each anchor.
        seed: of the order; epochs differ.
    """

    def __init__(
        self, regret: NDArray[np.float32], batch_size: int, partners: int = 3, seed: int = 0
    ) -> None:
        self.regret = regret
        self.batch_size = max(2, batch_size)
        self.anchors = np.flatnonzero(~np.isnan(regret).all(axis=1))
        fits = self.batch_size >= len(self.anchors)
        self.stride = len(self.anchors) if fits else max(1, batch_size // (1 + partners))
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.anchors) // self.stride) if len(self.anchors) else 0

    def __iter__(self) -> Iterator[list[int]]:
        order = self.rng.permutation(self.anchors).tolist()
        for start in range(0, len(order), self.stride or 1):
            yield self._fill(order[start : start + self.stride])

    def _fill(self, anchors: list[int]) -> list[int]:
        """Add partners, in turns over the anchors, until the batch is full or none is left."""
        batch = dict.fromkeys(anchors)
        queues = [self._partners(anchor) for anchor in anchors]
        while any(queues) and len(batch) < self.batch_size:
            for queue in queues:
                if queue and len(batch) < self.batch_size:
                    batch.setdefault(queue.pop(0))
        return list(batch)

    def _partners(self, anchor: int) -> list[int]:
        """Measured partners: the nearest, the farthest, then the others in random order."""
        row = self.regret[anchor]
        measured = np.flatnonzero(~np.isnan(row))
        extremes = [int(measured[row[measured].argmin()]), int(measured[row[measured].argmax()])]
        return [*extremes, *self.rng.permutation(measured).tolist()]


class Batches(Protocol):
    """A sampler that knows how many batches it draws."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[list[int]]: ...


class Share(Sampler[list[int]]):
    """One process's batches of those that all of `processes` draw alike: every so many-th, as many for each.
    Where they do not come out even, the last ones begin anew.

    Args:
        batches: draws the same in every process.
        rank: of this process.
    """

    def __init__(self, batches: Batches, rank: int, processes: int) -> None:
        self.batches, self.rank, self.processes = batches, rank, processes

    def __len__(self) -> int:
        return -(-len(self.batches) // self.processes)

    def __iter__(self) -> Iterator[list[int]]:
        drawn = list(self.batches)
        for turn in range(len(self)):
            yield drawn[(turn * self.processes + self.rank) % len(drawn)]
