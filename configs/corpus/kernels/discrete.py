"""Integers, bytes, tables and borders: digits, pixels, looked-up values, periodic and clipped neighbourhoods.

The `inputs_*` functions return every array of the kernel, with values in the range that it expects.
"""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64, i32, i64, u8 = dace.float32, dace.float64, dace.int32, dace.int64, dace.uint8

# --------------------------------------------------------------------------- integers


@dace.program
def leap_days(year: i32[N], days: i32[N]):
    """Days before the first of January in the Gregorian calendar."""
    for i in dace.map[0:N]:
        y = year[i] - 1
        days[i] = 365 * y + y // 4 - y // 100 + y // 400


@dace.program
def check_digits(number: i64[N], valid: i32[N]):
    """Luhn's sum of ten digits, every second one doubled."""
    for i in dace.map[0:N]:
        rest = number[i]
        total = 0
        for k in range(10):
            digit = rest % 10
            if k % 2 == 1:
                digit = 2 * digit
                if digit > 9:
                    digit = digit - 9
            total = total + digit
            rest = rest // 10
        valid[i] = total % 10 == 0


@dace.program
def common_divisors(a: i32[N], b: i32[N], out: i32[N]):
    for i in dace.map[0:N]:
        x = a[i]
        y = b[i]
        while y > 0:
            rest = x % y
            x = y
            y = rest
        out[i] = x


@dace.program
def whole_roots(x: i32[N], out: i32[N]):
    """Square roots rounded down, bit by bit."""
    for i in dace.map[0:N]:
        root = 0
        for k in range(15):
            attempt = root | (1 << (14 - k))
            if attempt * attempt <= x[i]:
                root = attempt
        out[i] = root


