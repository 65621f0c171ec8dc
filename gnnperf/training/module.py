"""The training loop's body: loss, metrics, optimiser."""

from __future__ import annotations

from collections.abc import Mapping

import lightning
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnnperf.nn import ContrastiveLoss, Encoder, EncoderConfig
from gnnperf.nn.encoder import DEFAULT_CONFIG
from gnnperf.training.data import CorpusDataModule, NestBatch
from gnnperf.training.metrics import oracle_regret, random_regret, transfer_regret


class RetrievalModule(lightning.LightningModule):
    """Trains an `Encoder` so that near programs profit from the same schedules.

    Validation and test replay retrieval: each held-out nest takes the schedules of its nearest
    training nests, and the regret of what it takes is looked up among the measured pairs.

    Args:
        encoder: hyperparameters of the encoder.
        temperature: of the similarities in the loss.
        target_temperature: of the regrets in the loss, in nats.
        learning_rate: of AdamW.
        weight_decay: of AdamW.
        profile_dropout: probability that a nest's dynamic profile is withheld in training, so that
            the encoder also serves programs that were never run. Metrics are without profiles.
    """

    def __init__(
        self,
        encoder: EncoderConfig = DEFAULT_CONFIG,
        temperature: float = 0.2,
        target_temperature: float = 0.1,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        profile_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(encoder)
        self.loss = ContrastiveLoss(temperature, target_temperature)
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.profile_dropout = profile_dropout
        self._embedded: list[tuple[Tensor, Tensor]] = []

    @property
    def data(self) -> CorpusDataModule:
        """The data module of the run."""
        data = getattr(self.trainer, "datamodule", None)
        assert isinstance(data, CorpusDataModule), "RetrievalModule is trained on a CorpusDataModule"
        return data

    def forward(self, batch: NestBatch) -> Tensor:
        """Embeddings of a batch, without profiles: f32[b, d]."""
        return self.encoder.embed(batch.graphs)

    # ----------------------------------------------------------------------- training

    def on_fit_start(self) -> None:
        """Fit the input scales on the training nests; they are then part of the weights."""
        batch = self.data.batch(self.data.splits["train"])
        with torch.no_grad():
            self.encoder.fit_scales(batch.graphs, batch.profile)

    def training_step(self, batch: NestBatch, batch_index: int) -> Tensor:
        withheld = torch.rand(len(batch.profile), 1, device=self.device) < self.profile_dropout
        embedding = self.encoder.embed(batch.graphs, batch.profile.masked_fill(withheld, float("nan")))
        loss: Tensor = self.loss(embedding @ embedding.T, batch.regret)
        size = len(batch.position)
        self.log("train/loss", loss, on_step=False, on_epoch=True, prog_bar=True, batch_size=size)
        floor = self.loss.entropy(batch.regret)
        self.log("train/excess_loss", loss.detach() - floor, on_step=False, on_epoch=True, batch_size=size)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

    # ----------------------------------------------------------------------- validation and test

    def validation_step(self, batch: NestBatch, batch_index: int) -> None:
        self._embedded.append((batch.position, self(batch)))

    def test_step(self, batch: NestBatch, batch_index: int) -> None:
        self._embedded.append((batch.position, self(batch)))

    def on_validation_epoch_end(self) -> None:
        self._log_replay("validation", "val")

    def on_test_epoch_end(self) -> None:
        self._log_replay("test", "test")

    def _log_replay(self, split: str, prefix: str) -> None:
        position = torch.cat([position for position, _ in self._embedded]).cpu().numpy()
        embedding = torch.cat([embedding for _, embedding in self._embedded])
        self._embedded.clear()
        # The loader gives the training nests first, then the queries (all nests in a sanity check).
        references = len(self.data.splits["train"])
        if len(position) > references:
            regret = self.data.regret[np.ix_(position[references:], position[:references])]
            figures = self._replay(embedding[references:] @ embedding[:references].T, regret)
            self.log_dict({f"{prefix}/{name}": value for name, value in figures.items()}, prog_bar=False)
            self.log(f"{prefix}/regret@1", figures["transfer_regret@1"], prog_bar=True, logger=False)

    def _replay(self, similarity: Tensor, regret: NDArray[np.float32]) -> Mapping[str, float]:
        """Figures of queries against references: f32[q, r] similarities and regrets."""
        near = similarity.float().cpu().numpy()
        return {
            "loss": float(self.loss(similarity, torch.from_numpy(regret).to(similarity))),
            "transfer_regret@1": transfer_regret(near, regret, 1),
            "transfer_regret@3": transfer_regret(near, regret, 3),
            "random_regret@1": random_regret(regret),
            "oracle_regret@1": oracle_regret(regret),
        }
