"""Fourier transforms as calls of functions that are written out for their lengths (`fourier.hpp`). DaCe's own
expansion adds up n terms for each of n results, with a sine and a cosine for every term."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import dace
from dace import library
from dace.libraries.fft.nodes import FFT, IFFT
from dace.properties import CodeBlock, Property, SymbolicProperty
from dace.sdfg import nodes as dn
from dace.transformation import ExpandTransformation
from sympy import factorint

CALL = "call"
"""The name of the implementation."""
LARGEST_RADIX = 8
LARGEST_PRIME = 13
"""Lengths with larger ones are convolutions of a power of two."""
_COLUMN_BYTES = 64
"""Of columns that are transformed together: a vector."""

_HEADER = Path(__file__).with_name("fourier.hpp").read_text(encoding="utf-8")


def radices(n: int) -> list[int]:
    """Factors of n, the numbers of points of its stages: at most `LARGEST_RADIX`, or prime."""
    primes = [prime for prime, power in factorint(n).items() for _ in range(power)]
    found: list[int] = []
    for prime in sorted(primes, reverse=True):
        fits = [at for at, radix in enumerate(found) if radix * prime <= LARGEST_RADIX]
        if fits:
            found[fits[0]] *= prime
        else:
            found.append(prime)
    return found or [1]


@library.node
class FourierTransform(dn.LibraryNode):  # type: ignore[misc]
    """`_out` is factor times the transform of `_inp`, as large, along an axis. sign: of the exponent."""

    implementations: ClassVar[dict[str, Any]] = {}
    default_implementation = CALL
    axis = Property(dtype=int, default=-1)
    sign = Property(dtype=int, default=-1)
    factor = SymbolicProperty(default=1.0)

    def __init__(self, name: str, *args: Any, axis: int = -1, sign: int = -1, factor: Any = 1.0, **more: Any):
        super().__init__(name, *args, inputs={"_inp"}, outputs={"_out"}, **more)
        self.axis, self.sign, self.factor = axis, sign, factor


class _Call(ExpandTransformation):  # type: ignore[misc]
    """A nested SDFG from `_inp` to `_out`. Raises TypeError for sizes that are not known: expansions may."""

    environments: ClassVar[list[Any]] = []
    sign: ClassVar[int | None] = None

    @classmethod
    def expansion(cls, node: Any, state: Any, parent: Any) -> Any:
        (source,), (target,) = (
            [parent.arrays[e.data.data] for e in edges]
            for edges in (state.in_edges(node), state.out_edges(node))
        )
        sdfg = dace.SDFG("fourier")
        for name, held in (("_inp", source), ("_out", target)):
            sdfg.add_array(name, [*map(int, held.shape)], held.dtype, strides=[*map(int, held.strides)])
        axis = getattr(node, "axis", -1) % len(source.shape)
        _add_calls(sdfg, axis, cls.sign or node.sign, float(node.factor))
        return sdfg


@library.register_expansion(FourierTransform, CALL)
class _TransformCall(_Call):
    pass


@library.register_expansion(FFT, CALL)
class _ForwardCall(_Call):
    sign = -1


@library.register_expansion(IFFT, CALL)
class _InverseCall(_Call):
    sign = 1


def _add_calls(sdfg: Any, axis: int, sign: int, factor: float) -> None:
    """For every row along the axis; of neighbouring rows, for some together."""
    source, target = sdfg.arrays["_inp"], sdfg.arrays["_out"]
    shape, state = source.shape, sdfg.add_state("fourier")
    last, together = len(shape) - 1, 1
    if axis < last and source.strides[-1] == target.strides[-1] == 1 and _has_stages(shape[axis]):
        together = _COLUMN_BYTES // (target.dtype.bytes // 2)
    whole, rest = divmod(shape[-1], together)
    blocks = [(together, 0, whole), (rest, whole * together, 1)]
    for columns, begin, count in [block for block in blocks if 0 not in (block[0], block[2])]:
        ranges = {f"__o{d}": f"0:{size}" for d, size in enumerate(shape) if d not in (axis, last)}
        place = [f"0:{size}" if d == axis else f"__o{d}" for d, size in enumerate(shape)]
        if axis < last:
            ranges["__c"] = f"0:{count}"
            first = f"{begin} + {columns} * __c"
            place[-1] = f"{first}:{first} + {columns}"
        code = _code(source, target, axis, columns, sign, factor)
        _add_call(sdfg, state, ranges, ", ".join(place), code)


def _has_stages(n: int) -> bool:
    return max(radices(n)) <= LARGEST_PRIME


def _code(source: Any, target: Any, axis: int, columns: int, sign: int, factor: float) -> str:
    """For what begins at `__x` and `__y`."""
    n = source.shape[axis]
    number = "float" if target.dtype == dace.complex64 else "double"
    is_real = source.dtype not in (dace.complex64, dace.complex128)
    held = source.dtype.ctype if is_real else number
    kind = f"Real<{held}" if is_real else f"Complex<const {held}"
    read = f"gp_fourier::{kind}, {source.strides[axis]}>{{(const {held}*)__x}}"
    write = f"gp_fourier::Complex<{number}, {target.strides[axis]}>{{({number}*)__y}}, {number}({factor!r})"
    if (
        is_real
        and held == number
        and source.strides[axis] == columns == 1
        and n % 2 == 0
        and _has_stages(n // 2)
    ):
        return f"gp_fourier::transform_of_real<{_factors(n // 2)}>(__x, {write});"
    if _has_stages(n):
        return f"gp_fourier::transform<{sign}, {columns}, {_factors(n)}>({read}, {write});"
    power = 1 << (2 * n - 2).bit_length()
    return f"gp_fourier::transform_as_convolution<{sign}, {n}, {_factors(power)}>({read}, {write});"


def _factors(n: int) -> str:
    return ", ".join(map(str, radices(n)))


def _add_call(sdfg: Any, state: Any, ranges: dict[str, str], place: str, code: str) -> None:
    memlets = {name: dace.Memlet(f"{array}[{place}]") for name, array in (("__x", "_inp"), ("__y", "_out"))}
    if ranges:
        tasklet, _, _ = state.add_mapped_tasklet(
            "fourier", ranges, {"__x": memlets["__x"]}, code, {"__y": memlets["__y"]},
            language=dace.Language.CPP, external_edges=True,
        )  # fmt: skip
    else:  # no loop, which would be the threads' work: they share the row
        tasklet = state.add_tasklet("fourier", {"__x"}, {"__y"}, code, language=dace.Language.CPP)
        state.add_edge(state.add_read("_inp"), None, tasklet, "__x", memlets["__x"])
        state.add_edge(tasklet, "__y", state.add_write("_out"), None, memlets["__y"])
    tasklet.in_connectors["__x"] = dace.pointer(sdfg.arrays["_inp"].dtype)
    tasklet.out_connectors["__y"] = dace.pointer(sdfg.arrays["_out"].dtype)
    tasklet.code_global = CodeBlock(_HEADER, dace.Language.CPP)
