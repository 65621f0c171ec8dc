"""The kernel of `make demo`: multi-head attention, written as NumPy would have it.

At the size of the demo (12 heads, 256 tokens, 64 channels: one layer of a BERT-base encoder) it is
0.2 GFLOP of batched matrix products around a softmax.
"""

import dace
import numpy as np

HEADS, TOKENS, CHANNELS = (dace.symbol(name) for name in ("HEADS", "TOKENS", "CHANNELS"))


@dace.program
def attention(
    query: dace.float32[HEADS, TOKENS, CHANNELS],
    key: dace.float32[HEADS, TOKENS, CHANNELS],
    value: dace.float32[HEADS, TOKENS, CHANNELS],
    output: dace.float32[HEADS, TOKENS, CHANNELS],
):
    """output = softmax(query @ key^T / sqrt(CHANNELS)) @ value, for each head."""
    scores = query @ np.transpose(key, (0, 2, 1)) / np.sqrt(np.float32(CHANNELS))
    weights = np.exp(scores - np.maximum.reduce(scores, axis=2, keepdims=True))
    output[:] = weights / np.add.reduce(weights, axis=2, keepdims=True) @ value
