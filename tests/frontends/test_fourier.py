"""Fourier transforms compute what NumPy computes, of any length, along any axis."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from frontends.kit import run

from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.dace.fourier import radices
from gnnperf.measure import Compiler, Runner

N, M, K = (dace.symbol(name) for name in "NMK")


@dace.program
def of_rows(
    x: dace.float64[N], z: dace.complex128[K, N], real: dace.complex128[N], rows: dace.complex128[K, N]
):
    real[:] = np.fft.fft(x)
    rows[:] = np.fft.fft(z)


@dace.program
def of_columns(
    z: dace.complex128[N, M], x: dace.float32[K, N, M], y: dace.complex128[N, M], w: dace.complex64[K, N, M]
):
    y[:] = np.fft.ifft(z, axis=0)
    w[:] = np.fft.fft(x, axis=1)


@dace.program
def scaled(k: dace.int32[N], x: dace.complex64[N]):
    y = np.fft.fft(x, norm="ortho")
    return np.fft.ifft(np.fft.fft(k, norm="forward")) + np.fft.ifft(y, norm="ortho")


@dace.program
def names_of_other_things(k: dace.float64[N], a: dace.complex128[N], p: dace.float64[N]):
    p[:] = np.real(np.fft.ifft(np.fft.fft(k) * np.fft.fft(a)))


@dace.program
def in_a_map(x: dace.float64[K, N], y: dace.float64[K, N]):
    for i in dace.map[0:K]:
        f = np.fft.fft(x[i] * x[i])
        y[i] = f.real * f.real + f.imag * f.imag


def noise(*shape: int) -> np.ndarray:
    parts = np.random.default_rng(0).normal(size=(2, *shape))
    return parts[0] + 1j * parts[1]


def computed(
    program: Any, sizes: dict[str, int], data: dict[str, Any], tools: tuple[Compiler, Runner]
) -> Any:
    compiler, runner = tools
    kernel = load_kernel(program, sizes, data)
    return run(runner, kernel, compiler.build(kernel.plain_source()))


@pytest.fixture
def tools(compiler: Compiler, runner: Runner) -> tuple[Compiler, Runner]:
    return compiler, runner


@pytest.mark.parametrize(
    ("n", "expected"), [(1, [1]), (7, [7]), (8, [8]), (16, [8, 2]), (360, [5, 6, 6, 2]), (1009, [1009])]
)
def test_stages_are_few_and_short(n: int, expected: list[int]) -> None:
    assert radices(n) == expected
    assert prod(radices(n)) == n


@pytest.mark.parametrize("n", [1, 2, 3, 26, 37, 74, 210, 512, 1001, 20480])
def test_rows_of_any_length(n: int, tools: tuple[Compiler, Runner]) -> None:
    """37 is a prime too large for a stage, 20480 long enough for threads to share a row."""
    x, z = noise(n).real, noise(3, n)
    found = computed(of_rows, {"N": n, "K": 3}, {"x": x, "z": z}, tools)
    for name, expected in (("real", np.fft.fft(x)), ("rows", np.fft.fft(z))):
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=2e-15 * np.abs(expected).max())


@pytest.mark.parametrize(("n", "columns"), [(12, 8), (12, 21), (17, 5)])
def test_columns_several_at_a_time(n: int, columns: int, tools: tuple[Compiler, Runner]) -> None:
    z, x = noise(n, columns), noise(2, n, columns).real.astype(np.float32)
    found = computed(of_columns, {"N": n, "M": columns, "K": 2}, {"z": z, "x": x}, tools)
    np.testing.assert_allclose(found["y"], np.fft.ifft(z, axis=0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found["w"], np.fft.fft(x, axis=1), rtol=0, atol=1e-5)


def test_integers_single_precision_and_norms(tools: tuple[Compiler, Runner]) -> None:
    x, k = noise(60).astype(np.complex64), np.arange(60, dtype=np.int32)
    found = computed(scaled, {"N": 60}, {"x": x, "k": k}, tools)["__return"]
    np.testing.assert_allclose(found, x + k / 60, rtol=0, atol=1e-5)


def test_names_of_arrays_are_the_program_s_own(tools: tuple[Compiler, Runner]) -> None:
    k, a = noise(32).real, noise(32)
    found = computed(names_of_other_things, {"N": 32}, {"k": k, "a": a}, tools)["p"]
    np.testing.assert_allclose(found, np.fft.ifft(np.fft.fft(k) * np.fft.fft(a)).real, rtol=0, atol=1e-13)


def test_rows_in_a_parallel_loop_and_in_a_loop_of_the_optimiser(tools: tuple[Compiler, Runner]) -> None:
    x = noise(5, 24).real
    kernel = load_kernel(in_a_map, {"N": 24, "K": 5}, {"x": x})
    (optimised,) = kernel.optimised_sources().values()
    for source in (kernel.plain_source(), optimised):
        found = run(tools[1], kernel, tools[0].build(source))["y"]
        np.testing.assert_allclose(found, np.abs(np.fft.fft(x * x)) ** 2, rtol=1e-12)


def test_a_saved_program_compiles_without_gnnperf(tmp_path: Path) -> None:
    """The functions go with it."""
    kernel = load_kernel(names_of_other_things, {"N": 32})
    kernel.simplified.save(str(tmp_path / "kernel.sdfg"))
    text = (tmp_path / "kernel.sdfg").read_text()
    assert "gp_fourier::transform<" in text and "#ifndef GNNPERF_FOURIER" in text
