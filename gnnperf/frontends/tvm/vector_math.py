"""Exponentials that run in vectors: polynomials in place of calls of libm, which TVM makes lane by lane.

As compilers with a vector library of mathematical functions do. Of float32 only; the largest errors are a few
units in the last place (tests/frontends/tvm/test_vector_math.py), infinities and NaN are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gnnperf.schedules.traces.document import program_key

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts, of which the first times a small integer is exact."""
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""(exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2], highest power first (Moshier, Cephes, `expf`)."""
_EXP_RANGE = (-104.0, 89.0)
"""Beyond, the result is 0 or infinite anyway, and the exponent would overflow."""

_TANH = (
    (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
     1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
    9.0,
)  # fmt: skip
_ERF = (
    (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
     -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
    (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
     -1.42647390514189e-02),
    4.0,
)  # fmt: skip
"""f(x) / x as a quotient of polynomials in x^2, highest power first, and where f has reached 1 (Eigen,
`generic_fast_tanh_float` and `generic_fast_erf_float`)."""


def vector_math(module: Any) -> Any:
    """An IRModule of the same functions, scheduled or not, with exp, tanh, erf and sigmoid of float32 by
    polynomials."""
    import tvm_ffi
    from tvm.ir import Call

    def rewritten(call: Any) -> Any:
        expand = _EXPANSIONS.get(getattr(call.op, "name", ""))
        return expand(call.args[0]) if expand and str(call.ty.dtype) == "float32" else call

    return tvm_ffi.structural_map(module, (Call, rewritten))


def needs_vector_math(module: Any) -> bool:
    """Whether `vector_math` changes an IRModule."""
    return program_key(vector_math(module)) != program_key(module)


def _exp(x: Any) -> Any:
    """2^k exp(r), with x = k ln 2 + r; 2^k in two factors, for the smallest and largest results."""
    from tvm.tirx import Cast, Let, Var, floor, max, min, reinterpret, shift_left, shift_right

    clamped, whole, rest = (Var(name, "float32") for name in ("x", "n", "r"))
    k, half = (Var(name, "int32") for name in ("k", "half"))

    def power(exponent: Any) -> Any:
        return reinterpret("float32", shift_left(exponent + _int(127), _int(23)))

    value = (_polynomial(_EXP, rest) * rest * rest + rest + _float(1)) * power(half) * power(k - half)
    low, high = map(_float, _EXP_RANGE)
    for name, defined in (
        (half, shift_right(k, _int(1))),
        (k, Cast("int32", whole)),
        (rest, (clamped - whole * _float(_LN2_HIGH)) - whole * _float(_LN2_LOW)),
        (whole, floor(clamped * _float(_LOG2_E) + _float(0.5))),
        (clamped, max(low, min(high, x))),  # in this order a NaN stays one
    ):
        value = Let(name, defined, value)
    return value


def _sigmoid(x: Any) -> Any:
    return _float(1) / (_float(1) + _exp(_float(0) - x))


def _quotient(numerator: Sequence[float], denominator: Sequence[float], limit: float, x: Any) -> Any:
    """Of an odd function that is 1 from `limit` on."""
    from tvm.tirx import Let, Var, max, min

    clamped, square = Var("x", "float32"), Var("square", "float32")
    value = clamped * _polynomial(numerator, square) / _polynomial(denominator, square)
    value = Let(square, clamped * clamped, value)
    return Let(clamped, max(_float(-limit), min(_float(limit), x)), value)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """By Horner's rule, highest power first."""
    value = _float(coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + _float(coefficient)
    return value


def _float(value: float) -> Any:
    from tvm.tirx import const

    return const(value, "float32")


def _int(value: int) -> Any:
    from tvm.tirx import const

    return const(value, "int32")


_EXPANSIONS: dict[str, Callable[[Any], Any]] = {
    "tirx.exp": _exp,
    "tirx.sigmoid": _sigmoid,
    "tirx.tanh": functools.partial(_quotient, *_TANH),
    "tirx.erf": functools.partial(_quotient, *_ERF),
}
"""By the operator's name."""
