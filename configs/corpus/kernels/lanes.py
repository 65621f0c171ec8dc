"""Every element by a loop of its own whose steps depend on each other: series, roots, paths, random numbers.

Vectors of elements run such loops side by side.
"""

import dace
import numpy as np

M, N, K, T = (dace.symbol(s, dtype=dace.int64) for s in "MNKT")
f32, f64, i32, i64 = dace.float32, dace.float64, dace.int32, dace.int64
u32, u64 = dace.uint32, dace.uint64

# --------------------------------------------------------------------------- series and roots


@dace.program
def horner(x: f64[N], c: f64[K], y: f64[N]):
    """A polynomial, highest power first."""
    for i in dace.map[0:N]:
        value = 0.0
        for k in range(K):
            value = value * x[i] + c[k]
        y[i] = value


@dace.program
def chebyshev(x: f32[N], c: f32[K], y: f32[N]):
    """Clenshaw's recurrence."""
    for i in dace.map[0:N]:
        one = np.float32(0)
        two = np.float32(0)
        for k in range(K):
            following = np.float32(2) * x[i] * one - two + c[k]
            two = one
            one = following
        y[i] = one - x[i] * two


@dace.program
def legendre_table(x: f64[N], p: f64[K, N]):
    """All polynomials up to a degree, each from the two before."""
    for i in dace.map[0:N]:
        before = 1.0
        now = x[i]
        p[0, i] = before
        p[1, i] = now
        for k in range(2, K):
            following = ((2 * k - 1) * x[i] * now - (k - 1) * before) / k
            before = now
            now = following
            p[k, i] = following


@dace.program
def cube_roots(a: f64[N], r: f64[N]):
    """Newton's iteration."""
    for i in dace.map[0:N]:
        root = 0.5 + 0.5 * a[i]
        for _ in range(9):
            root = root - (root * root * root - a[i]) / (3.0 * root * root + 0.001)
        r[i] = root


@dace.program
def eccentric_anomaly(mean: f64[N], e: f64[N], angle: f64[N]):
    """Kepler's equation."""
    for i in dace.map[0:N]:
        value = mean[i]
        for _ in range(6):
            value = value - (value - e[i] * np.sin(value) - mean[i]) / (1.0 - e[i] * np.cos(value))
        angle[i] = value


@dace.program
def arithmetic_geometric(a: f64[N], b: f64[N], mean: f64[N]):
    for i in dace.map[0:N]:
        one = 1.0 + a[i]
        two = 1.0 + b[i]
        for _ in range(5):
            middle = 0.5 * (one + two)
            two = np.sqrt(one * two)
            one = middle
        mean[i] = one


@dace.program
def bisection(target: f64[N], found: f64[N]):
    """Where x + x^3 is the target, halving an interval."""
    for i in dace.map[0:N]:
        low = 0.0
        high = 2.0
        for _ in range(24):
            middle = 0.5 * (low + high)
            if middle + middle * middle * middle < target[i]:
                low = middle
            else:
                high = middle
        found[i] = low


@dace.program
def bounded_orbit(re: f64[M, N], im: f64[M, N], steps: i32[M, N]):
    """Steps of z^2 + c before it escapes."""
    for i, j in dace.map[0:M, 0:N]:
        a = 0.0
        b = 0.0
        inside = 0
        for _ in range(40):
            following = a * a - b * b + re[i, j]
            b = min(max(2.0 * a * b + im[i, j], -9.0), 9.0)
            a = min(max(following, -9.0), 9.0)
            if a * a + b * b < 4.0:
                inside = inside + 1
        steps[i, j] = inside


# --------------------------------------------------------------------------- steps in time


@dace.program
def pendulums(angle: f64[N], speed: f64[N], steps: i64, dt: f64):
    """Symplectic steps of independent pendulums."""
    for i in dace.map[0:N]:
        a = angle[i]
        v = speed[i]
        for _ in range(steps):
            v = v - dt * np.sin(a)
            a = a + dt * v
        angle[i] = a
        speed[i] = v


@dace.program
def predators(prey: f32[N], hunters: f32[N], steps: i64):
    for i in dace.map[0:N]:
        x = prey[i]
        y = hunters[i]
        for _ in range(steps):
            dx = x * (np.float32(0.01) - np.float32(0.02) * y)
            dy = y * (np.float32(0.01) * x - np.float32(0.01))
            x = x + dx
            y = y + dy
        prey[i] = x
        hunters[i] = y


@dace.program
def spiking(current: f64[T, N], spikes: i64[N]):
    """Leaky integration with a reset."""
    for i in dace.map[0:N]:
        v = 0.0
        count = 0
        for t in range(T):
            v = 0.9 * v + current[t, i]
            if v > 3.0:
                v = 0.0
                count = count + 1
        spikes[i] = count


@dace.program
def price_paths(s0: f64, drift: f64, z: f64[T, N], last: f64[N], lowest: f64[N]):
    for p in dace.map[0:N]:
        s = s0
        low = s0
        for t in range(T):
            s = s + s * (0.001 * drift + 0.02 * (z[t, p] - 0.5))
            low = min(low, s)
        last[p] = s
        lowest[p] = low


