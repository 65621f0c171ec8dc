"""What a user of NumPy writes where the program in `stencils.py` loops over elements."""

import numpy as np
import scipy.linalg


def chip_temperature(temperature, power):
    new, here = temperature.copy(), temperature[1:-1, 1:-1]
    rows = (temperature[:-2, 1:-1] + temperature[2:, 1:-1] - 2.0 * here) / 0.8
    columns = (temperature[1:-1, :-2] + temperature[1:-1, 2:] - 2.0 * here) / 0.5
    new[1:-1, 1:-1] = here + 0.05 * (power[1:-1, 1:-1] + rows + columns + (80.0 - here) / 4.75)
    return new


def poisson_residual(u, f, r):
    faces = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    faces += u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    edges = u[:-2, :-2, 1:-1] + u[:-2, 2:, 1:-1] + u[2:, :-2, 1:-1] + u[2:, 2:, 1:-1]
    edges += u[:-2, 1:-1, :-2] + u[:-2, 1:-1, 2:] + u[2:, 1:-1, :-2] + u[2:, 1:-1, 2:]
    edges += u[1:-1, :-2, :-2] + u[1:-1, :-2, 2:] + u[1:-1, 2:, :-2] + u[1:-1, 2:, 2:]
    inner = (slice(1, -1),) * 3
    r[inner] = f[inner] - (2.0 * faces + edges - 24.0 * u[inner]) / 6.0


def gauss_seidel(phi, rho, STEPS):
    """Row by row: what a row takes from itself is a recurrence, which is a filter."""
    from scipy.signal import lfilter

    for _ in range(STEPS):
        for i in range(1, phi.shape[0] - 1):
            known = 0.25 * (phi[i - 1, 1:-1] + phi[i + 1, 1:-1] + phi[i, 2:] - rho[i, 1:-1])
            phi[i, 1:-1], _ = lfilter([1.0], [1.0, -0.25], known, zi=[0.25 * phi[i, 0]])


def vertical_advection(lower, upper, rhs, out):
    factor = np.empty_like(rhs)
    factor[0], out[0] = upper[0] / 4.0, rhs[0] / 4.0
    for k in range(1, len(rhs)):
        pivot = 4.0 - lower[k] * factor[k - 1]
        factor[k] = upper[k] / pivot
        out[k] = (rhs[k] - lower[k] * out[k - 1]) / pivot
    for k in range(len(rhs) - 2, -1, -1):
        out[k] -= factor[k] * out[k + 1]


def implicit_rods(temperature, conductivity):
    for row, c in zip(temperature, conductivity, strict=True):
        bands = np.zeros((3, len(row) - 2))
        bands[0, 1:], bands[1], bands[2, :-1] = -c[1:-2], 1.0 + 2.0 * c[1:-1], -c[2:-1]
        known = row[1:-1].copy()
        known[0] += c[1] * row[0]
        known[-1] += c[-2] * row[-1]
        row[1:-1] = scipy.linalg.solve_banded((1, 1), bands, known, check_finite=False)
