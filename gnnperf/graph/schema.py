"""Which fields a network reads: their hash is checked when weights are loaded."""

from __future__ import annotations

import hashlib

from gnnperf.graph import fields
from gnnperf.graph.costs.fields import COST_FIELDS
from gnnperf.graph.vocabulary import ENDPOINTS, NODE_KINDS


def schema_digest() -> str:
    """Hash of the encoding and of the cost fields: kinds, fields, their order, units and classes."""
    described = [
        [f.name, list(f.kinds), f.unit, f.type, sorted(f.choices.items()), list(f.classes)]
        for level in fields.FIELDS.values()
        for f in level
    ]
    costs = [[f.name, list(f.kinds), f.unit, f.scale] for f in COST_FIELDS]
    text = repr([NODE_KINDS, sorted((r, sorted(p)) for r, p in ENDPOINTS.items()), described, costs])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
