"""`loop-nests`: the encoder of program graphs, and the head that ranks schedules with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from gnnperf.graph import ProgramGraph, collate, encode, schema_digest
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn.checkpoint import UNKNOWN, Contents, ModelProvenance
from gnnperf.nn.encoder import Encoder, EncoderConfig
from gnnperf.nn.graph_net import NETWORK
from gnnperf.nn.head import TIMED, HeadConfig, ScheduleHead
from gnnperf.nn.scheduled import ScheduledProgram, collate_programs
from gnnperf.nn.threads import one_thread
from gnnperf.schedules.recipes import fact_fields


@dataclass(frozen=True)
class Bundle:
    """An encoder ready to embed, and the head that ranks schedules with it.

    Attributes:
        encoder, head: in eval mode. The encoder of a loaded checkpoint is lean (`gnnperf.nn.lean`).
        calibration: how sure to be of what was measured, as JSON (`gnnperf.retrieval.confidence`); None where
            that was never learned.
        provenance: where the model comes from.
    """

    MODEL: ClassVar = "loop-nests"

    encoder: Encoder
    head: ScheduleHead
    calibration: Mapping[str, Any] | None = None
    provenance: ModelProvenance = UNKNOWN

    @cached_property
    def encoder_id(self) -> str:
        """Hash of the encoder's weights: embeddings of different encoders never meet in a search."""
        return encoder_id(self.encoder)

    @property
    def embedding_width(self) -> int:
        return self.encoder.config.embedding_width

    def embed(self, graphs: Sequence[ProgramGraph]) -> NDArray[np.float32]:
        """Embed b program graphs, at least one: f32[b, embedding_width], rows of norm 1."""
        with torch.inference_mode(), one_thread():
            embedding = self.encoder.embed(collate([encode(g) for g in graphs]))
        return embedding.numpy()

    def score(self, programs: Sequence[ScheduledProgram]) -> NDArray[np.float32]:
        """Score what schedules make of programs.

        Args:
            programs: b of them, of one program or of several (`gnnperf.nn.scheduled_programs`).

        Returns:
            f32[b]; among those of one program, the highest first is the order to try them in, and differences
            are in nats of runtime.
        """
        if not programs:
            return np.zeros(0, np.float32)
        with torch.inference_mode(), one_thread():
            graphs, node_costs, facts = collate_programs(programs)
            nodes, states = self.encoder.states(*graphs, node_costs)
            scores = self.head(nodes, states, graphs.node_kind, node_costs, graphs.batch, facts)
        return scores.numpy()

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """Layers of the network, fields of graphs, costs and schedules, kinds of nodes that take time."""
        return {
            "network": NETWORK,
            "schema_digest": schema_digest(),
            "cost_fields": [field.name for field in COST_FIELDS],
            "fact_fields": fact_fields(),
            "timed_nodes": list(TIMED),
        }

    def contents(self) -> Contents:
        """For `save_checkpoint`."""
        return Contents(
            {"encoder": self.encoder.state_dict(), "head": self.head.state_dict()},
            {"encoder": asdict(self.encoder.config), "head": asdict(self.head.config)},
            self.provenance,
            self.calibration,
        )

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """For `load_checkpoint`."""
        about = contents.hyperparameters
        encoder = Encoder(EncoderConfig(**about["encoder"]), lean=True)
        head = ScheduleHead(encoder.config.width, len(fact_fields()), HeadConfig(**about["head"]))
        return cls(
            contents.restore("encoder", encoder),
            contents.restore("head", head),
            contents.calibration,
            contents.provenance,
        )


def encoder_id(encoder: Encoder) -> str:
    """Hash of the weights and buffers: equal for equal encoders, however they were saved."""
    digest = hashlib.sha256()
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
