"""Triangular systems with one or many right-hand sides, as their loops are written."""

import dace
import numpy as np

M, N = (dace.symbol(s, dtype=dace.int64) for s in "MN")
f32, f64 = dace.float32, dace.float64


@dace.program
def forward_rows(L: f64[N, N], X: f64[N, M]):
    """Rows before are subtracted one by one."""
    for i in range(N):
        for k in range(i):
            X[i] -= L[i, k] * X[k]
        X[i] /= L[i, i]


@dace.program
def forward_product(L: f64[N, N], B: f64[N, M], X: f64[N, M]):
    """Rows before are subtracted at once, out of place."""
    for i in range(N):
        X[i, :] = (B[i, :] - L[i, :i] @ X[:i, :]) / L[i, i]


@dace.program
def backward_rows(U: f32[N, N], X: f32[N, M]):
    """An upper triangle, from the last row to the first."""
    for i in range(N - 1, -1, -1):
        for k in range(i + 1, N):
            X[i] -= U[i, k] * X[k]
        X[i] /= U[i, i]


@dace.program
def eliminate(L: f64[N, N], X: f64[N, M]):
    """Every finished row is taken from all that follow; the diagonal is one."""
    for k in range(N):
        for i, j in dace.map[k + 1 : N, 0:M]:
            X[i, j] -= L[i, k] * X[k, j]


@dace.program
def forward_transposed(U: f64[N, N], X: f64[N, M]):
    """The lower triangle is an upper one that lies transposed."""
    for i in range(N):
        for k in range(i):
            X[i] -= U[k, i] * X[k]
        X[i] /= U[i, i]


@dace.program
def forward_vector(L: f64[N, N], b: f64[N], x: f64[N]):
    """One right-hand side."""
    for i in range(N):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


# --------------------------------------------------------------------------- inputs


def _triangle(n: int, dtype: type) -> np.ndarray:
    """Far from singular: the diagonal outweighs the rest."""
    values = np.random.default_rng(0).uniform(-1, 1, (n, n)) / n
    np.fill_diagonal(values, np.linspace(1, 2, n))
    return values.astype(dtype)


def inputs_lower(N: int) -> dict[str, np.ndarray]:
    return {"L": _triangle(N, np.float64)}


def inputs_upper(N: int) -> dict[str, np.ndarray]:
    return {"U": _triangle(N, np.float64)}


def inputs_upper_single(N: int) -> dict[str, np.ndarray]:
    return {"U": _triangle(N, np.float32)}
