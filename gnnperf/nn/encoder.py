"""The encoder: program graph -> point on the unit sphere."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.nn.graph_net import GraphNet
from gnnperf.nn.profile import PROFILE_FIELDS, ProfileEncoder


@dataclass(frozen=True)
class EncoderConfig:
    """Hyperparameters of the encoder; input widths come from the graph's field registry.

    Attributes:
        width: width of node states.
        layers: number of message-passing layers.
        heads: attention heads, in the layers and in the readout; divides `width`.
        embedding_width: dimensions of the embedding.
        dropout: probability, in training only.
    """

    width: int = 64
    layers: int = 3
    heads: int = 4
    embedding_width: int = 64
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("width", "layers", "heads", "embedding_width"):
            if getattr(self, name) < 1:
                raise InputError(f"expected {name} of at least 1, got {name}={getattr(self, name)}")
        if self.width % self.heads:
            raise InputError(f"expected heads that divide width={self.width}, got heads={self.heads}")


DEFAULT_CONFIG = EncoderConfig()


class Encoder(GraphNet):
    """Typed message passing, attention readout, projection to the unit sphere.

    Three views of one net: `node_states` (per node), `fingerprint` (per graph, before the
    projection, with the profile added when there is one) and `forward` (the embedding).

    Args:
        config: hyperparameters.
        lean: as of `GraphNet`: plain tensors, for inference.
    """

    def __init__(self, config: EncoderConfig = DEFAULT_CONFIG, lean: bool = False) -> None:
        width = config.width
        super().__init__(width, config.layers, config.heads, config.dropout, lean=lean)
        self.config = config
        self.profile = ProfileEncoder(len(PROFILE_FIELDS), width)
        # What all programs have in common is taken out across the batch, not within each program:
        # otherwise all embeddings start alike, and the contrastive loss collapses them to one point.
        self.project = nn.Sequential(
            nn.BatchNorm1d(width, affine=False),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, config.embedding_width),
        )

    def fingerprint(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        graph_features: Tensor,
        ptr: Tensor,
        batch: Tensor,
        profile: Tensor | None = None,
    ) -> Tensor:
        """As `forward`, before the projection: f32[b, width]."""
        state = self.graph_states(
            node_kind, node_features, edge_index, edge_kind, edge_features, graph_features, ptr, batch
        )
        if profile is not None:
            state = state + self.profile(profile)
        return state

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
        profile: Tensor | None = None,
    ) -> Tensor:
        """Embed a batch of b graphs with n nodes and e edges in all: `encoder(*graphs, profile)`.

        Args:
            node_kind: i64[n], index into NODE_KINDS.
            node_features: f32[n, F].
            edge_index: i64[2, e], source and target node of each edge.
            edge_kind: i64[e], index into EDGE_KINDS.
            edge_features: f32[e, G].
            graph_features: f32[b, H].
            ptr: i64[b + 1], node boundaries of the graphs.
            batch: i64[n], the graph of each node.
            profile: f32[b, P] as made by `profile_row`, NaN where absent; None: no graph has one.

        Returns:
            f32[b, embedding_width], rows of Euclidean norm 1.
        """
        state = self.fingerprint(
            node_kind,
            node_features,
            edge_index,
            edge_kind,
            edge_features,
            graph_features,
            ptr,
            batch,
            profile,
        )
        return F.normalize(self.project(state), dim=1)

    def embed(self, graphs: GraphBatch, profile: Tensor | None = None) -> Tensor:
        """`forward` of a collated batch: f32[b, embedding_width]."""
        embedding: Tensor = self(*graphs, profile)
        return embedding

    @torch.jit.unused
    def lean(self) -> Encoder:
        """The same encoder for inference, with copies of the weights: see `gnnperf.nn.lean`."""
        twin = Encoder(self.config, lean=True)
        twin.load_state_dict(self.state_dict())
        return twin.eval().requires_grad_(False)

    def fit_scales(self, graphs: GraphBatch, profile: Tensor) -> None:
        """Take the statistics of the input features from the training graphs."""
        self.fit_graph_scales(graphs)
        self.profile.scale.fit(profile)
