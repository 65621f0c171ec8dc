"""Program graph -> arrays for a network. Layout: the fields of the registry, in its order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Int64

from gnnperf.graph.fields import (
    EDGE_FEATURES,
    EDGE_FIELDS,
    GRAPH_FEATURES,
    GRAPH_FIELDS,
    NODE_FEATURES,
    NODE_FIELDS,
    Field,
    Value,
)
from gnnperf.graph.vocabulary import EDGE_KINDS, NODE_KINDS, RELATIONS

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph


@dataclass(frozen=True, slots=True)
class EncodedGraph:
    """One graph as arrays: n nodes, e edges (twice those of the graph: each with its reverse).

    F = NODE_FEATURES, G = EDGE_FEATURES, H = GRAPH_FEATURES. `node_kind` and `edge_kind` index
    NODE_KINDS and EDGE_KINDS. Numbers enter as sign(x)*log2(1+|x|); slots of fields that a kind
    does not carry are 0.
    """

    node_kind: Int64[np.ndarray, " n"]
    node_features: Float32[np.ndarray, "n F"]
    edge_index: Int64[np.ndarray, "2 e"]
    edge_kind: Int64[np.ndarray, " e"]
    edge_features: Float32[np.ndarray, "e G"]
    graph_features: Float32[np.ndarray, " H"]


def signed_log2(x: float) -> float:
    """sign(x) * log2(1 + |x|): how every number enters the network."""
    return math.copysign(math.log2(1.0 + abs(x)), x)


def encode(graph: ProgramGraph) -> EncodedGraph:
    """Encode one graph; deterministic, in the order of `graph.nodes` and `graph.edges`."""
    edges = graph.edges
    node_kind = np.array([NODE_KINDS.index(n.kind) for n in graph.nodes], dtype=np.int64)
    forward = np.array([(e.source, e.target) for e in edges], dtype=np.int64).reshape(-1, 2).T
    edge_kind = np.array([EDGE_KINDS.index(e.kind) for e in edges], dtype=np.int64)
    different = {id(e.features): e.features for e in edges}  # equal edges of a graph share their fields
    row = {key: i for i, key in enumerate(different)}
    rows = _rows(different.values(), len(different), _EDGE_SLOTS, EDGE_FEATURES)
    edge_features = rows[[row[id(e.features)] for e in edges]]
    return EncodedGraph(
        node_kind,
        _rows((n.features for n in graph.nodes), len(graph.nodes), _NODE_SLOTS, NODE_FEATURES),
        np.concatenate([forward, forward[::-1]], axis=1),
        np.concatenate([edge_kind, edge_kind + len(RELATIONS)]),
        np.concatenate([edge_features, edge_features]),
        _rows([graph.values], 1, _GRAPH_SLOTS, GRAPH_FEATURES)[0],
    )


@dataclass(frozen=True, slots=True)
class _Slot:
    type: str
    offset: int
    class_of: Mapping[str, int]  # choice -> position; the class "" has none


def _slots(fields: Iterable[Field]) -> dict[str, _Slot]:
    result, offset = {}, 0
    for f in fields:
        positions = {choice: offset + f.classes.index(c) for choice, c in f.choices.items() if c}
        result[f.name] = _Slot(f.type, offset, positions)
        offset += f.width
    return result


_NODE_SLOTS, _EDGE_SLOTS, _GRAPH_SLOTS = map(_slots, (NODE_FIELDS, EDGE_FIELDS, GRAPH_FIELDS))


def _rows(
    items: Iterable[Mapping[str, Value]], count: int, slots: Mapping[str, _Slot], width: int
) -> Float32[np.ndarray, "rows width"]:
    """One row per item. Defaults are left out of the items and encode as 0."""
    places: list[int] = []
    numbers: list[float] = []
    for start, features in zip(range(0, count * width, width), items, strict=True):
        for name, value in features.items():
            slot = slots[name]
            if isinstance(value, str):
                places.append(start + slot.class_of[value])
                numbers.append(1.0)
            elif isinstance(value, int | float):
                places.append(start + slot.offset)
                numbers.append(signed_log2(value))
            else:
                totals: Counter[int] = Counter()
                for choice, count_of in value.items():
                    totals[slot.class_of[choice]] += count_of
                places += (start + position for position in totals)
                numbers += map(signed_log2, totals.values())
    rows = np.zeros(count * width, dtype=np.float32)
    rows[np.array(places, dtype=np.int64)] = numbers
    return rows.reshape(count, width)
