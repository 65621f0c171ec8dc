"""Functions that emitted code calls instead of the C library's."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from schedules.recipes.running import build

from gnnperf.schedules.recipes import CppFunction
from gnnperf.schedules.recipes.expressions import PRELUDE

N = 64
BODY = """
extern "C" void in_loops_{c}({c}* x, {c}* y) {{
  #pragma omp simd
  for (int i = 0; i < {n}; ++i) y[i] = gp_exp(x[i]);
}}
extern "C" void in_vectors_{c}({c}* x, {c}* y) {{
  auto exponential = [](auto a) {{ return gp_exp(a); }};
  for (int i = 0; i < {n}; i += 8) store(y + i, lanewise<{c}, 8>(load<8>(x + i), exponential));
}}
"""
TYPES = {"float": np.float32, "double": np.float64}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    text = PRELUDE + "".join(BODY.format(c=ctype, n=N) for ctype in TYPES)
    flags = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c++17", "-w")
    return build([CppFunction("in_loops", text, (), ())], tmp_path_factory.mktemp("functions"), flags)


def call(library: ctypes.CDLL, form: str, ctype: str, x: np.ndarray) -> np.ndarray:
    y = np.full(N, 7, x.dtype)
    getattr(library, f"{form}_{ctype}")(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    return y


@pytest.mark.parametrize("form", ["in_loops", "in_vectors"])
@pytest.mark.parametrize("ctype", TYPES)
def test_exponentials(library: ctypes.CDLL, form: str, ctype: str) -> None:
    dtype = TYPES[ctype]
    ends = np.log(np.finfo(dtype).tiny) * 0.999, np.log(np.finfo(dtype).max) * 0.999
    for low, high in ((-1, 1), (-1e-3, 1e-3), (-20, 20), ends):
        x = np.linspace(low, high, N, dtype=dtype)
        exact = np.exp(x.astype(np.longdouble))
        error = np.abs(call(library, form, ctype, x) / exact - 1).max()
        assert error < {"float": 5e-6, "double": 1e-13}[ctype]


@pytest.mark.parametrize("form", ["in_loops", "in_vectors"])
@pytest.mark.parametrize("ctype", TYPES)
def test_exponentials_of_what_is_out_of_range(library: ctypes.CDLL, form: str, ctype: str) -> None:
    """Masked attention scores, overflow, and values that are no numbers, among others that are."""
    x = np.zeros(N, TYPES[ctype])
    x[:7] = -1e9, -np.inf, np.inf, np.nan, 1e9, -800, 800
    expected = np.ones(N, TYPES[ctype])
    expected[:7] = 0, 0, np.inf, np.nan, np.inf, 0, np.inf
    np.testing.assert_array_equal(call(library, form, ctype, x), expected)
