"""Kernels of many kinds at tiny sizes, in the styles people write them: what the frontend must read.

`CASES`: name -> values of symbols and scalars. `make_*` functions give inputs where random ones do not do.
"""

from __future__ import annotations

import math
from typing import Any

import dace
import numpy as np

N, M, K, F, NNZ = (dace.symbol(s, dtype=dace.int64) for s in ("N", "M", "K", "F", "NNZ"))
f4, f8, i4, i8 = dace.float32, dace.float64, dace.int32, dace.int64
c8, c16 = dace.complex64, dace.complex128

SCALE = 0.25
WEIGHTS = np.arange(1.0, 4.0)

# --------------------------------------------------------------------------- dense linear algebra


@dace.program
def gemm(alpha: f8, beta: f8, A: f8[N, K], B: f8[K, M], C: f8[N, M]):
    C[:] = alpha * A @ B + beta * C


@dace.program
def gemm_map(A: f4[N, K], B: f4[K, M], C: f4[N, M]):
    for i, j, k in dace.map[0:N, 0:M, 0:K]:
        C[i, j] += A[i, k] * B[k, j]


@dace.program
def atax(A: f8[N, M], x: f8[M]):
    return (A @ x) @ A


@dace.program
def batched(A: f8[K, N, M], B: f8[K, M, F], C: f8[K, N, F]):
    C[:] = A @ B


@dace.program
def gemver(alpha: f8, A: f8[N, N], u: f8[N], v: f8[N], x: f8[N], y: f8[N], w: f8[N]):
    A[:] = A + u[:, np.newaxis] * v
    x += alpha * y @ A
    w += alpha * A @ x


@dace.program
def trsv(A: f8[N, N], x: f8[N], b: f8[N]):
    for i in range(N):
        x[i] = (b[i] - A[i, :i] @ x[:i]) / A[i, i]


@dace.program
def nearest_hits(distance: f8[N, M], hit: f8[N]):
    for i in dace.map[0:N]:
        nearest = np.inf
        for j in range(M):
            if distance[i, j] > 1.0:
                nearest = min(nearest, distance[i, j])
        hit[i] = nearest


@dace.program
def best_paths(move: f8[N, N], score: f8[M, N]):
    for t in range(1, M):
        for j in dace.map[0:N]:
            best = score[t - 1, 0] + move[0, j]
            for i in range(1, N):
                s = score[t - 1, i] + move[i, j]
                if s > best:
                    best = s
            score[t, j] = best


@dace.program
def trsv_backwards(A: f8[N, N], x: f8[N]):
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            x[i] -= A[i, j] * x[j]
        x[i] /= A[i, i]


@dace.program
def cholesky(A: f8[N, N]):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, N):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@dace.program
def lu(A: f8[N, N]):
    for i in range(N):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            A[i, j] -= A[i, :i] @ A[:i, j]


@dace.program
def gramschmidt(A: f8[M, N], Q: f8[M, N], R: f8[N, N]):
    for k in range(N):
        norm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(norm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, N):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]


@dace.program
def durbin(r: f8[N]):
    y = np.empty_like(r)
    z = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, N):
        beta *= 1.0 - alpha * alpha
        total = 0.0
        for j in range(k):
            total += r[k - 1 - j] * y[j]
        alpha = -(r[k] + total) / beta
        for j in range(k):
            z[j] = y[j] + alpha * y[k - 1 - j]
        y[:k] = z[:k]
        y[k] = alpha
    return y


@dace.program
def floyd_warshall(path: i4[N, N]):
    for k in range(N):
        for i in range(N):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])


# --------------------------------------------------------------------------- stencils


@dace.program
def jacobi_1d(TSTEPS: i8, A: f8[N], B: f8[N]):
    for _ in range(1, TSTEPS):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@dace.program
def reused_scratch(A: f8[N], B: f8[N], C: f8[N], D: f8[N]):
    """One name for two arrays, the second of which is changed in place."""
    flux = A[1:] - A[:-1]
    C[1:-1] = flux[1:] - flux[:-1]
    flux = B[1:] * B[:-1]
    flux = np.maximum(flux, 0.5)
    flux *= 0.25
    D[1:-1] = flux[1:] * flux[:-1]


@dace.program
def ring(TSTEPS: i8, A: f8[N]):
    """Its ends are neighbours: no tile of rows is ahead of the others, but steps go from copy to copy."""
    for _ in range(TSTEPS):
        A += 0.1 * (np.roll(A, 1) + np.roll(A, -1) - 2.0 * A)


