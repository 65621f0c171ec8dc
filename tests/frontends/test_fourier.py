"""Fourier transforms become nests that compute what NumPy computes."""

from __future__ import annotations

from math import prod

import dace
import numpy as np
import pytest
from frontends.kit import interpret_program

from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.dace.fourier import radices
from gnnperf.measure import Compiler, Runner

N = dace.symbol("N")


@dace.program
def spectrum(x: dace.float64[N]):
    return np.fft.fft(x)


@dace.program
def there_and_back(x: dace.complex64[N]):
    return np.fft.ifft(np.fft.fft(x, norm="ortho"), norm="ortho")


@dace.program
def inverse(x: dace.complex128[N]):
    return np.fft.ifft(x)


def noise(*shape: int) -> np.ndarray:
    parts = np.random.default_rng(0).normal(size=(2, *shape))
    return parts[0] + 1j * parts[1]


@pytest.mark.parametrize(
    ("n", "expected"), [(1, [1]), (7, [7]), (8, [8]), (16, [8, 2]), (360, [5, 6, 6, 2]), (1009, [1009])]
)
def test_stages_are_few_and_short(n: int, expected: list[int]) -> None:
    assert radices(n) == expected
    assert prod(radices(n)) == n


@pytest.mark.parametrize("n", [1, 2, 31, 64, 90, 210])
def test_a_real_signal(n: int) -> None:
    x = noise(n).real
    kernel = load_kernel(spectrum, {"N": n}, {"x": x})
    assert not kernel.skipped
    for backwards in (False, True):
        result = interpret_program(kernel, reverse=backwards)["__return"]
        np.testing.assert_allclose(result, np.fft.fft(x), rtol=0, atol=1e-13 * n)


@pytest.mark.parametrize("n", [48, 37])
def test_an_inverse_is_not_zero(n: int, compiler: Compiler, runner: Runner) -> None:
    """Of 37 elements, a prime, there is one stage, a sum in a loop."""
    x = noise(n)
    kernel = load_kernel(inverse, {"N": n}, {"x": x})
    assert (len(kernel.units) == 1) == (n == 37)
    library = compiler.build(kernel.plain_source())
    result = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts)["__return"]
    np.testing.assert_allclose(result, np.fft.ifft(x), rtol=0, atol=1e-13)


def test_single_precision_and_norms() -> None:
    x = noise(60).astype(np.complex64)
    result = interpret_program(load_kernel(there_and_back, {"N": 60}, {"x": x}))["__return"]
    np.testing.assert_allclose(result, x, rtol=0, atol=1e-5)


def test_what_is_between_stages_is_freed_or_allocated_once() -> None:
    """DaCe takes it for small, puts it on the heap where it is not, and never frees it."""
    kernel = load_kernel(inverse, {"N": 8192})
    plain = kernel.plain_source().text
    assert plain.count("= new dace") == plain.count("delete[]") == 2
    (optimised,) = kernel.optimised_sources().values()
    made = [line.strip() for line in optimised.text.splitlines() if "= new dace" in line]
    assert len(made) == 2 and all(line.startswith("__state->") for line in made)
