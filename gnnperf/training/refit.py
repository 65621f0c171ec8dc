"""Training on every nest there is, once it is known for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lightning
import torch

from gnnperf.training.corpus import Corpus
from gnnperf.training.data import CorpusDataModule
from gnnperf.training.module import RetrievalModule
from gnnperf.training.run import quiet_libraries

EPOCHS = 32
"""Of the released model: chosen on two folds of held-out families, drawn with another seed than those that
judge it."""
QUICK: Mapping[str, Any] = {"epochs": 3}
"""Arguments of `fit_all` for a first look."""


def fit_all(
    corpus: Corpus,
    seed: int,
    epochs: int = EPOCHS,
    module: type[RetrievalModule] = RetrievalModule,
    **settings: Any,
) -> tuple[RetrievalModule, CorpusDataModule]:
    """Train a module on all nests of a corpus: no families are held out to stop it.

    Holding families out for early stopping costs more than it saves where there are only dozens of them:
    it chooses the epochs, and then everything is learned from. module, settings: what is trained, and its
    arguments.
    """
    with quiet_libraries(), torch.random.fork_rng():
        torch.manual_seed(seed)
        everything = {"train": range(len(corpus.nests)), "validation": range(0)}
        data = CorpusDataModule.of(corpus, everything, seed)
        made = module(**settings)
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=epochs, logger=False, gradient_clip_val=1.0, limit_val_batches=0,
            num_sanity_val_steps=0, enable_progress_bar=False, enable_model_summary=False,
            enable_checkpointing=False,
        )  # fmt: skip
        trainer.fit(made, datamodule=data)
    return made.eval(), data
