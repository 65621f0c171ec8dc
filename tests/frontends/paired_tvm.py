"""The kernels of `paired.py` as TVM functions."""

from tvm import te, topi


def gemm(M, N, K):
    a, b = te.placeholder((M, K), name="a"), te.placeholder((K, N), name="b")
    k = te.reduce_axis((0, K), "k")
    return [a, b, te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="out")]


def bmm(B, M, N, K):
    a, b = te.placeholder((B, M, K), name="a"), te.placeholder((B, K, N), name="b")
    k = te.reduce_axis((0, K), "k")
    return [a, b, te.compute((B, M, N), lambda s, i, j: te.sum(a[s, i, k] * b[s, k, j], axis=k), name="out")]


def conv2d(H, C, F):
    x, w = te.placeholder((1, H + 2, H + 2, C), name="x"), te.placeholder((3, 3, C, F), name="w")
    r, s, d = (te.reduce_axis((0, size), name) for size, name in ((3, "r"), (3, "s"), (C, "d")))

    def element(n, h, v, c):
        return te.sum(x[n, h + r, v + s, d] * w[r, s, d, c], axis=[r, s, d])

    return [x, w, te.compute((1, H, H, F), element, name="out")]


def softmax(M, N):
    x = te.placeholder((M, N), name="x")
    return [x, topi.nn.softmax(x, axis=-1)]


def stencil(M, N):
    x = te.placeholder((M + 2, N + 2), name="x")

    def mean(i, j):
        near = x[i + 1, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 2, j + 1] + x[i, j + 1]
        return te.const(0.2, "float32") * near

    return [x, te.compute((M, N), mean, name="out")]


def row_sums(M, N):
    x = te.placeholder((M, N), name="x")
    return [x, topi.sum(x, axis=1)]
