"""Program graphs as torch-geometric has them: `Data`, and `HeteroData` as a view with a store for each kind.

Both hold what a network reads, by the names of `GraphBatch`, and beside it the fields as they are:
`node_fields`, `edge_fields` and `graph_fields`, f64, with the columns that `columns` names. A number or flag
is its value; a category the number of its choice, -1 where it is left out; a histogram has a column for each
choice. Rows of edges are those of `ProgramGraph.edges`, then of their reverses. `about` is the graph as JSON,
from which it comes back.

`HeteroData` has every type of node and edge in every graph, so that graphs collate, some of them empty;
`position` is the row in `ProgramGraph.nodes` or `ProgramGraph.edges`.

Importing torch-geometric takes 1.4 to 1.8 s: nothing imports this module until a graph is converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gnnperf.errors import InputError
from gnnperf.graph.collation import tensors_of
from gnnperf.graph.encoding import encode
from gnnperf.graph.fields import FIELDS, Field, Level, Value
from gnnperf.graph.vocabulary import EDGE_KINDS, ENDPOINTS, NODE_KINDS, RELATIONS

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph

_JOINED = tuple((s, relation, t) for relation in RELATIONS for s, t in sorted(ENDPOINTS[relation]))
EDGE_TYPES = (*_JOINED, *((t, f"{relation}_reversed", s) for s, relation, t in _JOINED))
"""Of `HeteroData`: (source kind, edge kind, target kind)."""


def columns(level: Level) -> tuple[str, ...]:
    """Names of the columns of `node_fields`, `edge_fields` or `graph_fields`: that of the field, or, for a
    choice of a histogram, "field=choice"."""
    return tuple(f.name if choice is None else f"{f.name}={choice}" for f, choice in _columns(level))


def to_data(graph: ProgramGraph) -> Data:
    """See `ProgramGraph.to_pyg`."""
    return Data(**_tensors(graph), about=graph.to_json(), num_nodes=len(graph.nodes))


def to_hetero(graph: ProgramGraph) -> HeteroData:
    """See `ProgramGraph.to_pyg`."""
    tensors = _tensors(graph)
    result = HeteroData(about=graph.to_json(), **{n: tensors[n] for n in ("graph_features", "graph_fields")})
    local = torch.zeros_like(tensors["node_kind"])
    for number, kind in enumerate(NODE_KINDS):
        (rows,) = (tensors["node_kind"] == number).nonzero(as_tuple=True)
        local[rows] = torch.arange(len(rows))
        store = result[kind]
        store.num_nodes, store.position = len(rows), rows
        store.node_features, store.node_fields = tensors["node_features"][rows], tensors["node_fields"][rows]
    ends = tensors["node_kind"][tensors["edge_index"]]
    for source, relation, target in EDGE_TYPES:
        wanted = torch.tensor([[NODE_KINDS.index(source)], [NODE_KINDS.index(target)]])
        fits = (tensors["edge_kind"] == EDGE_KINDS.index(relation)) & (ends == wanted).all(0)
        (rows,) = fits.nonzero(as_tuple=True)
        store = result[source, relation, target]
        store.edge_index = local[tensors["edge_index"][:, rows]]
        store.edge_features, store.edge_fields = tensors["edge_features"][rows], tensors["edge_fields"][rows]
        store.position = rows % max(1, len(graph.edges))
    return result


def json_of(data: Data | HeteroData) -> str:
    """Of the graph that data were made of. Raises InputError for a batch, and where there is none."""
    if isinstance(data, Batch):
        raise InputError(f"expected one graph, got a batch of {data.num_graphs}; take one with get_example")
    if "about" not in data:
        raise InputError(OTHERS)
    return str(data.about)


def require_made_of(graph: ProgramGraph, data: Data | HeteroData) -> None:
    """Raises InputError where a tensor of data is not that of the graph."""
    expected = to_hetero(graph) if isinstance(data, HeteroData) else to_data(graph)
    stores = zip(data.stores, expected.stores, strict=False)
    if len(data.stores) != len(expected.stores) or not all(
        name in got and torch.equal(got[name], value)
        for got, wanted in stores
        for name, value in wanted.items()
        if isinstance(value, Tensor)
    ):
        raise InputError(OTHERS)


OTHERS = "expected all of what ProgramGraph.to_pyg of this version made, and nothing else, got other data"


def _tensors(graph: ProgramGraph) -> dict[str, Tensor]:
    """Everything of a graph that is a tensor, by name."""
    edges = _columns_of("edge", [edge.features for edge in graph.edges])
    fields = {
        "node_fields": _columns_of("node", [node.features for node in graph.nodes]),
        "edge_fields": np.concatenate([edges, edges]),
        "graph_fields": _columns_of("graph", [graph.values]),
    }
    return tensors_of(encode(graph)) | {name: torch.from_numpy(array) for name, array in fields.items()}


@cache
def _columns(level: Level) -> tuple[tuple[Field, str | None], ...]:
    """The field of each column, and the choice of a histogram."""
    return tuple(
        (field, choice)
        for field in FIELDS[level]
        for choice in (field.choices if field.type == "histogram" else [None])
    )


@cache
def _place(level: Level) -> Mapping[tuple[str, str | None], int]:
    return {(field.name, choice): at for at, (field, choice) in enumerate(_columns(level))}


@cache
def _left_out(level: Level) -> Float64[np.ndarray, " c"]:
    """The row of what has no value but defaults."""
    return np.array([-1.0 if field.type == "category" else 0.0 for field, _ in _columns(level)])


def _columns_of(level: Level, items: Sequence[Mapping[str, Value]]) -> Float64[np.ndarray, "rows c"]:
    rows, place = np.tile(_left_out(level), (len(items), 1)), _place(level)
    for row, features in enumerate(items):
        for name, value in features.items():
            if isinstance(value, str):
                at = place[name, None]
                rows[row, at] = list(_columns(level)[at][0].choices).index(value)
                continue
            for choice, number in ({None: value} if isinstance(value, int | float) else value).items():
                rows[row, place[name, choice]] = number
    return rows
