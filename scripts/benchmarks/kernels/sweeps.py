"""Sweeps whose elements need the ones before, as their users write them: alignments of sequences, paths in a
grid, solvers and filters that work in place.

`SIZES` are of arrays in cache, but for two. No `from __future__ import annotations` here: DaCe reads
annotations as values.
"""

import dace
import numpy as np

N, M, K, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("N", "M", "K", "STEPS"))
i32, i64, f32, f64 = dace.int32, dace.int64, dace.float32, dace.float64

SIZES = {
    "edit_distance": {"N": 380, "M": 410},
    "common_subsequence": {"N": 350, "M": 330},
    "local_alignment": {"N": 300, "M": 520},
    "scored_alignment": {"N": 420, "M": 360},
    "time_warping": {"N": 2800, "M": 3000},
    "warping_in_two_rows": {"N": 450, "M": 390},
    "cheapest_path": {"N": 500, "M": 280},
    "over_relaxation": {"N": 260, "M": 340},
    "nine_points": {"N": 1500, "M": 1400, "STEPS": 3},
    "there_and_back": {"N": 240, "M": 300, "STEPS": 5},
    "heated_block": {"N": 50, "M": 60, "K": 70},
    "error_diffusion": {"N": 480, "M": 640},
}

# --------------------------------------------------------------------------- sequences


def _letters(*lengths: int, dtype: type = np.int32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 4, length).astype(dtype) for length in lengths]


@dace.program
def edit_distance(s: i32[N], t: i32[M], distance: i32[N + 1, M + 1]):
    """Levenshtein's; the first row and column are given."""
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            change = 1
            if s[i - 1] == t[j - 1]:
                change = 0
            distance[i, j] = min(
                distance[i - 1, j - 1] + change, distance[i, j - 1] + 1, distance[i - 1, j] + 1
            )


def inputs_edit_distance(N: int, M: int) -> dict[str, np.ndarray]:
    s, t = _letters(N, M)
    distance = np.zeros((N + 1, M + 1), np.int32)
    distance[0], distance[:, 0] = np.arange(M + 1), np.arange(N + 1)
    return {"s": s, "t": t, "distance": distance}


@dace.program
def common_subsequence(s: i64[N], t: i64[M], length: i64[N + 1, M + 1]):
    for i in range(N):
        for j in range(M):
            if s[i] == t[j]:
                length[i + 1, j + 1] = length[i, j] + 1
            else:
                length[i + 1, j + 1] = max(length[i, j + 1], length[i + 1, j])


def inputs_common_subsequence(N: int, M: int) -> dict[str, np.ndarray]:
    s, t = _letters(N, M, dtype=np.int64)
    return {"s": s, "t": t, "length": np.zeros((N + 1, M + 1), np.int64)}


@dace.program
def local_alignment(s: i32[N], t: i32[M], score: i32[N + 1, M + 1], best: i32[1]):
    """Smith and Waterman's, with linear gaps."""
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            match = -3
            if s[i - 1] == t[j - 1]:
                match = 2
            score[i, j] = max(0, score[i - 1, j - 1] + match, score[i - 1, j] - 2, score[i, j - 1] - 2)
            best[0] = max(best[0], score[i, j])


def inputs_local_alignment(N: int, M: int) -> dict[str, np.ndarray]:
    s, t = _letters(N, M)
    return {"s": s, "t": t, "score": np.zeros((N + 1, M + 1), np.int32), "best": np.zeros(1, np.int32)}


@dace.program
def scored_alignment(s: i32[N], t: i32[M], table: f32[4, 4], gap: f32, score: f32[N + 1, M + 1]):
    """Needleman and Wunsch's, with a table of substitutions."""
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            kept = score[i - 1, j - 1] + table[s[i - 1], t[j - 1]]
            score[i, j] = max(kept, max(score[i - 1, j], score[i, j - 1]) - gap)


