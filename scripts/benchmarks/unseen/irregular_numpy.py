"""What a user of NumPy and SciPy writes where the program in `irregular.py` loops over elements."""

import numpy as np
import scipy.sparse


def sddmm(indptr, indices, values, X, Y, out):
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    out += values * np.einsum("kd,kd->k", X[rows], Y[indices])


def sparse_residual(indptr, indices, values, x, b, diagonal, updated):
    A = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(x), len(x)))
    updated[:] = x + (b - A @ x) / diagonal


def assemble_elements(nodes, stiffness, u, force):
    forces = np.einsum("eab,eb->ea", stiffness, u[nodes])
    force += np.bincount(nodes.reshape(-1), forces.reshape(-1), minlength=len(force))


def page_rank(indptr, indices, degrees, rank, STEPS):
    M = len(rank)
    A = scipy.sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(M, M))
    for _ in range(STEPS):
        rank[:] = 0.15 / M + 0.85 * (A @ (rank / degrees))


def gcn_layer(indptr, indices, values, X, T, out):
    A = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(X), len(X)))
    np.maximum(A @ (X @ T), 0, out=out)


def nbody_accelerations(pos, mass, acc):
    squares = (pos * pos).sum(axis=1)
    r2 = np.maximum(squares[:, None] + squares - 2 * pos @ pos.T, 0.0) + 0.01
    force = mass / (r2 * np.sqrt(r2))
    acc += force @ pos - force.sum(axis=1)[:, None] * pos


def fluid_density(x, y, mass, radius):
    near = radius * radius - (x[:, None] - x) ** 2 - (y[:, None] - y) ** 2
    return np.maximum(near, 0.0) ** 3 @ mass


def push_particles(x, v, field, dt):
    cell = x.astype(np.int64)
    share = x - cell
    v -= dt * ((1.0 - share) * field[cell] + share * field[(cell + 1) % len(field)])
    moved = x + dt * v
    x[:] = moved - len(field) * np.floor(moved / len(field))
