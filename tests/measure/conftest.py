"""What the tests of measuring share: one compiler, one runner, and a cache folder of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import BuildError
from gnnperf.measure import Argument, Compiler, Library, Runner, Source

N = 1000

Data = dict[str, Any]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNPERF_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def compiler(cache: None) -> Iterator[Compiler]:
    with Compiler() as built:
        yield built


@pytest.fixture(scope="session")
def runner(cache: None) -> Iterator[Runner]:
    with Runner(threads=2) as started:
        yield started


@pytest.fixture
def data() -> Data:
    """x float64[N], y float64[N], n: arguments of the functions that `build` makes."""
    return {"x": np.linspace(-1, 1, N), "y": np.ones(N), "n": N}


def source(symbol: str, body: str) -> Source:
    """`void symbol(double* x, double* y, int64_t n) { body }`."""
    c = ("cerrno", "csignal", "cstdint", "cstdio", "cstdlib", "cstring")
    headers = (*c, "algorithm", "omp.h", "sys/mman.h", "sys/socket.h", "unistd.h")
    text = "".join(f"#include <{h}>\n" for h in headers)
    text += f'extern "C" void {symbol}(double* x, double* y, int64_t n) {{ {body} }}\n'
    return Source(text, symbol, (Argument("x"), Argument("y"), Argument("n", "int64_t")))


@pytest.fixture(scope="session")
def build(compiler: Compiler) -> Callable[..., list[Library]]:
    """`build(body, ...)`: a library for each body of `source`; must compile."""

    def libraries(*bodies: str) -> list[Library]:
        names: Sequence[str] = [f"f{abs(hash(body)):x}" for body in bodies]
        results = compiler.build_all([source(*pair) for pair in zip(names, bodies, strict=True)])
        for result in results:
            assert not isinstance(result, BuildError), result
        return [r for r in results if isinstance(r, Library)]

    return libraries


DOUBLE = "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];"
"""The baseline of most tests."""


@pytest.fixture
def baseline(build: Callable[..., list[Library]]) -> Library:
    return build(DOUBLE)[0]
