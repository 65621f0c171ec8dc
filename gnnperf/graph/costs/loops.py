"""What one iteration and one run of a loop touch and compute."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from gnnperf.graph.costs.arrays import GraphArrays
from gnnperf.graph.costs.columns import decoded, node_column
from gnnperf.graph.costs.statements import BUFFER, Statements
from gnnperf.graph.costs.tiles import LINE_BYTES, Tiles


def loop_columns(
    s: Statements, graphs: GraphArrays, inside: Float64[np.ndarray, "s E"], tiles: Tiles
) -> Float64[np.ndarray, "n L"]:
    """In the order of `LOOP_COSTS`, without logarithms; a row for every node, of which loops' count."""
    nodes = len(graphs.node_kind)
    loops = s.loops[s.owner]
    access, level = np.nonzero(loops >= 0)
    loop = loops[access, level]
    buffer, most = _buffers(s, graphs)
    key, place = np.unique(np.stack([loop, buffer[access]]), axis=1, return_inverse=True)
    columns = []
    for lines in (tiles.lines[access, level], tiles.lines[access, level + 1]):
        touched = np.zeros(key.shape[1])
        np.maximum.at(touched, place.reshape(-1), np.minimum(lines * LINE_BYTES, most[access]))
        columns.append(np.bincount(key[0], touched, nodes))
    statement, level = np.nonzero(s.loops >= 0)
    flops = decoded(graphs.node_features[s.node, node_column("flops")])
    of_iteration = flops[statement] * inside[statement, level]
    columns.append(np.bincount(s.loops[statement, level], of_iteration, nodes))
    return np.stack(columns, 1)


def _buffers(s: Statements, graphs: GraphArrays) -> tuple[Int64[np.ndarray, " a"], Float64[np.ndarray, " a"]]:
    """The buffer of each access, and its bytes in whole lines; the access itself where it has none."""
    kind, (source, target) = graphs.node_kind, graphs.edge_index
    found = np.arange(len(kind))
    of_buffer = kind[source] == BUFFER  # every edge has its reverse
    found[target[of_buffer]] = source[of_buffer]
    buffer = found[s.access]
    size = decoded(graphs.node_features[buffer, node_column("size_bytes")])
    lines = np.ceil(size / LINE_BYTES)
    return buffer, np.where((buffer != s.access) & (size > 0), lines * LINE_BYTES, np.inf)
