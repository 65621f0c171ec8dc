"""Which blocks of a TVM function are products or convolutions, and how a library is told of them.

`operations.cpp` reads what `Operation.texts` say. Sizes are in elements, dimensions outermost first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.translate import TirProgram, translate
from gnnperf.nests import Const, Expr, Load, Loop, Op, Symbol
from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import Band, band, conjuncts, extent, read, stride, written
from gnnperf.nests.ir import equals_number
from gnnperf.schedules.recipes.blas import Axis, Call, match, product_term

PRODUCT, CONVOLUTION = "product", "convolution"


@dataclass(frozen=True)
class Operation:
    """A block that a library computes.

    block: its place among the function's. left, right, target: names of its buffers in the translated
    function; `left` of a convolution is what `padding`, a block's place, pads for it. texts: what the library
    is told, by what is shared out. along: by the same, the dimension of the target that is, and its extent.
    order: the dimensions of a convolution's weights that are the channels of results, of pictures, and the
    kernel's; None where the weights have one element.
    """

    kind: str
    block: int
    dtype: str
    left: str
    right: str
    target: str
    texts: Mapping[str, str]
    along: Mapping[str, tuple[int, int]]
    work: int
    padding: int | None = None
    order: tuple[int | None, ...] = ()


def operations(function: Any) -> list[Operation]:
    """The blocks of a function with nothing scheduled that are products or convolutions."""
    try:
        program = translate(function)
    except UnsupportedConstruct:
        return []
    found = []
    for place, node in enumerate(program.body):
        if isinstance(node, Loop):
            one = _product(place, band(node), program) or _convolution(place, band(node), program)
            found += [one] if one is not None else []
    return found


# --------------------------------------------------------------------------- products


def _product(place: int, nest: Band, program: TirProgram) -> Operation | None:
    calls = match(nest, program.buffers)
    if len(calls) != 1 or calls[0].routine != "gemm" or calls[0].repeats:
        return None
    (call,), (statement,) = calls, nest.statements
    term = call.term
    starts = [affine(index).constant for load in term.operands for index in load.indices]
    if any(starts) or not equals_number(term.alpha, 1) or not _from_zero(statement.init):
        return None
    if any(loop.start != Const(0) or extent(loop) is None for loop in nest.loops):
        return None
    axes = {"m": call.m, "n": call.n, "k": call.k}
    sizes = {name: axis.limit for name, axis in axes.items() if axis is not None}
    in_order = term.left, term.right, term.target
    around = [
        (extent(loop), *(stride(load, loop.iterator, program.buffers) for load in in_order))
        for loop in call.batch
    ]
    if any(n is None for loop in around for n in loop):
        return None
    shared = {name: _outermost(axis) for name, axis in axes.items() if name in "mn"}
    if call.batch:
        shared["b"] = call.batch[0]
    return Operation(
        PRODUCT, place, program.buffers[term.target.buffer].dtype, term.left.buffer, term.right.buffer,
        term.target.buffer,
        {name: _product_text(call, program, sizes, around, name) for name in shared},
        {name: found for name, loop in shared.items() if (found := _along(loop, term.target)) is not None},
        prod(sizes.values()) * prod(int(n) for n, *_ in around if n),
    )  # fmt: skip


def _product_text(
    call: Call, program: TirProgram, sizes: Mapping[str, int], around: Sequence[Any], shared: str
) -> str:
    a, b, c = call.layouts
    flags = ("T" if a.transposed else "N", "T" if b.transposed else "N", shared)
    numbers = [
        *(sizes[name] for name in "mnk"), a.leading, b.leading, c.leading,
        len(around), *(n for loop in around for n in loop),
    ]  # fmt: skip
    dtype = program.buffers[call.term.target.buffer].dtype
    return " ".join([PRODUCT, dtype, *flags, *map(str, numbers)])


def _outermost(axis: Axis | None) -> Loop:
    assert axis is not None
    return axis.loops[0]


def _along(loop: Loop, target: Load) -> tuple[int, int] | None:
    """The dimension of the target that a loop walks alone, and its extent."""
    places = [n for n, index in enumerate(target.indices) if index == Symbol(loop.iterator)]
    size = extent(loop)
    return (places[0], size) if len(places) == 1 and size is not None else None


def _from_zero(init: Expr | None) -> bool:
    return init is not None and equals_number(init, 0)


# --------------------------------------------------------------------------- convolutions


@dataclass(frozen=True)
class _Picture:
    """One dimension of pictures: sizes of the result and of the kernel, stride, dilation."""

    result: int
    kernel: int
    stride: int
    dilation: int


def _convolution(place: int, nest: Band, program: TirProgram) -> Operation | None:
    """Of pictures with their channels first or last, by dense weights in any order."""
    if not nest.is_perfect or len(nest.statements) != 1:
        return None
    (statement,) = nest.statements
    sizes = {loop.iterator: extent(loop) for loop in nest.loops}
    if statement.reduce != "add" or statement.guard is not None or not _from_zero(statement.init):
        return None
    if any(size is None for size in sizes.values()) or any(loop.start != Const(0) for loop in nest.loops):
        return None
    term = product_term(statement, set(sizes), program.buffers)
    if term is None or not equals_number(term.alpha, 1):
        return None
    if program.buffers[term.target.buffer].dtype != "float32":
        return None
    extents = {name: int(size or 0) for name, size in sizes.items()}
    for one in (term, term.swapped()):
        found = _of_roles(place, one.target, one.left, one.right, extents, program)
        if found is not None:
            return found
    return None


def _of_roles(
    place: int, target: Load, data: Load, weights: Load, sizes: Mapping[str, int], program: TirProgram
) -> Operation | None:
    """With `data` as the pictures and `weights` as the kernel."""
    rank = len(target.indices) - 2
    kernel, results = _plain(weights), _plain(target)
    if rank < 1 or len(data.indices) != rank + 2 or kernel is None or results is None:
        return None
    of_weights = set(filter(None, kernel))
    for channels, spatial in ((rank + 1, range(1, rank + 1)), (1, range(2, rank + 2))):
        out, (into,) = results[channels], [*_terms(data.indices[channels]), None][:1]
        if out not in of_weights or into not in of_weights or out == into or into in results:
            continue
        if affine(data.indices[0]) != affine(target.indices[0]) or results[0] in of_weights:
            continue
        if into is None or affine(data.indices[channels]) != affine(Symbol(into)):
            continue
        pictures = [_picture(data.indices[d], results[d], of_weights - {out, into}, sizes) for d in spatial]
        kernels = {name for d in spatial for name in _terms(data.indices[d])} - {results[d] for d in spatial}
        if any(p is None for p in pictures) or of_weights != {out, into} | kernels:
            continue
        own = [next((n for n in _terms(data.indices[d]) if n != results[d]), None) for d in spatial]
        order = [out, into, *own]
        assert out is not None
        found = [p for p in pictures if p is not None]
        unpadded = data.buffer, [0] * len(data.indices), None
        source, low, padding = _padding(data.buffer, program, place) or unpadded
        inner = _sizes(source, program)
        letter = "l" if channels == rank + 1 else "f"
        count = sizes[results[0]] if results[0] is not None else 1
        numbers = [
            rank, count, sizes[into], sizes[out], *(inner[d] for d in spatial),
            *(p.kernel for p in found), *(p.result for p in found), *(p.stride for p in found),
            *(p.dilation for p in found), *(low[d] for d in spatial),
        ]  # fmt: skip
        texts = {s: " ".join([CONVOLUTION, letter, s, *map(str, numbers)]) for s in ("s", "n")}
        along = {"s": (spatial[0], found[0].result), "n": (0, count)}
        work = count * sizes[into] * sizes[out] * prod(p.kernel * p.result for p in found)
        return Operation(
            CONVOLUTION, place, "float32", source, weights.buffer, target.buffer, texts, along, work, padding,
            tuple(None if n is None else kernel.index(n) for n in order),
        )  # fmt: skip
    return None


def _sizes(buffer: str, program: TirProgram) -> tuple[int, ...]:
    """A buffer's shape, which is constant."""
    return tuple(size for size in program.buffers[buffer].shape if isinstance(size, int))