@dace.program
def sine_in_fixed_point(x: i32[N], out: i32[N]):
    """A polynomial with 12 fractional bits."""
    for i in dace.map[0:N]:
        square = (x[i] * x[i]) >> 12
        inner = 4096 - square // 20
        out[i] = (x[i] * (4096 - ((square * inner) >> 12) // 6)) >> 12


@dace.program
def interleaved(x: i32[N], y: i32[N], code: i64[N]):
    """Morton codes of 16 bits each."""
    for i in dace.map[0:N]:
        total = 0
        for k in range(16):
            total = total | (((x[i] >> k) & 1) << (2 * k)) | (((y[i] >> k) & 1) << (2 * k + 1))
        code[i] = total


# --------------------------------------------------------------------------- bytes


@dace.program
def shrunk(a: u8[2 * M, 2 * N], out: u8[M, N]):
    """Means of two by two pixels, rounded."""
    for i, j in dace.map[0:M, 0:N]:
        four = (
            dace.int32(a[2 * i, 2 * j]) + dace.int32(a[2 * i, 2 * j + 1])
            + dace.int32(a[2 * i + 1, 2 * j]) + dace.int32(a[2 * i + 1, 2 * j + 1])
        )  # fmt: skip
        out[i, j] = dace.uint8((four + 2) >> 2)


@dace.program
def dilated(a: u8[M, N], out: u8[M, N]):
    """The largest of five in a cross."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        out[i, j] = max(a[i, j], max(max(a[i - 1, j], a[i + 1, j]), max(a[i, j - 1], a[i, j + 1])))


@dace.program
def luminance(r: u8[N], g: u8[N], b: u8[N], y: u8[N], u: u8[N], v: u8[N]):
    """Colours as television has them."""
    for i in dace.map[0:N]:
        red = dace.int32(r[i])
        green = dace.int32(g[i])
        blue = dace.int32(b[i])
        y[i] = dace.uint8(((66 * red + 129 * green + 25 * blue + 128) >> 8) + 16)
        u[i] = dace.uint8(((112 * blue - 38 * red - 74 * green + 128) >> 8) + 128)
        v[i] = dace.uint8(((112 * red - 94 * green - 18 * blue + 128) >> 8) + 128)


@dace.program
def stretched(a: u8[M, N], low: i32, high: i32, out: u8[M, N]):
    """Contrast between two levels, saturated."""
    for i, j in dace.map[0:M, 0:N]:
        level = (dace.int32(a[i, j]) - low) * 255 // (high - low)
        out[i, j] = dace.uint8(min(max(level, 0), 255))


@dace.program
def block_differences(a: u8[8 * M, 8 * N], b: u8[8 * M, 8 * N], out: i32[M, N]):
    """Sums of absolute differences of blocks of eight by eight, as encoders of motion add them up."""
    for i, j in dace.map[0:M, 0:N]:
        total = 0
        for k, l in dace.map[0:8, 0:8]:
            difference = dace.int32(a[8 * i + k, 8 * j + l]) - dace.int32(b[8 * i + k, 8 * j + l])
            total += abs(difference)
        out[i, j] = total


# --------------------------------------------------------------------------- tables


@dace.program
def corrected(a: u8[M, N], table: u8[256], out: u8[M, N]):
    """Levels by a table, as gamma is corrected."""
    for i, j in dace.map[0:M, 0:N]:
        out[i, j] = table[a[i, j]]


@dace.program
def between_entries(x: f64[N], table: f64[K], out: f64[N]):
    """Linear interpolation in a table over [0, 1)."""
    for i in dace.map[0:N]:
        at = x[i] * (K - 1)
        left = dace.int64(at)
        share = at - left
        out[i] = (1.0 - share) * table[left] + share * table[left + 1]


@dace.program
def coloured(a: f32[M, N], table: f32[256, 3], out: f32[M, N, 3]):
    """A map of colours, channel by channel."""
    for i, j, c in dace.map[0:M, 0:N, 0:3]:
        out[i, j, c] = table[dace.int32(a[i, j] * dace.float32(255)), c]


@dace.program
def turned(a: f32[M, N], c: f32, s: f32, out: f32[M, N]):
    """An image about its middle, four pixels for each."""
    for i, j in dace.map[0:M, 0:N]:
        y = dace.float32(i) - dace.float32(M) / 2
        x = dace.float32(j) - dace.float32(N) / 2
        row = min(max(c * y - s * x + dace.float32(M) / 2, dace.float32(0)), dace.float32(M - 2))
        column = min(max(s * y + c * x + dace.float32(N) / 2, dace.float32(0)), dace.float32(N - 2))
        k = dace.int32(row)
        l = dace.int32(column)
        p = row - dace.float32(k)
        q = column - dace.float32(l)
        upper = (1 - q) * a[k, l] + q * a[k, l + 1]
        lower = (1 - q) * a[k + 1, l] + q * a[k + 1, l + 1]
        out[i, j] = (1 - p) * upper + p * lower


@dace.program
def nearest_levels(x: f32[N], levels: f32[K], out: i32[N]):
    """Quantised to the nearest of some levels."""
    for i in dace.map[0:N]:
        best = dace.float32(1e30)
        which = 0
        for k in range(K):
            distance = abs(x[i] - levels[k])
            if distance < best:
                best = distance
                which = k
        out[i] = which


@dace.program
def stumps(x: f32[N, K], threshold: f32[K], weight: f32[K], out: f32[N]):
    """A committee of comparisons."""
    for i in dace.map[0:N]:
        total = dace.float32(0)
        for k in range(K):
            if x[i, k] > threshold[k]:
                total = total + weight[k]
            else:
                total = total - weight[k]
        out[i] = total


# --------------------------------------------------------------------------- borders


@dace.program
def on_a_torus(u: f64[M, N], out: f64[M, N]):
    """Diffusion with both axes periodic."""
    for i, j in dace.map[0:M, 0:N]:
        around = u[(i - 1) % M, j] + u[(i + 1) % M, j] + u[i, (j - 1) % N] + u[i, (j + 1) % N]
        out[i, j] = 0.6 * u[i, j] + 0.1 * around


@dace.program
def crystals(a: i32[M, N], out: i32[M, N]):
    """A cell follows where just one neighbour of four is set, all around."""
    for i, j in dace.map[0:M, 0:N]:
        alive = a[(i + M - 1) % M, j] + a[(i + 1) % M, j] + a[i, (j + N - 1) % N] + a[i, (j + 1) % N]
        if a[i, j] == 1 or alive == 1:
            out[i, j] = 1
        else:
            out[i, j] = 0


@dace.program
def rolled_advection(u: f64[M, N], cx: f64, cy: f64, out: f64[M, N]):
    out[:] = u - cx * (u - np.roll(u, 1, 1)) - cy * (u - np.roll(u, 1, 0))


@dace.program
def streamed(f: f64[5, M, N], out: f64[5, M, N]):
    """Populations of a lattice move to their neighbours and relax to the mean."""
    for i, j in dace.map[0:M, 0:N]:
        rest = f[0, i, j]
        east = f[1, i, (j - 1) % N]
        west = f[2, i, (j + 1) % N]
        north = f[3, (i - 1) % M, j]
        south = f[4, (i + 1) % M, j]
        density = rest + east + west + north + south
        out[0, i, j] = rest + 0.6 * (density / 3.0 - rest)
        out[1, i, j] = east + 0.6 * (density / 6.0 - east)
        out[2, i, j] = west + 0.6 * (density / 6.0 - west)
        out[3, i, j] = north + 0.6 * (density / 6.0 - north)
        out[4, i, j] = south + 0.6 * (density / 6.0 - south)


@dace.program
def mirrored(a: f64[M, N], out: f64[M, N]):
    """Second differences, with the outermost rows and columns repeated."""
    for i, j in dace.map[0:M, 0:N]:
        rows = a[max(i - 1, 0), j] + a[min(i + 1, M - 1), j]
        columns = a[i, max(j - 1, 0)] + a[i, min(j + 1, N - 1)]
        out[i, j] = rows + columns - 4.0 * a[i, j]


@dace.program
def mean_of_those_inside(x: f64[N], out: f64[N]):
    """Centred means of seven, of fewer at both ends."""
    for i in dace.map[0:N]:
        total = 0.0
        count = 0.0
        for k in range(-3, 4):
            if i + k >= 0 and i + k < N:
                total = total + x[i + k]
                count = count + 1.0
        out[i] = total / count


@dace.program
def weighted_inside(a: f64[M, N], w: f64[5], out: f64[M, N]):
    """Along rows, weights scaled to what lies inside."""
    for i, j in dace.map[0:M, 0:N]:
        total = 0.0
        weight = 0.0
        for k in range(5):
            if j + k - 2 >= 0 and j + k - 2 < N:
                total = total + w[k] * a[i, j + k - 2]
                weight = weight + w[k]
        out[i, j] = total / weight


@dace.program
def where_known(a: f64[M, N], known: i32[M, N], out: f64[M, N]):
    """Gaps filled with the mean of those neighbours that are known."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        total = 0.0
        count = 0
        for k, l in dace.map[-1:2, -1:2]:
            total += known[i + k, j + l] * a[i + k, j + l]
            count += known[i + k, j + l]
        out[i, j] = total / max(count, 1)


# --------------------------------------------------------------------------- inputs


def inputs_leap_days(N: int) -> dict[str, np.ndarray]:
    years = np.random.default_rng(0).integers(1, 4000, N, np.int32)
    return {"year": years, "days": np.zeros(N, np.int32)}


def inputs_check_digits(N: int) -> dict[str, np.ndarray]:
    return {"number": np.random.default_rng(0).integers(0, 10**10, N), "valid": np.zeros(N, np.int32)}


def inputs_common_divisors(N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(1, 10_000, N, np.int32) for _ in range(2))
    return {"a": a, "b": b, "out": np.zeros(N, np.int32)}


def inputs_whole_roots(N: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).integers(0, 2**30, N, np.int32), "out": np.zeros(N, np.int32)}


def inputs_sine_in_fixed_point(N: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).integers(-6400, 6400, N, np.int32), "out": np.zeros(N, np.int32)}


