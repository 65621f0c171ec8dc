"""Exponentials, logarithms and powers that run in vectors: polynomials in place of calls of libm, which TVM
makes lane by lane.

As compilers with a vector library of mathematical functions do. Of float32 only; the largest errors are a few
units in the last place (tests/frontends/tvm/test_vector_math.py), infinities and NaN are kept.
"""

from __future__ import annotations

import functools
import math
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

_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
"""(log(1 + r) - r + r^2 / 2) / r^3 on [sqrt(1/2) - 1, sqrt(2) - 1], highest power first (Cephes, `logf`)."""
_SMALLEST_NORMAL = 2.0**-126

_LARGEST_POWER = 16
"""Of a power that is made of products."""

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
    """An IRModule of the same functions, scheduled or not, with exp, log, tanh, erf and sigmoid of float32
    by polynomials, and whole powers by products."""
    import tvm_ffi
    from tvm.ir import Call

    def rewritten(call: Any) -> Any:
        expand = _EXPANSIONS.get(getattr(call.op, "name", ""))
        found = expand(*call.args) if expand and str(call.ty.dtype) == "float32" else None
        return call if found is None else found

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


def _log(x: Any) -> Any:
    """log(1 + r) + k ln 2, with x = (1 + r) 2^k; subnormal numbers are scaled to normal ones first."""
    from tvm.tirx import Cast, Let, Select, Var, const, reinterpret, shift_right

    given, scaled, mantissa, rest, power = (Var(name, "float32") for name in ("x", "y", "m", "r", "n"))
    bits, small, low = Var("bits", "int32"), given < _float(_SMALLEST_NORMAL), mantissa < _float(0.5**0.5)
    infinity = const(float("inf"), "float32")
    square = rest * rest
    value = rest + (_polynomial(_LOG, rest) * rest * square + power * _float(_LN2_LOW) - _float(0.5) * square)
    value = value + power * _float(_LN2_HIGH)
    value = Select(given < infinity, value, given)  # infinity and NaN stay what they are
    value = Select(given < _float(0), const(float("nan"), "float32"), value)
    value = Select(given == _float(0), _float(0) - infinity, value)
    exponent = Cast("float32", shift_right(bits, _int(23)) - _int(126))
    for name, defined in (
        (power, exponent - Select(small, _float(23), _float(0)) - Select(low, _float(1), _float(0))),
        (rest, Select(low, mantissa + mantissa, mantissa) - _float(1)),
        (mantissa, reinterpret("float32", (bits & _int(0x007FFFFF)) | _int(0x3F000000))),
        (bits, reinterpret("int32", scaled)),
        (scaled, Select(small, given * _float(2.0**23), given)),
        (given, x),
    ):
        value = Let(name, defined, value)
    return value


def _logarithm(base: float, x: Any) -> Any:
    return _log(x) * _float(1 / math.log(base))


def _power(x: Any, exponent: Any) -> Any:
    """By squaring; None of another exponent than a small whole number, one half or its negative."""
    from tvm.tirx import FloatImm, Let, Var, sqrt

    if not isinstance(exponent, FloatImm):
        return None
    number, base = abs(exponent.value), Var("x", "float32")
    whole = number == int(number) and 0 < number <= _LARGEST_POWER
    if not whole and number != 0.5:
        return None
    value = base if whole else sqrt(base)
    for bit in f"{int(number):b}"[1:]:
        squared = Var("square", "float32")
        value = Let(squared, value, squared * squared * base if bit == "1" else squared * squared)
    return Let(base, x, value if exponent.value > 0 else _float(1) / value)


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


_EXPANSIONS: dict[str, Callable[..., Any]] = {
    "tirx.exp": _exp,
    "tirx.sigmoid": _sigmoid,
    "tirx.tanh": functools.partial(_quotient, *_TANH),
    "tirx.erf": functools.partial(_quotient, *_ERF),
    "tirx.log": _log,
    "tirx.log2": functools.partial(_logarithm, 2.0),
    "tirx.log10": functools.partial(_logarithm, 10.0),
    "tirx.pow": _power,
}
"""By the operator's name."""
