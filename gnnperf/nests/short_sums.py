"""Sums of a few terms, as the expressions that they are:

    for i, k in 0..2: y[i] += w[k] * x[i + k]           for i: y[i] += w[0] * x[i] + w[1] * x[i + 1]

Filters are often written so. Terms that stay in registers take no loop, and what reads the sum may compute
it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import reduce
from math import prod

from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import apart, band, extent, mentions, rebuild, varies
from gnnperf.nests.dtypes import value_dtype
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Node,
    Op,
    Statement,
    equals_number,
    expressions_of,
    loads,
    substitute,
)
from gnnperf.nests.subscripts import canonical_subscripts

MOST_TERMS = 9
"""Of a filter: three by three, or along a line."""


def write_out_sums(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """The node, without the loops over the terms of a sum, product or extreme."""
    nest = band(node)
    if len(nest.body) != 1 or not isinstance(nest.body[0], Statement):
        return node
    statement = nest.body[0]
    if statement.reduce is None or statement.guard is not None:
        return node
    terms = tuple(lp for lp in nest.loops if not varies(statement.target, lp.iterator))
    others = tuple(lp for lp in nest.loops if lp not in terms)
    counts = [extent(lp) for lp in terms]
    if not terms or not others or None in counts or not 1 < prod(n or 0 for n in counts) <= MOST_TERMS:
        return node
    names = [lp.iterator for lp in terms]
    if any(mentions(e, name) for lp in others for e in expressions_of(lp) for name in names):
        return node
    starts = [constant(lp.start) for lp in terms]
    reads_itself = any(ld.buffer == statement.target.buffer for ld in loads(statement.value))
    if None in starts or reads_itself or not apart(statement.target, others):
        return node
    if not all(lp.independent and lp.step == 1 for lp in nest.loops):
        return node
    dtype = buffers[statement.target.buffer].dtype
    whole = statement.value
    if value_dtype(whole, buffers) != dtype:
        whole = Op(f"cast:{dtype}", (whole,))
    turns = itertools.product(
        *(range(s or 0, (s or 0) + (n or 0)) for s, n in zip(starts, counts, strict=True))
    )
    found: list[Expr] = [substitute(whole, dict(zip(names, map(Const, turn), strict=True))) for turn in turns]
    name = statement.reduce
    if statement.init is not None and not (name == "add" and equals_number(statement.init, 0)):
        found.insert(0, statement.init)
    value = reduce(lambda one, other: Op(name, (one, other)), found)
    kept = name if statement.init is None else None
    (made,) = rebuild(others, (Statement(statement.target, value, kept),))
    return canonical_subscripts(made)
