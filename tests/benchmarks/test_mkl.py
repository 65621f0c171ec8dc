"""MKL beside us: missing, shipped, and on its fast path."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
import scipy.sparse
from benchmarks import mkl as module
from benchmarks.mkl import code_path, find_mkl, mkl_source

from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.measure import Compiler, Runner


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    with Compiler() as shared:
        yield shared


def test_without_mkl_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "distribution", missing)
    with pytest.raises(InputError, match=r"^.*not installed: pip install 'gnnperf\[mkl\]'$"):
        find_mkl()


@pytest.mark.needs("mkl")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fastest", [False, True])
def test_products_are_those_of_scipy(compiler: Compiler, dtype: str, fastest: bool) -> None:
    rows, columns, features = 50, 30, 24
    matrix = scipy.sparse.random(rows, columns, 0.1, "csr", dtype, random_state=0)
    library = compiler.build(mkl_source(rows, columns, features, dtype, fastest=fastest))
    X = np.random.default_rng(0).random((columns, features)).astype(dtype)
    data = {
        "indptr": matrix.indptr.astype(np.int32),
        "indices": matrix.indices.astype(np.int32),
        "values": matrix.data,
        "X": X,
        "Y": np.zeros((rows, features), dtype),
    }
    with Runner() as runner:
        got = runner.reference(library, data, ["Y"])["Y"]
    np.testing.assert_allclose(got, matrix @ X, 1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.needs("mkl")
def test_the_fast_path_is_that_of_the_widest_vectors(compiler: Compiler) -> None:
    isa = describe_host().fingerprint.rpartition("/")[2]
    widest = isa if isa.startswith("avx") else ""  # without AVX there is one path
    with Runner() as runner:
        assert code_path(compiler, runner, fastest=True).startswith(f"libmkl_{widest}")
        assert code_path(compiler, runner, fastest=False).startswith("libmkl_")
