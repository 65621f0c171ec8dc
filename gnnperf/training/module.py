"""The training loop's body: loss, metrics, optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lightning
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.nn import (
    ContrastiveLoss,
    EfficiencyLoss,
    Encoder,
    EncoderConfig,
    HeadConfig,
    RetrievalHead,
)
from gnnperf.nn.encoder import DEFAULT_CONFIG
from gnnperf.nn.head import DEFAULT_HEAD
from gnnperf.schedules import recipe_fields
from gnnperf.training.data import CorpusDataModule, NestBatch
from gnnperf.training.metrics import best_of_k, oracle_regret, random_regret, transfer_regret


class RetrievalModule(lightning.LightningModule):
    """Trains an `Encoder` so that near programs profit from the same schedules, and with it a
    `RetrievalHead` that ranks the schedules of a program.

    Validation and test replay retrieval: each held-out nest takes the schedules of its nearest
    training nests, or those that the head scores highest; what they are worth is looked up among the
    measured pairs.

    Args:
        encoder: hyperparameters of the encoder.
        head: hyperparameters of the retrieval head.
        temperature: of the similarities in the contrastive loss.
        target_temperature: of the regrets in the contrastive loss, in nats.
        contrastive_weight: of the contrastive loss; the efficiency loss has 1.
        learning_rate: of AdamW; it falls to zero along a cosine over the epochs of the trainer.
        weight_decay: of AdamW.
        profile_dropout: probability that a nest's dynamic profile is withheld in training, so that
            the encoder also serves programs that were never run. Metrics are without profiles.
    """

    def __init__(
        self,
        encoder: EncoderConfig = DEFAULT_CONFIG,
        head: HeadConfig = DEFAULT_HEAD,
        temperature: float = 0.2,
        target_temperature: float = 0.1,
        contrastive_weight: float = 1.0,
        learning_rate: float = 2e-3,
        weight_decay: float = 2e-2,
        profile_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        positive = {
            "temperature": temperature,
            "target_temperature": target_temperature,
            "learning_rate": learning_rate,
        }
        for name, value in positive.items():
            if not value > 0:
                raise InputError(f"expected a {name} above 0, got {value}")
        self.encoder = Encoder(encoder)
        self.head = RetrievalHead(encoder.width, len(recipe_fields()), head)
        self.contrastive = ContrastiveLoss(temperature, target_temperature)
        self.efficiency = EfficiencyLoss()
        self.contrastive_weight = contrastive_weight
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.profile_dropout = profile_dropout
        self._seen: list[tuple[Tensor, Tensor]] = []

    @property
    def data(self) -> CorpusDataModule:
        """The data module of the run."""
        data = getattr(self.trainer, "datamodule", None)
        assert isinstance(data, CorpusDataModule), "RetrievalModule is trained on a CorpusDataModule"
        return data

    def forward(self, batch: NestBatch) -> Tensor:
        """Fingerprints of a batch, without profiles: f32[b, width]."""
        return self.encoder.fingerprint(*batch.graphs)

    def scores(self, states: Tensor, schedules: Tensor, wanted: Tensor) -> Tensor:
        """Of s schedules on b fingerprints, f32[s, R], where `wanted`, bool[b, s]: f32[b, s], 0 elsewhere."""
        program, schedule = wanted.nonzero(as_tuple=True)
        found = self.head(states, schedules.to(states), program, schedule)
        return states.new_zeros(wanted.shape).index_put((program, schedule), found)

    def losses(self, states: Tensor, schedules: Tensor, batch: NestBatch) -> tuple[Tensor, Tensor]:
        """Contrastive and efficiency loss of a batch with these fingerprints."""
        embedding = F.normalize(self.encoder.project(states), dim=1)
        contrastive: Tensor = self.contrastive(embedding @ embedding.T, batch.regret)
        scores = self.scores(states, schedules, ~batch.log_efficiency.isnan())
        efficiency: Tensor = self.efficiency(scores, batch.log_efficiency)
        return contrastive, efficiency

    # ----------------------------------------------------------------------- training

    def on_fit_start(self) -> None:
        """Fit the input scales on the training nests; they are then part of the weights."""
        batch = self.data.batch(self.data.splits["train"])
        with torch.no_grad():
            self.encoder.fit_scales(batch.graphs, batch.profile)
            self.head.scale.fit(self.data.schedules)

    def training_step(self, batch: NestBatch, batch_index: int) -> Tensor:
        withheld = torch.rand(len(batch.profile), 1, device=self.device) < self.profile_dropout
        profile = batch.profile.masked_fill(withheld, float("nan"))
        states = self.encoder.fingerprint(*batch.graphs, profile)
        contrastive, efficiency = self.losses(states, self.data.schedules, batch)
        loss = efficiency + self.contrastive_weight * contrastive
        figures = {"loss": loss, "contrastive_loss": contrastive, "efficiency_loss": efficiency}
        for name, value in figures.items():
            self.log(
                f"train/{name}", value.detach(), on_step=False, on_epoch=True, prog_bar=name == "loss",
                batch_size=len(batch.position),
            )  # fmt: skip
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(
            self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        epochs = max(1, self.trainer.max_epochs or 1)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)]

    # ----------------------------------------------------------------------- validation and test

    def validation_step(self, batch: NestBatch, batch_index: int) -> None:
        self._seen.append((batch.position, self(batch)))

    def test_step(self, batch: NestBatch, batch_index: int) -> None:
        self._seen.append((batch.position, self(batch)))

    def on_validation_epoch_end(self) -> None:
        self._log_replay("validation", "val")

    def on_test_epoch_end(self) -> None:
        self._log_replay("test", "test")

    def _log_replay(self, split: str, prefix: str) -> None:
        position = torch.cat([position for position, _ in self._seen]).cpu().numpy()
        states = torch.cat([states for _, states in self._seen])
        self._seen.clear()
        # The loader gives the training nests first, then the queries (all nests in a sanity check).
        references = len(self.data.splits["train"])
        if len(position) <= references:
            return
        embedding = F.normalize(self.encoder.project(states), dim=1)
        regret = self.data.regret[np.ix_(position[references:], position[:references])]
        figures = {
            **self._neighbours(embedding[references:] @ embedding[:references].T, regret),
            **self._ranking(states[references:], self.data.log_efficiency[position[references:]]),
        }
        figures["loss"] = figures["efficiency_loss"] + self.contrastive_weight * figures["contrastive_loss"]
        for name, value in figures.items():
            self.log(f"{prefix}/{name}", value, prog_bar=name == "efficiency@3")

    def _neighbours(self, similarity: Tensor, regret: NDArray[np.float32]) -> Mapping[str, float]:
        """Figures of queries against references: f32[q, r] similarities and regrets."""
        near = similarity.float().cpu().numpy()
        return {
            "contrastive_loss": float(self.contrastive(similarity, torch.from_numpy(regret).to(similarity))),
            "transfer_regret@1": transfer_regret(near, regret, 1),
            "transfer_regret@3": transfer_regret(near, regret, 3),
            "random_regret@1": random_regret(regret),
            "oracle_regret@1": oracle_regret(regret),
        }

    def _ranking(self, states: Tensor, log_efficiency: Tensor) -> Mapping[str, float]:
        """Figures of the head on queries: f32[q, width], f32[q, s]."""
        scores = self.scores(states, self.data.schedules, ~log_efficiency.isnan())
        found, measured = scores.float().cpu().numpy(), log_efficiency.numpy()
        reached = {f"efficiency@{k}": np.log(best_of_k(found, measured, k)) for k in (1, 3)}
        return {
            "efficiency_loss": float(self.efficiency(scores, log_efficiency.to(scores))),
            **{name: float(np.exp(r.mean())) if r.size else float("nan") for name, r in reached.items()},
        }