def inputs_scored_alignment(N: int, M: int) -> dict[str, np.ndarray]:
    s, t = _letters(N, M)
    table = np.where(np.eye(4, dtype=bool), np.float32(1.5), np.float32(-0.5))
    return {"s": s, "t": t, "table": table, "gap": np.float32(0.75)}


@dace.program
def time_warping(x: f64[N], y: f64[M], cost: f64[N, M]):
    """Dynamic time warping of two signals; the first row and column are given."""
    for i in range(1, N):
        for j in range(1, M):
            cost[i, j] = np.abs(x[i] - y[j]) + min(cost[i - 1, j], cost[i - 1, j - 1], cost[i, j - 1])


@dace.program
def warping_in_two_rows(x: f64[N], y: f64[M], distance: f64[1]):
    above = np.full(M + 1, 1e30)
    row = np.full(M + 1, 1e30)
    above[0] = 0.0
    for i in range(N):
        for j in range(M):
            row[j + 1] = abs(x[i] - y[j]) + min(above[j + 1], above[j], row[j])
        above[:] = row
    distance[0] = above[M]


@dace.program
def cheapest_path(toll: f32[N, M], cost: f32[N, M]):
    """Right or down, from the last corner back to the first."""
    cost[N - 1, M - 1] = toll[N - 1, M - 1]
    for i in range(N - 2, -1, -1):
        cost[i, M - 1] = toll[i, M - 1] + cost[i + 1, M - 1]
    for j in range(M - 2, -1, -1):
        cost[N - 1, j] = toll[N - 1, j] + cost[N - 1, j + 1]
    for i in range(N - 2, -1, -1):
        for j in range(M - 2, -1, -1):
            cost[i, j] = toll[i, j] + min(cost[i + 1, j], cost[i, j + 1])


# --------------------------------------------------------------------------- in place


@dace.program
def over_relaxation(u: f64[N, M], rhs: f64[N, M], omega: f64):
    """One sweep of successive over-relaxation."""
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            mean = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - rhs[i, j])
            u[i, j] = u[i, j] + omega * (mean - u[i, j])


@dace.program
def nine_points(u: f32[N, M]):
    """Sweeps over a field in memory, of a stencil with corners."""
    for _ in range(STEPS):
        for i in range(1, N - 1):
            for j in range(1, M - 1):
                edges = u[i - 1, j] + u[i, j - 1] + u[i, j + 1] + u[i + 1, j]
                corners = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
                u[i, j] = f32(0.2) * edges + f32(0.05) * corners


@dace.program
def there_and_back(u: f64[N, M], rhs: f64[N, M]):
    """Symmetric sweeps: forwards, then backwards."""
    for _ in range(STEPS):
        for i in range(1, N - 1):
            for j in range(1, M - 1):
                u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] + rhs[i, j]) / 4.0
        for i in range(N - 2, 0, -1):
            for j in range(M - 2, 0, -1):
                u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] + rhs[i, j]) / 4.0


@dace.program
def heated_block(u: f64[N, M, K], source: f64[N, M, K]):
    """A sweep in three dimensions."""
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            for k in range(1, K - 1):
                below = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                u[i, j, k] = (
                    below + u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1] + source[i, j, k]
                ) / 6.0


@dace.program
def error_diffusion(image: f32[N, M], dots: f32[N, M]):
    """Black and white, with Floyd and Steinberg's weights; `image` is what is left of it."""
    for i in range(N - 1):
        for j in range(1, M - 1):
            dot = f32(0.0)
            if image[i, j] > f32(0.5):
                dot = f32(1.0)
            dots[i, j] = dot
            error = image[i, j] - dot
            image[i, j + 1] = image[i, j + 1] + f32(0.4375) * error
            image[i + 1, j - 1] = image[i + 1, j - 1] + f32(0.1875) * error
            image[i + 1, j] = image[i + 1, j] + f32(0.3125) * error
            image[i + 1, j + 1] = image[i + 1, j + 1] + f32(0.0625) * error
