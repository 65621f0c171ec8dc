"""Encoder and retrieval head as functions of plain tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnperf.export.functions import Function, TensorSpec
from gnnperf.graph import EDGE_FEATURES, GRAPH_FEATURES, NODE_FEATURES, ProgramGraph, collate, encode
from gnnperf.graph.builder import GraphBuilder
from gnnperf.nn import PROFILE_FIELDS, Bundle, Encoder, RetrievalHead

LOG = "log2"
"""Unit of columns in which quantities are sign(x)*log2(1+|x|); those of each field are in the registry."""


class Embed(nn.Module):
    """Embedding and fingerprint of a batch of graphs, in one pass."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

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
        profile: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """As of `Encoder.forward` -> (f32[b, embedding], f32[b, width])."""
        state = self.encoder.fingerprint(
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
        return F.normalize(self.encoder.project(state), dim=1), state


class Score(nn.Module):
    """The retrieval head."""

    def __init__(self, head: RetrievalHead) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, states: Tensor, schedules: Tensor, effects: Tensor, program: Tensor, schedule: Tensor
    ) -> tuple[Tensor]:
        """As of `RetrievalHead.forward` -> (f32[m],)."""
        return (self.head(states, schedules, effects, program, schedule),)


def retrieval_functions(bundle: Bundle) -> tuple[Function, ...]:
    """`embed` and `score` of a bundle."""
    width, effects = bundle.encoder.config.width, bundle.effect_fields
    schedule_fields = tuple(bundle.schedule_fields)
    embed = Function(
        "embed",
        Embed(bundle.encoder.lean()),
        embed_inputs(),
        (
            TensorSpec("embedding", "float32", ("b", bundle.embedding_width), "", "unit vectors"),
            TensorSpec("fingerprint", "float32", ("b", width), "", "state of each graph, what `score` reads"),
        ),
        embed_example(),
    )
    inputs = (
        TensorSpec("states", "float32", ("b", width), "", "fingerprints of b programs"),
        TensorSpec(
            "schedules", "float32", ("s", len(schedule_fields)), "", "features of s schedules",
            schedule_fields,
        ),
        TensorSpec(
            "effects", "float32", ("m", len(effects)), "",
            "what each schedule would do to each program; NaN where absent", effects,
        ),
        TensorSpec("program", "int64", ("m",), "", "row of states of each pair"),
        TensorSpec("schedule", "int64", ("m",), "", "row of schedules of each pair"),
    )  # fmt: skip
    scores = TensorSpec("scores", "float32", ("m",), "ln", "predicted ln(best runtime known / runtime)")
    example = (
        torch.zeros(2, width),
        torch.zeros(3, len(schedule_fields)),
        torch.zeros(6, len(effects)),
        torch.tensor([0, 0, 0, 1, 1, 1]),
        torch.tensor([0, 1, 2, 0, 1, 2]),
    )
    return embed, Function("score", Score(bundle.head), inputs, (scores,), example)


def embed_inputs() -> tuple[TensorSpec, ...]:
    """Of `embed`, as this version of the graph's field registry makes them."""
    return (
        TensorSpec("node_kind", "int64", ("n",), "", "index into node_kinds"),
        TensorSpec("node_features", "float32", ("n", NODE_FEATURES), LOG, "fields of the registry"),
        TensorSpec("edge_index", "int64", (2, "e"), "", "source and target; every edge also reversed"),
        TensorSpec("edge_kind", "int64", ("e",), "", "index into relations, then into their reverses"),
        TensorSpec("edge_features", "float32", ("e", EDGE_FEATURES), LOG, "fields of the registry"),
        TensorSpec("graph_features", "float32", ("b", GRAPH_FEATURES), LOG, "fields of the registry"),
        TensorSpec("ptr", "int64", ("b+1",), "", "node boundaries of the graphs"),
        TensorSpec("batch", "int64", ("n",), "", "graph of each node"),
        TensorSpec(
            "profile", "float32", ("b", len(PROFILE_FIELDS)), "log2",
            "dynamic profile as log2 of each value; NaN where absent", PROFILE_FIELDS,
        ),
    )  # fmt: skip


def embed_example() -> tuple[Tensor, ...]:
    """Two small graphs without profiles."""
    batch = collate([encode(_loops(2)), encode(_loops(3))])
    return (*batch, torch.full((2, len(PROFILE_FIELDS)), float("nan")))


def _loops(depth: int) -> ProgramGraph:
    g = GraphBuilder()
    loops = [g.node("loop", f"i{d}", loop_kind="spatial", extent=8, depth=d) for d in range(depth)]
    for d in range(1, depth):
        g.edge(loops[d - 1], loops[d], "contains", nesting_depth=d)
    return g.build({})