@dace.program
def filter_bank(x: f32[T, N], y: f32[T, N]):
    """A recursive filter of second order down every column."""
    for c in dace.map[0:N]:
        one = np.float32(0)
        two = np.float32(0)
        for t in range(T):
            out = np.float32(0.2) * x[t, c] + one
            one = np.float32(0.3) * x[t, c] + np.float32(0.4) * out + two
            two = np.float32(0.2) * x[t, c] - np.float32(0.2) * out
            y[t, c] = out


@dace.program
def smoothed_levels(x: f64[T, N], y: f64[T, N]):
    """Double exponential smoothing down every column."""
    for c in dace.map[0:N]:
        level = x[0, c]
        slope = 0.0
        for t in range(T):
            before = level
            level = 0.3 * x[t, c] + 0.7 * (level + slope)
            slope = 0.1 * (level - before) + 0.9 * slope
            y[t, c] = level + slope


@dace.program
def chains_of_states(start: f64[N, K], step: f64[K, K], T_: i64, end: f64[N]):
    """A small matrix applied to many vectors, one after the other."""
    for i in dace.map[0:N]:
        a = start[i, 0]
        b = start[i, 1]
        for _ in range(T_):
            following = step[0, 0] * a + step[0, 1] * b
            b = 0.5 * (step[1, 0] * a + step[1, 1] * b)
            a = 0.5 * following
        end[i] = a + b


# --------------------------------------------------------------------------- along rows


@dace.program
def filtered_rows(x: f64[M, N], y: f64[M, N], b: f64, a: f64):
    """A recursive filter of second order along every row."""
    for c in dace.map[0:M]:
        one = 0.0
        two = 0.0
        for t in range(N):
            out = b * x[c, t] + one
            one = 0.3 * x[c, t] - 0.2 * a * out + two
            two = 0.2 * x[c, t] - 0.1 * out
            y[c, t] = out


@dace.program
def averaged_rows(x: f32[M, N], y: f32[M, N]):
    """An exponential moving average along every row."""
    for c in dace.map[0:M]:
        level = x[c, 0]
        for t in range(N):
            level = np.float32(0.9) * level + np.float32(0.1) * x[c, t]
            y[c, t] = level


@dace.program
def longest_runs(x: f64[M, N], longest: i64[M]):
    """The longest run above a level in every row."""
    for c in dace.map[0:M]:
        run = 0
        best = 0
        for t in range(N):
            if x[c, t] > 0.4:
                run = run + 1
            else:
                run = 0
            best = max(best, run)
        longest[c] = best


@dace.program
def hashed_rows(words: u32[M, N], digest: u32[M]):
    for c in dace.map[0:M]:
        h = dace.uint32(2166136261)
        for t in range(N):
            h = (h ^ words[c, t]) * dace.uint32(16777619)
        digest[c] = h


@dace.program
def solved_rows(d: f64[M, N], r: f64[M, N], x: f64[M, N]):
    """The forward sweep of tridiagonal systems, one a row."""
    for c in dace.map[0:M]:
        above = 0.0
        right = 0.0
        for t in range(N):
            scale = 1.0 / (2.5 + d[c, t] + 0.5 * above)
            right = (r[c, t] + 0.5 * right) * scale
            above = -0.5 * scale
            x[c, t] = right


# --------------------------------------------------------------------------- integers


@dace.program
def shift_registers(state: u64[N], ones: i64[N]):
    for i in dace.map[0:N]:
        s = state[i]
        count = dace.int64(0)
        for _ in range(48):
            s = s ^ (s << dace.uint64(13))
            s = s ^ (s >> dace.uint64(7))
            s = s ^ (s << dace.uint64(17))
            if (s >> dace.uint64(63)) == 0:
                count += 1
        ones[i] = count
        state[i] = s


@dace.program
def congruential(seed: u32[N], total: u32[N]):
    for i in dace.map[0:N]:
        s = seed[i]
        t = dace.uint32(0)
        for _ in range(32):
            s = s * dace.uint32(1664525) + dace.uint32(1013904223)
            t = t ^ (s >> dace.uint32(9))
        total[i] = t
        seed[i] = s


@dace.program
def mixed_words(words: u32[K, N], digest: u32[N]):
    """A hash of every column."""
    for i in dace.map[0:N]:
        h = dace.uint32(2166136261)
        for k in range(K):
            h = (h ^ words[k, i]) * dace.uint32(16777619)
            h = h ^ (h >> dace.uint32(15))
        digest[i] = h


@dace.program
def binary_powers(base: i64[N], exponent: i64[N], rest: i64[N]):
    """Powers modulo 2^20, bit by bit."""
    for i in dace.map[0:N]:
        b = base[i]
        e = exponent[i]
        r = dace.int64(1)
        for _ in range(20):
            if (e & 1) == 1:
                r = (r * b) & 1048575
            b = (b * b) & 1048575
            e = e >> 1
        rest[i] = r


@dace.program
def gray_ranks(code: u32[N], rank: u32[N]):
    """From reflected codes to numbers."""
    for i in dace.map[0:N]:
        g = code[i]
        r = dace.uint32(0)
        for _ in range(32):
            r = r ^ g
            g = g >> dace.uint32(1)
        rank[i] = r


# --------------------------------------------------------------------------- transforms


@dace.program
def spectrum(x: dace.complex128[N], power: f64[N]):
    y = np.fft.fft(x)
    power[:] = np.real(y * np.conj(y))


@dace.program
def low_pass(x: dace.complex128[N], h: dace.complex128[N], y: dace.complex128[N]):
    y[:] = np.fft.ifft(np.fft.fft(x) * h)