@dace.program
def jacobi_2d(A: f8[N, M], B: f8[N, M]):
    for i, j in dace.map[1 : N - 1, 1 : M - 1]:
        B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])


@dace.program
def heat_3d(A: f8[N, M, K], B: f8[N, M, K]):
    B[1:-1, 1:-1, 1:-1] = (
        0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
        + A[1:-1, 1:-1, 1:-1]
    )


@dace.program
def seidel_2d(TSTEPS: i8, A: f8[N, N]):
    for _ in range(TSTEPS - 1):
        for i in range(1, N - 1):
            A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2]
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


@dace.program
def fdtd(TMAX: i8, ex: f8[N, M], ey: f8[N, M], hz: f8[N, M], fict: f8[K]):
    for t in range(TMAX):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


# --------------------------------------------------------------------------- machine learning


@dace.program
def softmax(X: f4[N, M, K]):
    tmp_max = np.max(X, axis=-1)
    tmp_out = np.exp(X - tmp_max[:, :, np.newaxis])
    tmp_sum = np.sum(tmp_out, axis=-1)
    return tmp_out / tmp_sum[:, :, np.newaxis]


@dace.program
def layernorm(X: f8[N, M], gamma: f8[M], beta: f8[M], Y: f8[N, M]):
    mean = np.mean(X, axis=1)
    centred = X - mean[:, np.newaxis]
    variance = np.mean(centred * centred, axis=1)
    Y[:] = gamma * centred / np.sqrt(variance[:, np.newaxis] + 1e-5) + beta


