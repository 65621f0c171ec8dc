"""Does a candidate compute what the reference computes?

All comparisons happen in numpy: the candidates are compiled with -ffast-math, under which a NaN
test in C++ may be optimised away.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

_RTOL = {2: (4e-3, 5e-2), 4: (2e-5, 1e-2), 8: (1e-10, 1e-6), 16: (1e-10, 1e-6)}
"""Bytes of a real number -> relative tolerance of one operation chain, and its cap.

The first is some hundred units in the last place (a chain of reassociated operations and vector
math functions; double precision is laxer in units because its mistakes are never that small)."""

_RTOL_BFLOAT16 = (1.6e-2, 0.2)
"""The same of bfloat16, whose last place is 2^-7: where sums are rounded to it term by term, as TVM does, ten
terms in another order differ by more than any other type would forgive."""

LARGEST = 1e15
"""Results beyond this come from a recurrence that amplifies rounding errors."""

AMPLIFIED = 8.0
"""Roundings inside a program count this many times those of its inputs."""

_TINY = 1e-290
"""Sums of squares below this may have lost some to underflow."""

EDGE = 100
"""Of so many integers that a program makes of real numbers, one may lie so near to the next that rounding
decides: real numbers of float32, right up to a hundred units in the last place, and integers up to 255, of
which that is half a per cent."""

_CHUNK = 1 << 16  # elements looked at at a time: what comes of them stays in the caches


BFLOAT16 = "bfloat16"
"""Name of the type that NumPy knows once `ml_dtypes` is imported, as TVM does; to NumPy it is not a float."""


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether its numbers are rounded: real or complex, of whatever width."""
    return dtype.kind in "fc" or dtype.name == BFLOAT16


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    """Of a type that NumPy computes with: bfloat16 as float32, which has all of its values."""
    return array.astype(np.float32) if array.dtype.name == BFLOAT16 else array


def relative_tolerance(dtype: np.dtype[Any], reduction_length: int = 1) -> float:
    """Tolerance for results that sum `reduction_length` terms in an unknown order; 0.0 for integers.

    Rounding errors of a reordered sum grow like the square root of its length (Higham, "Accuracy
    and Stability of Numerical Algorithms", 2nd ed., section 4.2: the probabilistic estimate).
    """
    if not is_inexact(dtype):
        return 0.0
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    base, cap = _RTOL_BFLOAT16 if dtype.name == BFLOAT16 else _RTOL[size]
    return min(cap, base * math.sqrt(max(1, reduction_length)))


