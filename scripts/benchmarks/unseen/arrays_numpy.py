"""What a user of NumPy writes where the program in `arrays.py` loops over elements."""

import numpy as np


def attention(q, k, v, out):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(q.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    np.matmul(weights / weights.sum(axis=-1, keepdims=True), v, out=out)


def black_body(wavelength, temperature, radiance):
    x = 14.3877 / np.outer(wavelength, temperature)
    radiance[:] = (1.191e8 / wavelength**5)[:, None] / (np.exp(x) - 1.0)


def largest_drawdown(prices, worst):
    peaks = np.maximum.accumulate(prices, axis=1)
    worst[:] = ((peaks - prices) / peaks).max(axis=1)


def alignment_score(first, second, score):
    """Row by row; the gaps along a row are a running maximum of what falls by one."""
    columns = np.arange(1, score.shape[1], dtype=np.int32)
    for i, letter in enumerate(first):
        diagonal = score[i, :-1] + np.where(second == letter, 2, -1).astype(np.int32)
        known = np.maximum(np.maximum(diagonal, score[i, 1:] - 1), 0)
        score[i + 1, 1:] = np.maximum.accumulate(known + columns) - columns
