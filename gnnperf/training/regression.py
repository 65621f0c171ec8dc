"""The encoder trained by regression of a dynamic profile: the way of "Performance Embeddings".

Trümper et al., "Performance Embeddings: A Similarity-Based Transfer Tuning Approach to Performance
Optimization" (ICS'23, doi 10.1145/3577193.3593714) train an encoder of programs to predict runtime and
hardware counters, and take its last layer for the embedding. Here to be compared with.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader

from gnnperf.graph import GraphBatch, collate, encode
from gnnperf.nn import PROFILE_FIELDS, Encoder, EncoderConfig, Standardise, profile_row
from gnnperf.nn.encoder import DEFAULT_CONFIG
from gnnperf.training.corpus import CorpusNest
from gnnperf.training.run import quiet_libraries

Batch = tuple[GraphBatch, Tensor]
"""b program graphs, and their profiles f32[b, P]."""


class RegressionModule(lightning.LightningModule):
    """Predicts the logarithms of PROFILE_FIELDS (runtimes, shares of the machine's peaks) from the graph
    alone, by a linear map of the embedding; mean squared error of what is present, standardised.

    Args:
        encoder: hyperparameters of the encoder.
        learning_rate: of AdamW.
        weight_decay: of AdamW.
    """

    def __init__(
        self,
        encoder: EncoderConfig = DEFAULT_CONFIG,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(encoder)
        self.target_scale = Standardise(len(PROFILE_FIELDS))
        self.head = nn.Linear(encoder.embedding_width, len(PROFILE_FIELDS))
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay

    def fit_scales(self, graphs: GraphBatch, profile: Tensor) -> None:
        """Take the statistics of inputs and targets from the training nests."""
        self.encoder.fit_scales(graphs, profile)
        self.target_scale.fit(profile)

    def loss(self, batch: Batch) -> Tensor:
        """Mean squared error over the values that the profiles have, in deviations squared."""
        graphs, profile = batch
        error = self.head(self.encoder.embed(graphs)) - self.target_scale(profile)
        present = ~profile.isnan()
        return torch.where(present, error, 0.0).square().sum() / present.sum().clamp(min=1)

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        return self.loss(batch)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        self.log("val/loss", self.loss(batch), batch_size=len(batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)


def fit_regression(
    train: Sequence[CorpusNest],
    validation: Sequence[CorpusNest],
    seed: int = 0,
    config: EncoderConfig = DEFAULT_CONFIG,
    max_epochs: int = 300,
    patience: int = 40,
) -> Encoder:
    """The encoder with the least validation loss, in evaluation mode.

    Args:
        train: nests to learn from, as one batch.
        validation: nests that stop the training.
        seed: of weights and dropout.
        config: hyperparameters of the encoder.
        max_epochs: of the training.
        patience: epochs without a lower validation loss that end it.
    """
    with quiet_libraries(), tempfile.TemporaryDirectory(prefix="gnnperf-") as folder, torch.random.fork_rng():
        torch.manual_seed(seed)
        module = RegressionModule(config)
        batch = _batch(train)
        module.fit_scales(*batch)
        best = ModelCheckpoint(folder, monitor="val/loss", save_weights_only=True)
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=max_epochs, logger=False, gradient_clip_val=1.0,
            enable_progress_bar=False, enable_model_summary=False,
            callbacks=[best, EarlyStopping("val/loss", patience=patience)],
        )  # fmt: skip
        trainer.fit(module, _loader(batch), _loader(_batch(validation)))
        module.load_state_dict(torch.load(best.best_model_path, weights_only=True)["state_dict"])
    return module.encoder.eval()


def _batch(nests: Sequence[CorpusNest]) -> Batch:
    profiles = torch.stack([profile_row(nest.graph.profile) for nest in nests])
    return collate([encode(nest.graph) for nest in nests]), profiles


def _loader(batch: Batch) -> DataLoader[Batch]:
    return DataLoader([batch], batch_size=None)  # type: ignore[arg-type]
