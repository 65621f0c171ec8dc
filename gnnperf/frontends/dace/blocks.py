"""Long sums of plain programs, in an order that takes seconds rather than minutes.

DaCe's own loops of a matrix product go down a column of the second matrix for every element, and add up
with atomic instructions. Where results are verified against a plain program, nothing is gained by waiting for
that.
"""

from __future__ import annotations

from math import prod
from typing import Any

import dace
from dace.frontend.operations import detect_reduction_type
from dace.sdfg import nodes as dn
from dace.symbolic import pystr_to_symbolic

LARGE = 10**8
"""Additions of a map below which its order does not matter."""
BLOCK = 64
"""Rows of both operands that a block works on: they stay in caches."""


def sum_in_blocks(sdfg: Any) -> None:
    """In place: maps that do nothing but add up products run over blocks of rows, along contiguous elements
    innermost, without atomic instructions. Every sum keeps its terms, in another order."""
    for node, state in list(sdfg.all_nodes_recursive()):
        if isinstance(node, dn.MapEntry):
            _in_blocks(state, node)


def _in_blocks(state: Any, entry: Any) -> None:
    inside = state.scope_children()[entry]
    ranges = dict(zip(entry.map.params, entry.map.range.ranges, strict=True))
    sizes = [_size(r) for r in ranges.values()]
    if not all(isinstance(n, dn.Tasklet | dn.AccessNode | dn.MapExit) for n in inside):
        return
    if any(size is None for size in sizes) or prod(size or 0 for size in sizes) < LARGE:
        return
    written = list(state.in_edges(state.exit_node(entry)))
    if len(written) != 1 or not _adds_up(written[0].data):
        return
    (out,) = written
    results = [p for p in ranges if any(str(begin) == p for begin, _, _ in out.data.subset.ranges)]
    terms = [p for p in ranges if p not in results]
    used = {str(s) for s in out.data.subset.free_symbols}
    if len(results) < 2 or not terms or not used.isdisjoint(terms):
        return
    memlets = [e.data for e in (*state.out_edges(entry), out) if e.data.data is not None]
    contiguous = max(results, key=lambda p: sum(_stride(state, m, p) == 1 for m in memlets))
    *outer, rows = (p for p in results if p != contiguous)
    first, *others = terms
    tiles = {f"{p}_block": p for p in (rows, first)}
    order = {p: ranges[p] for p in outer}
    for tile, p in tiles.items():
        begin, end, _ = ranges[p]
        order[tile] = (begin, end, BLOCK)
    for tile, p in tiles.items():
        here = pystr_to_symbolic(tile)
        order[p] = (here, pystr_to_symbolic(f"min({tile} + {BLOCK - 1}, {ranges[p][1]})"), 1)
    for p in (*others, contiguous):
        order[p] = ranges[p]
    entry.map.params = list(order)
    entry.map.range = dace.subsets.Range(list(order.values()))
    for edge in state.memlet_path(out):
        edge.data.wcr_nonatomic = True  # threads have rows of their own


def _size(bounds: Any) -> int | None:
    begin, end, step = map(str, bounds)
    numbers = all(text.lstrip("-").isdigit() for text in (begin, end)) and step == "1"
    return max(0, int(end) - int(begin) + 1) if numbers else None


def _adds_up(memlet: Any) -> bool:
    """Whether elements are added to, at subscripts that are a map's parameters or stand still."""
    sums = memlet.wcr is not None and dace.dtypes.ReductionType.Sum == detect_reduction_type(memlet.wcr)
    return sums and all(begin == end for begin, end, _ in memlet.subset.ranges)


def _stride(state: Any, memlet: Any, parameter: str) -> Any:
    """Elements between what a memlet takes in one iteration and in the next."""
    strides = state.sdfg.arrays[memlet.data].strides
    symbol = pystr_to_symbolic(parameter)
    return sum(s * begin.coeff(symbol) for s, (begin, _, _) in zip(strides, memlet.subset.ranges, strict=True)
               if hasattr(begin, "coeff"))  # fmt: skip
