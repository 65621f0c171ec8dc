"""Where an array name points: memlets, nested SDFGs and View nodes as index functions on a buffer.

A nested SDFG's array is the address of its memlet's first element plus the inner strides. The view
of an inner array is therefore found by matching inner strides to the strides of the outer array;
where they do not match (a reshape), the linear address is split into subscripts again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gnnperf.errors import UnsupportedConstruct
from gnnperf.nests.affine import Affine, Ranges, affine, constant, from_affine, simplify
from gnnperf.nests.ir import Const, Expr, Load, Op

Indices = tuple[Expr, ...]


@dataclass(frozen=True)
class ViewLayout:
    """Shape and strides (in elements) of an array, as expressions."""

    shape: Indices
    strides: Indices

    @property
    def is_single(self) -> bool:
        """Exactly one element, whatever the rank."""
        return all(constant(s) == 1 for s in self.shape)

    @property
    def is_packed(self) -> bool:
        """Row-major without gaps."""
        expected: Expr = Const(1)
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if simplify(stride) != simplify(expected) and constant(size) != 1:
                return False
            expected = simplify(Op("mul", (expected, size)))
        return True


@dataclass(frozen=True)
class View:
    """An array as its users see it: `layout` and the element of `buffer` at given indices."""

    buffer: str
    layout: ViewLayout
    index: Callable[[Indices], Indices]

    def element(self, indices: Indices) -> Load:
        if len(indices) != len(self.layout.shape):
            raise UnsupportedConstruct(
                f"{len(indices)} subscripts on an array of rank {len(self.layout.shape)} ({self.buffer})"
            )
        return Load(self.buffer, tuple(simplify(i) for i in self.index(indices)))


def whole(buffer: str, layout: ViewLayout) -> View:
    """A container under its own name. One element is a scalar (rank 0) in the IR."""
    return View(buffer, layout, (lambda _: ()) if layout.is_single else (lambda indices: indices))


@dataclass(frozen=True)
class Subset:
    """start:start + size*step per dimension."""

    starts: Indices
    sizes: Indices
    steps: tuple[int, ...]

    @property
    def dimensions(self) -> list[int]:
        """Dimensions with more than one element."""
        return [d for d, size in enumerate(self.sizes) if constant(size) != 1]

    def at(self, offsets: Mapping[int, Expr]) -> Indices:
        """Indices of the element that lies `offsets[d]` steps into dimension d."""
        return tuple(
            simplify(Op("add", (start, Op("mul", (offsets.get(d, Const(0)), Const(step))))))
            for d, (start, step) in enumerate(zip(self.starts, self.steps, strict=True))
        )


def everything(layout: ViewLayout) -> Subset:
    """The subset that is the whole array."""
    rank = len(layout.shape)
    return Subset(tuple(Const(0) for _ in range(rank)), layout.shape, (1,) * rank)


def narrow(outer: View, subset: Subset, inner: ViewLayout, ranges: Ranges) -> View:
    """The view of a nested array of layout `inner` whose first element is the subset's first."""
    dimension_of = _match(outer.layout, subset, inner)
    if dimension_of is not None:

        def index(indices: Indices) -> Indices:
            offsets = {d: indices[i] for i, d in dimension_of.items()}
            return outer.index(subset.at(offsets))

        return View(outer.buffer, inner, index)
    return View(outer.buffer, inner, _reshaped(outer, subset, inner, ranges))


def _match(outer: ViewLayout, subset: Subset, inner: ViewLayout) -> dict[int, int] | None:
    """inner dimension -> outer dimension with the same stride; None where there is none."""
    if len(inner.shape) == len(outer.shape) and all(
        simplify(a) == simplify(b) or constant(size) == 1
        for a, b, size in zip(inner.strides, outer.strides, inner.shape, strict=True)
    ):
        if all(s == 1 for s in subset.steps):
            return dict(enumerate(range(len(inner.shape))))
    result: dict[int, int] = {}
    candidates = list(range(len(outer.shape)))
    for i, (size, stride) in enumerate(zip(inner.shape, inner.strides, strict=True)):
        if constant(size) == 1:
            continue
        found = next((d for d in candidates if _same_step(outer, subset, d, stride)), None)
        if found is None:
            return None
        result[i] = found
        candidates = [d for d in candidates if d > found]
    for i, d in result.items():  # an inner dimension longer than the outer one walks over its end
        inner_size, outer_size = constant(inner.shape[i]), constant(outer.shape[d])
        if inner_size is not None and outer_size is not None and inner_size > outer_size:
            return None
    return result


def _same_step(outer: ViewLayout, subset: Subset, dimension: int, stride: Expr) -> bool:
    step = simplify(Op("mul", (outer.strides[dimension], Const(subset.steps[dimension]))))
    return constant(outer.shape[dimension]) != 1 and step == simplify(stride)


def _reshaped(outer: View, subset: Subset, inner: ViewLayout, ranges: Ranges) -> Callable[[Indices], Indices]:
    if not outer.layout.is_packed or any(s != 1 for s in subset.steps):
        raise UnsupportedConstruct(f"a reshape of a non-contiguous view of {outer.buffer}")
    start = linear(subset.starts, outer.layout.strides)

    def index(indices: Indices) -> Indices:
        address = simplify(Op("add", (start, linear(indices, inner.strides))))
        return outer.index(split(address, outer.layout.shape, ranges))

    return index


def linear(indices: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    total: Expr = Const(0)
    for i, s in zip(indices, strides, strict=True):
        total = Op("add", (total, Op("mul", (i, s))))
    return simplify(total)


def split(address: Expr, shape: Indices, ranges: Ranges) -> Indices:
    """Subscripts of a row-major array at a linear element address."""
    result: list[Expr] = []
    for size in reversed(shape[1:]):
        extent = constant(size)
        if extent is None:
            raise UnsupportedConstruct("a reshape with symbolic extents")
        address, remainder = _divide(affine(address), extent, ranges)
        result.append(remainder)
    return (simplify(address), *reversed(result))


def _divide(form: Affine, divisor: int, ranges: Ranges) -> tuple[Expr, Expr]:
    """Quotient and remainder; without `/` where the iterators' ranges allow."""
    quotient, rest = form.divided(divisor)
    bounds = rest.reach(ranges)
    remainder = from_affine(rest)
    if bounds is not None and bounds[0] >= 0 and bounds[1] < divisor:
        return from_affine(quotient), remainder
    carry = Op("floordiv", (remainder, Const(divisor)))
    return simplify(Op("add", (from_affine(quotient), carry))), Op("mod", (remainder, Const(divisor)))
