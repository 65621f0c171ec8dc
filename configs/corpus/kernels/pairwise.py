"""All pairs of two sets of points: distances, kernels, potentials."""

import dace
import numpy as np

M, N, D = (dace.symbol(s, dtype=dace.int64) for s in "MND")
f32, f64 = dace.float32, dace.float64


@dace.program
def squared_distances(X: f64[M, D], Y: f64[N, D], S: f64[M, N]):
    """S += |x_i - y_j|^2."""
    for i, j, d in dace.map[0:M, 0:N, 0:D]:
        S[i, j] += (X[i, d] - Y[j, d]) * (X[i, d] - Y[j, d])


@dace.program
def manhattan_distances(X: f32[M, D], Y: f32[N, D], S: f32[M, N]):
    """S += sum of |x_i - y_j|."""
    for i, j, d in dace.map[0:M, 0:N, 0:D]:
        S[i, j] += abs(X[i, d] - Y[j, d])


@dace.program
def distances_by_products(X: f32[M, D], Y: f32[N, D], S: f32[M, N]):
    """|x|^2 + |y|^2 - 2 x.y, the matrix-product form."""
    xx = np.sum(X * X, axis=1)
    yy = np.sum(Y * Y, axis=1)
    S[:] = xx[:, None] + yy - 2.0 * (X @ Y.T)


@dace.program
def gaussian_kernel(x: f64[M], y: f64[N], width: f64, G: f64[M, N]):
    """exp(-(x - y)^2 / width)."""
    for i, j in dace.map[0:M, 0:N]:
        G[i, j] = np.exp(-(x[i] - y[j]) * (x[i] - y[j]) / width)


@dace.program
def kernel_density(x: f32[M], y: f32[N], density: f32[M]):
    """Sum of Gaussians around every sample: nothing but the sums is stored."""
    for i, j in dace.map[0:M, 0:N]:
        density[i] += np.exp(np.float32(-8) * (x[i] - y[j]) * (x[i] - y[j]))


@dace.program
def lennard_jones_energy(x: f64[N], y: f64[N], z: f64[N], energy: f64[N]):
    """Energy of every particle in the field of all, softened."""
    for i, j in dace.map[0:N, 0:N]:
        dx = x[i] - x[j]
        dy = y[i] - y[j]
        dz = z[i] - z[j]
        inverse = 1.0 / (dx * dx + dy * dy + dz * dz + 0.5)
        sixth = inverse * inverse * inverse
        energy[i] += 4.0 * (sixth * sixth - sixth)


@dace.program
def nearest_distance(x: f32[M], y: f32[M], u: f32[N], v: f32[N], best: f32[M]):
    """Squared distance from every point to the nearest of a second set."""
    S = np.empty((M, N), dtype=np.float32)
    for i, j in dace.map[0:M, 0:N]:
        S[i, j] = (x[i] - u[j]) * (x[i] - u[j]) + (y[i] - v[j]) * (y[i] - v[j])
    best[:] = np.min(S, axis=1)
