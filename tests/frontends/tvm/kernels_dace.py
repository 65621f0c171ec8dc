"""DaCe programs that compute what functions of `functions.py` compute, loop by loop and access by access."""

import dace
import numpy as np

f4 = dace.float32


@dace.program
def matmul(A: f4[96, 64], B: f4[64, 128], C: f4[96, 128]):
    for i, j in dace.map[0:96, 0:128]:
        C[i, j] = 0.0
        for k in range(64):
            C[i, j] += A[i, k] * B[k, j]


@dace.program
def matmul_int8(A: dace.int8[96, 64], B: dace.int8[64, 128], C: dace.int32[96, 128]):
    for i, j in dace.map[0:96, 0:128]:
        C[i, j] = 0
        for k in range(64):
            C[i, j] += dace.int32(A[i, k]) * dace.int32(B[k, j])


@dace.program
def softmax(x: f4[32, 48], out: f4[32, 48]):
    shifted = np.exp(x - np.maximum.reduce(x, axis=1, keepdims=True))
    out[:] = shifted / np.add.reduce(shifted, axis=1, keepdims=True)


@dace.program
def stencil(a: f4[66, 130], b: f4[64, 128]):
    b[:] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


@dace.program
def conv2d(x: f4[1, 16, 16, 8], w: f4[3, 3, 8, 12], y: f4[1, 14, 14, 12]):
    y[:] = 0.0
    for n, h, v, c, r, s, d in dace.map[0:1, 0:14, 0:14, 0:12, 0:3, 0:3, 0:8]:
        y[n, h, v, c] += x[n, h + r, v + s, d] * w[r, s, d, c]
