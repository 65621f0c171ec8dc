"""Fourteen kernels that the first corpus does not contain in this form, each with a NumPy reference.

`UNSEEN` lists name, kind, sizes and the inputs function of this file (None: generated from the
signature). The reference of kernel `name` is `reference_<name>`: it takes the kernel's arrays and
scalars by name (and symbols, where it needs them) and updates the outputs in place. `sddmm` and
`gcn_layer` have data-dependent bounds, `vertical_advection` a sequential outer loop, and most are
several nests.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np
import scipy.linalg
import scipy.sparse

B, C, G, H, W, M, N, K, P, Q, R, S, NNZ, F, D, STEPS = (
    dace.symbol(s, dtype=dace.int64)
    for s in ("B", "C", "G", "H", "W", "M", "N", "K", "P", "Q", "R", "S", "NNZ", "F", "D", "STEPS")
)
f32, f64, i32 = dace.float32, dace.float64, dace.int32

# --------------------------------------------------------------------------- linear algebra


@dace.program
def gemver(
    alpha: f64,
    beta: f64,
    A: f64[N, N],
    u1: f64[N],
    v1: f64[N],
    u2: f64[N],
    v2: f64[N],
    w: f64[N],
    x: f64[N],
    y: f64[N],
    z: f64[N],
):
    """A rank-two update, then products with the transposed and the plain matrix (BLAS 2.5)."""
    for i, j in dace.map[0:N, 0:N]:
        A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    x[:] = x + beta * (y @ A) + z
    w[:] = alpha * (A @ x)


def reference_gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * A.T @ y + z
    w[:] = alpha * A @ x


@dace.program
def covariance(data: f64[M, N], cov: f64[N, N]):
    """Covariance matrix of N variables from M observations."""
    centred = data - np.mean(data, axis=0)
    cov[:] = (centred.T @ centred) / (M - 1.0)


def reference_covariance(data, cov):
    cov[:] = np.cov(data, rowvar=False)


@dace.program
def doitgen(A: f64[R, Q, P], C4: f64[P, S], out: f64[R, Q, S]):
    """The last mode of a tensor times a matrix (multiresolution analysis)."""
    for r, q, s, p in dace.map[0:R, 0:Q, 0:S, 0:P]:
        out[r, q, s] += A[r, q, p] * C4[p, s]


def reference_doitgen(A, C4, out):
    out += A @ C4


@dace.program
def mttkrp(X: f64[M, K, P], B2: f64[K, R], C2: f64[P, R], out: f64[M, R]):
    """Matricised tensor times Khatri-Rao product: three factors, two contracted indices."""
    for i, r, k, p in dace.map[0:M, 0:R, 0:K, 0:P]:
        out[i, r] += X[i, k, p] * B2[k, r] * C2[p, r]


def reference_mttkrp(X, B2, C2, out):
    out += np.einsum("ikp,kr,pr->ir", X, B2, C2, optimize=True)


# --------------------------------------------------------------------------- weather and fluids


@dace.program
def horizontal_diffusion(u: f64[M + 4, N + 4, K], coefficient: f64[M, N, K], out: f64[M, N, K]):
    """Limited fourth-order diffusion of COSMO: a Laplacian, two limited fluxes, an update."""
    lap = 4.0 * u[1:-1, 1:-1, :] - (u[2:, 1:-1, :] + u[:-2, 1:-1, :] + u[1:-1, 2:, :] + u[1:-1, :-2, :])
    dx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    fx = np.where(dx * (u[2:-1, 2:-2, :] - u[1:-2, 2:-2, :]) > 0.0, 0.0, dx)
    dy = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    fy = np.where(dy * (u[2:-2, 2:-1, :] - u[2:-2, 1:-2, :]) > 0.0, 0.0, dy)
    out[:] = u[2:-2, 2:-2, :] - coefficient * (fx[1:, :, :] - fx[:-1, :, :] + fy[:, 1:, :] - fy[:, :-1, :])


def reference_horizontal_diffusion(u, coefficient, out):
    lap = 4 * u[1:-1, 1:-1] - u[2:, 1:-1] - u[:-2, 1:-1] - u[1:-1, 2:] - u[1:-1, :-2]
    fx = np.diff(lap, axis=0)[:, 1:-1]
    fx[fx * np.diff(u, axis=0)[1:-1, 2:-2] > 0] = 0
    fy = np.diff(lap, axis=1)[1:-1]
    fy[fy * np.diff(u, axis=1)[2:-2, 1:-1] > 0] = 0
    out[:] = u[2:-2, 2:-2] - coefficient * (np.diff(fx, axis=0) + np.diff(fy, axis=1))


@dace.program
def vertical_advection(lower: f64[K, M, N], upper: f64[K, M, N], rhs: f64[K, M, N], out: f64[K, M, N]):
    """Implicit vertical advection: a tridiagonal system per column, swept down and up level by level."""
    factor = np.empty((K, M, N), dtype=np.float64)
    for i, j in dace.map[0:M, 0:N]:
        factor[0, i, j] = upper[0, i, j] / 4.0
        out[0, i, j] = rhs[0, i, j] / 4.0
    for k in range(1, K):
        for i, j in dace.map[0:M, 0:N]:
            pivot = 4.0 - lower[k, i, j] * factor[k - 1, i, j]
            factor[k, i, j] = upper[k, i, j] / pivot
            out[k, i, j] = (rhs[k, i, j] - lower[k, i, j] * out[k - 1, i, j]) / pivot
    for k in range(K - 2, -1, -1):
        for i, j in dace.map[0:M, 0:N]:
            out[k, i, j] = out[k, i, j] - factor[k, i, j] * out[k + 1, i, j]


def reference_vertical_advection(lower, upper, rhs, out):
    bands = np.full((3, *lower.shape), 4.0)
    bands[0, 1:], bands[2, :-1] = upper[:-1], lower[1:]
    for column in np.ndindex(lower.shape[1:]):
        at = (slice(None), *column)
        out[at] = scipy.linalg.solve_banded((1, 1), bands[(slice(None), *at)], rhs[at])


@dace.program
def cavity_flow_step(u: f64[M, N], v: f64[M, N], p: f64[M, N], b: f64[M, N], un: f64[M, N], vn: f64[M, N]):
    """Lid-driven cavity: the pressure source, one pressure sweep and the velocity update."""
    ux = u[1:-1, 2:] - u[1:-1, :-2]
    uy = u[2:, 1:-1] - u[:-2, 1:-1]
    vx = v[1:-1, 2:] - v[1:-1, :-2]
    vy = v[2:, 1:-1] - v[:-2, 1:-1]
    b[1:-1, 1:-1] = 50.0 * (ux + vy) - 0.25 * (ux * ux + 2.0 * uy * vx + vy * vy)
    sweep = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) - 0.01 * b[1:-1, 1:-1]
    un[1:-1, 1:-1] = u[1:-1, 1:-1] - 0.01 * (u[1:-1, 1:-1] * ux + v[1:-1, 1:-1] * uy + sweep)
    vn[1:-1, 1:-1] = v[1:-1, 1:-1] - 0.01 * (u[1:-1, 1:-1] * vx + v[1:-1, 1:-1] * vy + sweep)


def reference_cavity_flow_step(u, v, p, b, un, vn):
    inner = (slice(1, -1), slice(1, -1))
    ux, vx = (2 * np.gradient(a, axis=1)[inner] for a in (u, v))
    uy, vy = (2 * np.gradient(a, axis=0)[inner] for a in (u, v))
    b[inner] = 50 * (ux + vy) - 0.25 * (ux**2 + 2 * uy * vx + vy**2)
    sweep = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) - 0.01 * b[inner]
    un[inner] = u[inner] - 0.01 * (u[inner] * ux + v[inner] * uy + sweep)
    vn[inner] = v[inner] - 0.01 * (u[inner] * vx + v[inner] * vy + sweep)


# --------------------------------------------------------------------------- neural networks


@dace.program
def mlp_block(X: f32[B, M, K], W1: f32[K, N], b1: f32[N], W2: f32[N, K], b2: f32[K], Y: f32[B, M, K]):
    """Feed-forward block of a transformer: product, bias, ReLU, product, bias, residual."""
    hidden = np.maximum(np.einsum("bmk,kn->bmn", X, W1) + b1, 0.0)
    Y[:] = X + np.einsum("bmn,nk->bmk", hidden, W2) + b2


def reference_mlp_block(X, W1, b1, W2, b2, Y):
    Y[:] = X + np.maximum(X @ W1 + b1, 0) @ W2 + b2


@dace.program
def group_norm(X: f32[B, G, C, H, W], gamma: f32[G, C], beta: f32[G, C], Y: f32[B, G, C, H, W]):
    """Every group of channels of every image to zero mean and unit variance, then scale and shift."""
    mean = np.mean(X, axis=(2, 3, 4))
    square = np.mean(X * X, axis=(2, 3, 4))
    for n, g, c, i, j in dace.map[0:B, 0:G, 0:C, 0:H, 0:W]:
        scale = gamma[g, c] / np.sqrt(square[n, g] - mean[n, g] * mean[n, g] + np.float32(1e-5))
        Y[n, g, c, i, j] = (X[n, g, c, i, j] - mean[n, g]) * scale + beta[g, c]


def reference_group_norm(X, gamma, beta, Y):
    axes = (2, 3, 4)
    scale = gamma[:, :, None, None] / np.sqrt(X.var(axes, keepdims=True) + np.float32(1e-5))
    Y[:] = (X - X.mean(axes, keepdims=True)) * scale + beta[:, :, None, None]


@dace.program
def log_sum_exp(X: f64[M, N], out: f64[M]):
    """ln(sum(exp(row))) without overflow."""
    largest = np.max(X, axis=1)
    out[:] = largest + np.log(np.sum(np.exp(X - largest[:, None]), axis=1))


def reference_log_sum_exp(X, out):
    out[:] = np.log(np.exp(X).sum(axis=1))


# --------------------------------------------------------------------------- particles and sparse


@dace.program
def nbody_accelerations(pos: f64[N, 3], mass: f64[N], acc: f64[N, 3]):
    """Softened gravitational acceleration of every body in the field of all."""
    for i, j in dace.map[0:N, 0:N]:
        dx = pos[j, 0] - pos[i, 0]
        dy = pos[j, 1] - pos[i, 1]
        dz = pos[j, 2] - pos[i, 2]
        r2 = dx * dx + dy * dy + dz * dz + 0.01
        force = mass[j] / (r2 * np.sqrt(r2))
        acc[i, 0] += force * dx
        acc[i, 1] += force * dy
        acc[i, 2] += force * dz


def reference_nbody_accelerations(pos, mass, acc):
    for i in range(len(pos)):
        d = pos - pos[i]
        acc[i] += (mass * ((d * d).sum(axis=1) + 0.01) ** -1.5) @ d


@dace.program
def sddmm(indptr: i32[M + 1], indices: i32[NNZ], values: f32[NNZ], X: f32[M, D], Y: f32[N, D], out: f32[NNZ]):
    """Sampled dense-dense product: X Y^T at the entries of a CSR matrix, scaled by its values."""
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for d in dace.map[0:D]:
                out[k] += values[k] * X[i, d] * Y[indices[k], d]


def reference_sddmm(indptr, indices, values, X, Y, out):
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    out += values * np.einsum("kd,kd->k", X[rows], Y[indices])


@dace.program
def gcn_layer(
    indptr: i32[M + 1], indices: i32[NNZ], values: f32[NNZ], X: f32[M, D], T: f32[D, F], out: f32[M, F]
):
    """Graph convolution: features times weights, sum over neighbours, ReLU."""
    projected = X @ T
    out[:] = 0.0
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for f in dace.map[0:F]:
                out[i, f] += values[k] * projected[indices[k], f]
    for i, f in dace.map[0:M, 0:F]:
        out[i, f] = max(out[i, f], np.float32(0))


def reference_gcn_layer(indptr, indices, values, X, T, out):
    A = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(X), len(X)))
    out[:] = np.maximum(A @ (X @ T), 0)


@dace.program
def mandelbrot(cr: f64[M, N], ci: f64[M, N], norm: f64[M, N]):
    """Norm after a few clamped steps of z = z^2 + c, one arithmetic chain per pixel."""
    zr = np.zeros((M, N), dtype=np.float64)
    zi = np.zeros((M, N), dtype=np.float64)
    for _step in range(STEPS):
        re = zr * zr - zi * zi + cr
        im = 2.0 * zr * zi + ci
        zr[:] = np.minimum(np.maximum(re, -2.0), 2.0)
        zi[:] = np.minimum(np.maximum(im, -2.0), 2.0)
    norm[:] = zr * zr + zi * zi


def reference_mandelbrot(cr, ci, norm, STEPS):
    z = np.zeros(cr.shape, np.complex128)
    for _ in range(STEPS):
        z = z * z + (cr + 1j * ci)
        z = np.clip(z.real, -2, 2) + 1j * np.clip(z.imag, -2, 2)
    norm[:] = z.real**2 + z.imag**2


# --------------------------------------------------------------------------- inputs and table


def inputs_sddmm(M: int, N: int, NNZ: int, D: int) -> dict[str, np.ndarray]:
    """Attention among neighbours in a sequence, plus a few columns that everybody attends to."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, M, NNZ))
    near = np.clip(rows * N // M + rng.integers(-64, 65, NNZ), 0, N - 1)
    columns = np.where(rng.random(NNZ) < 0.2, rng.integers(0, max(1, N // 100), NNZ), near)
    return {
        "indptr": np.searchsorted(rows, np.arange(M + 1)).astype(np.int32),
        "indices": columns.astype(np.int32),
        "values": rng.random(NNZ, np.float32),
        "X": rng.random((M, D), np.float32),
        "Y": rng.random((N, D), np.float32),
        "out": np.zeros(NNZ, np.float32),
    }


def inputs_gcn_layer(M: int, NNZ: int, D: int, F: int) -> dict[str, np.ndarray]:
    """A graph whose degrees follow a power law."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(M)[(M * rng.random(NNZ) ** 2.5).astype(np.int64)])
    columns = rng.permutation(M)[(M * rng.random(NNZ) ** 2.5).astype(np.int64)]
    return {
        "indptr": np.searchsorted(rows, np.arange(M + 1)).astype(np.int32),
        "indices": columns.astype(np.int32),
        "values": rng.random(NNZ, np.float32),
        "X": rng.random((M, D), np.float32) - np.float32(0.5),
        "T": rng.random((D, F), np.float32) - np.float32(0.5),
        "out": np.zeros((M, F), np.float32),
    }


UNSEEN: list[tuple[str, str, dict[str, int], str | None]] = [
    ("gemver", "linear algebra", {"N": 2400}, None),
    ("covariance", "statistics", {"M": 400, "N": 200}, None),
    ("doitgen", "contraction", {"R": 64, "Q": 72, "P": 96, "S": 96}, None),
    ("mttkrp", "tensor decomposition", {"M": 96, "K": 90, "P": 100, "R": 48}, None),
    ("horizontal_diffusion", "stencil chain", {"M": 160, "N": 160, "K": 60}, None),
    ("vertical_advection", "column sweep", {"K": 64, "M": 160, "N": 160}, None),
    ("cavity_flow_step", "fluid dynamics", {"M": 1200, "N": 1300}, None),
    ("mlp_block", "neural network layer", {"B": 4, "M": 64, "K": 128, "N": 256}, None),
    ("group_norm", "normalisation", {"B": 8, "G": 8, "C": 8, "H": 64, "W": 64}, None),
    ("log_sum_exp", "softmax-like reduction", {"M": 2000, "N": 1500}, None),
    ("nbody_accelerations", "particles", {"N": 2000}, None),
    ("sddmm", "sampled product", {"M": 12_000, "N": 12_000, "NNZ": 240_000, "D": 64}, "inputs_sddmm"),
    ("gcn_layer", "graph network layer", {"M": 12_000, "NNZ": 200_000, "D": 48, "F": 32}, "inputs_gcn_layer"),
    ("mandelbrot", "elementwise iteration", {"M": 600, "N": 700, "STEPS": 6}, None),
]
SIZES = {name: sizes for name, _, sizes, _ in UNSEEN}
"""As in the files of case studies."""
