"""Scratch arrays that several nests fill, each a box of its own, as the one nest that fills all of it:

    for i in 1..n: T[i] = A[i - 1]          for i in 0..n: T[i] = A[(i + n - 1) % n]
    T[0] = A[n - 1]

as `np.roll` and arrays with a border around them are made. Where elements of one array are moved around its
ends it is a remainder, else a choice between what the boxes are filled with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod

from gnnperf.nests.affine import Affine, affine, from_affine
from gnnperf.nests.analysis import Band, extent
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Op, Statement, Symbol, substitute

MOST_PIECES = 9
"""That an array of two dimensions, its borders and its corners are."""

Inverse = Mapping[int, tuple[str, int]]
"""Dimension -> (iterator, offset), where the subscript of a target is iterator + offset."""
Bounds = tuple[tuple[int, int], ...]
"""Per dimension: first element, and the one behind the last."""


@dataclass(frozen=True)
class Piece:
    """A nest that writes every element of a box once. value: as it is read back."""

    nest: Band
    target: Load
    value: Expr
    inverse: Inverse

    def box(self) -> Bounds | None:
        """None where it is not constant."""
        loops = {loop.iterator: loop for loop in self.nest.loops}
        ends = list[tuple[int, int]]()
        for dimension, index in enumerate(self.target.indices):
            if dimension in self.inverse:
                iterator, offset = self.inverse[dimension]
                first, length = affine(loops[iterator].start), extent(loops[iterator])
                if not first.is_constant or length is None:
                    return None
                ends.append((first.constant + offset, first.constant + offset + length))
            else:
                at = affine(index)
                ends.append((at.constant, at.constant + 1))
        return tuple(ends)

    def value_at(self, indices: Sequence[Symbol]) -> Expr:
        """Of an element that the box has."""
        moved = {it: Op("sub", (indices[d], Const(offset))) for d, (it, offset) in self.inverse.items()}
        return substitute(self.value, moved)


def whole(
    pieces: Sequence[Piece], name: str, buffers: Mapping[str, Buffer]
) -> tuple[Band, Statement, Inverse] | None:
    """One nest that fills the buffer as several pieces do, or the only piece; None where several do not cover
    the buffer, each element once."""
    if len(pieces) == 1:
        (one,) = pieces
        return one.nest, Statement(one.target, one.value), one.inverse
    buffer = buffers[name]
    shape = [s for s in buffer.shape if isinstance(s, int)]
    boxes = [box for piece in pieces if (box := piece.box()) is not None]
    if len(shape) < len(buffer.shape) or not len(pieces) == len(boxes) <= MOST_PIECES:
        return None
    inside = all(0 <= a <= b <= size for box in boxes for (a, b), size in zip(box, shape, strict=True))
    apart = all(map(_apart, *zip(*combinations(boxes, 2), strict=True)))
    if not inside or not apart or sum(map(_size, boxes)) != prod(shape):
        return None
    indices = [Symbol(f"{name}_{d}") for d in range(len(shape))]
    largest_last = sorted(zip(boxes, pieces, strict=True), key=lambda pair: _size(pair[0]))
    values = [piece.value_at(indices) for _, piece in largest_last]
    value = _around_ends([box for box, _ in largest_last], values, indices, buffers)
    if value is None:
        *others, value = values
        for (box, _), other in zip(reversed(largest_last[:-1]), reversed(others), strict=True):
            value = Op("select", (_is_in(box, shape, indices), other, value))
    loops = tuple(Loop(i.name, Const(0), Const(size), ()) for i, size in zip(indices, shape, strict=True))
    statement = Statement(Load(name, tuple(indices)), value)
    return Band(loops, (statement,)), statement, {d: (i.name, 0) for d, i in enumerate(indices)}


def _size(box: Bounds) -> int:
    return prod(b - a for a, b in box)


def _apart(one: Bounds, other: Bounds) -> bool:
    return any(b <= c or d <= a for (a, b), (c, d) in zip(one, other, strict=True))


def _is_in(box: Bounds, shape: Sequence[int], indices: Sequence[Symbol]) -> Expr:
    """Whether an element is in a box of an array."""
    conditions = list[Expr]()
    for (a, b), size, index in zip(box, shape, indices, strict=True):
        if b - a == 1 < size:
            conditions.append(Op("eq", (index, Const(a))))
            continue
        conditions += [Op("ge", (index, Const(a)))] if a > 0 else []
        conditions += [Op("lt", (index, Const(b)))] if b < size else []
    return reduce(lambda one, other: Op("and", (one, other)), conditions)


def _around_ends(
    boxes: Sequence[Bounds], values: Sequence[Expr], indices: Sequence[Symbol], buffers: Mapping[str, Buffer]
) -> Expr | None:
    """Elements of one array, in the order of the boxes, that are as many places away, or the length of the
    array more or less, as one load; None of anything else."""
    found = [v for v in values if isinstance(v, Load)]
    if len(found) < len(values) or len({v.buffer for v in found}) > 1:
        return None
    moved = list[Expr]()
    for dimension, size in enumerate(buffers[found[0].buffer].shape):
        forms = [affine(v.indices[dimension]) for v in found]
        terms = forms[-1].terms
        places = {
            form.constant if form.terms == terms else _from_single(form, terms, box, indices)
            for form, box in zip(forms, boxes, strict=True)
        }
        if len(places) == 1 and None not in places:
            moved.append(from_affine(forms[-1]))
        elif isinstance(size, int) and None not in places and len({(at or 0) % size for at in places}) == 1:
            form = Affine(terms, forms[-1].constant % size)
            moved.append(Op("mod", (from_affine(form), Const(size))))
        else:
            return None
    return Load(found[0].buffer, tuple(moved))


def _from_single(
    form: Affine, terms: Mapping[Expr, int], box: Bounds, indices: Sequence[Symbol]
) -> int | None:
    """How far a constant place is from the only element that a box has in the dimension which `terms` is;
    None where it is not that."""
    for index, (a, b) in zip(indices, box, strict=True):
        if terms == {index: 1} and form.is_constant and b - a == 1:
            return form.constant - a
    return None
