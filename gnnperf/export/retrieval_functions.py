"""Encoder and head for loop nests as functions of plain tensors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from gnnperf.export.functions import Function, TensorSpec
from gnnperf.graph import EDGE_FEATURES, GRAPH_FEATURES, NODE_FEATURES, ProgramGraph, collate, encode
from gnnperf.graph.builder import GraphBuilder
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn import Bundle, Encoder, ScheduleHead
from gnnperf.nn.scheduled import THREADS
from gnnperf.schedules.recipes import fact_fields

LOG = "log2"
"""Unit of columns in which quantities are sign(x)*log2(1+|x|); those of each field are in the registry."""


class Score(nn.Module):
    """Encoder and head in one pass."""

    def __init__(self, encoder: Encoder, head: ScheduleHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

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
        node_costs: Tensor,
        facts: Tensor,
    ) -> Tensor:
        """As of `Encoder.states` and `ScheduleHead.forward` -> f32[b]."""
        nodes, graphs = self.encoder.states(
            node_kind,
            node_features,
            edge_index,
            edge_kind,
            edge_features,
            graph_features,
            ptr,
            batch,
            node_costs,
        )
        scores: Tensor = self.head(nodes, graphs, node_kind, node_costs, batch, facts)
        return scores


def retrieval_functions(bundle: Bundle) -> tuple[Function, ...]:
    """`embed` and `score` of a bundle."""
    encoder, example = bundle.encoder.lean(), score_example()
    embedding = TensorSpec("embedding", "float32", ("b", bundle.embedding_width), "", "unit vectors")
    scores = TensorSpec(
        "scores", "float32", ("b",), "ln",
        "-ln(runtime) up to a constant of each program: of its schedules, the highest is tried first",
    )  # fmt: skip
    inputs = embed_inputs()
    return (
        Function("embed", encoder, inputs, (embedding,), example[: len(inputs)]),
        Function("score", Score(encoder, bundle.head), score_inputs(), (scores,), example),
    )


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
    )


def score_inputs() -> tuple[TensorSpec, ...]:
    """Of `score`: graphs of scheduled programs, what their nodes cost, and facts about the schedules."""
    costs = tuple(field.name for field in COST_FIELDS)
    return (
        *embed_inputs(),
        TensorSpec(
            "node_costs", "float32", ("n", len(costs)), "",
            f"cost_fields of each node on {THREADS} threads; 0 where its kind does not carry them", costs,
        ),
        TensorSpec(
            "facts", "float32", ("b", len(fact_fields())), "",
            "fact_fields of each schedule and what it does to its program; NaN where absent", fact_fields(),
        ),
    )  # fmt: skip


def describe_costs() -> list[dict[str, Any]]:
    """The columns of `node_costs`: name, kinds of nodes, unit, meaning, and scale.

    A column with the scale "log2" is 0 where there is none of the quantity.
    """
    return [asdict(field) for field in COST_FIELDS]


def score_example() -> tuple[Tensor, ...]:
    """Two small programs that cost nothing; `embed` takes all but the last two tensors."""
    batch = collate([encode(_nest(2)), encode(_nest(3))])
    costs, facts = (spec.shape[1] for spec in score_inputs()[-2:])
    return (*batch, torch.zeros(len(batch.node_kind), int(costs)), torch.zeros(2, int(facts)))


def _nest(depth: int) -> ProgramGraph:
    """Loops around a statement that writes one array."""
    g = GraphBuilder()
    loops = [g.node("loop", f"i{d}", loop_kind="spatial", extent=8, depth=d) for d in range(depth)]
    for d in range(1, depth):
        g.edge(loops[d - 1], loops[d], "contains", nesting_depth=d)
    statement = g.node("compute", "s", operations={"exp": 1}, flops=1, dtype="float32")
    write = g.node("access", "w", access_kind="write", element_bytes=4)
    array = g.node("buffer", "a", element_bytes=4, rank=depth, scope="global", dtype="float32")
    g.edge(loops[-1], statement, "contains", nesting_depth=depth)
    for loop in loops:
        g.edge(loop, write, "indexes", subscript="affine", stride_elements=1)
    g.edge(statement, write, "writes")
    g.edge(write, array, "writes")
    return g.build({})
