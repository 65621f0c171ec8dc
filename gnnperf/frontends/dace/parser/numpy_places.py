"""Functions of NumPy that DaCe 1.0 lacks: they put elements elsewhere, or combine those of certain places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dace
import sympy
from dace.frontend.common import op_repository
from dace.frontend.python import replacements
from dace.frontend.python.nested_call import NestedCall

from gnnperf.frontends.dace.parser.numpy_functions import (
    as_method,
    computed,
    kind,
    mapped,
    only_axis,
    pointwise,
    real_of,
    reshaped,
    subscripts,
    unboxed,
)

RADIANS_PER_DEGREE = 0.017453292519943295


def _swapaxes(visitor: Any, sdfg: Any, state: Any, a: str, axis1: int, axis2: int) -> Any:
    order = [*range(len(sdfg.arrays[a].shape))]
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return replacements._transpose(visitor, sdfg, state, a, axes=order)


def moveaxis(visitor: Any, sdfg: Any, state: Any, a: str, source: int, destination: int) -> Any:
    dimensions = len(sdfg.arrays[a].shape)
    order = [d for d in range(dimensions) if d != source % dimensions]
    order.insert(destination % dimensions, source % dimensions)
    return replacements._transpose(visitor, sdfg, state, a, axes=order)


def _expand_dims(visitor: Any, sdfg: Any, state: Any, a: str, axis: int) -> str:
    shape, dtype = [*sdfg.arrays[a].shape], sdfg.arrays[a].dtype
    axis %= len(shape) + 1
    at = subscripts(len(shape) + 1)
    shape.insert(axis, 1)
    return pointwise(sdfg, state, shape, dtype, "__x", {"__x": (a, [*at[:axis], *at[axis + 1 :]])})


def _squeeze(visitor: Any, sdfg: Any, state: Any, a: str, axis: int | None = None) -> str:
    shape, dtype = sdfg.arrays[a].shape, sdfg.arrays[a].dtype
    gone = [d for d, size in enumerate(shape) if size == 1 and (axis is None or d == axis % len(shape))]
    kept = [size for d, size in enumerate(shape) if d not in gone]
    at = iter(subscripts(len(kept)))
    place = ["0" if d in gone else next(at) for d in range(len(shape))]
    return pointwise(sdfg, state, kept or [1], dtype, "__x", {"__x": (a, place)})


def _take(visitor: Any, sdfg: Any, state: Any, a: str, indices: str, axis: int | None = None) -> Any:
    """Along an axis, or of all elements in a row."""
    held, places = sdfg.arrays[a], sdfg.arrays[indices]
    if axis is None and len(held.shape) > 1:
        calls = NestedCall(visitor, sdfg, state)
        return calls, calls(_take)(calls(reshaped)(a, -1), indices)
    along = (axis or 0) % len(held.shape)
    shape = [*held.shape[:along], *places.shape, *held.shape[along + 1 :]]
    at, behind = subscripts(len(shape)), along + len(places.shape)
    element = ", ".join([*at[:along], "__p", *at[behind:]])
    name, _ = sdfg.add_temp_transient(shape, held.dtype)
    state.add_mapped_tasklet(
        "taken",
        {i: f"0:{size}" for i, size in zip(at, shape, strict=True)},
        {
            "__a": dace.Memlet.from_array(a, held),
            "__p": dace.Memlet(f"{indices}[{', '.join(at[along:behind])}]"),
        },
        f"__out = __a[{element}]",
        {"__out": dace.Memlet(f"{name}[{', '.join(at)}]")},
        external_edges=True,
    )
    return name


def _rot90(visitor: Any, sdfg: Any, state: Any, a: str) -> str:
    rows, columns = _matrix("rot90", sdfg, a)
    i, j = subscripts(2)
    return pointwise(
        sdfg, state, [columns, rows], sdfg.arrays[a].dtype, "__x", {"__x": (a, [j, f"{columns} - 1 - {i}"])}
    )


def _flipped(axis: int) -> Callable[..., Any]:
    return lambda visitor, sdfg, state, a: replacements._numpy_flip(visitor, sdfg, state, a, axis)


_PLACES = {
    "constant": (clamped := "Max(0, Min({at}, {size} - 1))"),
    "edge": clamped,
    "wrap": "({at} + {size}) % {size}",
    "reflect": "{size} - 1 - abs({size} - 1 - abs({at}))",
    "symmetric": "Min(Max({at}, -1 - {at}), 2 * {size} - 1 - Max({at}, -1 - {at}))",
}
"""What `np.pad` puts at a place beside an array, by its mode."""

_LOOKS_BACK = ("wrap", "reflect", "symmetric")


def _pad(
    visitor: Any,
    sdfg: Any,
    state: Any,
    a: str,
    pad_width: Any,
    mode: Any = "constant",
    constant_values: Any = 0,
) -> str:
    shape, dtype = sdfg.arrays[a].shape, sdfg.arrays[a].dtype
    mode = unboxed(mode)
    of_all = [*pad_width] if isinstance(pad_width, tuple | list) else [pad_width, pad_width]
    widths = of_all if isinstance(of_all[0], tuple | list) else [of_all] * len(shape)
    if mode not in _PLACES:
        raise NotImplementedError(f"np.pad: {', '.join(_PLACES)} alone")
    place, inside = list[str](), list[str]()
    for i, size, (before, after) in zip(subscripts(len(shape)), shape, widths, strict=True):
        if mode in _LOOKS_BACK and (sympy.Max(before, after) > size - (mode == "reflect")) == True:  # noqa: E712
            raise NotImplementedError(f"np.pad: by more than the array holds, as mode={mode!r}")
        at = f"({i} - {before})"
        inside.append(f"{i} >= {before} and {at} < {size}")
        place.append(_PLACES[mode].format(at=at, size=f"({size})"))
    code = f"__x if {' and '.join(inside)} else {constant_values}" if mode == "constant" else "__x"
    padded = [size + before + after for size, (before, after) in zip(shape, widths, strict=True)]
    return pointwise(sdfg, state, padded, dtype, code, {"__x": (a, place)})


def _meshgrid(visitor: Any, sdfg: Any, state: Any, x: str, y: str, indexing: Any = "xy") -> list[str]:
    """Of two axes."""
    (n,), (m,) = sdfg.arrays[x].shape, sdfg.arrays[y].shape
    i, j = subscripts(2)
    by_rows = unboxed(indexing) == "ij"
    shape, of_x, of_y = ([n, m], i, j) if by_rows else ([m, n], j, i)
    return [
        pointwise(sdfg, state, shape, sdfg.arrays[a].dtype, "__x", {"__x": (a, [at])})
        for a, at in ((x, of_x), (y, of_y))
    ]


def _kron(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> str:
    one, other = sdfg.arrays[a], sdfg.arrays[b]
    if len(one.shape) != len(other.shape):
        raise NotImplementedError("np.kron: arrays of as many axes alone")
    at = subscripts(len(one.shape))
    inputs = {
        "__x": (a, [f"int_floor({i}, {size})" for i, size in zip(at, other.shape, strict=True)]),
        "__y": (b, [f"{i} % ({size})" for i, size in zip(at, other.shape, strict=True)]),
    }
    shape = [n * m for n, m in zip(one.shape, other.shape, strict=True)]
    dtype = dace.dtypes.result_type_of(one.dtype, other.dtype)
    return pointwise(sdfg, state, shape, dtype, "__x * __y", inputs)


def _cross(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> str:
    one, other = sdfg.arrays[a], sdfg.arrays[b]
    if len(one.shape) != len(other.shape) or one.shape[-1] != 3 or other.shape[-1] != 3:
        raise NotImplementedError("np.cross: of vectors of three along the last axis alone")
    *at, i = subscripts(len(one.shape))
    following, last = [*at, f"({i} + 1) % 3"], [*at, f"({i} + 2) % 3"]
    inputs = {"__x": (a, following), "__y": (b, last), "__u": (a, last), "__v": (b, following)}
    dtype = dace.dtypes.result_type_of(one.dtype, other.dtype)
    return pointwise(sdfg, state, one.shape, dtype, "__x * __y - __u * __v", inputs)


# --------------------------------------------------------------------------- diagonals


def _diag(visitor: Any, sdfg: Any, state: Any, v: str, k: int = 0) -> str:
    """The diagonal of a matrix, or a matrix with this one."""
    shape, dtype = sdfg.arrays[v].shape, sdfg.arrays[v].dtype
    down, right = max(-k, 0), max(k, 0)
    if len(shape) == 1:
        size = shape[0] + abs(k)
        i, j = subscripts(2)
        place = f"Max(0, Min({i} - {down}, {shape[0]} - 1))"
        return pointwise(
            sdfg, state, [size] * 2, dtype, f"__x if {j} - {i} == {k} else 0", {"__x": (v, [place])}
        )
    rows, columns = _matrix("diag", sdfg, v)
    (i,) = subscripts(1)
    length = sympy.Min(rows - down, columns - right)
    return pointwise(sdfg, state, [length], dtype, "__x", {"__x": (v, [f"{i} + {down}", f"{i} + {right}"])})


def _trace(visitor: Any, sdfg: Any, state: Any, a: str, offset: int = 0) -> Any:
    calls = NestedCall(visitor, sdfg, state)
    return calls, calls(replacements._sum)(calls(_diag)(a, offset))


def _triangle(side: str) -> Callable[..., Any]:
    def call(visitor: Any, sdfg: Any, state: Any, m: str, k: int = 0) -> str:
        i, j = subscripts(2)
        code = f"__x if {j} - {i} {side} {k} else 0"
        return pointwise(
            sdfg, state, _matrix("tril, np.triu", sdfg, m), sdfg.arrays[m].dtype, code, {"__x": (m, [i, j])}
        )

    return call


# --------------------------------------------------------------------------- neighbours


def _gradient(visitor: Any, sdfg: Any, state: Any, f: str, spacing: Any = 1, axis: int | None = None) -> str:
    """Along one axis, of even spacing: differences of the neighbours, at the ends one-sided."""
    shape = sdfg.arrays[f].shape
    axis = only_axis("gradient", sdfg, f, axis)
    at = subscripts(len(shape))
    here, last = at[axis], f"{shape[axis]} - 1"

    def moved(place: str) -> list[str]:
        return [place if d == axis else i for d, i in enumerate(at)]

    inputs = {"__h": (f, moved(f"Min({here} + 1, {last})")), "__l": (f, moved(f"Max({here} - 1, 0)"))}
    if isinstance(spacing, str) and spacing in sdfg.arrays:
        inputs["__d"], spacing = (spacing, ["0"]), "__d"
    code = f"(__h - __l) / (({spacing}) * (1.0 if {here} == 0 or {here} == {last} else 2.0))"
    return pointwise(sdfg, state, shape, real_of(sdfg, f), code, inputs)


def _trapezoids(
    visitor: Any, sdfg: Any, state: Any, y: str, x: str | None = None, dx: Any = 1.0, axis: int = -1
) -> Any:
    """The integral by trapezoids along an axis."""
    shape = [*sdfg.arrays[y].shape]
    axis %= len(shape)
    at = subscripts(len(shape))
    after = [f"{i} + 1" if d == axis else i for d, i in enumerate(at)]
    inputs, width = {"__a": (y, at), "__b": (y, after)}, f"({dx})"
    if x is not None:
        inputs |= {"__u": (x, [at[axis]]), "__v": (x, [after[axis]])}
        width = "(__v - __u)"
    shape[axis] = shape[axis] - 1
    calls = NestedCall(visitor, sdfg, state)
    areas = calls(computed)(shape, real_of(sdfg, y), f"0.5 * (__a + __b) * {width}", inputs)
    return calls, calls(replacements._sum)(areas, axis=axis)


def _convolve(visitor: Any, sdfg: Any, state: Any, a: str, v: str, mode: Any = "full") -> Any:
    one, other = sdfg.arrays[a], sdfg.arrays[v]
    mode = unboxed(mode)
    if len(one.shape) != 1 or len(other.shape) != 1:
        raise NotImplementedError("np.convolve: arrays of one axis alone")
    (n,), (m,) = one.shape, other.shape
    n, m = map(sympy.sympify, (n, m))  # a number is taken to be less than a symbol
    shorter, longer = (n, m) if n.is_number and not m.is_number else (m, n)
    if n.is_number == m.is_number:
        shorter, longer = sympy.Min(n, m), sympy.Max(n, m)
    length, first = {
        "full": (n + m - 1, 0),
        "same": (longer, (shorter - 1) // 2),
        "valid": (longer - shorter + 1, shorter - 1),
    }[mode]
    i, k = subscripts(2)
    place = f"{i} + {first} - {k}"
    calls = NestedCall(visitor, sdfg, state)
    terms = calls(computed)(
        [length, m],
        dace.dtypes.result_type_of(one.dtype, other.dtype),
        f"__x * __w if {place} >= 0 and {place} < {n} else 0",
        {"__x": (a, [f"Max(0, Min({place}, {n} - 1))"]), "__w": (v, [k])},
    )
    return calls, calls(replacements._sum)(terms, axis=1)


def _ptp(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
    """The greatest less the least."""
    calls = NestedCall(visitor, sdfg, state)
    high, low = calls(replacements._max)(a, axis=axis), calls(replacements._min)(a, axis=axis)
    at = subscripts(len(sdfg.arrays[high].shape))
    inputs = {"__h": (high, at), "__l": (low, at)}
    return calls, calls(computed)(sdfg.arrays[high].shape, sdfg.arrays[a].dtype, "__h - __l", inputs)


# --------------------------------------------------------------------------- pieces of them


def _times(factor: float) -> Callable[..., Any]:
    return lambda visitor, sdfg, state, x: mapped(
        visitor, sdfg, state, x, f"{{}} * {factor!r}", real_of(sdfg, x)
    )


def _matrix(function: str, sdfg: Any, a: str) -> Sequence[Any]:
    shape: Sequence[Any] = sdfg.arrays[a].shape
    if len(shape) != 2:
        raise NotImplementedError(f"np.{function}: matrices alone")
    return shape


def _vdot(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> Any:
    calls = NestedCall(visitor, sdfg, state)
    if kind(sdfg, a) == "c":
        a = calls(mapped)(a, "conj({})")
    return calls, calls(replacements.dot)(a, b)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "swapaxes": _swapaxes, "moveaxis": moveaxis, "expand_dims": _expand_dims, "squeeze": _squeeze,
    "take": _take, "rot90": _rot90, "flipud": _flipped(0), "fliplr": _flipped(1), "pad": _pad, "kron": _kron,
    "cross": _cross, "meshgrid": _meshgrid, "diag": _diag, "trace": _trace, "ptp": _ptp,
    "tril": _triangle("<="), "triu": _triangle(">="), "gradient": _gradient, "convolve": _convolve,
    **dict.fromkeys(("trapz", "trapezoid"), _trapezoids),
    "inner": replacements.dot, "vdot": _vdot,
    **dict.fromkeys(("deg2rad", "radians"), _times(RADIANS_PER_DEGREE)),
    **dict.fromkeys(("rad2deg", "degrees"), _times(1.0 / RADIANS_PER_DEGREE)),
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.{_name}")(_function)
for _name in ("swapaxes", "squeeze", "take", "trace", "ptp"):
    as_method(_name, _FUNCTIONS[_name])
