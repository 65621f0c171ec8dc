"""Stencils in one, two and three dimensions: stars, boxes, high orders, variable coefficients."""

import dace
import numpy as np

M, N, K, T = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "T"))
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- one dimension


@dace.program
def jacobi_1d(A: f64[N], B: f64[N]):
    """Three-point average."""
    B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])


@dace.program
def derivative4_1d(h: f32, u: f32[M, N], du: f32[M, N]):
    """Fourth-order first derivative along the last axis of many lines."""
    for i, j in dace.map[0:M, 2 : N - 2]:
        near = np.float32(8) * (u[i, j + 1] - u[i, j - 1])
        du[i, j] = (u[i, j - 2] - u[i, j + 2] + near) / (np.float32(12) * h)


@dace.program
def upwind_1d(c: f64[N], u: f64[N], v: f64[N]):
    """First-order upwind advection: the neighbour depends on the sign of the velocity."""
    v[1:-1] = u[1:-1] - np.where(c[1:-1] > 0.5, c[1:-1] * (u[1:-1] - u[:-2]), c[1:-1] * (u[2:] - u[1:-1]))


@dace.program
def fir_filter(x: f32[N], w: f32[T], y: f32[N - T + 1]):
    """A T-tap filter over one signal."""
    for i, t in dace.map[0 : N - T + 1, 0:T]:
        y[i] += w[t] * x[i + t]


# --------------------------------------------------------------------------- two dimensions


@dace.program
def jacobi_2d(A: f64[M, N], B: f64[M, N]):
    """Five-point average."""
    B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])


@dace.program
def nine_point_2d(A: f32[M, N], B: f32[M, N]):
    """Nine-point box with three weights."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        edges = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]
        corners = A[i - 1, j - 1] + A[i - 1, j + 1] + A[i + 1, j - 1] + A[i + 1, j + 1]
        B[i, j] = np.float32(0.25) * A[i, j] + np.float32(0.125) * edges + np.float32(0.0625) * corners


@dace.program
def laplace4_2d(A: f64[M, N], B: f64[M, N]):
    """Fourth-order Laplacian, loops written with the strided axis innermost."""
    for j, i in dace.map[2 : N - 2, 2 : M - 2]:
        B[i, j] = (
            -60.0 * A[i, j]
            + 16.0 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
            - (A[i - 2, j] + A[i + 2, j] + A[i, j - 2] + A[i, j + 2])
        )


@dace.program
def biharmonic_2d(A: f32[M, N], B: f32[M, N]):
    """Thirteen-point biharmonic operator."""
    B[2:-2, 2:-2] = (
        20.0 * A[2:-2, 2:-2]
        - 8.0 * (A[1:-3, 2:-2] + A[3:-1, 2:-2] + A[2:-2, 1:-3] + A[2:-2, 3:-1])
        + 2.0 * (A[1:-3, 1:-3] + A[1:-3, 3:-1] + A[3:-1, 1:-3] + A[3:-1, 3:-1])
        + (A[:-4, 2:-2] + A[4:, 2:-2] + A[2:-2, :-4] + A[2:-2, 4:])
    )


@dace.program
def diffusion_2d(D: f64[M, N], u: f64[M, N], v: f64[M, N]):
    """div(D grad u) with a coefficient per cell, averaged to the faces."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        north = 0.5 * (D[i - 1, j] + D[i, j]) * (u[i - 1, j] - u[i, j])
        south = 0.5 * (D[i + 1, j] + D[i, j]) * (u[i + 1, j] - u[i, j])
        west = 0.5 * (D[i, j - 1] + D[i, j]) * (u[i, j - 1] - u[i, j])
        east = 0.5 * (D[i, j + 1] + D[i, j]) * (u[i, j + 1] - u[i, j])
        v[i, j] = u[i, j] + 0.1 * (north + south + west + east)


