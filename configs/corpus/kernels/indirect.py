"""Gathers and scatters through index arrays: lookups, permutations, unstructured meshes, histograms.

The `inputs_*` functions return every array of the kernel, with valid indices.
"""

import dace
import numpy as np

B, M, N, K, D = (dace.symbol(s, dtype=dace.int64) for s in "BMNKD")
f32, f64, i32 = dace.float32, dace.float64, dace.int32


@dace.program
def embedding_lookup(table: f32[N, D], tokens: i32[B, M], out: f32[B, M, D]):
    """One row of the table per token."""
    for b, i, d in dace.map[0:B, 0:M, 0:D]:
        out[b, i, d] = table[tokens[b, i], d]


@dace.program
def embedding_bag(table: f32[N, D], tokens: i32[B, K], out: f32[B, D]):
    """Sum of the rows of K tokens, as in recommendation models."""
    for b, k, d in dace.map[0:B, 0:K, 0:D]:
        out[b, d] += table[tokens[b, k], d]


@dace.program
def gather(x: f64[N], index: i32[M], y: f64[M]):
    """y = x[index]."""
    for i in dace.map[0:M]:
        y[i] = x[index[i]]


@dace.program
def permute_columns(A: f64[M, N], order: i32[K], P: f64[M, K]):
    """P = A[:, order], as in feature selection."""
    for i, j in dace.map[0:M, 0:K]:
        P[i, j] = A[i, order[j]]


@dace.program
def dequantise(codes: i32[M, N], table: f32[256], scale: f32[M], W: f32[M, N]):
    """Weights from a table of 256 values, scaled per row."""
    for i, j in dace.map[0:M, 0:N]:
        W[i, j] = scale[i] * table[codes[i, j]]


@dace.program
def edge_flux(left: i32[M], right: i32[M], u: f64[N], area: f64[M], flux: f64[M]):
    """Difference of the two cells of every face of an unstructured mesh."""
    for e in dace.map[0:M]:
        flux[e] = area[e] * (u[right[e]] - u[left[e]])


@dace.program
def scatter_add(index: i32[M], x: f64[M], y: f64[N]):
    """y[index] += x, a weighted histogram: collisions happen."""
    for i in dace.map[0:M]:
        y[index[i]] += x[i]


@dace.program
def scatter_rows(target: i32[M], messages: f32[M, D], out: f32[N, D]):
    """Rows added to the rows they are sent to, as in message passing."""
    for e, d in dace.map[0:M, 0:D]:
        out[target[e], d] += messages[e, d]


# --------------------------------------------------------------------------- inputs


def inputs_embedding_lookup(B: int, M: int, N: int, D: int) -> dict[str, np.ndarray]:
    """Tokens with a few frequent words, as in text."""
    rng = np.random.default_rng(0)
    return {
        "table": rng.random((N, D), np.float32),
        "tokens": (N * rng.random((B, M)) ** 3).astype(np.int32),
        "out": np.zeros((B, M, D), np.float32),
    }


def inputs_embedding_bag(B: int, K: int, N: int, D: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "table": rng.random((N, D), np.float32),
        "tokens": rng.integers(0, N, (B, K), np.int32),
        "out": np.zeros((B, D), np.float32),
    }


def inputs_gather(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.random(N), "index": rng.integers(0, N, M, np.int32), "y": np.zeros(M)}


def inputs_permute_columns(M: int, N: int, K: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "A": rng.random((M, N)),
        "order": (rng.permutation(max(N, K))[:K] % N).astype(np.int32),
        "P": np.zeros((M, K)),
    }


def inputs_dequantise(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "codes": rng.integers(0, 256, (M, N), np.int32),
        "table": rng.random(256, np.float32),
        "scale": rng.random(M, np.float32),
        "W": np.zeros((M, N), np.float32),
    }


def inputs_edge_flux(M: int, N: int) -> dict[str, np.ndarray]:
    """Faces between cells that are near in memory, as after a bandwidth-reducing renumbering."""
    rng = np.random.default_rng(0)
    left = np.sort(rng.integers(0, N, M))
    right = np.clip(left + rng.integers(-300, 301, M), 0, N - 1)
    return {
        "left": left.astype(np.int32),
        "right": right.astype(np.int32),
        "u": rng.random(N),
        "area": rng.random(M),
        "flux": np.zeros(M),
    }


def inputs_scatter_add(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"index": rng.integers(0, N, M, np.int32), "x": rng.random(M), "y": np.zeros(N)}


def inputs_scatter_rows(M: int, N: int, D: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "target": np.sort(rng.integers(0, N, M, np.int32)),
        "messages": rng.random((M, D), np.float32),
        "out": np.zeros((N, D), np.float32),
    }
