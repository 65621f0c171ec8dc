"""Kernels as DaCe programs; `paired_tvm.py` has them as TVM functions with the same loops and accesses.
`SIZES`: values of their symbols."""

import dace
import numpy as np

SIZES = {
    "gemm": {"M": 250, "N": 330, "K": 170},
    "bmm": {"B": 10, "M": 120, "N": 112, "K": 72},
    "conv2d": {"H": 17, "C": 30, "F": 50},
    "softmax": {"M": 150, "N": 700},
    "stencil": {"M": 333, "N": 515},
    "row_sums": {"M": 640, "N": 1200},
}

f32 = dace.float32
B, M, N, K, H, C, F = (dace.symbol(name) for name in "BMNKHCF")


@dace.program
def gemm(a: f32[M, K], b: f32[K, N], out: f32[M, N]):
    for i, j in dace.map[0:M, 0:N]:
        out[i, j] = 0.0
        for k in range(K):
            out[i, j] += a[i, k] * b[k, j]


@dace.program
def bmm(a: f32[B, M, K], b: f32[B, K, N], out: f32[B, M, N]):
    for s, i, j in dace.map[0:B, 0:M, 0:N]:
        out[s, i, j] = 0.0
        for k in range(K):
            out[s, i, j] += a[s, i, k] * b[s, k, j]


@dace.program
def conv2d(x: f32[1, H + 2, H + 2, C], w: f32[3, 3, C, F], out: f32[1, H, H, F]):
    out[:] = 0.0
    for n, h, v, c, r, s, d in dace.map[0:1, 0:H, 0:H, 0:F, 0:3, 0:3, 0:C]:
        out[n, h, v, c] += x[n, h + r, v + s, d] * w[r, s, d, c]


@dace.program
def softmax(x: f32[M, N], out: f32[M, N]):
    shifted = np.exp(x - np.maximum.reduce(x, axis=1, keepdims=True))
    out[:] = shifted / np.add.reduce(shifted, axis=1, keepdims=True)


@dace.program
def stencil(x: f32[M + 2, N + 2], out: f32[M, N]):
    out[:] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])


@dace.program
def row_sums(x: f32[M, N], out: f32[M]):
    for i in dace.map[0:M]:
        out[i] = 0.0
        for j in range(N):
            out[i] += x[i, j]
