"""`numpy.fft`, of which DaCe 1.0 has transforms of whole arrays of one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dace
from dace.frontend.common import op_repository
from dace.frontend.python import replacements
from dace.frontend.python.nested_call import NestedCall
from dace.symbolic import int_floor

from gnnperf.frontends.dace.parser.numpy_functions import (
    computed,
    each,
    mapped,
    pointwise,
    real_of,
    roll,
    subscripts,
)
from gnnperf.frontends.dace.parser.numpy_places import moveaxis


def _along(inverse: bool) -> Callable[..., Any]:
    """A transform along one axis, of which n elements are taken, or zeros added."""

    def transform(
        visitor: Any, sdfg: Any, state: Any, a: str, n: Any = None, axis: int = -1, norm: Any = "backward"
    ) -> Any:
        calls, dimensions = NestedCall(visitor, sdfg, state), len(sdfg.arrays[a].shape)
        last = axis % dimensions == dimensions - 1
        moved = a if last else calls(moveaxis)(a, axis, -1)
        if n is not None or isinstance(sdfg.arrays[a], dace.data.View):
            moved = calls(_of_length)(moved, sdfg.arrays[moved].shape[-1] if n is None else n)
        found = calls(replacements._fft_core)(moved, None, -1, norm, inverse)
        return calls, found if last else calls(moveaxis)(found, -1, axis)

    return transform


def _of_length(visitor: Any, sdfg: Any, state: Any, a: str, n: Any) -> str:
    """As many elements along the last axis, zeros behind what there is."""
    *around, size = sdfg.arrays[a].shape
    *at, i = subscripts(len(around) + 1)
    place = {"__x": (a, [*at, f"Min({i}, {size} - 1)"])}
    return pointwise(sdfg, state, [*around, n], sdfg.arrays[a].dtype, f"__x if {i} < {size} else 0", place)


def _of_real(
    visitor: Any, sdfg: Any, state: Any, a: str, n: Any = None, axis: int = -1, norm: Any = "backward"
) -> Any:
    """The first half: the other is its conjugate."""
    calls = NestedCall(visitor, sdfg, state)
    whole = calls(_along(False))(a, n, axis, norm)
    shape, at = [*sdfg.arrays[whole].shape], subscripts(len(sdfg.arrays[whole].shape))
    shape[axis] = int_floor(shape[axis], 2) + 1
    return calls, calls(computed)(shape, sdfg.arrays[whole].dtype, "__x", {"__x": (whole, at)})


def _to_real(
    visitor: Any, sdfg: Any, state: Any, a: str, n: Any = None, axis: int = -1, norm: Any = "backward"
) -> Any:
    """The inverse of the first half and its conjugate."""
    calls, dimensions = NestedCall(visitor, sdfg, state), len(sdfg.arrays[a].shape)
    half = calls(moveaxis)(a, axis, -1) if axis % dimensions != dimensions - 1 else a
    *around, size = sdfg.arrays[half].shape
    *at, i = subscripts(dimensions)
    count = 2 * (size - 1) if n is None else n
    places = {
        "__x": (half, [*at, f"Min({i}, {size} - 1)"]),
        "__y": (half, [*at, f"Min({size} - 1, ({count} - {i}) % ({count}))"]),
    }
    mirrored = f"__x if 2 * {i} <= {count} else conj(__y)"
    dtype = sdfg.arrays[half].dtype
    whole = calls(computed)([*around, count], dtype, mirrored, places)
    found = calls(replacements._fft_core)(whole, None, -1, norm, True)
    result = calls(mapped)(found, "real({})", real_of(sdfg, found))
    return calls, result if half == a else calls(moveaxis)(result, -1, axis)


def _along_all(inverse: bool, count: int | None = None, of_real: bool = False) -> Callable[..., Any]:
    """Along some axes, the last ones or all unless they are said. of_real: the last of them is of real
    numbers, or gives them."""

    def transform(
        visitor: Any, sdfg: Any, state: Any, a: str, s: Any = None, axes: Any = None, norm: Any = "backward"
    ) -> Any:
        calls, dimensions = NestedCall(visitor, sdfg, state), len(sdfg.arrays[a].shape)
        along = [*range(-(count or dimensions), 0)] if axes is None else each(axes)
        lengths = [None] * len(along) if s is None else each(s)
        *others, last = [(_along(inverse), n, axis) for n, axis in zip(lengths, along, strict=True)]
        if of_real:
            last = (_to_real if inverse else _of_real, *last[1:])
        for function, n, axis in (*others, last) if inverse else (last, *others):
            a = calls(function)(a, n, axis, norm)
        return calls, a

    return transform


def _shifted(sign: int) -> Callable[..., Any]:
    """The place of frequency zero goes to the middle, or back."""

    def shift(visitor: Any, sdfg: Any, state: Any, x: str, axes: Any = None) -> str:
        shape = sdfg.arrays[x].shape
        along = [*range(len(shape))] if axes is None else [axis % len(shape) for axis in each(axes)]
        return roll(visitor, sdfg, state, x, [sign * int_floor(shape[d], 2) for d in along], along)

    return shift


def _frequencies(visitor: Any, sdfg: Any, state: Any, n: Any, d: Any = 1.0) -> str:
    (i,) = subscripts(1)
    code = f"({i} if 2 * {i} < {n} else {i} - {n}) / ({n} * {d})"
    return pointwise(sdfg, state, [n], dace.float64, code, {})


def _frequencies_of_half(visitor: Any, sdfg: Any, state: Any, n: Any, d: Any = 1.0) -> str:
    (i,) = subscripts(1)
    return pointwise(sdfg, state, [int_floor(n, 2) + 1], dace.float64, f"{i} / ({n} * {d})", {})


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "fft": _along(False), "ifft": _along(True), "rfft": _of_real, "irfft": _to_real,
    "fft2": _along_all(False, 2), "ifft2": _along_all(True, 2),
    "fftn": _along_all(False), "ifftn": _along_all(True),
    "rfft2": _along_all(False, 2, of_real=True), "irfft2": _along_all(True, 2, of_real=True),
    "rfftn": _along_all(False, of_real=True), "irfftn": _along_all(True, of_real=True),
    "fftshift": _shifted(1), "ifftshift": _shifted(-1),
    "fftfreq": _frequencies, "rfftfreq": _frequencies_of_half,
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.fft.{_name}")(_function)
