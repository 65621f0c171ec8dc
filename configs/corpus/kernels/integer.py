"""Integer and image kernels: automata, hashing, fixed point, colour conversion.

The `inputs_*` functions return every array of the kernel, with values in the range that it expects.
"""

import dace
import numpy as np

M, N, K, TSTEPS = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "TSTEPS"))
f32, i32, i64 = dace.float32, dace.int32, dace.int64


@dace.program
def gemm_int(A: i32[M, K], B: i32[K, N], C: i32[M, N]):
    """C += A B on integers, as quantised layers need."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        C[i, j] += A[i, k] * B[k, j]


@dace.program
def game_of_life(A: i32[M, N], B: i32[M, N]):
    """One generation on a bounded board."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        above = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
        below = A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
        alive = above + below + A[i, j - 1] + A[i, j + 1]
        if alive == 3 or (alive == 2 and A[i, j] == 1):
            B[i, j] = 1
        else:
            B[i, j] = 0


@dace.program
def box_blur_int(A: i32[M, N], B: i32[M, N]):
    """Mean of nine pixels in integer arithmetic."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        above = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
        below = A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
        B[i, j] = (above + below + A[i, j - 1] + A[i, j] + A[i, j + 1]) // 9


@dace.program
def hash_mix(X: i64[N], Y: i64[N]):
    """Xorshift steps on every element."""
    for i in dace.map[0:N]:
        a = X[i] ^ (X[i] << 13)
        b = a ^ (a >> 7)
        Y[i] = b ^ (b << 17)


@dace.program
def hamming_distances(A: i32[M, K], B: i32[N, K], S: i32[M, N]):
    """Number of positions in which two code words differ."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        S[i, j] += A[i, k] != B[j, k]


@dace.program
def sum_rows_int(A: i32[M, N], s: i64[M]):
    """Sums of rows, in a wider type."""
    for i, j in dace.map[0:M, 0:N]:
        s[i] += A[i, j]


@dace.program
def max_columns_int(A: i32[M, N], m: i32[N]):
    """Largest value of every column."""
    m[:] = np.max(A, axis=0)


@dace.program
def saturate(A: i32[M, N], B: i32[M, N], C: i32[M, N]):
    """Addition that stops at the ends of a range, as audio and image code has it."""
    for i, j in dace.map[0:M, 0:N]:
        C[i, j] = min(max(A[i, j] + B[i, j], -100), 100)


@dace.program
def rgb_to_grey(image: f32[M, N, 3], grey: f32[M, N]):
    """Weighted sum of three interleaved channels."""
    grey[:] = 0.299 * image[:, :, 0] + 0.587 * image[:, :, 1] + 0.114 * image[:, :, 2]


# --------------------------------------------------------------------------- inputs


def inputs_gemm_int(M: int, N: int, K: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "A": rng.integers(-128, 128, (M, K), np.int32),
        "B": rng.integers(-128, 128, (K, N), np.int32),
        "C": np.zeros((M, N), np.int32),
    }


def inputs_game_of_life(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"A": rng.integers(0, 2, (M, N), np.int32), "B": np.zeros((M, N), np.int32)}


def inputs_box_blur_int(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"A": rng.integers(0, 256, (M, N), np.int32), "B": np.zeros((M, N), np.int32)}


def inputs_hash_mix(N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"X": rng.integers(0, 2**40, N, np.int64), "Y": np.zeros(N, np.int64)}


def inputs_hamming_distances(M: int, N: int, K: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "A": rng.integers(0, 4, (M, K), np.int32),
        "B": rng.integers(0, 4, (N, K), np.int32),
        "S": np.zeros((M, N), np.int32),
    }


def inputs_int_matrix(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"A": rng.integers(-128, 128, (M, N), np.int32)}


def inputs_saturate(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.integers(-128, 128, (M, N), np.int32) for name in "AB"}
