"""`numpy.fft`, of which DaCe 1.0 has transforms of whole arrays of one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dace
import sympy
from dace.frontend.common import op_repository
from dace.frontend.python.nested_call import NestedCall
from dace.symbolic import int_floor

from gnnperf.frontends.dace.fourier import FourierTransform
from gnnperf.frontends.dace.parser.numpy_functions import (
    computed,
    each,
    mapped,
    pointwise,
    real_of,
    roll,
    subscripts,
    unboxed,
)


def _along(inverse: bool) -> Callable[..., Any]:
    """A transform along one axis, of which n elements are taken, or zeros added."""

    def transform(
        visitor: Any, sdfg: Any, state: Any, a: str, n: Any = None, axis: int = -1, norm: Any = "backward"
    ) -> Any:
        calls, axis = NestedCall(visitor, sdfg, state), axis % len(sdfg.arrays[a].shape)
        taken = a if n is None else calls(_of_length)(a, n, axis)
        return calls, calls(_transformed)(taken, axis, norm, inverse)

    return transform


def _transformed(visitor: Any, sdfg: Any, state: Any, a: str, axis: int, norm: Any, inverse: bool) -> str:
    held = sdfg.arrays[a]
    n = held.shape[axis]
    whole = {"forward": not inverse, "backward": inverse, "ortho": False}
    if (scaled := unboxed(norm)) not in whole:
        raise ValueError(f"the norm of a Fourier transform is one of {', '.join(whole)}")
    factor = sympy.sqrt(1 / n) if scaled == "ortho" else 1 / n if whole[scaled] else 1.0
    node = FourierTransform("fourier", axis=axis, sign=1 if inverse else -1, factor=factor)
    narrow = held.dtype in (dace.float32, dace.complex64)
    result, _ = sdfg.add_temp_transient(held.shape, dace.complex64 if narrow else dace.complex128)
    state.add_edge(state.add_read(a), None, node, "_inp", dace.Memlet.from_array(a, held))
    state.add_edge(
        node, "_out", state.add_write(result), None, dace.Memlet.from_array(result, sdfg.arrays[result])
    )
    return result


def _of_length(visitor: Any, sdfg: Any, state: Any, a: str, n: Any, axis: int) -> str:
    """As many elements along an axis, zeros behind what there is."""
    shape, place = [*sdfg.arrays[a].shape], subscripts(len(sdfg.arrays[a].shape))
    i, size, shape[axis] = place[axis], shape[axis], n
    place[axis] = f"Min({i}, {size} - 1)"
    return pointwise(
        sdfg, state, shape, sdfg.arrays[a].dtype, f"__x if {i} < {size} else 0", {"__x": (a, place)}
    )


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
    calls, held = NestedCall(visitor, sdfg, state), sdfg.arrays[a]
    at, other, shape = subscripts(len(held.shape)), subscripts(len(held.shape)), [*held.shape]
    i, size = at[axis], shape[axis]
    shape[axis] = count = 2 * (size - 1) if n is None else n
    at[axis], other[axis] = f"Min({i}, {size} - 1)", f"Min({size} - 1, ({count} - {i}) % ({count}))"
    mirrored = f"__x if 2 * {i} <= {count} else conj(__y)"
    whole = calls(computed)(shape, held.dtype, mirrored, {"__x": (a, at), "__y": (a, other)})
    found = calls(_along(True))(whole, None, axis, norm)
    return calls, calls(mapped)(found, "real({})", real_of(sdfg, found))


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