def _plain(load: Load) -> list[str | None] | None:
    """The iterators that dimensions are walked with, None where one has a single element; None where one is
    walked otherwise."""
    found: list[str | None] = []
    for index in load.indices:
        terms, form = _terms(index), affine(index)
        if form.constant or len(form.terms) > 1 or any(step != 1 for step in terms.values()):
            return None
        if form.terms and not terms:
            return None
        found.append(next(iter(terms), None))
    names = [name for name in found if name is not None]
    return found if len(set(names)) == len(names) else None


def _terms(index: Expr) -> dict[str, int]:
    """Iterators and their steps."""
    return {atom.name: step for atom, step in affine(index).terms.items() if isinstance(atom, Symbol)}


def _picture(index: Expr, result: str | None, kernels: set[str], sizes: Mapping[str, int]) -> _Picture | None:
    terms, form = _terms(index), affine(index)
    others = {name: step for name, step in terms.items() if name != result}
    if form.constant or len(form.terms) != len(terms) or len(others) > 1 or not set(others) <= kernels:
        return None
    ((name, dilation),) = others.items() if others else ((None, 1),)
    step = terms.get(result, 0) if result is not None else 1
    if step < 1 or dilation < 1:
        return None
    return _Picture(
        sizes[result] if result is not None else 1,
        sizes[name] if name is not None else 1,
        step,
        dilation,
    )


