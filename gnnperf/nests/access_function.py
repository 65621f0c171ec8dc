"""What one access touches: strides per loop and array dimension, distinct elements, ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from gnnperf.nests.affine import affine, evaluate
from gnnperf.nests.ir import Buffer, Expr, Load, Op, Symbol, loads
from gnnperf.nests.iteration_space import (
    Range,
    Space,
    find,
    form_interval,
    influences,
    parameter,
    product_of_trips,
)

Dependence = Literal["affine", "nonaffine", "indirect"]


@dataclass(frozen=True)
class Subscript:
    """One subscript of an access.

    coefficients: change of the subscript per iteration, by loop. dependence: how each loop enters.
    range: values taken, the whole dimension where data decides. distinct: how many different ones.
    operations: address arithmetic that is not affine. indirect: part of it is loaded from memory.
    """

    coefficients: Mapping[Space, int]
    dependence: Mapping[Space, Dependence]
    range: Range
    distinct: float
    operations: tuple[str, ...]
    indirect: bool


@dataclass(frozen=True)
class AccessFunction:
    """The subscripts of an access with the shape and strides (elements) of its buffer.

    moved_by: loops that some subscript depends on. governs: those and the loops that they depend on.
    """

    subscripts: tuple[Subscript, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    moved_by: frozenset[Space]
    governs: frozenset[Space]

    @cached_property
    def distinct(self) -> float:
        """Distinct elements touched: at most one per iteration of the loops that move the access."""
        box = math.prod(s.distinct for s in self.subscripts)
        trips = product_of_trips(self.governs)
        return box if trips is None else min(box, trips)

    @property
    def first(self) -> float:
        """Least element offset touched by the affine part, from the buffer's origin."""
        return sum(s.range[0] * stride for s, stride in zip(self.subscripts, self.strides, strict=True))

    @property
    def ranges(self) -> tuple[Range, ...]:
        return tuple(s.range for s in self.subscripts)

    @property
    def is_nonaffine(self) -> bool:
        return any("nonaffine" in s.dependence.values() for s in self.subscripts)

    @property
    def is_indirect(self) -> bool:
        return any(s.indirect for s in self.subscripts)


def access_function(
    load: Load,
    buffers: Mapping[str, Buffer],
    around: Sequence[Space],
    parameters: Mapping[str, int],
) -> AccessFunction:
    """Analyse `load` inside the loops `around` it. Unknown sizes count as 0."""
    buffer = buffers[load.buffer]
    shape, strides = sizes(buffer.shape, parameters), sizes(buffer.strides, parameters)
    subscripts = tuple(
        _subscript(index, extent, buffers, around, parameters)
        for index, extent in zip(load.indices, shape, strict=True)
    )
    moved = frozenset[Space]().union(*[s.dependence for s in subscripts])
    governs = frozenset[Space]().union(*[s.governs for s in moved])
    return AccessFunction(subscripts, shape, strides, moved, governs)


def sizes(values: tuple[int | Expr, ...], parameters: Mapping[str, int]) -> tuple[int, ...]:
    """Shape or strides as integers; 0 where a size is not known."""
    return tuple(v if isinstance(v, int) else evaluate(v, parameters) or 0 for v in values)


def _subscript(
    index: Expr,
    extent: int,
    buffers: Mapping[str, Buffer],
    around: Sequence[Space],
    parameters: Mapping[str, int],
) -> Subscript:
    coefficients: dict[Space, int] = {}
    dependence: dict[Space, Dependence] = {}
    operations: list[str] = []
    form = affine(index)
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Symbol):
            space = find(atom.name, around)
            if space is None:
                parameter(atom.name, parameters)
                continue
            for counter, step in space.counters.items():
                coefficients[counter] = coefficients.get(counter, 0) + coefficient * step
                dependence.setdefault(counter, "affine")
            for selecting in space.selects:
                dependence[selecting] = "indirect"
            continue
        operations += _operations(atom)
        kind: Dependence = "indirect" if loads(atom) else "nonaffine"
        for influence in influences(atom, around, buffers):
            if dependence.get(influence) != "indirect":
                dependence[influence] = kind
    indirect = bool(loads(index))
    found = form_interval(form, around, parameters)
    whole = (0.0, float(max(extent - 1, 0)))
    distinct = _distinct(found or whole, coefficients, dependence)
    return Subscript(
        {s: c for s, c in coefficients.items() if c or dependence[s] != "affine"},
        {s: d for s, d in dependence.items() if coefficients.get(s, 0) or d != "affine"},
        found or whole,
        min(distinct, extent) if extent else distinct,
        tuple(operations),
        indirect,
    )


def _distinct(
    values: Range, coefficients: Mapping[Space, int], dependence: Mapping[Space, Dependence]
) -> float:
    """Different values in a range that is walked in multiples of the coefficients' greatest divisor."""
    moving = [c for s, c in coefficients.items() if c and dependence[s] == "affine"]
    regular = len(moving) == len(dependence)
    count = (values[1] - values[0]) // (math.gcd(*moving) if moving and regular else 1) + 1
    trips = product_of_trips(frozenset[Space]().union(*[s.governs for s in dependence]))
    return count if trips is None else min(count, trips)


def _operations(atom: Expr) -> Iterator[str]:
    """Address arithmetic that is not affine; subscripts of loads inside belong to those loads."""
    if isinstance(atom, Op):
        yield "cast" if atom.name.startswith("cast:") else atom.name
        for argument in atom.args:
            for term in affine(argument).terms:
                yield from _operations(term)
