"""The graph's field registry as plain data: what a client needs to turn a program graph into tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnperf.graph import EDGE_FIELDS, GRAPH_FIELDS, NODE_FIELDS, NODE_KINDS, RELATIONS, Field, schema_digest
from gnnperf.graph.program_graph import SCHEMA_VERSION
from gnnperf.graph.vocabulary import ENDPOINTS


def graph_registry() -> dict[str, Any]:
    """Kinds, relations with the node kinds they may join, and every field with its place in the encoding.

    A field occupies `width` columns from `offset` on. `choices`: accepted word -> column after `offset`,
    null for the words that are encoded as zeros. `required`: a graph may not leave it out.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "schema_digest": schema_digest(),
        "node_kinds": list(NODE_KINDS),
        "relations": [
            {"name": name, "joins": sorted(map(list, ENDPOINTS[name]))} for name in RELATIONS
        ],
        "fields": {
            "node": _described(NODE_FIELDS),
            "edge": _described(EDGE_FIELDS),
            "graph": _described(GRAPH_FIELDS),
        },
    }  # fmt: skip


def _described(fields: Sequence[Field]) -> list[dict[str, Any]]:
    rows, offset = [], 0
    for field in fields:
        classes = field.classes
        rows.append(
            {
                "name": field.name,
                "kinds": list(field.kinds),
                "type": field.type,
                "unit": field.unit,
                "meaning": field.meaning,
                "offset": offset,
                "width": field.width,
                "required": field.default is None,
                "choices": {word: classes.index(c) if c else None for word, c in field.choices.items()},
            }
        )
        offset += field.width
    return rows
