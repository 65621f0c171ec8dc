"""Programs that DaCe's parser takes for others, or refuses."""

import dace
import numpy as np

N, M, K = (dace.symbol(s) for s in "NMK")
f8 = dace.float64


@dace.program
def decimated(x: f8[N], h: f8[K], y: f8[M]):
    for i in dace.map[0:M]:
        total = 0.0
        for k in range(K):
            total += h[k] * x[4 * i + k]
        y[i] = total


@dace.program
def looking_back(x: f8[N], y: f8[N]):
    for i in dace.map[0:N]:
        total = 0.0
        for k in range(i):
            total += x[i - k]
        y[i] = total


@dace.program
def triangle(x: f8[N], A: f8[N, N], y: f8[N]):
    for i in dace.map[0:N]:
        total = 0.0
        for k in range(i):
            for m in range(k + 1):
                total += A[i, k] * x[i - k + m]
        y[i] = total


@dace.program
def falling_counter(x: f8[N], y: f8[M]):
    for i in dace.map[0:M]:
        total = 0.0
        for k in range(K, 0, -1):
            total += x[i + 2 * k]
        y[i] = total


@dace.program
def reversed_window(x: f8[N], h: f8[3], y: f8[M]):
    for i in dace.map[0:M]:
        total = 0.0
        for k in range(3):
            total += h[k] * x[i + 2 - k]
        y[i] = total


@dace.program
def two_ways(x: f8[N, N], y: f8[N, N]):
    for i, j in dace.map[1 : N - 1, 1 : N - 1]:
        for a in range(-1, 2):
            for b in range(-1, 2):
                y[i, j] += (2 * a + b) * x[i + a, j - b]


@dace.program
def down_a_column(x: f8[N], y: f8[K, N]):
    for i in dace.map[0:N]:
        y[0, i] = x[i]
        for k in range(1, K):
            y[k, i] = y[k - 1, i] * 0.5 + x[i]


@dace.program
def every_second(x: f8[N], y: f8[M]):
    for i in dace.map[0:M]:
        total = 0.0
        for k in range(0, K, 2):
            total += x[i + k] - x[k]
        y[i] = total


@dace.program
def parts_of_rows(x: f8[M, N], y: f8[M, N]):
    for i in dace.map[0:M]:
        for k in range(K):
            y[i, k : k + 3] += (k + 1) * x[i, k + 2 : k + 5]


@dace.program
def held_numbers(x: f8[N], y: f8[M]):
    now = x[0] + 1.0
    for k in range(M):
        before = now
        now = now * x[k]
        y[k] = now - before


@dace.program
def held_in_a_map(x: f8[M, N], y: f8[M, N]):
    for i in dace.map[0:N]:
        level = x[0, i] + 0.5
        slope = 0.0
        for t in range(M):
            before = level
            level = 0.3 * x[t, i] + 0.7 * (level + slope)
            slope = 0.1 * (level - before) + 0.9 * slope
            y[t, i] = level + slope


@dace.program
def rolled(x: f8[N, M], y: f8[N, M], z: f8[N]):
    y[:] = np.roll(x, 1, axis=0) - np.roll(x, -2, axis=1) + np.roll(x * x, (2, 1), axis=(0, -1))
    z[:] = np.roll(z, 3)


@dace.program
def spread(x: f8[N, M], each: f8[M], rows: f8[N], sums: f8[4]):
    each[:] = np.std(x, axis=0)
    rows[:] = np.var(x, axis=-1, ddof=1)
    sums[0] = np.std(x)
    sums[1] = np.linalg.norm(x[0])
    sums[2] = np.prod(rows)
    sums[3] = np.linalg.norm(x)


@dace.program
def differences(x: f8[N, M], rows: f8[N - 1, M], each: f8[N, M - 1], table: f8[N, M]):
    rows[:] = np.diff(x, axis=0)
    each[:] = np.diff(x)
    table[:] = np.outer(x[:, 0], x[1])
