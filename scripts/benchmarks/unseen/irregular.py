"""Sparse matrices, graphs, particles.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

D, E, F, M, N, NNZ, STEPS = (
    dace.symbol(s, dtype=dace.int64) for s in ("D", "E", "F", "M", "N", "NNZ", "STEPS")
)
f32, f64, i32 = dace.float32, dace.float64, dace.int32

# --------------------------------------------------------------------------- sparse


@dace.program
def sddmm(indptr: i32[M + 1], indices: i32[NNZ], values: f32[NNZ], X: f32[M, D], Y: f32[N, D], out: f32[NNZ]):
    """Sampled dense-dense product: X Y^T at the entries of a CSR matrix, scaled by its values."""
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for d in dace.map[0:D]:
                out[k] += values[k] * X[i, d] * Y[indices[k], d]


@dace.program
def sparse_residual(
    indptr: i32[M + 1],
    indices: i32[NNZ],
    values: f64[NNZ],
    x: f64[M],
    b: f64[M],
    diagonal: f64[M],
    updated: f64[M],
):
    """One step of Jacobi's iteration with a matrix in CSR."""
    for i in dace.map[0:M]:
        residual = b[i]
        for k in range(indptr[i], indptr[i + 1]):
            residual -= values[k] * x[indices[k]]
        updated[i] = x[i] + residual / diagonal[i]


@dace.program
def assemble_elements(nodes: i32[E, 4], stiffness: f64[E, 4, 4], u: f64[N], force: f64[N]):
    """Finite elements: the forces of every element on its four nodes, added up."""
    for e, a, b in dace.map[0:E, 0:4, 0:4]:
        force[nodes[e, a]] += stiffness[e, a, b] * u[nodes[e, b]]


# --------------------------------------------------------------------------- graphs


@dace.program
def all_pairs_shortest_paths(path: f64[N, N]):
    """Floyd and Warshall: paths over one more node in every step, in place."""
    for k in range(N):
        path[:] = np.minimum(path, path[:, k][:, None] + path[k, :])


@dace.program
def page_rank(indptr: i32[M + 1], indices: i32[NNZ], degrees: f64[M], rank: f64[M]):
    """Some steps of the power method; row i holds the pages that link to page i."""
    for _step in range(STEPS):
        share = rank / degrees
        for i in dace.map[0:M]:
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += share[indices[k]]
            rank[i] = 0.15 / M + 0.85 * total


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


# --------------------------------------------------------------------------- particles


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


@dace.program
def fluid_density(x: f64[N], y: f64[N], mass: f64[N], radius: f64):
    """Smoothed particles: the density at every particle, from those around it."""
    density = np.zeros((N,), dtype=np.float64)
    for i, j in dace.map[0:N, 0:N]:
        near = max(radius * radius - (x[i] - x[j]) ** 2 - (y[i] - y[j]) ** 2, 0.0)
        density[i] += mass[j] * near * near * near
    return density


@dace.program
def push_particles(x: f64[N], v: f64[N], field: f64[M], dt: f64):
    """Particles in a field that is known on a periodic grid: interpolate, accelerate, move."""
    for i in dace.map[0:N]:
        cell = int(x[i])
        share = x[i] - cell
        right = (cell + 1) % M
        v[i] = v[i] - dt * ((1.0 - share) * field[cell] + share * field[right])
        moved = x[i] + dt * v[i]
        x[i] = moved - M * np.floor(moved / M)


# --------------------------------------------------------------------------- inputs


def inputs_sddmm(M: int, N: int, NNZ: int, D: int, seed: int) -> dict[str, np.ndarray]:
    """Attention among neighbours in a sequence, plus a few columns that everybody attends to."""
    rng = np.random.default_rng(seed)
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


def inputs_sparse_residual(M: int, NNZ: int, seed: int) -> dict[str, np.ndarray]:
    """A mesh whose nodes have most neighbours near by."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, M, NNZ))
    width = max(2, M // 50)
    return {
        "indptr": np.searchsorted(rows, np.arange(M + 1)).astype(np.int32),
        "indices": ((rows + rng.integers(-width, width, NNZ)) % M).astype(np.int32),
        "values": rng.random(NNZ),
        "diagonal": 1.0 + NNZ / M * rng.random(M),
    }


def inputs_assemble_elements(E: int, N: int, seed: int) -> dict[str, np.ndarray]:
    """Elements of a strip, numbered along it."""
    rng = np.random.default_rng(seed)
    first = np.arange(E) * (N - 40) // max(E, 1)
    nodes = (first[:, None] + np.array([0, 1, 19, 20]) + rng.integers(0, 10, (E, 1))) % N
    return {"nodes": nodes.astype(np.int32)}


def inputs_page_rank(M: int, NNZ: int, STEPS: int, seed: int) -> dict[str, np.ndarray]:
    indptr, indices = _power_law(M, NNZ, seed)
    return {
        "indptr": indptr,
        "indices": indices,
        "degrees": np.maximum(np.bincount(indices, minlength=M), 1).astype(np.float64),
        "rank": np.full(M, 1.0 / M),
    }


def inputs_gcn_layer(M: int, NNZ: int, D: int, F: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    indptr, indices = _power_law(M, NNZ, seed)
    return {
        "indptr": indptr,
        "indices": indices,
        "values": rng.random(NNZ, np.float32),
        "X": rng.random((M, D), np.float32) - np.float32(0.5),
        "T": rng.random((D, F), np.float32) - np.float32(0.5),
    }


def inputs_push_particles(N: int, M: int, seed: int) -> dict[str, np.ndarray | float]:
    rng = np.random.default_rng(seed)
    return {"x": M * rng.random(N), "v": rng.normal(size=N), "field": rng.normal(size=M), "dt": 0.1}


def inputs_fluid_density(N: int, seed: int) -> dict[str, np.ndarray | float]:
    rng = np.random.default_rng(seed)
    return {"x": rng.random(N), "y": rng.random(N), "mass": rng.random(N), "radius": 0.1}


def _power_law(rows: int, nonzeros: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row pointers and columns of a graph whose degrees follow a power law."""
    rng = np.random.default_rng(seed)
    sources, targets = (
        rng.permutation(rows)[(rows * rng.random(nonzeros) ** 2.5).astype(np.int64)] for _ in "ab"
    )
    indptr = np.searchsorted(np.sort(sources), np.arange(rows + 1))
    return indptr.astype(np.int32), targets.astype(np.int32)
