"""Scratch arrays that several nests fill, each a box, as the one nest that fills what is read of it:

    for i in 1..n: T[i] = A[i - 1]          for i in 0..n: T[i] = A[(i + n - 1) % n]
    T[0] = A[n - 1]

as `np.roll`, zeros that are filled inside, and arrays with a border around them are made. Where elements of
one array are moved around its ends it is a remainder, else a choice between what the boxes are filled with.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import prod

from gnnperf.nests.affine import Affine, affine, constant, from_affine, simplify
from gnnperf.nests.analysis import Band, band, extent
from gnnperf.nests.coverage import Box, read_boxes
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Reduction,
    Statement,
    Symbol,
    substitute,
)

MOST_PIECES = 9
"""That an array of two dimensions, its borders and its corners are."""

Inverse = Mapping[int, tuple[str, int]]
"""Dimension -> (iterator, offset), where the subscript of a target is iterator + offset."""
Bounds = tuple[tuple[int, int], ...]
"""Per dimension: first element, and the one behind the last."""


@dataclass(frozen=True)
class Piece:
    """A nest of one statement that writes, or changes, every element of a box once."""

    nest: Band
    statement: Statement
    inverse: Inverse

    @property
    def target(self) -> str:
        """Name of the array."""
        return self.statement.target.buffer

    def box(self) -> Bounds | None:
        """None where it is not constant."""
        loops = {loop.iterator: loop for loop in self.nest.loops}
        ends = list[tuple[int, int]]()
        for dimension, index in enumerate(self.statement.target.indices):
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

    def value_at(self, indices: Sequence[Expr]) -> Expr:
        """The value that an element of the box gets, or is changed by."""
        ends = self.inverse.items()
        moved = {it: simplify(Op("sub", (indices[d], Const(offset)))) for d, (it, offset) in ends}
        return substitute(self.statement.value, moved)


def piece_of(node: Node) -> Piece | None:
    """A nest as a piece; None where it is none."""
    nest = band(node)
    match nest.body:
        case (Statement(guard=None, init=None) as statement,):
            inverse = _invert(nest, statement)
            if inverse is not None and all(lp.step == 1 and lp.independent for lp in nest.loops):
                return Piece(nest, statement, inverse)
    return None


def _invert(nest: Band, statement: Statement) -> Inverse | None:
    """Where each iterator is in one subscript of the target, and no other."""
    result: dict[int, tuple[str, int]] = {}
    for dimension, index in enumerate(statement.target.indices):
        form = affine(index)
        if form.is_constant:
            continue
        if len(form.terms) != 1:
            return None
        (atom, coefficient), *_ = form.terms.items()
        if not isinstance(atom, Symbol) or coefficient != 1 or atom.name not in nest.iterators:
            return None
        result[dimension] = (atom.name, form.constant)
    names = [name for name, _ in result.values()]
    return result if sorted(names) == sorted(nest.iterators) else None


def unread(pieces: Sequence[Piece], buffer: Buffer, users: Sequence[Node]) -> list[int]:
    """Pieces of which the users read nothing that later ones do not write again."""
    found = _arranged(pieces, buffer, users)
    return [] if found is None else [n for n in range(len(pieces)) if n not in found.seen]


def whole(pieces: Sequence[Piece], buffers: Mapping[str, Buffer], users: Sequence[Node]) -> Piece | None:
    """One nest that fills a buffer as several pieces do, in their order, or the only piece; None where
    several leave something that the users read."""
    if len(pieces) == 1:
        return pieces[0]
    name = pieces[0].target
    if (found := _arranged(pieces, buffers[name], users)) is None:
        return None
    seen, boxes = [*found.seen], found.boxes
    if all(_apart(boxes[one], boxes[other]) for one, other in combinations(seen, 2)):
        seen.sort(key=lambda place: (size_of(boxes[place]), place))
    indices = [Symbol(f"{name}_{d}") for d in range(len(found.around))]
    values = [pieces[place].value_at(indices) for place in seen]
    value = _around_ends([boxes[place] for place in seen], values, indices, buffers)
    if value is None:
        *others, value = values
        for place, other in zip(reversed(seen[:-1]), reversed(others), strict=True):
            value = Op("select", (is_in(boxes[place], found.around, indices), other, value))
    return filling(Load(name, tuple(indices)), value, found.around)


def filling(target: Load, value: Expr, box: Bounds, reduce: Reduction | None = None) -> Piece:
    """A box of an array by one nest. target: its subscripts are the iterators."""
    names = [index.name for index in target.indices if isinstance(index, Symbol)]
    ends = zip(names, box, strict=True)
    loops = tuple(Loop(name, Const(a), Const(b), ()) for name, (a, b) in ends)
    statement = Statement(target, value, reduce)
    return Piece(Band(loops, (statement,)), statement, {d: (name, 0) for d, name in enumerate(names)})


@dataclass(frozen=True)
class _Arranged:
    """Boxes of pieces, the box around what is read of them, and the pieces of which something is read, the
    last first."""

    boxes: Sequence[Bounds]
    around: Bounds
    seen: Sequence[int]


def _arranged(pieces: Sequence[Piece], buffer: Buffer, users: Sequence[Node]) -> _Arranged | None:
    """None where a box is not known, or something is read that is in none."""
    shape = [s for s in buffer.shape if isinstance(s, int)]
    boxes = [box for piece in pieces if (box := piece.box()) is not None]
    if len(shape) < len(buffer.shape) or not len(pieces) == len(boxes) <= MOST_PIECES:
        return None
    if not all(0 <= a <= b <= size for box in boxes for (a, b), size in zip(box, shape, strict=True)):
        return None
    reads = [_numbers(box, shape) for n in users for box in read_boxes(n, buffer)]
    ends = [sorted({end for box in (*boxes, *reads) for end in box[d]}) for d in range(len(shape))]
    left = [cell for cell in product(*map(pairwise, ends)) if any(_within(cell, box) for box in reads)]
    seen = list[int]()
    for place in reversed(range(len(boxes))):
        if any(_within(cell, boxes[place]) for cell in left):
            seen.append(place)
            left = [cell for cell in left if not _within(cell, boxes[place])]
    around = tuple((min(a for a, _ in d), max(b for _, b in d)) for d in zip(*reads, strict=True))
    return None if left else _Arranged(boxes, around, seen)


def _numbers(box: Box, shape: Sequence[int]) -> Bounds:
    """A box, as wide as the array where an end is no constant."""
    ends = [(constant(a), constant(b)) for a, b in box]
    return tuple(
        (0 if a is None else a, size if b is None else b) for (a, b), size in zip(ends, shape, strict=True)
    )


def size_of(box: Bounds) -> int:
    return prod(b - a for a, b in box)


def _apart(one: Bounds, other: Bounds) -> bool:
    return any(b <= c or d <= a for (a, b), (c, d) in zip(one, other, strict=True))


def _within(one: Bounds, other: Bounds) -> bool:
    return all(c <= a and b <= d for (a, b), (c, d) in zip(one, other, strict=True))


def is_in(box: Bounds, around: Sequence[tuple[int, int]], indices: Sequence[Symbol]) -> Expr:
    """Whether an element of a box around it is in another."""
    conditions = list[Expr]()
    for (a, b), (low, high), index in zip(box, around, indices, strict=True):
        if b - a == 1 < high - low:
            conditions.append(Op("eq", (index, Const(a))))
            continue
        conditions += [Op("ge", (index, Const(a)))] if a > low else []
        conditions += [Op("lt", (index, Const(b)))] if b < high else []
    return functools.reduce(lambda one, other: Op("and", (one, other)), conditions)


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
