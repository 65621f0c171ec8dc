"""The encoder: a program graph, scheduled or not -> states of its nodes, and a point on the unit sphere."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.nn.graph_net import GraphNet


@dataclass(frozen=True)
class EncoderConfig:
    """Hyperparameters of the encoder; input widths come from the graph's field registry.

    Attributes:
        width: width of node states.
        layers: number of message-passing layers; 0 for none.
        heads: attention heads, in the layers and in the readout; divides `width`.
        embedding_width: dimensions of the embedding.
        dropout: probability, in training only.
    """

    width: int = 64
    layers: int = 2
    heads: int = 4
    embedding_width: int = 64
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("layers", 0), ("heads", 1), ("embedding_width", 1)):
            if getattr(self, name) < least:
                raise InputError(f"expected {name} of at least {least}, got {name}={getattr(self, name)}")
        if self.width % self.heads:
            raise InputError(f"expected heads that divide width={self.width}, got heads={self.heads}")


DEFAULT_CONFIG = EncoderConfig()


class Encoder(GraphNet):
    """Typed message passing, attention readout, projection to the unit sphere.

    One network for programs as they are, whose embeddings find their like (`forward`), and for what schedules
    make of them (`states`), which a head judges: those come with what each node costs a processor.

    Args:
        config: hyperparameters.
        lean: as of `GraphNet`: plain tensors, for inference.
    """

    def __init__(self, config: EncoderConfig = DEFAULT_CONFIG, lean: bool = False) -> None:
        width = config.width
        super().__init__(width, config.layers, config.heads, config.dropout, lean)
        self.config = config
        # What all programs have in common is taken out across the batch, not within each program:
        # otherwise all embeddings start alike, and the contrastive loss collapses them to one point.
        self.project = nn.Sequential(
            nn.BatchNorm1d(width, affine=False),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, config.embedding_width),
        )

    def forward(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        graph_features: Tensor,
        ptr: Tensor,
        batch: Tensor,
    ) -> Tensor:
        """Embed a batch of b graphs with n nodes and e edges in all: `encoder(*graphs)`.

        Args:
            node_kind: i64[n], index into NODE_KINDS.
            node_features: f32[n, F].
            edge_index: i64[2, e], source and target node of each edge.
            edge_kind: i64[e], index into EDGE_KINDS.
            edge_features: f32[e, G].
            graph_features: f32[b, H].
            ptr: i64[b + 1], node boundaries of the graphs.
            batch: i64[n], the graph of each node.

        Returns:
            f32[b, embedding_width], rows of Euclidean norm 1.
        """
        state = self.graph_states(
            node_kind, node_features, edge_index, edge_kind, edge_features, graph_features, ptr, batch
        )
        return F.normalize(self.project(state), dim=1)

    def embed(self, graphs: GraphBatch) -> Tensor:
        """`forward` of a collated batch: f32[b, embedding_width]."""
        embedding: Tensor = self(*graphs)
        return embedding

    @torch.jit.unused
    def lean(self) -> Encoder:
        """The same encoder for inference, with copies of the weights: see `gnnperf.nn.lean`."""
        twin = Encoder(self.config, lean=True)
        twin.load_state_dict(self.state_dict())
        return twin.eval().requires_grad_(False)