@dace.program
def sobel(image: f32[M, N], edges: f32[M, N]):
    """Magnitude of the Sobel gradient."""
    gx = (
        (image[:-2, 2:] - image[:-2, :-2])
        + 2.0 * (image[1:-1, 2:] - image[1:-1, :-2])
        + (image[2:, 2:] - image[2:, :-2])
    )
    gy = (
        (image[2:, :-2] - image[:-2, :-2])
        + 2.0 * (image[2:, 1:-1] - image[:-2, 1:-1])
        + (image[2:, 2:] - image[:-2, 2:])
    )
    edges[1:-1, 1:-1] = np.sqrt(gx * gx + gy * gy)


# --------------------------------------------------------------------------- three dimensions


@dace.program
def heat_3d(A: f64[M, N, K], B: f64[M, N, K]):
    """Seven-point heat step."""
    B[1:-1, 1:-1, 1:-1] = (
        0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
        + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
        + A[1:-1, 1:-1, 1:-1]
    )


@dace.program
def laplace_3d(A: f32[M, N, K], B: f32[M, N, K]):
    """Seven-point Laplacian, loops written k, j, i over row-major arrays."""
    for k, j, i in dace.map[1 : K - 1, 1 : N - 1, 1 : M - 1]:
        faces = A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k] + A[i, j + 1, k] + A[i, j, k - 1]
        B[i, j, k] = faces + A[i, j, k + 1] - np.float32(6) * A[i, j, k]


@dace.program
def box_3d(A: f64[M, N, K], W: f64[3, 3, 3], B: f64[M - 2, N - 2, K - 2]):
    """27-point box whose weights are an array."""
    for i, j, k, a, b, c in dace.map[0 : M - 2, 0 : N - 2, 0 : K - 2, 0:3, 0:3, 0:3]:
        B[i, j, k] += W[a, b, c] * A[i + a, j + b, k + c]


@dace.program
def wave8_3d(p: f32[M, N, K], old: f32[M, N, K], c2: f32[M, N, K], next: f32[M, N, K]):
    """Acoustic wave step, eighth order in space (25 points), second in time."""
    for i, j, k in dace.map[4 : M - 4, 4 : N - 4, 4 : K - 4]:
        s1 = p[i - 1, j, k] + p[i + 1, j, k] + p[i, j - 1, k] + p[i, j + 1, k]
        s1 = s1 + p[i, j, k - 1] + p[i, j, k + 1]
        s2 = p[i - 2, j, k] + p[i + 2, j, k] + p[i, j - 2, k] + p[i, j + 2, k]
        s2 = s2 + p[i, j, k - 2] + p[i, j, k + 2]
        s3 = p[i - 3, j, k] + p[i + 3, j, k] + p[i, j - 3, k] + p[i, j + 3, k]
        s3 = s3 + p[i, j, k - 3] + p[i, j, k + 3]
        s4 = p[i - 4, j, k] + p[i + 4, j, k] + p[i, j - 4, k] + p[i, j + 4, k]
        s4 = s4 + p[i, j, k - 4] + p[i, j, k + 4]
        near = np.float32(-8.541667) * p[i, j, k] + np.float32(1.6) * s1 - np.float32(0.2) * s2
        laplacian = near + np.float32(0.025397) * s3 - np.float32(0.001785714) * s4
        next[i, j, k] = np.float32(2) * p[i, j, k] - old[i, j, k] + c2[i, j, k] * laplacian


@dace.program
def gradient_3d(u: f64[M, N, K], gx: f64[M, N, K], gy: f64[M, N, K], gz: f64[M, N, K]):
    """Central differences along every axis."""
    gx[1:-1, :, :] = 0.5 * (u[2:, :, :] - u[:-2, :, :])
    gy[:, 1:-1, :] = 0.5 * (u[:, 2:, :] - u[:, :-2, :])
    gz[:, :, 1:-1] = 0.5 * (u[:, :, 2:] - u[:, :, :-2])


@dace.program
def divergence_3d(u: f32[M, N, K], v: f32[M, N, K], w: f32[M, N, K], d: f32[M, N, K]):
    """Divergence of a vector field stored as three arrays."""
    d[1:, 1:, 1:] = (
        (u[1:, 1:, 1:] - u[:-1, 1:, 1:]) + (v[1:, 1:, 1:] - v[1:, :-1, 1:]) + (w[1:, 1:, 1:] - w[1:, 1:, :-1])
    )