def inputs_interleaved(N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2**16, N, np.int32) for _ in range(2))
    return {"x": x, "y": y, "code": np.zeros(N, np.int64)}


def _pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def inputs_shrunk(M: int, N: int) -> dict[str, np.ndarray]:
    return {"a": _pixels(2 * M, 2 * N), "out": np.zeros((M, N), np.uint8)}


def inputs_dilated(M: int, N: int) -> dict[str, np.ndarray]:
    return {"a": _pixels(M, N), "out": np.zeros((M, N), np.uint8)}


def inputs_luminance(N: int) -> dict[str, np.ndarray]:
    r, g, b = _pixels(3, N)
    return {"r": r, "g": g, "b": b, **{name: np.zeros(N, np.uint8) for name in "yuv"}}


def inputs_stretched(M: int, N: int) -> dict[str, np.ndarray]:
    return {"a": _pixels(M, N), "low": np.int32(30), "high": np.int32(220), "out": np.zeros((M, N), np.uint8)}


def inputs_block_differences(M: int, N: int) -> dict[str, np.ndarray]:
    a, b = _pixels(2, 8 * M, 8 * N)
    return {"a": a, "b": b, "out": np.zeros((M, N), np.int32)}


def inputs_corrected(M: int, N: int) -> dict[str, np.ndarray]:
    table = np.round(255 * (np.arange(256) / 255) ** 0.45).astype(np.uint8)
    return {"a": _pixels(M, N), "table": table, "out": np.zeros((M, N), np.uint8)}


def inputs_between_entries(N: int, K: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.random(N), "table": rng.random(K), "out": np.zeros(N)}


def inputs_coloured(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, table = rng.random((M, N), np.float32), rng.random((256, 3), np.float32)
    return {"a": a, "table": table, "out": np.zeros((M, N, 3), np.float32)}


def inputs_turned(M: int, N: int) -> dict[str, np.ndarray]:
    a = np.random.default_rng(0).random((M, N), np.float32)
    return {"a": a, "c": np.float32(0.8), "s": np.float32(0.6), "out": np.zeros((M, N), np.float32)}


def inputs_nearest_levels(N: int, K: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x, levels = rng.random(N, np.float32), rng.random(K, np.float32)
    return {"x": x, "levels": levels, "out": np.zeros(N, np.int32)}


def inputs_crystals(M: int, N: int) -> dict[str, np.ndarray]:
    alive = np.random.default_rng(0).integers(0, 2, (M, N), np.int32)
    return {"a": alive, "out": np.zeros((M, N), np.int32)}


def inputs_where_known(M: int, N: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, known = rng.random((M, N)), rng.integers(0, 2, (M, N), np.int32)
    return {"a": a, "known": known, "out": np.zeros((M, N))}
