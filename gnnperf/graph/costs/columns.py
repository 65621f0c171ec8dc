"""Where quantities of program graphs stand in encoded rows, and their values there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Float64

from gnnperf.graph.fields import EDGE_FIELDS, NODE_FIELDS, Field


def columns_of(fields: Sequence[Field], *names: str) -> list[int]:
    """Columns of the named fields, all their classes, in the order of `names`."""
    starts, at = {}, 0
    for field in fields:
        starts[field.name] = range(at, at + field.width)
        at += field.width
    return [column for name in names for column in starts[name]]


def node_column(name: str, choice: str = "") -> int:
    """Column of a node's field, of one choice of it where it is a category."""
    return _column(NODE_FIELDS, name, choice)


def edge_column(name: str, choice: str = "") -> int:
    """The same of an edge's field."""
    return _column(EDGE_FIELDS, name, choice)


def _column(fields: Sequence[Field], name: str, choice: str) -> int:
    field = next(f for f in fields if f.name == name)
    offset = field.classes.index(field.choices[choice]) if choice else 0
    return columns_of(fields, name)[offset]


def decoded(column: Float32[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """The numbers that `signed_log2` encoded, whole again where they were below 2^20."""
    wide = column.astype(np.float64)
    value = np.sign(wide) * (np.exp2(np.abs(wide)) - 1)
    whole = np.rint(value)
    return np.where(np.abs(value) < 1 << 20, np.where(np.abs(value - whole) < 0.1, whole, value), value)


def log2_or_0(amount: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """log2 of amounts, 0 where there is nothing."""
    return np.log2(np.where(amount > 0, amount, 1.0))
