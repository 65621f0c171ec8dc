"""Programs that DaCe takes for others, or refuses."""

import math
from math import hypot

import dace
import numpy as np
import scipy.fft
from scipy.special import erf

N, M, K = (dace.symbol(s) for s in "NMK")
f8, i8, c16 = dace.float64, dace.int64, dace.complex128


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
def counted_by_two(x: f8[N], y: f8[M]):
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


@dace.program
def centred(x: f8[N, M], v: f8[M], steps: dace.int32):
    x *= v
    for _ in range(steps):
        x -= 0.5 * np.mean(x, axis=0)
        x[1:3] /= 1.5 + np.std(x, axis=0)


@dace.program
def rolled_steps(h: f8[N, M], u: f8[N, M], steps: dace.int32):
    for _ in range(steps):
        u -= 0.1 * (np.roll(h, -1, axis=0) - np.roll(h, 1, axis=0))
        h -= 0.2 * (np.roll(u, -1, axis=1) - np.roll(u, 1, axis=1))


@dace.program
def words_of_cpp(x: f8[N, M], y: f8[N, M]):
    default = x + 1.0
    for i in dace.map[0:N]:
        new = x[i, 0]
        for k in range(1, M):
            new = 0.5 * new + default[i, k]
            y[i, k] = new


@dace.program
def choices(x: f8[N], y: f8[N], z: f8[N]):
    assert N > 2
    inside = 0
    total = 0.0
    for value, other in zip(x, z, strict=True):
        total += value * other
    for i, value in enumerate(x):
        y[i] = x[i - 1] if i > 0 else 2.0 * (value if value > 0.5 else 0.5)
        if 0.2 < value <= 0.8:
            inside += 1
    for i in dace.map[0:N]:
        z[i] += x[i] if x[i] > y[i] else inside + total
    for i in range(N):
        z[min(int(x[i] * N), N - 1)] += 1.0


