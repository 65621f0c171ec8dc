"""The nests of corpora as batches, split by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import lightning
import numpy as np
import torch
from lightning.pytorch.utilities import CombinedLoader
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader as TrialLoader

from gnnperf.errors import InputError
from gnnperf.graph import EncodedGraph, GraphBatch, collate, encode
from gnnperf.training.corpus import Corpus, load_corpora
from gnnperf.training.mining import PairBatchSampler, Share
from gnnperf.training.trials import TrialSampler, trials_of


class NestBatch(NamedTuple):
    """b nests of a corpus.

    position: i64[b], in the corpus.
    graphs: the b program graphs, collated.
    regret: f32[b, b], NaN where unmeasured.
    """

    position: Tensor
    graphs: GraphBatch
    regret: Tensor


class CorpusDataModule(lightning.LightningDataModule):
    """Nests to train on, and whole families of nests held out for validation and for the test.

    The split is by kernel family, because nests of one family (one kernel at two sizes, a matrix
    product and its transposed variant) are near-copies of each other: split at random, they would
    leak from training into validation.

    Training batches are pairs: "trials", scheduled programs of some nests with their measured efficiencies,
    as a `Batch` of torch-geometric (see `trials_of`), and "nests", a `NestBatch`. An epoch sees every nest's
    trials, once unless there are more batches of nests.

    Args:
        corpora: folders that `gnnperf collect` wrote, of one device.
        validation_families: held out; their metrics stop the training and choose the checkpoint.
        test_families: held out; used by `gnnperf train test` only.
        batch_size: nests per batch of nests.
        trial_nests: nests per batch of trials.
        trials: of each of them, at most.
        device: fingerprint of the device to learn from, where a corpus holds several.
        seed: of the order of batches.

    Attributes:
        splits: positions of the nests of each split: train, validation, test.
        trials: of each nest of the corpus, see `trials_of`.
    """

    corpus: Corpus
    splits: Mapping[str, Sequence[int]]
    trials: Sequence[Sequence[Data]]

    def __init__(
        self,
        corpora: Sequence[str],
        validation_families: Sequence[str],
        test_families: Sequence[str] = (),
        batch_size: int = 96,
        trial_nests: int = 16,
        trials: int = 6,
        device: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, value in (("batch_size", batch_size), ("trial_nests", trial_nests)):
            if value < 1:
                raise InputError(f"expected a {name} of at least 1, got {value}")
        if trials < 2:
            raise InputError(f"expected at least 2 trials, which are compared, got {trials}")
        self.folders = list(corpora)
        self.held_out = {"validation": list(validation_families), "test": list(test_families)}
        self.batch_size = batch_size
        self.trial_nests = trial_nests
        self.trials_per_nest = trials
        self.device = device
        self.seed = seed
        self._ready = False

    def setup(self, stage: str | None = None) -> None:
        """Read the corpora, encode their graphs and make their scheduled programs, once.

        Raises:
            InputError: a corpus cannot be read, or the families do not split it.
        """
        if self._ready:
            return
        corpus = load_corpora(self.folders, self.device)
        families = [nest.family for nest in corpus.nests]
        self._use(corpus, split_by_family(families, self.held_out["validation"], self.held_out["test"]))

    @classmethod
    def of(cls, corpus: Corpus, splits: Mapping[str, Sequence[int]], seed: int = 0) -> CorpusDataModule:
        """The nests of a corpus that is already read, split by position: train, validation, test."""
        data = cls([], [], seed=seed)
        data._use(corpus, splits)
        return data

    def _use(self, corpus: Corpus, splits: Mapping[str, Sequence[int]]) -> None:
        self.corpus, self.splits = corpus, splits
        self.regret: NDArray[np.float32] = corpus.regret
        self.encoded: list[EncodedGraph] = [encode(nest.graph) for nest in corpus.nests]
        self.trials = trials_of(corpus)
        self._ready = True

    def batch(self, index: Sequence[int]) -> NestBatch:
        """The nests at these positions of the corpus."""
        chosen = torch.tensor(index, dtype=torch.int64)
        regret = torch.from_numpy(self.regret[np.ix_(index, index)])
        return NestBatch(chosen, collate([self.encoded[i] for i in index]), regret)

    def trials_of_split(self, split: str) -> list[Data]:
        """The trials of all nests of a split, nest by nest."""
        return list(chain.from_iterable(self.trials[i] for i in self.splits[split]))

    def train_dataloader(self) -> CombinedLoader:
        train = self.splits["train"]
        pairs = PairBatchSampler(self.regret[np.ix_(train, train)], self.batch_size, seed=self.seed)
        counts = [len(self.trials[i]) for i in train]
        drawn = TrialSampler(counts, self.trial_nests, self.trials_per_nest, seed=self.seed)
        if not len(pairs) or not len(drawn):
            where = f" in {', '.join(self.folders)}" if self.folders else ""
            raise InputError(
                f"expected training nests{where} measured with one another's best schedules, got none; "
                "collect more, or hold out fewer families"
            )
        place = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        loaders: dict[str, Any] = {
            "trials": TrialLoader(self.trials_of_split("train"), batch_sampler=Share(drawn, *place)),
            "nests": DataLoader(train, batch_sampler=Share(pairs, *place), collate_fn=self.batch),  # type: ignore[arg-type]
        }
        return CombinedLoader(loaders, "max_size_cycle")

    def val_dataloader(self) -> list[Any]:
        return self._replay_loaders("validation")

    def test_dataloader(self) -> list[Any]:
        return self._replay_loaders("test")

    def _replay_loaders(self, split: str) -> list[Any]:
        """The training nests that the nests of a split retrieve from, then these; and the trials of these."""
        index = [*self.splits["train"], *self.splits[split]]
        return [
            DataLoader(index, batch_size=self.batch_size, collate_fn=self.batch),  # type: ignore[arg-type]
            TrialLoader(self.trials_of_split(split), batch_size=self.batch_size),
        ]


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