def perturbed(data: Mapping[str, Any], least: float = 0.0) -> dict[str, Any]:
    """The same inputs with one rounding error in every floating-point element of the arrays. least: relative
    error of a shorter type that the program computes in."""
    rng = np.random.default_rng(0)

    def rounded(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or not is_inexact(value.dtype):
            return value
        wide = _widened(value)
        unit = 2.0**-7 if value.dtype.name == BFLOAT16 else np.finfo(value.dtype).eps
        signs = rng.choice(np.array([-1, 1], wide.real.dtype), min(value.size, _CHUNK))
        factors = np.resize(1 + signs * max(unit, least), value.shape)
        with np.errstate(all="ignore"):  # outputs may come as anything, signalling NaNs among it
            return (wide * factors).astype(value.dtype, copy=False)

    return {name: rounded(value) for name, value in data.items()}


def equivalent_length(
    reference: Mapping[str, NDArray[Any]], moved: Mapping[str, NDArray[Any]], reduction_length: int
) -> int:
    """`reduction_length`, or the length of the sum whose tolerance covers what rounding errors do here.

    `moved`: what the same program computes from `perturbed` inputs. A program that amplifies one rounding
    error of its inputs (a softmax of large numbers, a recurrence) amplifies its own no less, and no order
    of its operations is more right than another.
    """
    length = reduction_length
    for dtype, largest in _changes(reference, moved):
        if largest < math.inf:
            length = max(length, math.ceil((AMPLIFIED * largest / relative_tolerance(dtype)) ** 2))
    return length


def is_stable(reference: Mapping[str, NDArray[Any]], moved: Mapping[str, NDArray[Any]]) -> bool:
    """Whether one rounding of the inputs changes results by less than the most that is tolerated. Arguments
    as of `equivalent_length`."""
    return all(largest < relative_tolerance(dtype, 1 << 62) for dtype, largest in _changes(reference, moved))


def _changes(
    reference: Mapping[str, NDArray[Any]], moved: Mapping[str, NDArray[Any]]
) -> Iterator[tuple[np.dtype[Any], float]]:
    """Type, and largest relative change, of every output of real numbers: infinite where all was zero and is
    no longer, beyond what `verify` forgives."""
    for name, expected in reference.items():
        if is_inexact(expected.dtype):
            right, other = _widened(expected), _widened(moved[name])
            scale, largest = root_mean_square(right), 0.0
            if not scale and 0.0 < _noise(expected, reference) < root_mean_square(other):
                largest = math.inf
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                for r, o in _chunks(right, other):
                    change = np.abs(o - r) / (np.abs(r) + scale)
                    largest = max(largest, float(np.max(change[np.isfinite(change)], initial=0.0)))
            yield expected.dtype, largest


def verify(
    reference: Mapping[str, NDArray[Any]],
    outputs: Mapping[str, NDArray[Any]],
    reduction_length: int = 1,
    quantised: Collection[str] = (),
) -> str | None:
    """None when every output agrees with the reference, else one line that says what does not.

    Integers and booleans must be equal; but of outputs that are `quantised`, made of real numbers that may be
    rounded otherwise, one element in `EDGE` may be one off. NaN, +Inf and -Inf must be at the same
    positions. Other floating-point values may differ by rtol * (|reference| + rms), where rms is the root
    mean square of the reference array: an element that is small because large terms cancelled carries
    the rounding errors of the large terms. Where all cancelled and the reference is zero, these are
    those of the largest of the other outputs.
    """
    for name, expected in reference.items():
        if name not in outputs:
            return f"{name}: no such output"
        problem = _compare(expected, outputs[name], reduction_length, _noise(expected, reference))
        if problem and name in quantised and _on_the_edge(expected, outputs[name]):
            continue
        if problem:
            return f"{name}: {problem}"
    return None


def _noise(expected: NDArray[Any], reference: Mapping[str, NDArray[Any]]) -> float:
    """What elements of an output may be off where all are zero: rounding errors of the largest other one."""
    if not is_inexact(expected.dtype) or expected.any():
        return 0.0
    rounded = [_widened(array) for array in reference.values() if is_inexact(array.dtype)]
    return AMPLIFIED * float(np.finfo(_widened(expected).dtype).eps) * max(map(root_mean_square, rounded))


def _on_the_edge(expected: NDArray[Any], got: NDArray[Any]) -> bool:
    """Are integers of one type and shape one apart at most, and few of them?"""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return False
    apart = 0
    for e, g in _chunks(expected, got):
        distance = np.where(e > g, e - g, g - e)
        if (distance > 1).any():
            return False
        apart += int(np.count_nonzero(distance))
    return apart * EDGE <= expected.size


AGREES = "agrees"


@dataclass(frozen=True)
class Evidence:
    """What agreeing results are worth.

    Attributes:
        inputs: what the kernel was verified on: sets of arguments, in words.
        finite, changed: shares of all elements of all outputs, on the first of these, that are numbers, and
            that are not what was there before.
        unverifiable: outputs that told nothing on any of them, and why.
        quantised: outputs that are integers made of real numbers, of which some may be one off.
        python: "agrees" where the program's own Python function, run by Python on the inputs, computes the
            same; how it differs; empty where there is none, or it did not end in time.
    """

    inputs: Sequence[str] = ("the inputs",)
    finite: float = 1.0
    changed: float = 1.0
    unverifiable: Mapping[str, str] = field(default_factory=dict)
    quantised: Sequence[str] = ()
    python: str = ""

    @property
    def misleads(self) -> bool:
        """Do the results agree with something that is not what the user wrote?"""
        return self.python not in ("", AGREES)

    @staticmethod
    def of(reference: Mapping[str, NDArray[Any]], before: Mapping[str, Any]) -> Evidence:
        """Of outputs that are right. before: values of arguments, of outputs among them where a program may
        read or keep them."""
        silent, finite, changed, total = {}, 0, 0, 0
        for name, array in reference.items():
            numbers = int(np.isfinite(array).sum()) if is_inexact(array.dtype) else array.size
            old = before.get(name)
            other = array.size if old is None else int(np.count_nonzero(_differs(array, np.asarray(old))))
            finite, changed, total = finite + numbers, changed + other, total + array.size
            if array.size and not numbers:
                silent[name] = "no element is a finite number"
            elif array.size and not other:
                silent[name] = "it stays as it was"
            elif array.size > 1 and not any(_differs(c, array.flat[0]).any() for (c,) in _chunks(array)):
                silent[name] = f"all elements are {array.flat[0]}"
        return Evidence(
            finite=finite / total if total else 1.0,
            changed=changed / total if total else 1.0,
            unverifiable=silent,
        )

    def joined(self, other: Evidence, words: str) -> Evidence:
        """With what verifying on other arguments has shown. words: what these are like."""
        silent = {name: why for name, why in self.unverifiable.items() if name in other.unverifiable}
        return replace(self, inputs=[*self.inputs, words], unverifiable=silent)


def _differs(array: NDArray[Any], other: Any) -> NDArray[np.bool_]:
    """Element by element; NaN is as NaN."""
    both = np.not_equal(array, other)
    return both & ~((array != array) & (other != other))


def _compare(
    expected: NDArray[Any], got: NDArray[Any], reduction_length: int, noise: float = 0.0
) -> str | None:
    """noise: what an element may be off in any case."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return f"expected {expected.dtype}{list(expected.shape)}, got {got.dtype}{list(got.shape)}"
    if expected.dtype.kind == "b":  # not by truth value: a poisoned byte is neither true nor false
        expected, got = expected.view(np.uint8), got.view(np.uint8)
    if expected.dtype.kind == "c":
        real = _compare(expected.real, got.real, reduction_length, noise)
        return real or _compare(expected.imag, got.imag, reduction_length, noise)
    rtol = relative_tolerance(expected.dtype, reduction_length)
    expected, got = _widened(expected), _widened(got)
    scale = root_mean_square(expected) if rtol else 0.0
    wrong, worst, where = 0, -1.0, 0
    position = 0
    for e, g in _chunks(expected, got):
        excess = _excess(e, g, rtol, scale) - noise
        wrong += int(np.count_nonzero(excess > 0))
        if wrong and float(excess.max()) > worst:
            worst, where = float(excess.max()), position + int(excess.argmax())
        position += e.size
    if not wrong:
        return None
    index = np.unravel_index(where, expected.shape)
    return (
        f"{wrong} of {expected.size} elements differ; worst at {[int(i) for i in index]}: "
        f"expected {expected[index]:.9g}, got {got[index]:.9g} (relative tolerance {rtol:.1g})"
    )


def _excess(expected: NDArray[Any], got: NDArray[Any], rtol: float, scale: float) -> NDArray[np.float64]:
    """How far each element is out of tolerance: <= 0 inside, inf where only one is NaN or infinite."""
    if expected.dtype.kind != "f":
        different: NDArray[np.float64] = (expected != got).astype(np.float64)
        return different
    e, g = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        excess: NDArray[np.float64] = np.abs(g - e) - rtol * (np.abs(e) + scale)
    if excess.max(initial=0.0) <= 0.0:  # which what comes of NaN is not
        return excess
    special = ~(np.isfinite(e) & np.isfinite(g))
    same = (e == g) | (np.isnan(e) & np.isnan(g))
    excess[special] = np.where(same[special], 0.0, np.inf)
    return excess


def is_moderate(array: NDArray[Any]) -> bool:
    """Whether all elements are finite and none is beyond `LARGEST`."""
    return not is_inexact(array.dtype) or bool((np.abs(array) < LARGEST).all())


def root_mean_square(array: NDArray[Any]) -> float:
    """Of the sizes of the finite elements, without overflow; 0.0 when there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = sum(_sum_of_squares(chunk) for (chunk,) in _chunks(array))
    if _TINY < total < math.inf:
        return math.sqrt(total / array.size)
    finite = np.abs(array[np.isfinite(array)])
    largest = float(finite.max(initial=0.0))
    return largest and largest * math.sqrt(_sum_of_squares(finite / largest) / finite.size)


def _sum_of_squares(array: NDArray[Any]) -> float:
    """In double precision."""
    wide = array.astype(np.result_type(array.dtype, np.float64), copy=False).reshape(-1)
    return float(np.vdot(wide, wide).real)


def _chunks(*arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """The arrays side by side as flat pieces, in C order."""
    flat = [a.reshape(-1) for a in arrays]
    for i in range(0, flat[0].size, _CHUNK):
        yield tuple(a[i : i + _CHUNK] for a in flat)
