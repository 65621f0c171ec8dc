"""The training loop's body: losses, metrics, optimiser."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict, TypeVar

import lightning
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch, collate
from gnnperf.nn import (
    ContrastiveLoss,
    EfficiencyLoss,
    Encoder,
    EncoderConfig,
    HeadConfig,
    RankCorrelationLoss,
    ScheduleHead,
)
from gnnperf.nn.encoder import DEFAULT_CONFIG
from gnnperf.nn.head import DEFAULT_HEAD
from gnnperf.schedules.recipes import fact_fields
from gnnperf.training.data import CorpusDataModule, NestBatch
from gnnperf.training.metrics import best_of_k, oracle_regret, random_regret, transfer_regret
from gnnperf.training.trials import by_nest

T = TypeVar("T", Tensor, float)

SCALED_BY = 8
"""Trials of each training nest that the input scales are fitted on."""


class TrainingBatch(TypedDict):
    """See `CorpusDataModule`."""

    trials: Batch
    nests: NestBatch


class RetrievalModule(lightning.LightningModule):
    """Trains an `Encoder` so that near programs profit from the same schedules, and with it a
    `ScheduleHead` that ranks the schedules of a program.

    Of several devices (`--trainer.strategy ddp --trainer.devices N`) each has batches of its own, and
    validates on everything.

    Validation and test replay retrieval: each held-out nest takes the schedules of its nearest
    training nests, or those that the head scores highest; what they are worth is looked up among the
    measured pairs.

    Args:
        encoder: hyperparameters of the encoder.
        head: hyperparameters of the head.
        temperature: of the similarities in the contrastive loss.
        target_temperature: of the regrets in the contrastive loss, in nats.
        contrastive_weight: of the contrastive loss; the efficiency loss of each judge of the head has 1.
        correlation_weight: of the loss that orders all partners of a program by regret.
        learning_rate: of AdamW; it falls to zero along a cosine over the steps of the trainer.
        numbers_learning_rate: of the head's judge of numbers, which is shallow.
        weight_decay: of AdamW.
        frozen_encoder: leave the encoder as it was drawn: what it is worth to train it.
    """

    def __init__(
        self,
        encoder: EncoderConfig = DEFAULT_CONFIG,
        head: HeadConfig = DEFAULT_HEAD,
        temperature: float = 0.2,
        target_temperature: float = 0.1,
        contrastive_weight: float = 1.0,
        correlation_weight: float = 2.0,
        learning_rate: float = 2e-3,
        numbers_learning_rate: float = 4e-3,
        weight_decay: float = 2e-2,
        frozen_encoder: bool = False,
    ) -> None:
        super().__init__()
        positive = {
            "temperature": temperature,
            "target_temperature": target_temperature,
            "learning_rate": learning_rate,
            "numbers_learning_rate": numbers_learning_rate,
        }
        for name, value in positive.items():
            if not value > 0:
                raise InputError(f"expected a {name} above 0, got {value}")
        # As plain values: checkpoints are read without executing anything.
        self.save_hyperparameters(
            {
                "encoder": asdict(encoder), "head": asdict(head), **positive, "weight_decay": weight_decay,
                "contrastive_weight": contrastive_weight, "correlation_weight": correlation_weight,
                "frozen_encoder": frozen_encoder,
            }
        )  # fmt: skip
        self.encoder = Encoder(encoder).requires_grad_(not frozen_encoder)
        self.head = ScheduleHead(encoder.width, len(fact_fields()), head)
        self.contrastive = ContrastiveLoss(temperature, target_temperature)
        self.correlation = RankCorrelationLoss()
        self.efficiency = EfficiencyLoss()
        self.contrastive_weight = contrastive_weight
        self.correlation_weight = correlation_weight
        self.learning_rate = learning_rate
        self.numbers_learning_rate = numbers_learning_rate
        self.weight_decay = weight_decay
        self._embedded: list[tuple[Tensor, Tensor]] = []
        self._scored: list[tuple[Tensor, Tensor, Tensor]] = []

    @property
    def data(self) -> CorpusDataModule:
        """The data module of the run."""
        data = getattr(self.trainer, "datamodule", None)
        assert isinstance(data, CorpusDataModule), "RetrievalModule is trained on a CorpusDataModule"
        return data

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Embeddings of b graphs: f32[b, embedding_width]."""
        return self.encoder.embed(graphs)

    def judgements(self, trials: Batch) -> Tensor:
        """What the head's judges say of b trials: f32[2, b]."""
        graphs = GraphBatch.of(trials)
        nodes, states = self.encoder.states(*graphs, trials.node_costs)
        return self.head.judgements(
            nodes, states, graphs.node_kind, trials.node_costs, graphs.batch, trials.facts
        )

    def efficiency_loss(self, trials: Batch) -> Tensor:
        """The sum over the judges, of trials that lie nest by nest."""
        measured = by_nest(trials.log_efficiency, trials.nest)
        said = by_nest(self.judgements(trials), trials.nest)
        return torch.stack([self.efficiency(of_judge, measured) for of_judge in said]).sum()

    # ----------------------------------------------------------------------- training

    def on_fit_start(self) -> None:
        """Fit the input scales on the training nests and some of their trials; they are then part of the
        weights."""
        data, train = self.data, self.data.splits["train"]
        of_nests = [data.trials[i] for i in train]
        some = Batch.from_data_list(
            [t for trials in of_nests for t in trials[:: 1 + len(trials) // SCALED_BY]]
        )
        with torch.no_grad():
            programs = collate([data.encoded[i] for i in train])
            self.encoder.fit_scales(GraphBatch.of(some), some.node_costs, programs)
            self.head.fit_scales(some.node_kind, some.node_costs, some.batch, some.facts)

    def training_step(self, batch: TrainingBatch, batch_index: int) -> Tensor:
        nests = batch["nests"]
        embedding = self(nests.graphs)
        similarity = embedding @ embedding.T
        figures = {
            "contrastive_loss": self.contrastive(similarity, nests.regret),
            "correlation_loss": self.correlation(similarity, nests.regret),
            "efficiency_loss": self.efficiency_loss(batch["trials"]),
        }
        loss = figures["loss"] = self.total(figures)
        for name, value in figures.items():
            self.log(
                f"train/{name}", value.detach(), on_step=False, on_epoch=True, prog_bar=name == "loss",
                batch_size=len(nests.position), sync_dist=True,
            )  # fmt: skip
        return loss

    def total(self, losses: Mapping[str, T]) -> T:
        """Their weighted sum, of tensors or of numbers."""
        return (
            losses["efficiency_loss"]
            + self.contrastive_weight * losses["contrastive_loss"]
            + self.correlation_weight * losses["correlation_loss"]
        )

    def configure_optimizers(self) -> Any:
        numbers = list(self.head.numbers.parameters())
        others = [p for p in self.parameters() if p.requires_grad and all(p is not n for n in numbers)]
        groups: list[dict[str, Any]] = [
            {"params": others},
            {"params": numbers, "lr": self.numbers_learning_rate},
        ]
        optimizer = torch.optim.AdamW(groups, lr=self.learning_rate, weight_decay=self.weight_decay)
        steps = max(1, int(self.trainer.estimated_stepping_batches))
        # Not CosineAnnealingLR: a run that is resumed for more epochs would fall with those of the first.
        falling = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
        )
        return [optimizer], [{"scheduler": falling, "interval": "step"}]

    # ----------------------------------------------------------------------- validation and test

    def validation_step(self, batch: NestBatch | Batch, batch_index: int, dataloader_idx: int = 0) -> None:
        if isinstance(batch, NestBatch):
            self._embedded.append((batch.position, self(batch.graphs)))
        else:
            self._scored.append((batch.nest, batch.log_efficiency, self.judgements(batch)))

    def test_step(self, batch: NestBatch | Batch, batch_index: int, dataloader_idx: int = 0) -> None:
        self.validation_step(batch, batch_index, dataloader_idx)

    def on_validation_epoch_end(self) -> None:
        self._log_replay("val")

    def on_test_epoch_end(self) -> None:
        self._log_replay("test")

    def _log_replay(self, prefix: str) -> None:
        embedded, scored = self._embedded, self._scored
        self._embedded, self._scored = [], []
        position = torch.cat([position for position, _ in embedded]).cpu().numpy()
        # The loader gives the training nests first, then the queries (all nests in a sanity check).
        references = len(self.data.splits["train"])
        if len(position) <= references or not scored:
            return
        embedding = torch.cat([rows for _, rows in embedded])
        regret = self.data.regret[np.ix_(position[references:], position[:references])]
        figures = {
            **self._neighbours(embedding[references:] @ embedding[:references].T, regret),
            **self._ranking(*(torch.cat(parts, -1) for parts in zip(*scored, strict=True))),
        }
        figures["loss"] = self.total(figures)
        for name, value in figures.items():
            self.log(f"{prefix}/{name}", value, prog_bar=name == "efficiency@3", sync_dist=True)

    def _neighbours(self, similarity: Tensor, regret: NDArray[np.float32]) -> Mapping[str, float]:
        """Figures of queries against references: f32[q, r] similarities and regrets."""
        near, measured = similarity.float().cpu().numpy(), torch.from_numpy(regret).to(similarity)
        return {
            "contrastive_loss": float(self.contrastive(similarity, measured)),
            "correlation_loss": float(self.correlation(similarity, measured)),
            "transfer_regret@1": transfer_regret(near, regret, 1),
            "transfer_regret@3": transfer_regret(near, regret, 3),
            "random_regret@1": random_regret(regret),
            "oracle_regret@1": oracle_regret(regret),
        }

    def _ranking(self, nest: Tensor, log_efficiency: Tensor, judged: Tensor) -> Mapping[str, float]:
        """Figures of the head on t trials, nest by nest: i64[t], f32[t], f32[2, t]."""
        measured, said = by_nest(log_efficiency, nest), by_nest(judged, nest)
        each = [float(self.efficiency(of_judge, measured)) for of_judge in said]
        scores = said.mean(0).nan_to_num().float().cpu().numpy()
        reached = {f"efficiency@{k}": np.log(best_of_k(scores, measured.cpu().numpy(), k)) for k in (1, 3)}
        return {
            "efficiency_loss": sum(each),
            **{name: float(np.exp(r.mean())) if r.size else float("nan") for name, r in reached.items()},
        }


class NumbersModule(RetrievalModule):
    """Trains the head's judge of numbers and nothing else: what there is without the network."""

    def __init__(self) -> None:
        super().__init__(contrastive_weight=0.0, correlation_weight=0.0, frozen_encoder=True)

    def judgements(self, trials: Batch) -> Tensor:
        return self.head.by_numbers(trials.node_kind, trials.node_costs, trials.batch, trials.facts)[None]
