"""The programs of `irregular.py` as one writes them in Numba."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


@jit
def sddmm(indptr, indices, values, X, Y, out):
    for i in prange(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            dot = np.float32(0)
            for d in range(X.shape[1]):
                dot += X[i, d] * Y[indices[k], d]
            out[k] += values[k] * dot


@jit
def sparse_residual(indptr, indices, values, x, b, diagonal, updated):
    for i in prange(x.shape[0]):
        residual = b[i]
        for k in range(indptr[i], indptr[i + 1]):
            residual -= values[k] * x[indices[k]]
        updated[i] = x[i] + residual / diagonal[i]


@jit
def assemble_elements(nodes, stiffness, u, force):
    """Every thread adds to forces of its own."""
    E, N = nodes.shape[0], force.shape[0]
    parts = numba.get_num_threads()
    sums = np.zeros((parts, N))
    for part in prange(parts):
        for e in range(part * E // parts, (part + 1) * E // parts):
            for a in range(4):
                total = 0.0
                for b in range(4):
                    total += stiffness[e, a, b] * u[nodes[e, b]]
                sums[part, nodes[e, a]] += total
    for i in prange(N):
        for part in range(parts):
            force[i] += sums[part, i]


@jit
def all_pairs_shortest_paths(path):
    N = path.shape[0]
    for k in range(N):
        for i in prange(N):
            for j in range(N):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


@jit
def page_rank(indptr, indices, degrees, rank, STEPS):
    M = rank.shape[0]
    for _ in range(STEPS):
        share = rank / degrees
        for i in prange(M):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += share[indices[k]]
            rank[i] = 0.15 / M + 0.85 * total


@jit
def gcn_layer(indptr, indices, values, X, T, out):
    projected = X @ T
    for i in prange(out.shape[0]):
        out[i] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            for f in range(out.shape[1]):
                out[i, f] += values[k] * projected[indices[k], f]
        for f in range(out.shape[1]):
            out[i, f] = max(out[i, f], np.float32(0))


@jit
def nbody_accelerations(pos, mass, acc):
    x, y, z = pos[:, 0].copy(), pos[:, 1].copy(), pos[:, 2].copy()
    for i in prange(pos.shape[0]):
        ax = ay = az = 0.0
        for j in range(pos.shape[0]):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            r2 = dx * dx + dy * dy + dz * dz + 0.01
            force = mass[j] / (r2 * math.sqrt(r2))
            ax += force * dx
            ay += force * dy
            az += force * dz
        acc[i, 0] += ax
        acc[i, 1] += ay
        acc[i, 2] += az


@jit
def fluid_density(x, y, mass, radius):
    density = np.empty_like(x)
    for i in prange(x.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            dx, dy = x[i] - x[j], y[i] - y[j]
            near = max(radius * radius - dx * dx - dy * dy, 0.0)
            total += mass[j] * near * near * near
        density[i] = total
    return density


@jit
def push_particles(x, v, field, dt):
    M = field.shape[0]
    for i in prange(x.shape[0]):
        cell = int(x[i])
        share = x[i] - cell
        right = cell + 1 if cell + 1 < M else 0
        v[i] -= dt * ((1.0 - share) * field[cell] + share * field[right])
        moved = x[i] + dt * v[i]
        x[i] = moved - M * math.floor(moved / M)
