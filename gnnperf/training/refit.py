"""Training on every nest there is, once it is known for how long."""

from __future__ import annotations

import lightning
import torch

from gnnperf.training.corpus import Corpus
from gnnperf.training.data import CorpusDataModule
from gnnperf.training.module import RetrievalModule
from gnnperf.training.run import quiet_libraries

EPOCHS, BATCH_SIZE = 30, 128
"""Of the released model: chosen on the validation families of `configs/models/first.yaml`."""


def fit_all(
    corpus: Corpus, seed: int, epochs: int = EPOCHS, batch_size: int = BATCH_SIZE
) -> tuple[RetrievalModule, CorpusDataModule]:
    """Train a module of the default sizes on all nests of a corpus: no families are held out to stop it.

    Holding families out for early stopping costs more than it saves where there are only forty of them:
    it chooses the epochs, and then everything is learned from.
    """
    with quiet_libraries(), torch.random.fork_rng():
        torch.manual_seed(seed)
        everything = {"train": range(len(corpus.nests)), "validation": range(0)}
        data = CorpusDataModule.of(corpus, everything, batch_size, seed)
        module = RetrievalModule()
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=epochs, logger=False, gradient_clip_val=1.0, limit_val_batches=0,
            num_sanity_val_steps=0, enable_progress_bar=False, enable_model_summary=False,
            enable_checkpointing=False,
        )  # fmt: skip
        trainer.fit(module, datamodule=data)
    return module.eval(), data
