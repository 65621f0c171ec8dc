"""Mean trip counts of loops whose bounds vary: with outer iterators, or with data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gnnperf.errors import InputError
from gnnperf.nests.analysis import bound_dependences, is_data_dependent
from gnnperf.nests.ir import EXPRESSIONS_KEPT, Const, Expr, Load, Loop, LoopNest, Node, Op, Symbol, loads

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Values: TypeAlias = Mapping[str, Array]

SAMPLES = 1024
"""Iterations of the outer loops at which a varying trip count is evaluated while building a graph."""

MEASURED_SAMPLES = 1 << 20


def measured_trip_counts(nest: LoopNest, data: Values) -> dict[str, float]:
    """Mean trip counts, by iterator, of the loops whose bounds depend on data.

    data: arrays by buffer name; loops whose bounds read other buffers, and while loops, are left out.
    Exact up to
    about a million executions of a loop, sampled beyond. Loops that share an iterator's name share
    the mean of their means.
    """
    found: dict[str, list[float]] = {}
    for loop, around in _loops(nest.body, ()):
        chain = [*drivers(loop, around), loop]
        needed = {ld.buffer for lp in chain for e in (lp.start, lp.stop) for ld in loads(e)}
        if any(lp.condition is not None for lp in chain):
            continue
        if any(map(is_data_dependent, chain)) and needed <= data.keys():
            mean = mean_trips(loop, around, nest.parameters, data, MEASURED_SAMPLES)
            found.setdefault(loop.iterator, []).append(mean)
    return {iterator: sum(means) / len(means) for iterator, means in found.items()}


def with_trip_counts(nest: LoopNest, trip_counts: Mapping[str, float]) -> LoopNest:
    """The nest with `Loop.measured_trips` set, by iterator; other loops keep theirs."""

    def measured(node: Node) -> Node:
        if not isinstance(node, Loop):
            return node
        trips = trip_counts.get(node.iterator, node.measured_trips)
        return replace(node, body=tuple(map(measured, node.body)), measured_trips=trips)

    return replace(nest, body=tuple(map(measured, nest.body)))


def tile_trips(trips: float | None, width: int) -> tuple[float | None, float | None]:
    """Mean trip counts of the loop over tiles of `width` iterations of a loop, and over the points of one."""
    return (None, None) if trips is None else (max(1.0, trips / width), min(float(width), trips))


def drivers(loop: Loop, around: Sequence[Loop]) -> list[Loop]:
    """The loops of `around` whose iterators the bounds of `loop` depend on, directly or not."""
    names = bound_dependences(loop)
    chain = []
    for outer in reversed(around):
        if outer.iterator in names:
            names |= bound_dependences(outer)
            chain.append(outer)
    return chain[::-1]


def mean_trips(
    loop: Loop,
    around: Sequence[Loop],
    parameters: Mapping[str, int],
    data: Values | None = None,
    samples: int = SAMPLES,
) -> float:
    """Mean over all executions of the loop inside the loops `around` it.

    Exact where the driving loops have at most `samples` iterations, and for bounds that are affine
    in one of them; else by the midpoint rule. Raises InputError for bounds that cannot be evaluated.
    """
    if isinstance(loop.start, Const) and isinstance(loop.stop, Const):
        span = loop.stop.value.real - loop.start.value.real
        return float(max(0, math.ceil(span / loop.step) if loop.step > 1 else span))
    chain = tuple([_Bounds(lp.iterator, lp.start, lp.stop, lp.step) for lp in (*drivers(loop, around), loop)])
    if data is None:
        return _static_mean_trips(chain, tuple(sorted(parameters.items())), samples)
    return _mean_trips(chain, parameters, data, samples)


class _Bounds(NamedTuple):
    iterator: str
    start: Expr
    stop: Expr
    step: int


@lru_cache(EXPRESSIONS_KEPT)
def _static_mean_trips(
    chain: tuple[_Bounds, ...], parameters: tuple[tuple[str, int], ...], samples: int
) -> float:
    return _mean_trips(chain, dict(parameters), None, samples)


def _mean_trips(
    chain: tuple[_Bounds, ...], parameters: Mapping[str, int], data: Values | None, samples: int
) -> float:
    *outside, loop = chain
    constants = {name: np.asarray(float(value)) for name, value in parameters.items()}
    values: dict[str, Array] = {}
    weights = np.ones(1)
    for outer in outside:
        trips = np.broadcast_to(_trips(outer, {**constants, **values}, data), weights.shape)
        first = np.broadcast_to(_evaluate(outer.start, {**constants, **values}, data), weights.shape)
        of, counters, share = _visit(trips, samples, max(2, round(samples ** (1 / len(outside)))))
        values = {name: value[of] for name, value in values.items()}
        values[outer.iterator] = first[of] + outer.step * counters
        weights = weights[of] * share
    total = weights.sum()
    return float((weights * _trips(loop, {**constants, **values}, data)).sum() / total) if total else 0.0


def _visit(trips: Array, samples: int, points: int) -> tuple[Array, Array, Array]:
    """Iterations to look at: which execution of the loop, which counter, standing for how many.

    All of them where they are whole and few enough, else the midpoints of equal parts.
    """
    if trips.sum() <= samples and np.all(trips == np.floor(trips)):
        counts = trips.astype(np.int64)
        of = np.repeat(np.arange(len(counts)), counts)
        return of, np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts), np.ones(len(of))
    points = int(max(1, min(points, np.ceil(trips.max()))))
    of = np.repeat(np.arange(len(trips)), points)
    part = np.tile(np.arange(points) + 0.5, len(trips)) / points
    return of, part * trips[of] - 0.5, trips[of] / points


def _trips(loop: _Bounds, values: Values, data: Values | None) -> Array:
    span = _evaluate(loop.stop, values, data) - _evaluate(loop.start, values, data)
    return np.maximum(0.0, np.ceil(span / loop.step) if loop.step > 1 else span)


_NUMPY: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "min": np.minimum,
    "max": np.maximum,
    "floordiv": np.floor_divide,
    "div": np.floor_divide,
    "mod": np.mod,
    "abs": np.abs,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "pow": np.power,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "shl": lambda value, bits: value * 2**bits,
    "shr": lambda value, bits: np.floor(value / 2**bits),
}


def _evaluate(expr: Expr, values: Values, data: Values | None) -> Array:
    """An integer expression at every sample; midpoints may lie between integers."""
    if isinstance(expr, Const):
        return np.asarray(float(expr.value.real))
    if isinstance(expr, Symbol):
        if expr.name in values:
            return values[expr.name]
        known = ", ".join(sorted(values)) or "none"
        raise InputError(
            f"expected the symbol {expr.name!r} of a loop bound to be an iterator in scope or a parameter "
            f"of the nest (known: {known}), got neither; give it a value in LoopNest.parameters"
        )
    if isinstance(expr, Load) and data is not None:
        array = np.asarray(data[expr.buffer])
        indices = (np.floor(_evaluate(i, values, data)).astype(np.int64) for i in expr.indices)
        place = tuple(np.clip(i, 0, extent - 1) for i, extent in zip(indices, array.shape, strict=True))
        return np.asarray(array[place], dtype=np.float64)
    if isinstance(expr, Op):
        if expr.name.startswith("cast:"):
            return _evaluate(expr.args[0], values, data)
        if expr.name in _NUMPY:
            return np.asarray(_NUMPY[expr.name](*(_evaluate(a, values, data) for a in expr.args)))
    raise InputError(f"expected a loop bound made of {', '.join(_NUMPY)}, got {expr}")


def _loops(body: tuple[Node, ...], around: tuple[Loop, ...]) -> Iterator[tuple[Loop, tuple[Loop, ...]]]:
    for node in body:
        if isinstance(node, Loop):
            yield node, around
            yield from _loops(node.body, (*around, node))
