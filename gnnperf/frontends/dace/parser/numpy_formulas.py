"""Functions of NumPy that DaCe 1.0 lacks: a formula says what every element is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dace
from dace.frontend.common import op_repository

from gnnperf.frontends.dace.parser.numpy_functions import (
    each,
    mapped,
    pointwise,
    real_of,
    reshaped,
    subscripts,
)


def _sinc(visitor: Any, sdfg: Any, state: Any, x: str) -> str:
    form = f"1.0 if {{0}} == 0 else sin({math.pi} * {{0}}) / ({math.pi} * {{0}})"
    return mapped(visitor, sdfg, state, x, form, real_of(sdfg, x))


def _polyval(visitor: Any, sdfg: Any, state: Any, p: Any, x: str) -> str:
    """By Horner's rule."""
    if not isinstance(p, list | tuple) or not p:
        raise NotImplementedError("np.polyval: coefficients must be a list")
    form = str(p[0])
    for coefficient in p[1:]:
        form = f"({form}) * {{0}} + {coefficient}"
    return mapped(visitor, sdfg, state, x, form, real_of(sdfg, x))


def _select(visitor: Any, sdfg: Any, state: Any, condlist: Any, choicelist: Any, default: Any = 0) -> str:
    """The choice of the first condition that holds."""
    count = len(each(condlist))
    given = [*each(condlist), *each(choicelist), default]
    shape, inputs, texts = _operands(sdfg, given)
    conditions, choices = texts[:count], texts[count:-1]
    code = texts[-1]
    for condition, chosen in [*zip(conditions, choices, strict=True)][::-1]:
        code = f"({chosen} if {condition} else {code})"
    dtype = _common(sdfg, [v for v in given[count:] if isinstance(v, str)])
    return pointwise(sdfg, state, shape, dtype, code, inputs)


def _isclose(visitor: Any, sdfg: Any, state: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> str:
    shape, inputs, (one, other) = _operands(sdfg, [a, b])
    code = f"abs({one} - {other}) <= {atol} + {rtol} * abs({other})"
    return pointwise(sdfg, state, shape, dace.bool_, code, inputs)


def _operands(
    sdfg: Any, values: Sequence[Any]
) -> tuple[Sequence[Any], dict[str, tuple[str, list[str]]], list[str]]:
    """Arrays of one shape, and numbers: the shape, what a formula reads, and how it calls each."""
    arrays = {f"__x{n}": v for n, v in enumerate(values) if isinstance(v, str)}
    shapes = {tuple(sdfg.arrays[v].shape) for v in arrays.values()}
    if len(shapes) != 1:
        raise NotImplementedError("np.select, np.isclose: arrays of one shape, and numbers")
    (shape,) = shapes
    texts = [f"__x{n}" if isinstance(v, str) else str(v) for n, v in enumerate(values)]
    return shape, {name: (array, subscripts(len(shape))) for name, array in arrays.items()}, texts


def _common(sdfg: Any, arrays: Sequence[str]) -> Any:
    """The type of what is an element of one of the arrays; float64 without any."""
    first, *others = [sdfg.arrays[name].dtype for name in arrays] or [dace.float64]
    return dace.dtypes.result_type_of(first, *others) if others else first


def _window(form: str) -> Callable[..., str]:
    """Of M points, of which the formula has the angle, from 0 to 2 pi, as `a`."""

    def window(visitor: Any, sdfg: Any, state: Any, M: Any) -> str:
        angle = f"({2 * math.pi} * __i0 / Max({M} - 1, 1))"
        return pointwise(sdfg, state, [M], dace.float64, form.format(a=angle), {})

    return window


def _broadcast_to(visitor: Any, sdfg: Any, state: Any, a: str, shape: Any) -> str:
    held = sdfg.arrays[a]
    at = subscripts(len(shape))[len(shape) - len(held.shape) :]
    place = ["0" if size == 1 else i for i, size in zip(at, held.shape, strict=True)]
    return pointwise(sdfg, state, [*shape], held.dtype, "__x", {"__x": (a, place)})


def _column_stack(visitor: Any, sdfg: Any, state: Any, tup: Sequence[str]) -> str:
    """Arrays of one axis, side by side."""
    held = [sdfg.arrays[name] for name in tup]
    if any(len(one.shape) != 1 for one in held):
        raise NotImplementedError("np.column_stack: arrays of one axis alone")
    i, j = subscripts(2)
    code = f"__x{len(tup) - 1}"
    for n in range(len(tup) - 2, -1, -1):
        code = f"__x{n} if {j} == {n} else ({code})"
    inputs = {f"__x{n}": (name, [i]) for n, name in enumerate(tup)}
    return pointwise(sdfg, state, [held[0].shape[0], len(tup)], _common(sdfg, tup), code, inputs)


def _indices(visitor: Any, sdfg: Any, state: Any, dimensions: Any) -> list[str]:
    """Of every axis, the place of each element along it."""
    shape = each(dimensions)
    return [pointwise(sdfg, state, shape, dace.int64, i, {}) for i in subscripts(len(shape))]


def _vander(visitor: Any, sdfg: Any, state: Any, x: str, N: Any = None, increasing: bool = False) -> str:
    """Powers of each number in a row, the highest first."""
    (size,), (i, j) = sdfg.arrays[x].shape, subscripts(2)
    count = size if N is None else N
    power = j if increasing else f"({count} - 1 - {j})"
    return pointwise(sdfg, state, [size, count], sdfg.arrays[x].dtype, f"__x ** {power}", {"__x": (x, [i])})


def _fill_diagonal(visitor: Any, sdfg: Any, state: Any, a: str, val: Any) -> None:
    if len(sdfg.arrays[a].shape) != 2 or isinstance(val, str):
        raise NotImplementedError("np.fill_diagonal: a matrix, and a number")
    rows, columns = sdfg.arrays[a].shape
    state.add_mapped_tasklet(
        "fill_diagonal", {"__i": f"0:Min({rows}, {columns})"}, {}, f"__out = {val}",
        {"__out": dace.Memlet(f"{a}[__i, __i]")}, external_edges=True,
    )  # fmt: skip


def _erf(visitor: Any, sdfg: Any, state: Any, x: str) -> str:
    return mapped(visitor, sdfg, state, x, "erf({0})", real_of(sdfg, x))


def _ravel(visitor: Any, sdfg: Any, state: Any, a: str) -> Any:
    return reshaped(visitor, sdfg, state, a, -1)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sinc": _sinc, "polyval": _polyval, "select": _select, "isclose": _isclose,
    "hanning": _window("0.5 - 0.5 * cos({a})"), "hamming": _window("0.54 - 0.46 * cos({a})"),
    "blackman": _window("0.42 - 0.5 * cos({a}) + 0.08 * cos(2 * {a})"),
    "broadcast_to": _broadcast_to, "column_stack": _column_stack, "fill_diagonal": _fill_diagonal,
    "indices": _indices, "ravel": _ravel, "vander": _vander,
}  # fmt: skip
for _name in ("math.erf", "scipy.special.erf"):
    op_repository.replaces(_name)(_erf)
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.{_name}")(_function)