@dace.program
def every_second(x: f8[2 * N, 2 * M], y: f8[N, M], z: f8[2 * N], half: f8[N // 2]):
    y[:] = x[::2, ::2] - 0.5 * x[1::2, ::2] + x[::2, 1::2]
    z[::2] = x[::-2, 0]
    z[1::2] = x[N:0:-1, 1]
    z[::3] += 0.5
    half[:] = z[: N // 2] + z[2 * N - N // 2 :]


@dace.program
def kept_axes(x: f8[N, M], y: f8[N, M], some: dace.bool[N]):
    y[:] = np.exp(x - np.max(x, axis=1, keepdims=True)) / np.sum(x, axis=(0, 1), keepdims=True)
    x /= np.sum(x, axis=1, keepdims=True)
    some[:] = np.logical_and(np.any(x > 0.3, axis=1), np.all(x, axis=1))


@dace.program
def as_methods(x: f8[N, M], y: f8[N], lowest: dace.int64[N]):
    x -= x.mean(axis=1)[:, None]
    y[:] = (x**2).sum(axis=1) ** 0.5 + x.max() + np.average(x, axis=1)
    for i in dace.map[0:N]:
        lowest[i] = np.argmin(x[i])


@dace.program
def filled(x: f8[N], y: f8[2 * N], z: f8[2, N]):
    y[:-N] = x[-N:]
    y[:] += np.repeat(np.cumsum(x), 2) + np.hypot(0.1 * np.arange(2 * N), 1.0)
    z[:] = np.tile(np.clip(x, 0.3, 0.6), (2, 1)) + np.trunc(3.0 * x - 1.5)


@dace.program
def assembled(corners: dace.int64[M, 3], shares: f8[M, 3], y: f8[N], faces: dace.int64[N]):
    for e in dace.map[0:M]:
        for a in range(3):
            node = corners[e, a] % N
            if shares[e, a] > 0.2:
                y[node] += shares[e, a]
            faces[corners[e, a] % N] += 1


@dace.program
def walls(p: f8[N, N], b: f8[N, N], steps: dace.int64):
    for _ in range(steps):
        old = p.copy()
        p[1:-1, -1] = old[1:-1, 0] - b[1:-1, -1]
        p[1:-1, 0] = old[1:-1, 1] - b[1:-1, 0]
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


def smoothed(x, rate: dace.float32):
    y = np.empty(x.shape, dtype=np.float64)
    y[0, :] = x[0, :]
    for i in range(1, x.shape[0]):
        y[i, :] = (1.0 - rate) * y[i - 1, :] + rate * x[i, :]
    turned = np.empty((x.shape[1], x.shape[0]), dtype=np.float64)
    for i, k in dace.map[0 : x.shape[0], 0 : x.shape[1]]:
        turned[k, i] = y[i, k]
    return turned


@dace.program
def both_ways(x: f8[N, M], y: f8[N, M]):
    rate = 0.1
    columns = smoothed(x, rate)
    y[:] = smoothed(columns, rate)


@dace.program
def named_sizes(x: f8[N, M], y: f8[N], z: f8[2 * N]):
    n, m = x.shape
    last, half = n - 1, n // 2
    size = len(z)
    sums = np.zeros(n)
    pairs = np.empty((last, 2))
    for i in range(n):
        for j in range(m):
            sums[i] += x[i, j] / m
    pairs[:, 0] = sums[:last]
    pairs[:, 1] = sums[1:]
    y[:half] = sums[last % 2]
    y[half:] = sums[half:] * size
    y[:last] += pairs[:, 0] + pairs[:, 1]
    z[0 : size - 1] = x[last, m - 1]


@dace.program
def quotients(x: f8[N, M], y: f8[N]):
    h = 1.0 / (N - 1)
    for i in dace.map[0:N]:
        y[i] = i / N + (i - N // 2) / (N // 2) + 2.0 * h
    for i in range(N):
        for j in range(M):
            y[i] += x[i, j] / (i + j + 1) + 1 / (i + j + 1)


@dace.program
def repeated(x: f8[N], y: f8[N], most: dace.int64, tolerance: f8):
    k = 0
    left = N
    change = 1.0
    while left > 0 and k < most:
        y += 0.5 * x
        left = left - 1
        k += 1
    while change > tolerance and k < 2 * most:
        y[:] = 0.5 * (x + y)
        change = np.max(np.abs(x - y))
        k += 1


@dace.program
def halving(x: f8[N, M], y: f8[N]):
    n = N
    while n > 1:
        n = n // 2
        for i in range(n):
            y[i] += x[i, 0]


@dace.program
def truths(x: f8[N, M], y: f8[N]):
    above = x > 0.5
    y[:] = np.sum(above, axis=1) + np.count_nonzero(above) + np.mean(above)
    for i in range(N):
        y[i] += np.sum(x[i] > 0.2)


@dace.program
def remainders(x: f8[N, M], y: f8[N]):
    y[:] = x[:, 0] % 0.3 + x[:, 1] // 0.2
    for i in range(N):
        y[i] += (x[i, 2] - 0.5) % 0.3


@dace.program
def copies(x: f8[N, M], y: f8[N]):
    first = x[:, 0].copy()
    first *= 2.0
    flat = x.reshape(-1)
    doubled = np.reshape(x, N * M) + x.reshape(N * M)
    y[:] = first + np.sum(flat * doubled) + np.dot(x, x[0]) + x.dot(x[1])


@dace.program
def scattered(x: f8[N, M], y: f8[N], z: f8[N]):
    places = (x[:, 0] * N).astype(np.int64)
    weights = x[:, 1].copy()
    np.add.at(y, places, weights)
    np.subtract.at(y, places, 0.5)
    z[:] = np.einsum("ij,ij->i", x, x) + np.round(10.0 * weights) + np.matmul(x, x.T)[0]


@dace.program
def whole_numbers(x: f8[N, M], k: dace.int32[N, M], y: f8[N], narrow: dace.int32[N]):
    above = x > 0.5
    narrow[:] = np.sum(k, axis=1) + np.cumsum(k[:, 0])
    bytes_ = (x * 255.0).astype(np.uint8)
    y[:] = np.mean(k, axis=1) + np.var(k) + np.average(above) + np.sum(bytes_) + np.cumsum(above[:, 0])
    y += np.clip(k[:, 1], 0.5, 1.5) + np.prod(k[0])


@dace.program
def spread_together(x: f8[N, M], k: dace.int32[N, M], y: f8[N, N], z: f8[M, M]):
    y[:] = np.cov(x) + np.corrcoef(x) + np.cov(k, bias=True) + np.cov(np.transpose(x), rowvar=False)
    z[:] = np.cov(x, rowvar=False, ddof=0)


@dace.program
def put_elsewhere(x: f8[N, M], k: dace.int32[N, M], y: f8[M, N], z: f8[2 * N, 2 * M], w: f8[N + 3, M + 2]):
    y[:] = np.swapaxes(x, 0, 1) + np.moveaxis(x, 0, 1) + np.rot90(x) + np.transpose(np.flipud(np.fliplr(x)))
    z[:] = np.kron(x, k[:2, :2])
    w[:] = np.pad(x, ((1, 2), (0, 2)), constant_values=1.5) + np.pad(k, ((2, 1), (1, 1)), mode="edge")
    w += np.pad(x, ((2, 1), (2, 0)), mode="wrap") + np.pad(x, ((2, 1), (0, 2)), mode="reflect")
    w -= np.pad(x, ((0, 3), (1, 1)), "symmetric")


@dace.program
def diagonals(a: f8[N, N], x: f8[N], y: f8[N], z: f8[N, N]):
    y[:] = np.diag(a) + np.squeeze(np.expand_dims(x, 1)) + np.trace(a)
    z[:] = np.tril(a) + np.triu(a, 1) * 2.0 + np.tril(a, -1) + np.diag(x)
    z[1:, 1:] += np.diag(x[2:], 1) + np.diag(x[2:], -1)
    y[1:] += np.diag(a, 1) + np.diag(a, -1)


@dace.program
def of_neighbours(x: f8[N, M], k: dace.int32[N], t: f8[M], y: f8[N], z: f8[N, M], full: f8[N + M - 1]):
    z[:] = np.gradient(x, 0.5, axis=0) + np.gradient(x, axis=1) + np.cumprod(x, axis=1)
    y[:] = np.trapz(x, t, axis=1) + np.trapz(x, dx=0.25)  # noqa: NPY201
    y += np.ptp(x, axis=1) + np.gradient(k)
    y += np.convolve(y, t[:3], mode="same") + np.degrees(x[:, 0]) + np.deg2rad(k) + np.inner(t, t)
    full[:] = np.convolve(x[:, 0], t)


@dace.program
def grids(a: f8[N], b: f8[M], y: f8[M, N], z: f8[N, M]):
    across, down = np.meshgrid(a, b)
    y[:] = across - 2.0 * down
    rows, columns = np.meshgrid(a, b, indexing="ij")
    z[:] = rows / columns


@dace.program
def looked_up(x: f8[N, M], t: f8[M], k: dace.int64[N, M], y: f8[N, M], z: f8[N]):
    points = np.cumsum(t)
    k[:] = np.searchsorted(points, 5.0 * x) + 10 * np.searchsorted(points, points[:N], side="right")[:, None]
    k += 100 * np.digitize(4.0 * x, points)
    y[:] = np.interp(5.0 * x, points, t)
    z[:] = np.interp(points[:N], points, t, left=-1.0, right=-2.0) + np.interp(
        9.0 * x[:, 0], points, t, right=7.0
    )
    z[0] += np.interp(2.5, points, t)


@dace.program
def crossed(a: f8[N, 3], b: f8[N, 3], c: f8[N, 3]):
    c[:] = np.cross(a, b)


@dace.program
def whole_at_first(x: f8[N, M], y: f8[N]):
    best, before, now = -1, 0, 1
    for i in range(N):
        total = 0
        for j in range(M):
            total += x[i, j]
        best = max(best, x[i, 0])
        before, now = now, 0.5 * before + 0.25 * now
        weight = 1 if x[i, 1] > 0.5 else 0.25
        y[i] = total / M + best + before + weight


@dace.program
def rounded_down(k: dace.int64[N, M], x: f8[N, M], y: f8[N], places: dace.int64[N]):
    for i in range(N):
        places[i] = (k[i, 0] - 3) % 5 + (k[i, 1] - 4) // 3
        for j in range(M):
            y[i] += x[i, j] * x[(i - j) % N, j]
        y[i] %= 0.3
        y[i] += np.abs(x[i, 0] - 5.0) % 0.7


@dace.program
def nearest(x: f8[N, M], y: f8[N, M], low: f8[N, 1]):
    halves = np.round(20.0 * x) * 0.5
    y[:] = np.round(halves) + np.round(x, 2) + np.clip(x, low, 0.9)


@dace.program
def lengths(x: f8[N, M], w: f8[N], y: f8[N], places: dace.int64[N]):
    y[:] = np.linalg.norm(x, axis=1) + np.linalg.norm(x, "fro") + np.linalg.norm(w, 2)
    y += (x / np.linalg.norm(x, axis=1, keepdims=True))[:, 0]
    places[:] = np.argmax(x, axis=-1) + np.argmin(x[:, 0]) + np.argmax(x)
    for a, b in zip(x[1], x[0, :-1], strict=False):
        y[0] += a * b
    np.add.at(y, places % N, 2.0 * w)


@dace.program
def narrowed(x: f8[N, M], y: dace.float32[N, M], z: f8[N, M]):
    y[:] = x
    z[:, 1:] = y[:, :-1]
    z[::2] = y[::2]


@dace.program
def counters_again(x: f8[N], y: f8[N]):
    for k in range(N):
        y[k] = x[k]
    for i in range(1, N + 1):
        k = N - i
        y[k] += 0.5 * x[k]
    for k in range(N):
        y[k] *= 2.0


@dace.program
def left_early(x: f8[N, M], y: f8[N], places: dace.int64[N]):
    for t in range(5):
        y[:] = 0.5 * (y + x[:, 0])
        if np.max(np.abs(y - x[:, 0])) < 0.1:
            places[0] = t
            break
        y *= 0.9
    for i in range(N):
        for j in range(M - 1, -1, -1):
            if x[i, j] > 0.9:
                places[i] += 10 * j
                break
            if x[i, j] < 0.2:
                break
            y[i] += x[i, j]
    k = 0
    while True:
        k += 1
        if k > 3:
            break
        y[k] += 1.0
    for i in range(1, N, 2):
        if x[i, 0] < 0.5:
            continue
        y[i] *= 2.0
        if x[i, 1] < 0.5:
            break
    y[0] += i


@dace.program
def more_functions(x: f8[N, M], k: dace.int64[N], y: f8[N], z: f8[N]):
    y[:] = np.log1p(x[:, 0]) + np.expm1(x[:, 1]) + np.cbrt(x[:, 2] - 0.5) + np.linspace(0, 1, N)
    z[:] = np.fmod(x[:, 0] - 0.5, 0.3) + np.heaviside(x[:, 1] - 0.5, 0.5) + np.deg2rad(x[:, 2])
    for i in range(N):
        if k[i] in (1, 2):
            y[i] += 1.0
        elif k[i] not in (3,):
            z[i] += 2.0


@dace.program
def chosen_numbers(x: f8[N, M], y: f8[N], a: f8, b: dace.float32):
    y[:] = np.where(x[:, 0] > 0.5, 1.5, 0) + np.where(x[:, 1] > 0.5, a, b) + np.where(x[:, 2] > 0.5, a, 2)
    y[0] = np.sum(np.where(x > 0.5, 1, 0)) / x.shape[0] + x.shape[1]


@dace.program
def counters_below_zero(x: f8[N], y: f8[N]):
    for i in range(N):
        before = (i - 1) % N
        half = (i - 3) // 2
        y[i] = x[before] + ((i - 2) % 3) + half
        if x[i] > 0.5:
            y[i] -= x[(i - 2) % N]


@dace.program
def one_number(x: f8[1], y: f8[4]):
    x[:] = np.linspace(2, 5, 1)
    y[:] = np.linspace(2, 5, 4)


@dace.program
def rolled_round(x: f8[N, 4], y: f8[N, 4]):
    y[:] = np.roll(x, 5, axis=1) - np.roll(x, -9, axis=1) + np.roll(x, 4, axis=1) + np.roll(x, 7, axis=0)


@dace.program
def one_wide(x: f8[N, M], y: f8[N, M], d: f8[N, N], z: f8[N, 1, M]):
    first = x[:, 0:1]
    d[:] = np.transpose(first) - first
    z[:] = x[:, np.newaxis, :] + x[:, 1:2, np.newaxis]
    y[:] = x / first - x[:, -1:] + x[:1, :]
    y[:, 1:] /= x[:, :1] + 1
    y[1:, 3:] += x[0:1, 3:] + x[1:, 1:2]
    y[:, 0:1] = first.T.T @ x[1:2, 2:3]
    for i in range(N):
        y[i : i + 1, :] += x[i : i + 1, :] @ (x.T @ x)


@dace.program
def thin_products(x: f8[3, N, M], w: f8[M, K], column: f8[N, 1], row: f8[1, M], y: f8[3, N, K], z: f8[N, M]):
    y[:] = x @ w
    y += np.reshape(w[0] @ w[1] * (row @ row.T), (1, 1, 1))
    z[:] = column @ row + column.T @ column + w[:, 0][None, :] * (row.T @ (row @ w[:, 0:1]))[0]


@dace.program
def round_the_edges(x: f8[N, M], y: f8[N], steps: dace.int64):
    for _ in range(steps):
        x[:, 0] = x[:, -2]
        x[:, -1] = x[:, 1]
        x[:1, :] = x[-2:-1, :]
        x[1:-1, 1:-1] = 0.5 * (x[1:-1, :-2] + x[2:, 1:-1])
    y[0:2] = y[-4:-2]


@dace.program
def third_column(x: f8[N, M], y: f8[N]):
    for i in range(N):
        for j in range(N):
            y[i] += x[i, 2] - x[j, 2]


@dace.program
def parts_in_turn(x: f8[N, M], y: f8[N], z: f8[M]):
    part = x[:, 0]
    y[:] = 2.0 * part
    part = x[:, 1]
    part += 1.0
    y += part
    part = 0.5 * part
    y -= part
    for i in range(1, N):
        row = x[i]
        z += row
        row = x[i - 1, :]
        z -= row[0] * row
        if y[i] > 2.0:
            part = x[:, 2]
            y[i] += part[i - 1]
    for i in dace.map[0:N]:
        some = x[i, 0:2]
        y[i] += some[1]
        some = x[i, 1:4]
        y[i] += some[1]


@dace.program
def part_of_either(x: f8[N, M], y: f8[N]):
    part = x[:, 0]
    for i in range(1, M):
        y += part
        part = x[:, i]


@dace.program
def either_array(x: f8[N], y: f8[N]):
    if x[0] > 0.5:
        chosen = x
    else:
        chosen = y
    y[:] = 2.0 * chosen


@dace.program
def turned(x: f8[N, M], y: f8[N, M], z: f8[N], w: f8[M]):
    w[::-1] = x[0]
    y[:, ::-1] = x[::-1] + w
    y[::-1] += w
    y[-2:0:-1, 1] = x[1:-1, 0]
    y[2::-1, 2:0:-1] = x[:3, :2]
    y[::-1, ::-1] = y
    z[::-1] = z
    z[3:1:-1] = 0.25


@dace.program
def steps_in_maps(x: f8[N, 2 * M], y: f8[N, M], z: f8[N, 2 * M]):
    for i in dace.map[0:N]:
        y[i, :] = x[i, ::2] - 0.5 * x[i, ::-2] + x[i, 1::2]
    for i in dace.map[0:N]:
        z[i, ::2] = y[i]
    for i in dace.map[0:N]:
        z[i, 1::2] += x[i, :M]
    for i in dace.map[0:N]:
        z[i, 1 : M + 1] = x[i, M:0:-1]
    for i in dace.map[1:N]:
        z[i, ::-1] = x[i - 1]


@dace.program
def wide_in_maps(x: f8[N, M, 3], y: f8[N, M, 3], d: f8[N, M, M], z: f8[N, M]):
    for i in dace.map[0:N]:
        y[i] = x[i] / x[i, :, 0:1] - x[i, 0:1]
    for i in dace.map[0:N]:
        d[i] = x[i, :, np.newaxis, 0] - x[i, np.newaxis, :, 1]
    for i in dace.map[0:N]:
        for k in range(1, M):
            d[i, :, k : k + 1] *= x[i, :, 1:2]
    for i in dace.map[0:N]:
        z[i, 0:1] = x[i, 0:1, 2]
        z[i, 1:] = x[i, 1:, 2] - x[i, 0:1, 1]


@dace.program
def stores_in_maps(x: f8[N, M, 3], y: f8[N, M, 3], z: f8[1, M, 3]):
    for i in dace.map[0:N]:
        y[i, :, 0:1] += x[i, :, 1:2]
    for i in dace.map[0:N]:
        y[i, 1:2] = x[i, 0:1] - x[i, 2:3, 0:1]
    for i in dace.map[0:N]:
        y[i, 2:4] -= x[i, 0:1, :]
    for i in dace.map[0:N]:
        y[i, 0:2, 2:3] = x[i, 3:4, 0:1] * x[i, 0:2, 0:1]
    for i in dace.map[0:N]:
        z[0:1] += x[i : i + 1]


@dace.program
def clamped_places(x: f8[N, M], y: f8[N, M], z: f8[N, M], w: f8[K]):
    for i, j in dace.map[0:N, 0:M]:
        y[i, j] = x[i, min(max(j - 1, 0), M - 1)]
    for i, j in dace.map[0:N, 0:M]:
        for k in range(K):
            z[i, j] += w[k] * x[max(min(i + k - 1, N - 1), 0), j]
    for i, j in dace.map[0:N, 0:M]:
        y[max(i - N, i), min(j, j + 1)] += x[i, abs(j - 1)]


@dace.program
def halves_of_maps(x: f8[N, M], y: f8[N, M], w: f8[K]):
    for i in dace.map[K // 2 : N - K // 2]:
        for k in range(K):
            y[i] += w[k] * x[i + k - K // 2]


@dace.program
def formulas(x: f8[N], y: f8[N], z: f8[N, M], n: dace.int64[M], w: f8[N, 3], A: f8[M, M], u: f8[N * M]):
    y[:] = np.sinc(x - x[0]) + np.polyval([2.0, -1.0, 3], x)
    y += np.select([x < 0.3, x < 0.6], [x, 2 * x], -1.0) + np.select([x < 0.5], [x])
    y[:] = np.where(np.isclose(x, 0.5, atol=0.1), 1.0, y) + np.hanning(N) + np.hamming(N) + np.blackman(N)
    z[:] = np.broadcast_to(y[:, np.newaxis], (N, M))
    n += np.bincount(np.int64(x * M), minlength=M)
    w[:] = np.column_stack((x, y, x * y))
    np.fill_diagonal(A, 0.25)
    u[:] = np.ravel(z)


@dace.program
def numbers_in_the_text(x: f8[N], y: f8[N], z: f8[2, 3]):
    w = np.array([0.25, 0.5, 0.25])
    for i in dace.map[1 : N - 1]:
        for k in range(3):
            y[i] += w[k] * x[i + k - 1]
    z[:] = np.array([[1, 2, 3], [4, 5, 6]]) * x[0]


@dace.program
def rolled_by_counters(x: f8[N, M], y: f8[N, M], z: f8[N]):
    for t in range(2 * N):
        y += (t + 1) * np.roll(x, t, axis=0) - np.roll(x, 1 - t, axis=1)
    z[:] = np.roll(z, N // 2)


@dace.program
def powers_of_counters(x: f8[N, M], y: f8[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        x[i, j] = np.power(16.0, -j / 4.0) + np.power(i + 1.0, 2.0)
    for i, j in dace.map[0:N, 0:M]:
        y[i, j] = np.power(-2.0, j) + np.power(x[i, j], i - 1)


@dace.program
def wider_of_two(x: dace.uint8[N, M], y: dace.float32[N, M], z: dace.uint32[N], s: f8[N]):
    for i in dace.map[0:N]:
        code = np.uint32(0xFFFFFF00)
        total = np.float64(1e9)
        for j in range(M):
            code = code ^ x[i, j]
            total = total + y[i, j]
        z[i] = code
        s[i] = total


@dace.program
def bits_of_unsigned(x: dace.uint8[N, M], y: dace.uint8[N, M], z: dace.uint8[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        y[i, j] = (77 * x[i, j] + 29 * x[i, 0]) >> 8
    for i, j in dace.map[0:N, 0:M]:
        z[i, j] = (3 * x[i, j]) & 15 | 32


@dace.program
def unsigned_numbers(x: dace.uint64[N], y: dace.uint64[N], z: f8[N]):
    y[:] = (x + 88172645463325252) ^ (x * 3 << 13) ^ (x // 2)
    z[:] = x / 4


@dace.program
def sums_of_products_in_a_loop(x: f8[K, N, M], w: f8[M, 3, N], h: f8[3, N, N], y: f8[N, N]):
    for k in range(K):
        h[:] = np.einsum("nm,mgo->gno", x[k], w) + np.einsum("gno,on->gno", h, y)
        y[:] = np.einsum("gno->no", h) / 9.0


@dace.program
def indices_in_any_order(x: f8[N, M, K], w: f8[K, M], y: f8[N], z: f8[M, N, K], v: f8[M, N, K, 2]):
    y[:] = np.einsum("nmk,km->n", x, w)
    z[:] = np.einsum("nmk,km->mnk", x, w) + np.einsum("nmk,k->mnk", x, w[:, 0])
    v[:] = np.einsum("nmk,q->mnkq", x, w[:2, 0])


@dace.program
def places_from_the_end(x: f8[N, M], p: f8[N], y: f8[N, M], z: f8[N], w: f8[N]):
    for i, j in dace.map[0:N, 0:M]:
        y[i, j] = x[i - 1, j] - x[i, j - 2] + x[-1 - i, -j]
    for i in range(N):
        z[i - 3] = p[i]
        for k in range(3):
            w[i] += p[i - k] * x[-1, -1]
    for i in range(N - 1, -1, -1):
        w[i] += z[i - 1]
    for i in range(N):
        w[i] += p[i - 1] if i % 2 == 0 and i > 0 else p[i]
        if i < 2:
            continue
        z[i] += p[i - 2]
    held = np.zeros((N,))
    held[:] = p
    for i in dace.map[0:N]:
        for k in range(M):
            z[i] += held[i - k] * p[k - i]


@dace.program
def halves_of_even_sizes(x: f8[N, M], y: f8[N // 2, M // 2], z: f8[N], v: f8[N // 2]):
    half = N // 2
    y[:] = 0.25 * (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2])
    z[:half] = x[half:, 0]
    z[half:] = x[:half, 1]
    v[:] = x[: N // 2, 0] - x[N // 2 :, 1] * half
    z[::2] += z[1::2]


@dace.program
def halves_to_even(x: dace.int64[N], y: f8[N], z: dace.int64[N], v: f8[N]):
    y[:] = np.rint((x - 5) * 0.5) + np.around(x * 0.125, 1)
    for i in dace.map[0:N]:
        z[i] = round((x[i] - 5) * 0.5) + round(x[i])
        v[i] = round(x[i] * 0.125, 2)


@dace.program
def functions_of_math(x: f8[N], y: f8[N], z: f8[N]):
    y[:] = x * erf(x) + np.arccosh(1.0 + x) + np.arcsinh(x) - np.arctanh(0.5 * x)
    for i in dace.map[0:N]:
        z[i] = math.pow(x[i], 1.5) + math.fabs(x[i] - 0.5) + math.atan2(x[i], 2.0) + math.tanh(x[i])
        z[i] += hypot(x[i], 2.0) * math.erf(x[i] - 0.5) + math.asin(x[i]) + math.log2(x[i])


@dace.program
def bits_of_counters(x: f8[N], y: f8[N], z: dace.int64[N], v: f8[N]):
    half = N >> 1
    for i in dace.map[0:N]:
        y[i] = x[i ^ 1] - x[i >> 1] * (i & 3) + x[i | 1]
        v[i] = x[i] if (i ^ 2) > i else x[~i + N]
    for i, j in dace.map[0:N, 0:3]:
        z[i] += ((i >> j) & 1) + (i ^ j) + (i & j) + (i & 4) - ((i << 2) | 1)
    for i in dace.map[0:half]:
        v[i] += x[0] * (i - 2 * (i % 2)) + 4 * i % 2


WEIGHTS, SHIFTS = [0.25, 0.5, 0.25], ((1, -1), (2, 0))


@dace.program
def lists_of_numbers(x: f8[N], y: f8[N], z: f8[N]):
    own = [1.0, -2.5, 1]
    for i in dace.map[1 : N - 1]:
        for k in range(3):
            y[i] += WEIGHTS[k] * x[i + k - 1] - own[k] * x[i]
    for i in dace.map[2 : N - 2]:
        for k in range(2):
            z[i] += x[i + SHIFTS[k][0]] + x[i + SHIFTS[k][1]] * WEIGHTS[1]


@dace.program
def extremes_and_sums(x: f8[N, M], y: f8[N], z: f8[M]):
    for i in dace.map[0:N]:
        y[i] = max(x[i]) - min(x[i, 1:]) + sum(x[i]) + max(x[i, 0], x[i, 1], 0.5)
    z[:] = sum(x)


@dace.program
def waiting_stores(x: f8[N], y: f8[N]):
    y[:] = x
    means = 0.5 * (y[::2] + y[1::2])
    halves = 0.5 * (y[::2] - y[1::2])
    y[N // 2 :] = halves
    y[: N // 4] = means[1::2] - means[::2]
    y[N // 4 : N // 2] = means[::2] * 2.0


@dace.program
def chosen_by_masks(x: f8[N, M], w: f8[N], y: f8[N], z: f8[N, M], v: f8[6]):
    high = w > 0.5
    y[:] = w
    y[w > 0.4] += 2.0 * w[w > 0.4] - y[w > 0.4]
    y[high] = 3.0 * w[high]
    y[~high] *= 2.0
    z[(x > 0.2) & (x < 0.6)] = x[(x > 0.2) & (x < 0.6)] ** 2
    v[0] = x[x > 0.5].sum() + np.sum(w[high]) + np.sum(x, where=x < 0.3)
    v[1] = np.mean(w[high])
    v[2] = np.max(x[x < 0.7]) - x[x > 0.3].min()


@dace.program
def norms_of_vectors(x: f8[N, M], w: f8[N], y: f8[N], z: f8[M]):
    y[:] = np.linalg.norm(x, 1, axis=1) + np.linalg.norm(w - 0.5, np.inf) + np.linalg.norm(w, 1)
    z[:] = np.linalg.norm(x - 0.5, -np.inf, axis=0)


@dace.program
def names_swapped(x: f8[N], y: f8[N]):
    for t in range(1, K):
        y[1:-1] = 0.5 * (x[:-2] + x[2:]) + t
        x, y = y, x
    x[0] = 7.0
    for _ in range(4):
        for i in dace.map[1 : N - 1]:
            y[i] = 0.25 * (x[i - 1] + x[i + 1])
        x, y = y, x
    y[0] = 9.0


@dace.program
def names_rotated(x: f8[N], y: f8[N], z: f8[N]):
    for _ in range(K):
        z[1:-1] = 2.0 * y[1:-1] - x[1:-1] + 0.1 * (y[2:] - 2.0 * y[1:-1] + y[:-2])
        x, y, z = y, z, x
    x[1] = 3.0


@dace.program
def names_of_copies(x: f8[N], y: f8[N]):
    u = x.copy()
    v = np.zeros_like(x)
    for _ in range(5):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        held = u
        u = v
        v = held
    y[:] = u - v


@dace.program
def names_that_a_condition_swaps(x: f8[N], y: f8[N]):
    while x[1] > 0.1:
        y[:] = 0.5 * x
        x, y = y, x


@dace.program
def numbers_in_turn(x: f8[N], y: f8[N], z: f8[N]):
    a, b, c = 1.0, x[0], 3.0
    for i in range(N):
        a, b, c = b, c, a
        y[i] = a * x[i]
    low, high = x[0], x[1]
    for i in range(N):
        low, high = high, low
        z[i] = low - high + x[i]


@dace.program
def one_name_after_another(x: f8[N, M], w: f8[M, K], v: f8[N], y: f8[N, 3], z: f8[N], u: f8[N]):
    x = np.maximum(x @ w - 0.5, 0.0)
    x = x[:, :3] + 1.0
    y[:] = x
    high = v * 2.0
    high = high / high.max()
    for _ in range(3):
        v = 0.5 * v + high
    z[:] = v
    u[0] = 5.0
    u = u + 1.0
    held = u
    for _ in range(2):
        held = held * 0.5
    u[1] = 9.0
    z += u - held


@dace.program
def views_that_are_written(x: f8[N], A: f8[N, N], y: f8[N], z: f8[N, N], v: f8[N * N]):
    even, odd = 0, 0
    first = x[::2]
    second = x[1::2]
    first -= second
    second += 0.5 * first
    back = x[::-1]
    x[0] = 7.0
    back[1] = 3.0
    y[:] = back + even + odd
    first[:] = 1.0
    z[:] = A
    turned = z.T
    turned += 1.0
    turned[0] = 5.0
    turned[1, 2] += 2.0
    A[1, 0] = turned[0, 1] + first[1]
    flat = z.flatten()
    flat[0] = 100.0
    v[:] = flat


@dace.program
def names_of_parts(x: f8[N, M], y: f8[M], z: f8[N]):
    best = x[0]
    for i in range(1, N):
        best = np.maximum(best, x[i])
    y[:] = best
    before = x[:, 0]
    for j in range(1, M):
        now = x[:, j]
        z += now * before
        before = now
    x[0, 0] = 9.0
    first = x[0, 0]
    for i in range(N):
        first = 0.5 * first + z[i]
    y[0] = first


@dace.program
def outer_of_thin_slices(x: f8[N, 3], w: f8[N], y: f8[N]):
    apart = np.add.outer(-x[:, 0:1], x[:, 0:1])
    y[:] = apart @ w


@dace.program
def taken_at_places(x: f8[N], A: f8[N, M], p: dace.int64[K], y: f8[K], B: f8[N, K], z: f8[K], C: f8[K, M]):
    y[:] = np.take(x, p) + A.take(p)
    B[:] = np.take(A, p % M, axis=1) + A[:, p]
    z[:] = A[p, 1] - A[0, p]
    C[:] = A[p, :]


@dace.program
def methods_in_chains(x: f8[N], A: f8[N, M], y: f8[N], z: f8[M, N]):
    y[:] = (2.0 * x).clip(0.3, 1.5).round(1) + A.copy().sum(axis=1).cumsum()
    z[:] = A.reshape(M, N).copy().clip(0.1, 0.9)
    first = x[0].item()
    z *= first
    y += (A * x[:, np.newaxis]).sum(axis=1)
    for i in range(N):
        y[i] -= (-A * (x[i] - x)[:, None]).max()


@dace.program
def functions_with_names(x: f8[N], y: f8[N]):
    square = lambda v: v * v  # noqa: E731
    shifted = lambda v, by: square(v - by) + by  # noqa: E731

    def halved(v):
        return 0.5 * v

    twice = x * 2.0
    for i in range(N):
        y[i] = shifted(x[i], 0.25) + square(i + 1) + halved(twice[i])
    del twice


@dace.program
def sums_of_generators(x: f8[N], n: dace.int64[N], A: f8[N, M], y: f8[N], z: dace.int64[2]):
    for i in range(N):
        y[i] = sum(A[i, j] * x[i] for j in range(M)) + 0.5 * sum([x[k] for k in range(i) if x[k] > 0.3])
    y[0] += sum(A[i, j] for i in range(N) for j in range(i % M))
    z[0] = sum(n[i] for i in range(N))
    total = sum(n[i] % 2 for i in range(N))
    z[1] = total
    for i in range(N):
        y[i] += sum(A[i, 0] for i in range(M))
    y[1] += sum(sum(A[i, j] for j in range(M)) * x[i] for i in range(N))


@dace.program
def rows_exchanged(A: f8[N, M], k: dace.int64):
    A[[0, 2]] = A[[2, 0]]
    A[[1, k, 3]] = A[[k, 3, 1]]


@dace.program
def counted_in_pairs(x: f8[N], w: f8[N], y: f8[N]):
    for i, (a, b) in enumerate(zip(x, w)):  # noqa: B905
        y[i] = a * b + i


@dace.program
def named_in_a_test(x: f8[N], y: f8[N]):
    for i in range(N):
        if (v := 2.0 * x[i]) > 1.0:
            y[i] = v
        elif (v := v * v) > 0.2:
            y[i] = -v
        else:
            y[i] = v + 3.0


@dace.program
def quotients_with_remainders(n: dace.int64[N], m: dace.int64[N], d: dace.int64[N]):
    for i in range(N):
        left = n[i] - 3
        total = 0
        for _ in range(3):
            left, digit = divmod(left, 2)
            total += digit
        m[i], d[i] = left, total


@dace.program
def said_otherwise(
    A: f8[N, N], x: f8[N], u: dace.complex128[N], B: f8[N, N], C: f8[N, N], y: f8[N], z: f8[N], w: f8[5]
):
    np.matmul(A, A, out=B)
    C[:] = np.linalg.matrix_power(A, 3) + np.linalg.multi_dot([A, B, A])
    np.copyto(y, np.asarray(x) + np.angle(u))
    z[:] = pow(x, 3) + np.float_power(x, 2) + np.fix(3.0 * x - 1.5)
    z[1:] += np.ediff1d(x)
    z[4:] += np.correlate(x, w, mode="valid") + np.correlate(x, w)


@dace.program
def bits_counted(x: dace.uint32[N], y: dace.int32[N], n: dace.uint32[N], m: dace.int64[N, N]):
    for i in dace.map[0:N]:
        s = dace.uint32(0)
        for k in range(32):
            s = s + ((x[i] >> k) & 1)
        n[i] = s
    for i in range(N):
        for j in range(N):
            v = y[i] ^ y[j]
            c = 0
            for b in range(32):
                c += (v >> b) & 1
            m[i, j] = c


@dace.program
def parts_of_results(A: f8[N, M], y: f8[N], z: f8[M], B: f8[N, M]):
    y[:] = np.exp(A)[:, 2]
    t = np.sqrt(A)
    z[:] = t[1]
    B[:, 1] = t[:, 0]
    B[:, 0] = t[:, 1]


@dace.program
def listed_parts(A: f8[N, M], B: f8[2, M], y: f8[N], z: f8[M]):
    B[:] = A[[0, 2]]
    y[:] = A[:, [1, -1]].sum(axis=1)
    z[:] = A[1:, :][0] - A[[0, -1]].mean(axis=0)


@dace.program
def places_along_axes(A: f8[N, M], p: dace.int64[K], q: dace.int64[N], B: f8[K, M], C: f8[K, 2], y: f8[N]):
    B[:] = A[p % N]
    C[:] = A[p % N, 1:3]
    y[:] = A[np.arange(N), q % M]


@dace.program
def stored_at_places(
    x: f8[N], A: f8[N, M], B: f8[N, M], C: f8[N, M], p: dace.int64[K], q: dace.int64[K], v: f8[K], V: f8[N, K]
):
    r, s = p % N, q % M
    x[r] += v
    A[r, s] *= 3.0
    A[r] = A[r] + V[0, 0]
    B[:, s] = V
    C[np.arange(N), 1] = 7.0
    x[N - 1 - np.arange(N)] = x


@dace.program
def histograms(x: f8[N], w: f8[N], n: dace.int64[8], m: dace.int64[5], h: f8[4], e: f8[6]):
    n[:] = np.histogram(x, bins=8, range=(0.0, 1.0))[0]
    counts, edges = np.histogram(x - 0.5, 5)
    m[:] = counts
    e[:] = edges
    h[:] = np.histogram(x, 4, weights=w, range=(0.25, 0.75))[0]


@dace.program
def longer_arrays(x: f8[N], y: f8[N + 1], z: f8[N + 2], w: f8[2 * N]):
    y[:] = np.append(x, x[0])
    closed = np.append(x, 0.5)
    z[:] = np.append(closed, x[-1])
    w[:] = np.append(x, x)


@dace.program
def powers_and_places(x: f8[N], V: f8[N, 4], W: f8[N, N], B: f8[N, M]):
    V[:] = np.vander(x, 4)
    W[:] = np.vander(x, increasing=True)
    i, j = np.indices((N, M))
    B[:] = x[0] * i + j


@dace.program
def complex_numbers(
    z: c16[N],
    w: c16[N],
    v: dace.complex64[N],
    x: f8[N],
    r: f8[N],
    u: c16[3],
    n: f8[3],
    turns: i8[N],
    m: c16[N],
):
    u[0] = np.vdot(z, w)
    u[1] = np.mean(z)
    u[2] = complex(x[0], -x[1]) / 3
    n[0] = np.linalg.norm(z)
    n[1] = np.std(w)
    n[2] = np.linalg.norm(x)
    v[:] = v * (2.0 + 1.0j) - 3
    m.real[:] = x
    m.imag = m.imag + 2 * x
    m[1:].imag *= 2.0
    m += np.real(x) + np.imag(x) * np.conj(x)
    for i in dace.map[0:N]:
        r[i] = abs(z[i]) - abs(x[i])
    for i in range(N):
        v[i] += z[i].conjugate() if x[i] > 0.5 else w[i].conj()
        c = 0j
        k = 0
        while k < 9 and abs(c) <= 2.0:
            c = c * c + z[i]
            k += 1
        turns[i] = k


INNER = (slice(1, -1), slice(None, -2))


@dace.program
def slices_with_names(A: f8[N, M], B: f8[N, M], C: f8[N, M], x: f8[N], y: f8[N]):
    here, right, half = (slice(1, -1), slice(1, -1)), np.s_[1:-1, 2:], 0.5
    rows = slice(2, None)
    B[here] = half * A[right] - A[here] + A[INNER]
    C[rows, 1] = A[rows, 0]
    C[..., -1] = 3.0
    y[slice(3)] = x[slice(1, 4)] + x[slice(0, -1, 2)][:3]


@dace.program
def ends_of_slices(x: f8[N, M], y: f8[N, M], z: f8[N], w: f8[N], K_: f8[N, M]):
    def weight(s):
        return 1.0 / (1.0 + np.abs(s))

    total = np.zeros_like(K_)[1:-2]
    for kr in range(2):
        ki = 0 if kr == 1 else 1
        for ip in range(2):
            part = x[1 + ip : -2 + ip, ki:] * weight(x[1:-2, : -1 + kr or None])
            total[:, ki:] += part * 0.5
    for ip in range(2):
        part = x[1 + ip : -2 + ip]
        total += part
    y[1:-2] = total
    for k in (1, 2):
        z[k:-k] += w[2 * k :] - w[: -2 * k]
    for k in range(3):
        z[k + 1 :] += k * w[: N - k - 1]


@dace.program
def transforms_along_axes(
    A: c16[N, M], rows: c16[N, M], there: c16[N, M], both: c16[N, M], one_by_one: c16[N, M]
):
    rows[:] = np.fft.fft(A)
    there[:] = np.fft.ifft(2.0 * np.fft.fft(A, axis=0), axis=0)
    both[:] = np.fft.ifftn(np.fft.fft2(A) * A)
    for i in range(N):
        one_by_one[i] = np.fft.fft(A[i])


@dace.program
def transforms_of_real_numbers(
    x: f8[N], A: f8[N, M], half: c16[N // 2 + 1], back: f8[N],
    columns: f8[N, M], padded: c16[2 * N], cut: c16[3],
):  # fmt: skip
    half[:] = scipy.fft.rfft(x)
    back[:] = np.fft.irfft(half, N)
    columns[:] = np.fft.irfft(np.fft.rfft(A, axis=0) * 0.5, n=N, axis=0)
    columns += np.fft.irfft2(np.fft.rfft2(A), s=(N, M))
    padded[:] = np.fft.fft(x, 2 * N)
    cut[:] = np.fft.fft(x, n=3)


@dace.program
def frequencies(
    x: c16[N],
    A: c16[N, M],
    middle: c16[N, M],
    first: c16[N, M],
    slope: c16[N],
    half: f8[N // 2 + 1],
):
    middle[:] = np.fft.fftshift(A)
    first[:] = np.fft.ifftshift(A, axes=0)
    slope[:] = np.fft.ifft(2j * np.pi * np.fft.fftfreq(N, 0.1) * np.fft.fft(x))
    half[:] = np.fft.rfftfreq(N)


@dace.program
def arrays_of_variables(x: f8[N], A: f8[N, 2], B: f8[N, 2], u: c16[2], v: f8[3], w: f8[N]):
    c, s = np.cos(x[0]), np.sin(x[0])
    B[:] = A @ np.array([[c, -s], [s, c]])
    u[:] = np.array([np.exp(1j * x[1]), 1.0])
    v[:] = np.array([x.sum(), x[2], 3])
    for i in range(N):
        d = np.array([x[i], 2 * x[i], 1.0])
        w[i] = d @ d


@dace.program
def in_stages(x: f8[64], y: f8[64]):
    y[:] = x
    t = np.empty_like(y)
    for i in range(6):
        pairs = np.reshape(y, (2**i, 2, 2 ** (5 - i)))
        t[:] = np.reshape(np.transpose(pairs, axes=(1, 0, 2)), (64,))
        for k in range(64):
            y[k] = 2.0 * t[k] + t[63 - k]