def _padding(buffer: str, program: TirProgram, user: int) -> tuple[str, list[int], int] | None:
    """What a buffer is, where a block makes it of another one with zeros around it, for this user alone:
    (the other, elements before its first in every dimension, the block)."""
    writers = [n for n, node in enumerate(program.body) if buffer in written(node)]
    readers = [n for n, node in enumerate(program.body) if buffer in read(node)]
    if len(writers) != 1 or readers != [user] or not program.buffers[buffer].transient:
        return None
    nest = band(program.body[writers[0]])
    if not nest.is_perfect or len(nest.statements) != 1:
        return None
    (statement,) = nest.statements
    value = statement.value
    if statement.reduce is not None or not isinstance(value, Op) or value.name != "select":
        return None
    condition, inside, outside = value.args
    targets = _plain(statement.target)
    if not isinstance(inside, Load) or not equals_number(outside, 0) or targets is None:
        return None
    bounds = _bounds(condition)
    low = []
    shape, whole = _sizes(inside.buffer, program), _sizes(buffer, program)
    for index, name, size, padded in zip(inside.indices, targets, shape, whole, strict=True):
        form = affine(index)
        if _terms(index) != ({name: 1} if name is not None else {}) or bounds is None:
            return None
        before = -form.constant
        begin, end = bounds.pop(name, (0, padded)) if name is not None else (0, 1)
        if begin != before or end != before + size:
            return None
        low.append(before)
    return None if bounds else (inside.buffer, low, writers[0])


def _bounds(condition: Expr) -> dict[str | None, tuple[int, int]] | None:
    """By iterator, the range that a condition asks for; None where it asks for anything else."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for one in conjuncts(condition):
        match one:
            case Op("le", (Const(int(least)), Symbol(name))):
                low[name] = least
            case Op("lt", (Symbol(name), Const(int(end)))):
                high[name] = end
            case _:
                return None
    return {name: (low.get(name, 0), high[name]) for name in high} if set(low) <= set(high) else None