@dace.program
def conv2d_bias(X: f4[N, M, M, K], W: f4[3, 3, K, F], bias: f4[F], Y: f4[N, M - 2, M - 2, F]):
    for i in range(M - 2):
        for j in range(M - 2):
            Y[:, i, j, :] = np.sum(
                X[:, i : i + 3, j : j + 3, :, np.newaxis] * W[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    Y[:] = Y + bias


@dace.program
def maxpool(X: f8[N, M], Y: f8[N // 2, M // 2]):
    for i in range(N // 2):
        for j in range(M // 2):
            Y[i, j] = np.max(X[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])


@dace.program
def relu(x: f4[N, M]):
    return np.maximum(x, 0)


@dace.program
def relu_layer(x, w):
    return np.maximum(x @ w, 0)


@dace.program
def mlp(x: f4[N, M], w1: f4[M, K], w2: f4[K, F]):
    return relu_layer(relu_layer(x, w1), w2)


# --------------------------------------------------------------------------- sparse and indirect


@dace.program
def spmm(indptr: i4[N + 1], indices: i4[NNZ], data: f8[NNZ], B: f8[M, F], C: f8[N, F]):
    for i in dace.map[0:N]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for f in dace.map[0:F]:
                C[i, f] += data[k] * B[indices[k], f]


@dace.program
def spmv(indptr: dace.uint32[N + 1], indices: dace.uint32[NNZ], data: f8[NNZ], x: f8[M]):
    y = np.empty(N, f8)
    for i in range(N):
        cols = indices[indptr[i] : indptr[i + 1]]
        vals = data[indptr[i] : indptr[i + 1]]
        y[i] = vals @ x[cols]
    return y


@dace.program
def spmv_map(indptr: i4[N + 1], indices: i4[NNZ], data: f8[NNZ], x: f8[M], y: f8[N]):
    for i in dace.map[0:N]:
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total = total + data[k] * x[indices[k]]
        y[i] = total


@dace.program
def gather(index: i4[N], table: f8[M, F], out: f8[N, F]):
    for i, f in dace.map[0:N, 0:F]:
        out[i, f] = table[index[i], f]


@dace.program
def fancy_gather(index: i8[N], table: f8[M], out: f8[N]):
    out[:] = table[index]


@dace.program
def scatter(index: i4[N], x: f8[N], out: f8[M]):
    for i in range(N):
        out[index[i]] = x[i]


@dace.program
def histogram(index: i4[N], weight: f8[N], counts: f8[M]):
    for i in dace.map[0:N]:
        counts[index[i]] += weight[i]


@dace.program
def two_hops(first: i4[N], second: i4[M], x: f8[K], y: f8[N]):
    for i in dace.map[0:N]:
        y[i] = x[second[first[i]]]


# --------------------------------------------------------------------------- nested programs


@dace.program
def relax(x: f8[M], steps: i8):
    for _ in range(steps):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        x[0] = x[-1]


@dace.program
def nested_relax(A: f8[N, M], steps: i8):
    A[:] = A * 2.0
    relax(A[1], steps)
    A[:] = A + 1.0


@dace.program
def add_row(row: f8[M], total: f8[M]):
    total[:] = total + row


@dace.program
def nested_in_loop(A: f8[N, M], total: f8[M]):
    for i in range(N):
        add_row(A[i], total)


# --------------------------------------------------------------------------- control flow


@dace.program
def threshold(A: f8[N, M], B: f8[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        if A[i, j] > 0.5:
            B[i, j] = A[i, j] * 2
        else:
            B[i, j] = 0.0


@dace.program
def one_armed(A: f8[N], B: f8[N]):
    for i in dace.map[0:N]:
        B[i] = A[i] - 0.5
        if B[i] < 0:
            B[i] = -B[i]
            if A[i] < 0.2:
                B[i] = 7.0


@dace.program
def three_ways(A: f8[N], B: f8[N]):
    for i in range(N):
        if A[i] < 0.3:
            B[i] = 1.0
        elif A[i] < 0.6:
            B[i] = 2.0 * A[i]
        else:
            B[i] = A[i] * A[i]


@dace.program
def top_branch(flag: i4, A: f8[N], B: f8[N]):
    if flag > 2:
        B[:] = A + 1.0
    else:
        B[:] = A - 1.0
    B[:] = B * 2.0


@dace.program
def where(A: f8[N, M], B: f8[N, M], C: f8[N, M]):
    C[:] = np.where(A > B, A, 2 * B)


@dace.program
def converge(A: f8[N], B: f8[N]):
    error = 1.0
    while error > 0.01:
        B[1:-1] = 0.5 * (A[:-2] + A[2:])
        error = 0.0
        for i in dace.map[1 : N - 1]:
            error += abs(A[i] - B[i])
        A[1:-1] = B[1:-1]


@dace.program
def newton_root(x: f8[N], y: f8[N], steps: i8[1]):
    """A while loop whose condition joins a scalar that nests compute and a counter."""
    error = 1.0
    turns = 0
    y[:] = x
    while error > 1e-9 and turns < 50:
        z = 0.5 * (y + x / y)
        error = np.max(np.abs(z - y))
        y[:] = z
        turns = turns + 1
    steps[0] = turns


@dace.program
def collatz(x: i8[N], steps: i8[N]):
    """A while loop in every iteration of a parallel one, behind a branch."""
    for i in dace.map[0:N]:
        value = x[i]
        count = 0
        if value > 1:
            while value != 1:
                if value % 2 == 0:
                    value = value // 2
                else:
                    value = 3 * value + 1
                count = count + 1
        steps[i] = count


@dace.program
def early_exit(A: f8[N, M], B: f8[M]):
    for i in range(N):
        B[:] = B + A[i]
        if B[0] > 2.0:
            if B[1] > 0.5:
                break
    B[:] = 2.0 * B


@dace.program
def carried(A: f8[N, M], B: f8[N, M]):
    for i in dace.map[0:N]:
        last = 0.0
        for j in range(M):
            last = last * 0.5 + A[i, j]
            B[i, j] = last


@dace.program
def cumulative(A: f8[N, M], B: f8[N, M]):
    B[0] = A[0]
    for i in range(1, N):
        B[i] = B[i - 1] + A[i]


@dace.program
def running_symbol(A: f8[N], B: f8[N]):
    k = 0
    for i in range(N):
        if A[i] > 0.5:
            B[k] = A[i]
            k = k + 1


@dace.program
def data_loop(count: i4[N], A: f8[N, M], B: f8[N]):
    for i in dace.map[0:N]:
        for j in range(count[i]):
            B[i] += A[i, j]


@dace.program
def guarded_loop(flag: i4[N], A: f8[N, M], B: f8[N]):
    for i in dace.map[0:N]:
        if flag[i] > 1:
            for j in range(flag[i]):
                B[i] = B[i] + A[i, j]


@dace.program
def strided_loops(A: f8[N], B: f8[N]):
    for i in range(0, N, 3):
        B[i] = A[i] + 1.0
    for i in range(N - 2, 0, -2):
        B[i] = B[i] * A[i]


# --------------------------------------------------------------------------- reductions and shapes


@dace.program
def reductions(A: f8[N, M, K], a: f8[M, K], b: f8[N, K], c: f8[N, M], d: f8[3]):
    a[:] = np.sum(A, axis=0)
    b[:] = np.max(A, axis=1)
    c[:] = np.min(A, axis=2)
    d[0] = np.sum(A)
    d[1] = np.mean(A)
    d[2] = np.max(A)


@dace.program
def argmax_rows(A: f8[N, M], out: i8[N]):
    for i in dace.map[0:N]:
        best = 0
        for j in range(M):
            if A[i, j] > A[i, best]:
                best = j
        out[i] = best


@dace.program
def wcr_kinds(A: f8[N, M], lo: f8[N], hi: f8[N], product: f8[N]):
    for i, j in dace.map[0:N, 0:M]:
        with dace.tasklet:
            a << A[i, j]
            l >> lo(1, lambda x, y: min(x, y))[i]
            h >> hi(1, lambda x, y: max(x, y))[i]
            p >> product(1, lambda x, y: x * y)[i]
            l = a
            h = a
            p = a


@dace.program
def transpose(A: f8[N, M], B: f8[M, N]):
    B[:] = np.transpose(A)


@dace.program
def permute(A: f8[N, M, K], B: f8[K, N, M]):
    B[:] = np.transpose(A, (2, 0, 1))


@dace.program
def reshaped(A: f8[N, M, K], B: f8[N * M, F], C: f8[K, F]):
    C[:] = np.transpose(np.reshape(A, (N * M, K))) @ B


@dace.program
def flattened(A: f8[N, M], B: f8[N * M]):
    B[:] = 2.0 * np.reshape(A, (N * M,))


@dace.program
def rows(A: f8[N, M], B: f8[N]):
    for i in dace.map[0:N]:
        row = A[i]
        scaled = row * 2.0
        B[i] = np.sum(scaled) + scaled[0]


@dace.program
def outer_and_copy(a: f8[N], b: f8[M], C: f8[N, M], D: f8[M, N]):
    C[:] = a[:, np.newaxis] * b
    for i in dace.map[0:N]:
        D[:, i] = C[i, :]


@dace.program
def sliced_copy(A: f8[N, M], B: f8[N, M]):
    B[1:, 2:] = A[:-1, :-2]
    B[0] = A[-1]


# --------------------------------------------------------------------------- types and functions


@dace.program
def integers(A: i8[N], B: i8[N], C: i8[N]):
    for i in dace.map[0:N]:
        C[i] = (A[i] * 3 + B[i]) // 2 + (A[i] % 3) - (B[i] & 5) + (A[i] << 2)


@dace.program
def booleans(A: f8[N], B: f8[N], both: dace.bool[N], count: i8[1]):
    both[:] = (A > 0.5) & (B > 0.5)
    for i in dace.map[0:N]:
        if both[i]:
            count[0] += 1


@dace.program
def mixed_types(A: f4[N], B: f8[N], C: i4[N], D: f8[N]):
    for i in dace.map[0:N]:
        D[i] = A[i] * B[i] + C[i] / 3 + np.float64(A[i]) ** 3


@dace.program
def functions(A: f8[N], B: f8[N]):
    B[:] = (
        np.exp(-A)
        + np.log(A + 1.0) * np.sin(A)
        - np.tanh(A) ** 2
        + np.sqrt(np.abs(A - 0.5))
        + np.floor(3 * A)
    )


@dace.program
def closure(A: f8[N], B: f8[N]):
    B[1:-1] = SCALE * (WEIGHTS[0] * A[:-2] + WEIGHTS[1] * A[1:-1] + WEIGHTS[2] * A[2:])


def beyond(a, b):
    return a * b - math.sqrt(2.0)


@dace.program
def solved_in_place(T: f8[N, N], b: f8[N], x: f8[N]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= T[i, j] * x[j]
        x[i] = x[i] / (1.0 + T[i, i])


@dace.program
def rows_solved_in_place(T: f8[N, N], B: f8[N, M]):
    for i in range(N):
        for k in range(i):
            B[i, :] -= T[i, k] * B[k, :]
        B[i, :] /= T[i, i]


@dace.program
def best_splits(T: f8[N, N]):
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            for k in range(i + 1, j):
                T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])


@dace.program
def with_itself(x: f8[N]):
    for i in range(N):
        for j in range(i + 1):
            x[i] = 0.5 * x[j] + x[i]


@dace.program
def beyond_all(x: f8[N], y: f8[N]):
    for i in dace.map[0:N]:
        y[i] = beyond(x[i], 3.0) * math.sqrt(5.0)


@dace.program
def called_function(A: f8[N], B: f8[N], C: f8[N], D: f8[N]):
    for i in dace.map[0:N]:
        C[i] = beyond(A[i], B[i]) * np.sqrt(2.0)
    beyond_all(C, D)


@dace.program
def tasklets(A: f8[N], B: f8[N], C: f8[N]):
    for i in dace.map[0:N]:
        with dace.tasklet:
            a << A[i]
            b << B[i]
            b_out >> B[i]
            c >> C[i]
            d = a - b
            e = d * d if d > 0 else -d
            b_out = a
            c = e + b


@dace.program
def looping_tasklets(A: f8[N, M], w: f8[3, 3], B: f8[N, M], halvings: dace.int64[N, M], steps: f8[N, M, 4]):
    @dace.map
    def window(i: _[1 : N - 1], j: _[1 : M - 1]):
        a << A[i - 1 : i + 2, j - 1 : j + 2]
        k << w[:]
        b >> B[i, j]
        b = 0.0
        for p in range(3):
            for q in range(p, 3):
                b = b + a[p, q] * k[p, q]

    @dace.map
    def halve(i: _[0:N], j: _[0:M]):
        a << A[i, j]
        count >> halvings[i, j]
        out >> steps[i, j, 0:4]
        x = 100.0 * a
        n = 0
        while x > 1.0 and n < 5:
            if x > 40.0:
                x = x - 30.0
            x = 0.5 * x
            n = n + 1
        count = n
        for s in range(1, 4):
            out[s] = a + s
        out[0] = x


@dace.program
def wired_lookup(indptr: i4[N + 1], indices: i4[NNZ], data: f8[NNZ], x: f8[M], y: f8[N]):
    @dace.mapscope(_[0:N])
    def rows(i):
        @dace.map(_[indptr[i] : indptr[i + 1]])
        def entries(k):
            a << data[k]
            b << x[indices[k]]
            out >> y(1, lambda p, q: p + q)[i]
            out = a * b


@dace.program
def nbody(x: f8[N], y: f8[N], mass: f8[N], force: f8[N]):
    for i, j in dace.map[0:N, 0:N]:
        with dace.tasklet:
            xi << x[i]
            yi << y[i]
            xj << x[j]
            yj << y[j]
            m << mass[j]
            out >> force(1, lambda p, q: p + q)[i]
            dx = xj - xi
            dy = yj - yi
            r2 = dx * dx + dy * dy + 0.01
            out = m * dx / (r2 * sqrt(r2))


@dace.program
def several_steps(A: f8[N, M], x: f8[M], y: f8[N], total: f8[1]):
    t = A @ x
    u = t * 2.0
    y[:] = u + 1.0
    total[0] = np.sum(t * u)


@dace.program
def local_array(A: f8[N, M], B: f8[N, M]):
    for i in dace.map[0:N]:
        tmp = np.empty(M, f8)
        for j in range(M):
            tmp[j] = A[i, j] * 2.0
        for j in range(M):
            B[i, j] = tmp[M - 1 - j] + tmp[j]


# --------------------------------------------------------------------------- complex numbers


@dace.program
def spectrum(x: c16[N], X: c16[N]):
    for k in range(N):
        X[k] = 0.0
        for n in range(N):
            X[k] += x[n] * np.exp(-2j * np.pi * k * n)


@dace.program
def complex_parts(z: c16[N], w: c8[N], x: f8[N], y: f8[N], out: c16[N]):
    out[:] = 2j * z + np.conj(z) * x - z**2 / (z + 3.0)
    w[:] = w * w + np.conj(w) * w
    for i in range(N):
        y[i] = np.real(z[i]) - np.imag(z[i]) * np.abs(z[i])
        out[i] += z[i] ** (2 - i) + np.sqrt(z[i])


@dace.program
def contour(H: c16[K, N, N], z: c16[M], Y: c16[N, M], P: c16[N, M]):
    for e in range(M):
        T = np.zeros((N, N), dtype=np.complex128)
        for k in range(K):
            T += z[e] ** (K / 2 - k) * H[k]
        P += T @ Y


@dace.program
def escape_times(C: c16[N, M], steps: i8[N, M]):
    Z = np.zeros((N, M), dtype=np.complex128)
    for n in range(K):
        for i, j in dace.map[0:N, 0:M]:
            if np.abs(Z[i, j]) < 2.0:
                steps[i, j] = n
                Z[i, j] = Z[i, j] * Z[i, j] + C[i, j]


# --------------------------------------------------------------------------- arithmetic as DaCe does it


@dace.program
def signed_division(a: i8[N], b: i8[N], x: f8[N], q: i8[N], r: i8[N], s: i8[N], y: f8[N]):
    q[:] = a // 3 + a // b
    r[:] = a % 3 - a % b
    s[:] = np.mod(a, b) + np.floor_divide(a, b)
    y[:] = x // 0.3
    for i in range(N):
        q[i] += i // 2 + (i - 5) // 2


@dace.program
def angles(x: f8[N], y: f8[N], z: f8[N]):
    z[:] = np.arctan2(x, y) + np.arcsin(x / 2) * np.arccos(y / 2) + np.arctan(x) + np.sinh(x) * np.cosh(y)
    z += np.tan(x)


@dace.program
def inverse_combinations(x: f8[N, M], total: f8[N], ratio: f8[N], every: dace.bool_[N], some: dace.bool_[N]):
    for i, j in dace.map[0:N, 0:M]:
        total[i] -= x[i, j]
        ratio[i] /= x[i, j]
    every[:] = np.logical_and.reduce(x > 0.2, axis=1)
    some[:] = np.logical_or.reduce(x > 0.9, axis=1)


@dace.program
def descent(A: f8[N, N], b: f8[N], x: f8[N]):
    r = b - A @ x
    rest = r @ r
    for _ in range(3):
        x += 0.1 * r
        r[:] = 0.5 * r
        rest = rest + r @ r
        x += rest


@dace.program
def distance(a: i4[N], b: i4[M], cost: f8[N + 1, M + 1]):
    for i in range(N + 1):
        cost[i, 0] = i
    for j in range(M + 1):
        cost[0, j] = j
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            change = 0.0
            if a[i - 1] != b[j - 1]:
                change = 1.0
            cost[i, j] = min(min(cost[i - 1, j] + 1, cost[i, j - 1] + 1), cost[i - 1, j - 1] + change)


@dace.program
def narrow(a: dace.int8[N], b: dace.uint8[N], few: f8[N], wrapped: dace.int64[N], parity: dace.int32):
    for i in dace.map[0:N]:
        if i % 2 == parity:
            total = a[i] * a[i] * a[i] + a[i]
            few[i] = 0.5 * total
            below = b[i] - b[(i + 1) % N]
            wrapped[i] = below >> 1


@dace.program
def edges(image: dace.uint8[N, M], out: f8[N, M]):
    for i, j in dace.map[1 : N - 1, 1 : M - 1]:
        across = 0
        down = 0.5
        for di in range(-1, 2):
            for dj in range(-1, 2):
                across += dj * (2 - abs(di)) * image[i + di, j + dj]
                down += di * (2.0 - dj * dj) * image[i + di, j + dj]
        out[i, j] = np.sqrt(across * across + down * down)


@dace.program
def crowded(alive: dace.int32[N, M], out: dace.int32[N, M]):
    for i, j in dace.map[1 : N - 1, 1 : M - 1]:
        around = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    around += alive[i + di, j + dj]
        if around > 9:
            out[i, j] = around


@dace.program
def flipped(r: f8[N], y: f8[N]):
    y[0] = -r[0]
    for k in range(1, N):
        y[k] = r[k] + np.dot(np.flip(r[:k]), y[:k])
        y[:k] += 0.1 * np.flip(y[:k])


# --------------------------------------------------------------------------- inputs


def make_csr(N: int, M: int, F: int = 4, dtype: Any = np.int32) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    dense = generator.random((N, M)) * (generator.random((N, M)) < 0.4)
    dense[N // 2] = 0.0  # an empty row
    counts = (dense != 0).sum(axis=1)
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(dtype),
        "indices": np.nonzero(dense)[1].astype(dtype),
        "data": dense[dense != 0],
    }


def make_unsigned_csr(N: int, M: int) -> dict[str, Any]:
    return make_csr(N, M, dtype=np.uint32)


def make_counts(N: int, M: int) -> dict[str, Any]:
    return {"count": np.arange(N, dtype=np.int32) % (M + 1)}


def make_flags(N: int, M: int) -> dict[str, Any]:
    return {"flag": np.arange(N, dtype=np.int32) % (M + 1)}


def make_signed(N: int) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {"a": generator.integers(-20, 20, N), "b": generator.choice([-7, -2, 3, 5], N)}


def make_starts(N: int) -> dict[str, Any]:
    return {"x": np.arange(N)}


def make_definite(N: int) -> dict[str, Any]:
    values = np.random.default_rng(2).random((N, N))
    return {"A": values @ values.T + N * np.eye(N)}


@dace.program
def windowed_products(A: f8[K, N, N], B: f8[N, N], out: f8[K, N, N]):
    """Products inside a branch on loop counters; their result is scratch that every iteration writes."""
    for e in range(K):
        for w in range(3):
            if e - w >= 0:
                product = A[e - w] @ B
                out[e] += product @ B


@dace.program
def symmetric_fill(A: f8[M, N], out: f8[N, N]):
    """Every iteration writes what is right of the diagonal and, mirrored, what is below."""
    for i in range(N):
        out[i:N, i] = A[:, i] @ A[:, i:N] / M
        out[i, i:N] = out[i:N, i]


@dace.program
def around_the_ring(A: f8[N, M], out: f8[N, M]):
    """Neighbours by choice, by remainder, and by a step back."""
    for i in range(N):
        up = i - 1 if i > 0 else N - 1
        down = i + 1
        if down == N:
            down = 0
        for j in range(M):
            left = j - 1
            if left < 0:
                left += M
            out[i, j] = A[up, j] + A[down, j] - A[i, left] - A[i, (j + 1) % M]


@dace.program
def limited_slopes(x: f8[N], w: f8[N], out: f8[N]):
    """Numbers that each arm of a branch sets and uses."""
    for i in range(1, N - 1):
        left = x[i] - x[i - 1]
        right = x[i + 1] - x[i]
        if left * right <= 0.5:
            slope = 0.0
            scale = slope + 1.0
        elif left < right:
            slope = 2.0 * left
            scale = slope * slope
        else:
            slope = right
            scale = np.sqrt(np.abs(slope))
        if w[i] > 0.5:
            scale = scale + w[i]
        if scale > 1.5:
            scale = 1.5
        out[i] = slope * scale


@dace.program
def counted_by_hand(A: f8[N, M], x: f8[N], flat: f8[N * M], pairs: f8[2 * N], times: f8[N]):
    k = -1
    now = 0.5
    for i in range(N):
        for j in range(M):
            k += 1
            flat[k] += A[i, j]
        now += 0.25
        times[i] = now * x[i]
    place = 0
    for i in range(N):
        pairs[place] = x[i]
        place += 1
        pairs[place] = -x[i]
        place = place + 1


@dace.program
def now_and_before(x: f8[N], w: f8[N], out: f8[N], steps: f8[N]):
    before = w[0]
    older = x[N - 1]
    last = N - 1
    for i in range(N):
        now = x[i] * w[i]
        out[i] = now - 2.0 * before + older + x[last]
        older = before
        before = now
        last = i
    rate = 0.0
    for i in range(1, N):
        steps[i] = x[i] - rate
        rate = steps[i - 1]


@dace.program
def chosen_places(x: f8[N], places: dace.int32[N], out: f8[N]):
    for i in range(N):
        k = places[i] if x[i] > 0.5 else i
        out[i] = x[k] - x[i]


@dace.program
def own_places(x: f8[N], z: f8[N], y: f8[N + 3], w: f8[N + 3]):
    """Two iterations may store in one place."""
    for i in range(N):
        k = int(x[i] + z[i])
        y[i + k] = x[i]
        w[i + k] = z[i]


@dace.program
def numbered_rows(A: f8[N, N], b: f8[N]):
    to = 0
    source = to + 1
    for i in range(1, N):
        A[to, i] = A[source, i - 1] + b[i]


@dace.program
def mirrored_gram(A: f8[M, N], out: f8[N, N]):
    """Columns from the diagonal on; what an iteration mirrors no other one touches."""
    for i in range(N):
        for j in range(i, N):
            out[i, j] = 0.0
            for k in range(M):
                out[i, j] += A[k, i] * A[k, j]
            out[j, i] = out[i, j]


@dace.program
def symmetrised(out: f8[N, N]):
    """Every element meets its mirror image twice."""
    for i in range(N):
        for j in range(N):
            out[j, i] = 0.5 * out[i, j] + 0.25


CASES: dict[str, dict[str, Any]] = {
    "gemm": dict(N=5, M=6, K=7, alpha=1.5, beta=0.5),
    "gemm_map": dict(N=5, M=6, K=7),
    "atax": dict(N=5, M=6),
    "batched": dict(N=4, M=5, K=3, F=6),
    "gemver": dict(N=6),
    "reused_scratch": dict(N=9),
    "trsv": dict(N=7),
    "best_paths": dict(N=6, M=5),
    "nearest_hits": dict(N=6, M=5),
    "trsv_backwards": dict(N=7),
    "cholesky": dict(N=6),
    "lu": dict(N=6),
    "gramschmidt": dict(N=4, M=6),
    "descent": dict(N=6),
    "edges": dict(N=5, M=7),
    "crowded": dict(N=5, M=7),
    "distance": dict(N=5, M=7),
    "narrow": dict(N=9, parity=1),
    "durbin": dict(N=6),
    "floyd_warshall": dict(N=6),
    "jacobi_1d": dict(N=9, TSTEPS=4),
    "ring": dict(N=9, TSTEPS=5),
    "jacobi_2d": dict(N=7, M=6),
    "heat_3d": dict(N=5, M=6, K=7),
    "seidel_2d": dict(N=6, TSTEPS=3),
    "fdtd": dict(N=5, M=6, K=8, TMAX=3),
    "softmax": dict(N=3, M=4, K=5),
    "layernorm": dict(N=5, M=8),
    "conv2d_bias": dict(N=2, M=6, K=3, F=4),
    "maxpool": dict(N=6, M=8),
    "relu": dict(N=5, M=4),
    "mlp": dict(N=3, M=4, K=5, F=6),
    "spmm": dict(N=6, M=7, F=4),
    "spmv": dict(N=6, M=7),
    "spmv_map": dict(N=6, M=7),
    "gather": dict(N=6, M=8, F=3),
    "fancy_gather": dict(N=6, M=8),
    "scatter": dict(N=5, M=8),
    "histogram": dict(N=20, M=5),
    "two_hops": dict(N=6, M=7, K=8),
    "nested_relax": dict(N=3, M=6, steps=3),
    "nested_in_loop": dict(N=4, M=5),
    "threshold": dict(N=5, M=6),
    "one_armed": dict(N=9),
    "three_ways": dict(N=9),
    "top_branch": dict(N=6, flag=3),
    "where": dict(N=5, M=6),
    "converge": dict(N=7),
    "newton_root": dict(N=9),
    "collatz": dict(N=9),
    "early_exit": dict(N=6, M=5),
    "carried": dict(N=4, M=6),
    "cumulative": dict(N=5, M=4),
    "running_symbol": dict(N=8),
    "data_loop": dict(N=6, M=5),
    "guarded_loop": dict(N=6, M=5),
    "strided_loops": dict(N=11),
    "reductions": dict(N=3, M=4, K=5),
    "argmax_rows": dict(N=4, M=6),
    "wcr_kinds": dict(N=4, M=5),
    "transpose": dict(N=4, M=5),
    "permute": dict(N=3, M=4, K=5),
    "reshaped": dict(N=3, M=4, K=5, F=2),
    "flattened": dict(N=4, M=5),
    "rows": dict(N=4, M=5),
    "outer_and_copy": dict(N=4, M=5),
    "sliced_copy": dict(N=5, M=6),
    "integers": dict(N=9),
    "booleans": dict(N=9),
    "mixed_types": dict(N=6),
    "functions": dict(N=6),
    "closure": dict(N=7),
    "solved_in_place": dict(N=7),
    "rows_solved_in_place": dict(N=7, M=5),
    "best_splits": dict(N=8),
    "with_itself": dict(N=7),
    "called_function": dict(N=7),
    "tasklets": dict(N=7),
    "looping_tasklets": dict(N=6, M=7),
    "wired_lookup": dict(N=6, M=7),
    "nbody": dict(N=6),
    "several_steps": dict(N=5, M=6),
    "local_array": dict(N=4, M=5),
    "spectrum": dict(N=7),
    "complex_parts": dict(N=6),
    "contour": dict(N=4, M=3, K=4),
    "escape_times": dict(N=4, M=5, K=6),
    "signed_division": dict(N=12),
    "angles": dict(N=7),
    "inverse_combinations": dict(N=4, M=5),
    "flipped": dict(N=6),
    "windowed_products": dict(K=4, N=3),
    "symmetric_fill": dict(M=9, N=5),
    "around_the_ring": dict(N=5, M=9),
    "limited_slopes": dict(N=12),
    "counted_by_hand": dict(N=6, M=4),
    "now_and_before": dict(N=9),
    "chosen_places": dict(N=9),
    "own_places": dict(N=9),
    "numbered_rows": dict(N=6),
    "mirrored_gram": dict(M=4, N=6),
    "symmetrised": dict(N=6),
}
INPUTS = {
    "spmm": "make_csr", "spmv": "make_unsigned_csr", "spmv_map": "make_csr", "wired_lookup": "make_csr",
    "data_loop": "make_counts",
    "guarded_loop": "make_flags", "cholesky": "make_definite", "lu": "make_definite",
    "signed_division": "make_signed", "collatz": "make_starts",
}  # fmt: skip
