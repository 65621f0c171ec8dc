"""The data module: a corpus, split by kernel family, in batches of nests with their regrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import lightning
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from gnnperf.errors import InputError
from gnnperf.graph import EncodedGraph, GraphBatch, collate, encode
from gnnperf.nn import profile_row
from gnnperf.schedules.recipes import effects, recipe_features, recipe_fields
from gnnperf.training.corpus import Corpus, load_corpus
from gnnperf.training.mining import PairBatchSampler, Share


class NestBatch(NamedTuple):
    """b nests of a corpus.

    position: i64[b], in the corpus.
    graphs: the b program graphs, collated.
    profile: f32[b, P], NaN where absent.
    regret: f32[b, b], NaN where unmeasured.
    log_efficiency: f32[b, s] of the s recipes of the corpus, NaN where unmeasured.
    pair: i64[b, s], row of `CorpusDataModule.effects`, -1 where unmeasured.
    """

    position: Tensor
    graphs: GraphBatch
    profile: Tensor
    regret: Tensor
    log_efficiency: Tensor
    pair: Tensor


class CorpusDataModule(lightning.LightningDataModule):
    """Nests to train on, and whole families of nests held out for validation and for the test.

    The split is by kernel family, because nests of one family (one kernel at two sizes, a matrix
    product and its transposed variant) are near-copies of each other: split at random, they would
    leak from training into validation.

    Args:
        corpus: folder that `gnnperf collect` wrote.
        validation_families: held out; their metrics stop the training and choose the checkpoint.
        test_families: held out; used by `gnnperf train test` only.
        batch_size: nests per batch; a corpus that fits in one batch is one batch.
        device: fingerprint of the device to learn from, where the corpus holds several.
        seed: of the order of batches.

    Attributes:
        splits: positions of the nests of each split: train, validation, test.
        schedules: f32[s, R], features of the recipes of the corpus.
        effects: f32[m, E] of every recipe on every nest that it was measured on.
    """

    corpus: Corpus
    splits: Mapping[str, Sequence[int]]
    schedules: Tensor
    effects: Tensor

    def __init__(
        self,
        corpus: str,
        validation_families: Sequence[str],
        test_families: Sequence[str] = (),
        batch_size: int = 64,
        device: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise InputError(f"expected a batch_size of at least 1, got {batch_size}")
        self.folder = corpus
        self.held_out = {"validation": list(validation_families), "test": list(test_families)}
        self.batch_size = batch_size
        self.device = device
        self.seed = seed
        self._ready = False

    def setup(self, stage: str | None = None) -> None:
        """Read the corpus and encode its graphs, once.

        Raises:
            InputError: the corpus cannot be read, or the families do not split it.
        """
        if self._ready:
            return
        corpus = load_corpus(self.folder, self.device)
        families = [nest.family for nest in corpus.nests]
        self._use(corpus, split_by_family(families, self.held_out["validation"], self.held_out["test"]))

    @classmethod
    def of(
        cls, corpus: Corpus, splits: Mapping[str, Sequence[int]], batch_size: int = 64, seed: int = 0
    ) -> CorpusDataModule:
        """The nests of a corpus that is already read, split by position: train, validation, test."""
        data = cls("", [], batch_size=batch_size, seed=seed)
        data._use(corpus, splits)
        return data

    def _use(self, corpus: Corpus, splits: Mapping[str, Sequence[int]]) -> None:
        self.corpus, self.splits = corpus, splits
        self.regret: NDArray[np.float32] = corpus.regret
        self.encoded: list[EncodedGraph] = [encode(nest.graph) for nest in corpus.nests]
        self.profiles = torch.stack([profile_row(nest.graph.profile) for nest in corpus.nests])
        table = corpus.efficiency
        self.log_efficiency = torch.from_numpy(table.log_efficiency)
        recipes = list(table.recipes.values())
        rows = [recipe_features(recipe) for recipe in recipes]
        self.schedules = torch.from_numpy(np.stack(rows)) if rows else torch.zeros(0, len(recipe_fields()))
        measured = [np.flatnonzero(~np.isnan(row)) for row in table.log_efficiency]
        found = [
            effects(nest.graph, [recipes[s] for s in of_nest])
            for nest, of_nest in zip(corpus.nests, measured, strict=True)
        ]
        self.effects = torch.from_numpy(np.concatenate(found))
        self.pair = torch.full(self.log_efficiency.shape, -1, dtype=torch.int64)
        self.pair[~self.log_efficiency.isnan()] = torch.arange(len(self.effects))
        self._ready = True

    def batch(self, index: Sequence[int]) -> NestBatch:
        """The nests at these positions of the corpus."""
        chosen = torch.tensor(index, dtype=torch.int64)
        regret = torch.from_numpy(self.regret[np.ix_(index, index)])
        graphs = collate([self.encoded[i] for i in index])
        measured = self.log_efficiency[chosen]
        return NestBatch(chosen, graphs, self.profiles[chosen], regret, measured, self.pair[chosen])

    def train_dataloader(self) -> DataLoader[NestBatch]:
        train = self.splits["train"]
        sampler = PairBatchSampler(self.regret[np.ix_(train, train)], self.batch_size, seed=self.seed)
        if not len(sampler):
            raise InputError(
                f"expected training nests in {self.folder} measured with one another's best schedules, "
                "got none; collect more, or hold out fewer families"
            )
        place = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        share = Share(sampler, *place)
        return DataLoader(train, batch_sampler=share, collate_fn=self.batch)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[NestBatch]:
        return self._replay_dataloader("validation")

    def test_dataloader(self) -> DataLoader[NestBatch]:
        return self._replay_dataloader("test")

    def _replay_dataloader(self, split: str) -> DataLoader[NestBatch]:
        """The nests of a split as queries, and the training nests that they retrieve from."""
        index = [*self.splits["train"], *self.splits[split]]
        return DataLoader(index, batch_size=self.batch_size, collate_fn=self.batch)  # type: ignore[arg-type]


def split_by_family(
    families: Sequence[str], validation: Sequence[str], test: Sequence[str]
) -> dict[str, list[int]]:
    """Positions of the nests of each split: train, validation, test.

    Args:
        families: the family of each nest.
        validation: families held out for validation, at least one.
        test: families held out for the test.

    Raises:
        InputError: a family that the corpus does not have, a family held out twice, or nothing left.
    """
    known = sorted(set(families))
    unknown = sorted({*validation, *test} - set(known))
    if unknown:
        raise InputError(
            f"expected families among {', '.join(known)}, got {', '.join(unknown)}; correct the config"
        )
    both = sorted(set(validation) & set(test))
    if both:
        raise InputError(f"{', '.join(both)} is held out for validation and for the test; choose one of them")
    splits: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    for position, family in enumerate(families):
        name = "validation" if family in validation else "test" if family in test else "train"
        splits[name].append(position)
    if len(splits["train"]) < 2 or not splits["validation"]:
        raise InputError(
            f"expected at least 2 nests to train on and 1 to validate on, got {len(splits['train'])} and "
            f"{len(splits['validation'])}; hold out fewer families, or name a validation family"
        )
    return splits
