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
from gnnperf.schedules.recipes import effect_fields, recipe_fields
from gnnperf.training.data import CorpusDataModule, NestBatch
from gnnperf.training.metrics import best_of_k, oracle_regret, random_regret, transfer_regret


class RetrievalModule(lightning.LightningModule):
    """Trains an `Encoder` so that near programs profit from the same schedules, and with it a
    `RetrievalHead` that ranks the schedules of a program.

    Of several devices (`--trainer.strategy ddp --trainer.devices N`) each has batches of its own, and
    validates on everything.

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
        effect_learning_rate: of the head's judge of effects, which is shallow.
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
        effect_learning_rate: float = 1e-2,
        weight_decay: float = 2e-2,
        profile_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        positive = {
            "temperature": temperature,
            "target_temperature": target_temperature,
            "learning_rate": learning_rate,
            "effect_learning_rate": effect_learning_rate,
        }
        for name, value in positive.items():
            if not value > 0:
                raise InputError(f"expected a {name} above 0, got {value}")
        self.encoder = Encoder(encoder)
        self.head = RetrievalHead(encoder.width, len(recipe_fields()), len(effect_fields()), head)
        self.contrastive = ContrastiveLoss(temperature, target_temperature)
        self.efficiency = EfficiencyLoss()
        self.contrastive_weight = contrastive_weight
        self.learning_rate = learning_rate
        self.effect_learning_rate = effect_learning_rate
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

    def judgements(self, states: Tensor, data: CorpusDataModule, pair: Tensor) -> Tensor:
        """What the head's judges predict of the s recipes of the data on b fingerprints, where `pair`,
        i64[b, s], is a row of the data's effects: f32[2, b, s], 0 elsewhere."""
        program, schedule = (pair >= 0).nonzero(as_tuple=True)
        rows = data.effects[pair[program, schedule]]
        found = self.head.judgements(states, data.schedules.to(states), rows.to(states), program, schedule)
        every = torch.arange(len(found)).unsqueeze(1)
        return states.new_zeros(len(found), *pair.shape).index_put((every, program, schedule), found)

    def losses(self, states: Tensor, data: CorpusDataModule, batch: NestBatch) -> tuple[Tensor, Tensor]:
        """Contrastive and efficiency loss of a batch of the data with these fingerprints; the second is the
        sum over the judges."""
        embedding = F.normalize(self.encoder.project(states), dim=1)
        contrastive: Tensor = self.contrastive(embedding @ embedding.T, batch.regret)
        judged = self.judgements(states, data, batch.pair)
        each = torch.stack([self.efficiency(predicted, batch.log_efficiency) for predicted in judged])
        return contrastive, each.sum()

    # ----------------------------------------------------------------------- training

    def on_fit_start(self) -> None:
        """Fit the input scales on the training nests; they are then part of the weights."""
        batch = self.data.batch(self.data.splits["train"])
        with torch.no_grad():
            self.encoder.fit_scales(batch.graphs, batch.profile)
            self.head.fit_scales(self.data.schedules, self.data.effects[batch.pair[batch.pair >= 0]])

    def training_step(self, batch: NestBatch, batch_index: int) -> Tensor:
        withheld = torch.rand(len(batch.profile), 1, device=self.device) < self.profile_dropout
        profile = batch.profile.masked_fill(withheld, float("nan"))
        states = self.encoder.fingerprint(*batch.graphs, profile)
        contrastive, efficiency = self.losses(states, self.data, batch)
        loss = efficiency + self.contrastive_weight * contrastive
        figures = {"loss": loss, "contrastive_loss": contrastive, "efficiency_loss": efficiency}
        for name, value in figures.items():
            self.log(
                f"train/{name}", value.detach(), on_step=False, on_epoch=True, prog_bar=name == "loss",
                batch_size=len(batch.position), sync_dist=True,
            )  # fmt: skip
        return loss

    def configure_optimizers(self) -> Any:
        effect = list(self.head.effect.parameters())
        others = [p for p in self.parameters() if all(p is not e for e in effect)]
        groups: list[dict[str, Any]] = [
            {"params": others},
            {"params": effect, "lr": self.effect_learning_rate},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate, weight_decay=self.weight_decay)
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
            **self._ranking(states[references:], position[references:]),
        }
        figures["loss"] = figures["efficiency_loss"] + self.contrastive_weight * figures["contrastive_loss"]
        for name, value in figures.items():
            self.log(f"{prefix}/{name}", value, prog_bar=name == "efficiency@3", sync_dist=True)

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

    def _ranking(self, states: Tensor, position: NDArray[np.int64]) -> Mapping[str, float]:
        """Figures of the head on queries: f32[q, width], i64[q]."""
        log_efficiency = self.data.log_efficiency[position]
        scores = self.judgements(states, self.data, self.data.pair[position]).mean(0)
        found, measured = scores.float().cpu().numpy(), log_efficiency.numpy()
        reached = {f"efficiency@{k}": np.log(best_of_k(found, measured, k)) for k in (1, 3)}
        return {
            "efficiency_loss": float(self.efficiency(scores, log_efficiency.to(scores))),
            **{name: float(np.exp(r.mean())) if r.size else float("nan") for name, r in reached.items()},
        }
