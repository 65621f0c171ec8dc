"""Small kernels of the kinds that `gnnperf retrieve` meets. Sizes are given by the tests.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

N, M, K, NNZ, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("N", "M", "K", "NNZ", "STEPS"))
f32, f64, i32 = dace.float32, dace.float64, dace.int32


@dace.program
def scores(A: f32[N, K], B: f32[M, K], C: f32[N, M]):
    """One nest: a product with a transposed matrix, negative values dropped."""
    C[:] = np.maximum(A @ np.transpose(B), 0)


@dace.program
def chain(A: f64[N, K], B: f64[K, M], x: f64[N], y: f64[M]):
    """Several nests: y = B^T (A^T x), then x = A B y."""
    t = x @ A
    y[:] = t @ B
    x[:] = A @ (B @ y)


@dace.program
def power(A: f64[N, N], x: f64[N]):
    """A sequential loop around nests that need one another's results."""
    for _step in range(STEPS):
        y = A @ x
        x[:] = y / np.sum(y)


@dace.program
def spmm(indptr: i32[N + 1], indices: i32[NNZ], data: f32[NNZ], X: f32[M, K], Y: f32[N, K]):
    """A sparse matrix in CSR times a dense one: bounds and subscripts are data."""
    for i in dace.map[0:N]:
        for p in dace.map[indptr[i] : indptr[i + 1]]:
            for k in dace.map[0:K]:
                Y[i, k] += data[p] * X[indices[p], k]


def csr(N, M, NNZ, empty, seed=0):
    """Rows of different lengths, a share of them empty."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, NNZ + 1, N - 1))
    cuts[: int(empty * N)] = cuts[0]
    return {
        "indptr": np.concatenate([[0], cuts, [NNZ]]).astype(np.int32),
        "indices": rng.integers(0, M, NNZ).astype(np.int32),
    }


@dace.program
def no_nest(a: f64[1], b: f64[1]):
    """Nothing to schedule."""
    b[0] = 2 * a[0]


@dace.program
def calls_back(x: f64[N]):
    x[:] = np.linalg.eigvals(np.diag(x))


# --------------------------------------------------------------------------- inputs that are wrong


def wrong_shape():
    return {"A": np.ones((3, 3), np.float32)}


def wrong_dtype(N, K):
    return {"A": np.ones((N, K), np.float64)}


def unknown_argument():
    return {"Z": np.ones(3)}


def not_a_dict():
    return [1, 2]


def raises():
    raise RuntimeError("no such data set\nsecond line")


def exits():
    raise SystemExit(0)


def incomplete(N):
    return {"indptr": np.arange(N + 1, dtype=np.int32)}


def needs_more(size):
    return {}
