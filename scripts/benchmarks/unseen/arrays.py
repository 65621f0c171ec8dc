"""Reductions, element-wise chains, integers, recurrences.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

D, H, M, N, T, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("D", "H", "M", "N", "T", "STEPS"))
f32, f64, i32, i64 = dace.float32, dace.float64, dace.int32, dace.int64

# --------------------------------------------------------------------------- reductions


@dace.program
def log_sum_exp(X: f64[M, N], out: f64[M]):
    """ln(sum(exp(row))) without overflow."""
    largest = np.max(X, axis=1)
    out[:] = largest + np.log(np.sum(np.exp(X - largest[:, None]), axis=1))


@dace.program
def attention(q: f32[H, T, D], k: f32[H, T, D], v: f32[H, T, D], out: f32[H, T, D]):
    """Scaled dot-product attention of several heads."""
    scores = np.einsum("htd,hsd->hts", q, k) / np.sqrt(np.float32(D))
    largest = np.max(scores, axis=-1)
    weights = np.exp(scores - largest[:, :, None])
    total = np.sum(weights, axis=-1)
    out[:] = np.einsum("hts,hsd->htd", weights / total[:, :, None], v)


@dace.program
def signal_to_noise(signal: f64[M, N], reference: f64[M, N], out: f64[M]):
    """Decibels between every signal and what differs from its reference, and the worst of all."""
    noise = signal - reference
    power = np.sum(reference * reference, axis=1)
    out[:] = 10.0 * np.log10(power / np.sum(noise * noise, axis=1))
    return np.min(out)


# --------------------------------------------------------------------------- element by element


@dace.program
def great_circle(lat: f64[N], lon: f64[N], lat0: f64, lon0: f64, distance: f64[N]):
    """Kilometres to a place, by the haversine formula."""
    a = np.sin((lat - lat0) / 2.0) ** 2
    b = np.cos(lat0) * np.cos(lat) * np.sin((lon - lon0) / 2.0) ** 2
    distance[:] = 12742.0 * np.arcsin(np.sqrt(a + b))


@dace.program
def black_body(wavelength: f64[M], temperature: f64[N], radiance: f64[M, N]):
    """Planck's law for all pairs of wavelength (micrometres) and temperature (thousands of kelvin)."""
    for i, j in dace.map[0:M, 0:N]:
        x = 14.3877 / (wavelength[i] * temperature[j])
        radiance[i, j] = 1.191e8 / (wavelength[i] ** 5 * (np.exp(x) - 1.0))


@dace.program
def damped_oscillation(t: f32[N], amplitude: f32[N], out: f32[N]):
    """A decaying wave with a saturated amplitude."""
    envelope = np.exp(np.float32(-0.3) * t) * np.tanh(amplitude)
    out[:] = envelope * (np.sin(np.float32(6.2) * t) + np.float32(0.25) * np.cos(np.float32(12.4) * t) ** 3)


# --------------------------------------------------------------------------- integers


@dace.program
def bit_count(words: i64[N], counts: i64[N]):
    """Ones in every word, by adding up neighbouring bits."""
    pairs = words - ((words >> 1) & 0x5555555555555555)
    nibbles = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    octets = (nibbles + (nibbles >> 4)) & 0x0F0F0F0F0F0F0F0F
    counts[:] = (octets + (octets >> 8) + (octets >> 16) + (octets >> 24) + (octets >> 32)
                 + (octets >> 40) + (octets >> 48) + (octets >> 56)) & 0x7F  # fmt: skip


@dace.program
def alpha_blend(front: i32[M, N], back: i32[M, N], alpha: i32[M, N], out: i32[M, N]):
    """One picture over another, in whole numbers from 0 to 255."""
    mixed = front * alpha + back * (255 - alpha) + 128
    out[:] = np.minimum(np.maximum((mixed + (mixed >> 8)) >> 8, 0), 255)


@dace.program
def collatz(start: i64[N], steps: i64[N]):
    """How often numbers change until they are one, at most STEPS times."""
    number = np.copy(start)
    steps[:] = 0
    for _step in range(STEPS):
        steps[:] = np.where(number > 1, steps + 1, steps)
        number[:] = np.where(number > 1, np.where(number % 2 == 0, number // 2, 3 * number + 1), number)


# --------------------------------------------------------------------------- recurrences


@dace.program
def exponential_average(prices: f64[T, N], share: f64, average: f64[T, N]):
    """The exponential moving average of many series, a column each."""
    average[0, :] = prices[0, :]
    for t in range(1, T):
        average[t, :] = share * prices[t, :] + (1.0 - share) * average[t - 1, :]


@dace.program
def largest_drawdown(prices: f64[N, T], worst: f64[N]):
    """The largest fall below an earlier peak, of many series, a row each."""
    peak = np.zeros((N,), dtype=np.float64)
    worst[:] = 0.0
    for t in range(T):
        peak[:] = np.maximum(peak, prices[:, t])
        worst[:] = np.maximum(worst, (peak - prices[:, t]) / peak)


@dace.program
def alignment_score(first: i32[M], second: i32[N], score: i32[M + 1, N + 1]):
    """Smith and Waterman's table for two sequences."""
    for i in range(1, M + 1):
        for j in range(1, N + 1):
            same = -1
            if first[i - 1] == second[j - 1]:
                same = 2
            diagonal = score[i - 1, j - 1] + same
            gap = max(score[i - 1, j], score[i, j - 1]) - 1
            score[i, j] = max(max(diagonal, gap), 0)


# --------------------------------------------------------------------------- inputs


def inputs_great_circle(N: int, seed: int) -> dict[str, np.ndarray | float]:
    rng = np.random.default_rng(seed)
    lat, lon = 1.5 * (2 * rng.random(N) - 1), 3.1 * (2 * rng.random(N) - 1)
    return {"lat": lat, "lon": lon, "lat0": 0.83, "lon0": 0.15}


def inputs_black_body(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"wavelength": 0.3 + 20.0 * rng.random(M), "temperature": 1.0 + 9.0 * rng.random(N)}


def inputs_bit_count(N: int, seed: int) -> dict[str, np.ndarray]:
    return {"words": np.random.default_rng(seed).integers(0, 2**63 - 1, N)}


def inputs_alpha_blend(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 256, (M, N)).astype(np.int32) for name in ("front", "back", "alpha")}


def inputs_collatz(N: int, STEPS: int, seed: int) -> dict[str, np.ndarray]:
    return {"start": np.random.default_rng(seed).integers(1, 1_000_000, N)}


def inputs_alignment_score(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    letters = {
        "first": rng.integers(0, 4, M).astype(np.int32),
        "second": rng.integers(0, 4, N).astype(np.int32),
    }
    return {**letters, "score": np.zeros((M + 1, N + 1), np.int32)}
