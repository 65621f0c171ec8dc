"""Program graphs as torch-geometric has them: `Data`, and `HeteroData` as a view with a store for each kind.

Both hold what a network reads, by the names of `GraphBatch`, and beside it the fields as they are, from which
the graph comes back: `node_fields`, `edge_fields` and `graph_fields`, f64, with the columns that `columns`
names. A number or flag is its value; a category the number of its choice, -1 where it is left out; a
histogram has a column for each choice. Rows of edges are those of `ProgramGraph.edges`, then of their
reverses. `about` is JSON of what is no tensor: labels, the dynamic profile, the digest of the schema, and
whole numbers that an f64 does not hold.

`HeteroData` has every type of node and edge in every graph, so that graphs collate, some of them empty;
`position` is the row in `ProgramGraph.nodes` or `ProgramGraph.edges`.

Importing torch-geometric takes 1.4 to 1.8 s: nothing imports this module until a graph is converted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gnnperf.errors import InputError
from gnnperf.graph.encoding import encode
from gnnperf.graph.fields import FIELDS, Field, Level, Value
from gnnperf.graph.schema import schema_digest
from gnnperf.graph.vocabulary import EDGE_KINDS, ENDPOINTS, NODE_KINDS, RELATIONS

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph

_JOINED = tuple((s, relation, t) for relation in RELATIONS for s, t in sorted(ENDPOINTS[relation]))
EDGE_TYPES = (*_JOINED, *((t, f"{relation}_reversed", s) for s, relation, t in _JOINED))
"""Of `HeteroData`: (source kind, edge kind, target kind)."""

Exact = list[tuple[int, int, int]]
"""Row, column and value of what an f64 does not hold."""


def columns(level: Level) -> tuple[str, ...]:
    """Names of the columns of `node_fields`, `edge_fields` or `graph_fields`: that of the field, or, for a
    choice of a histogram, "field=choice"."""
    return tuple(f.name if choice is None else f"{f.name}={choice}" for f, choice in _columns(level))


def to_data(graph: ProgramGraph) -> Data:
    """See `ProgramGraph.to_pyg`."""
    tensors, about = _tensors(graph)
    return Data(**tensors, about=about, num_nodes=len(graph.nodes))


def to_hetero(graph: ProgramGraph) -> HeteroData:
    """See `ProgramGraph.to_pyg`."""
    tensors, about = _tensors(graph)
    result = HeteroData(
        graph_features=tensors["graph_features"], graph_fields=tensors["graph_fields"], about=about
    )
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


def document_of(data: Data | HeteroData) -> dict[str, Any]:
    """A graph as `ProgramGraph.from_dict` reads it, without the version; see `ProgramGraph.from_pyg`."""
    if isinstance(data, Batch):
        raise InputError(f"expected one graph, got a batch of {data.num_graphs}; take one with get_example")
    try:
        about = json.loads(data["about"])
        if about["schema"] != _schema():
            raise InputError("expected a graph with the fields of this version, got those of another")
        rows = _rows_of_hetero(data) if isinstance(data, HeteroData) else _rows_of_data(data)
        features = {level: _values(level, getattr(rows, level), about["exact"][level]) for level in FIELDS}
        each = zip(rows.node_kind.tolist(), features["node"], about["labels"], strict=True)
        joined = zip(*rows.ends.tolist(), rows.edge_kind.tolist(), features["edge"], strict=True)
        (values,) = features["graph"]
        return {
            "nodes": [
                {"kind": NODE_KINDS[kind], "features": values, "label": label} for kind, values, label in each
            ],
            "edges": [
                {"source": source, "target": target, "kind": RELATIONS[kind], "features": values}
                for source, target, kind, values in joined
            ],
            "values": values,
            "profile": about["profile"],
        }
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"expected all of what ProgramGraph.to_pyg made, got other data: {error!r}"
        ) from error


class _Rows(NamedTuple):
    """What a graph is made of again, edges without their reverses."""

    node_kind: Tensor
    node: Tensor
    ends: Tensor
    edge_kind: Tensor
    edge: Tensor
    graph: Tensor


def _rows_of_data(data: Data) -> _Rows:
    forward = data["edge_kind"] < len(RELATIONS)
    return _Rows(
        data["node_kind"], data["node_fields"],
        data["edge_index"][:, forward], data["edge_kind"][forward], data["edge_fields"][forward],
        data["graph_fields"],
    )  # fmt: skip


def _rows_of_hetero(data: HeteroData) -> _Rows:
    stores = [data[kind] for kind in NODE_KINDS]
    nodes = torch.cat([store.position for store in stores]).argsort()
    kinds = [torch.full_like(store.position, kind) for kind, store in enumerate(stores)]
    joined = [data[edge_type] for edge_type in _JOINED]
    edges = torch.cat([store.position for store in joined]).argsort()
    ends = [
        torch.stack([data[source].position[store.edge_index[0]], data[target].position[store.edge_index[1]]])
        for (source, _, target), store in zip(_JOINED, joined, strict=True)
    ]
    relations = [
        torch.full_like(store.position, RELATIONS.index(relation))
        for (_, relation, _), store in zip(_JOINED, joined, strict=True)
    ]
    return _Rows(
        torch.cat(kinds)[nodes],
        torch.cat([store.node_fields for store in stores])[nodes],
        torch.cat(ends, dim=1)[:, edges],
        torch.cat(relations)[edges],
        torch.cat([store.edge_fields for store in joined])[edges],
        data["graph_fields"],
    )


def _tensors(graph: ProgramGraph) -> tuple[dict[str, Tensor], str]:
    """Everything of a graph that is a tensor, by name, and the rest as JSON."""
    encoded = encode(graph)
    nodes, of_nodes = _columns_of("node", [node.features for node in graph.nodes])
    edges, of_edges = _columns_of("edge", [edge.features for edge in graph.edges])
    values, of_values = _columns_of("graph", [graph.values])
    arrays = {
        "node_kind": encoded.node_kind,
        "node_features": encoded.node_features,
        "edge_index": encoded.edge_index,
        "edge_kind": encoded.edge_kind,
        "edge_features": encoded.edge_features,
        "graph_features": encoded.graph_features[None],
        "node_fields": nodes,
        "edge_fields": np.concatenate([edges, edges]),
        "graph_fields": values,
    }
    about = {
        "schema": _schema(),
        "labels": [node.label for node in graph.nodes],
        "profile": None if graph.profile is None else dict(graph.profile),
        "exact": {"node": of_nodes, "edge": of_edges, "graph": of_values},
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, json.dumps(about)


@cache
def _schema() -> str:
    return schema_digest()


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


def _columns_of(
    level: Level, items: Sequence[Mapping[str, Value]]
) -> tuple[Float64[np.ndarray, "rows c"], Exact]:
    rows, exact, place = np.tile(_left_out(level), (len(items), 1)), Exact(), _place(level)
    for row, features in enumerate(items):
        for name, value in features.items():
            if isinstance(value, str):
                at = place[name, None]
                rows[row, at] = list(_columns(level)[at][0].choices).index(value)
                continue
            parts = {None: value} if isinstance(value, int | float) else value
            for choice, number in parts.items():
                at = place[name, choice]
                rows[row, at] = number
                if isinstance(number, int) and int(rows[row, at]) != number:
                    exact.append((row, at, number))
    return rows, exact


def _values(level: Level, tensor: Tensor, exact: Exact) -> list[dict[str, Any]]:
    """The inverse of `_columns_of`."""
    rows, known = tensor.cpu().numpy(), _columns(level)
    if rows.ndim != 2 or rows.shape[1] != len(known):
        raise ValueError(f"{level}_fields of shape {rows.shape}, not of {len(known)} columns")
    numbers: dict[tuple[int, int], int] = {(row, at): number for row, at, number in exact}
    result: list[dict[str, Any]] = [{} for _ in rows]
    for row, at in np.argwhere(rows != _left_out(level)).tolist():
        field, choice = known[at]
        held = float(rows[row, at])
        # Floats lose digits after the twelfth where graphs are made, whole numbers do not.
        number = numbers.get((row, at), int(held) if held.is_integer() else held)
        if choice is not None:
            result[row].setdefault(field.name, {})[choice] = int(number)
        elif field.type == "category":
            result[row][field.name] = list(field.choices)[int(number)]
        else:
            result[row][field.name] = bool(number) if field.type == "flag" else number
    return result
