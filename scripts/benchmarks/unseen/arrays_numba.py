"""The programs of `arrays.py` as one writes them in Numba."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


@jit
def log_sum_exp(X, out):
    for i in prange(X.shape[0]):
        largest = np.max(X[i])
        total = 0.0
        for j in range(X.shape[1]):
            total += math.exp(X[i, j] - largest)
        out[i] = largest + math.log(total)


@jit
def attention(q, k, v, out):
    H, T, D = q.shape
    scale = np.float32(1) / np.sqrt(np.float32(D))
    for h in prange(H):
        weights = (q[h] @ k[h].T) * scale
        for t in range(T):
            row = weights[t]
            row[:] = np.exp(row - np.max(row))
            row *= np.float32(1) / np.sum(row)
        out[h] = weights @ v[h]


@jit
def signal_to_noise(signal, reference, out):
    for i in prange(signal.shape[0]):
        power = noise = 0.0
        for j in range(signal.shape[1]):
            difference = signal[i, j] - reference[i, j]
            power += reference[i, j] * reference[i, j]
            noise += difference * difference
        out[i] = 10.0 * math.log10(power / noise)
    return np.min(out)


@jit
def great_circle(lat, lon, lat0, lon0, distance):
    cosine = math.cos(lat0)
    for i in prange(lat.shape[0]):
        a = math.sin((lat[i] - lat0) / 2.0)
        b = math.sin((lon[i] - lon0) / 2.0)
        distance[i] = 12742.0 * math.asin(math.sqrt(a * a + cosine * math.cos(lat[i]) * b * b))


@jit
def black_body(wavelength, temperature, radiance):
    for i in prange(wavelength.shape[0]):
        scale = 1.191e8 / wavelength[i] ** 5
        for j in range(temperature.shape[0]):
            radiance[i, j] = scale / (math.exp(14.3877 / (wavelength[i] * temperature[j])) - 1.0)


@jit
def damped_oscillation(t, amplitude, out):
    for i in prange(t.shape[0]):
        envelope = np.exp(np.float32(-0.3) * t[i]) * np.tanh(amplitude[i])
        c = np.cos(np.float32(12.4) * t[i])
        out[i] = envelope * (np.sin(np.float32(6.2) * t[i]) + np.float32(0.25) * c * c * c)


@jit
def bit_count(words, counts):
    for i in prange(words.shape[0]):
        x = words[i]
        x = x - ((x >> 1) & 0x5555555555555555)
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
        counts[i] = (x * 0x0101010101010101) >> 56


@jit
def alpha_blend(front, back, alpha, out):
    M, N = front.shape
    for i in prange(M):
        for j in range(N):
            a = alpha[i, j]
            mixed = front[i, j] * a + back[i, j] * np.int32(255 - a) + np.int32(128)
            out[i, j] = min(max((mixed + (mixed >> 8)) >> 8, 0), 255)


@jit
def collatz(start, steps, STEPS):
    for i in prange(start.shape[0]):
        number, count = start[i], 0
        while number > 1 and count < STEPS:
            number = number >> 1 if number & 1 == 0 else 3 * number + 1
            count += 1
        steps[i] = count


@jit
def exponential_average(prices, share, average):
    T, N = prices.shape
    parts = numba.get_num_threads()
    for part in prange(parts):  # every thread has columns of its own
        first, last = part * N // parts, (part + 1) * N // parts
        average[0, first:last] = prices[0, first:last]
        for t in range(1, T):
            for i in range(first, last):
                average[t, i] = share * prices[t, i] + (1.0 - share) * average[t - 1, i]


@jit
def largest_drawdown(prices, worst):
    for i in prange(prices.shape[0]):
        peak, fall = prices[i, 0], 0.0
        for t in range(1, prices.shape[1]):
            peak = max(peak, prices[i, t])
            fall = max(fall, (peak - prices[i, t]) / peak)
        worst[i] = fall


@numba.njit(cache=True)
def alignment_score(first, second, score):
    for i in range(1, score.shape[0]):
        for j in range(1, score.shape[1]):
            diagonal = score[i - 1, j - 1] + (2 if first[i - 1] == second[j - 1] else -1)
            score[i, j] = max(diagonal, score[i - 1, j] - 1, score[i, j - 1] - 1, 0)
