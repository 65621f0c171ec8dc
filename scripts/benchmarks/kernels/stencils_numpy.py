"""The stencils of `stencils.py` in NumPy: array expressions, updating the outputs in place."""

from __future__ import annotations

import numpy as np


def horizontal_diffusion(field, coefficient, out):
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flux_i = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux_i = np.where(flux_i * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, flux_i)
    flux_j = lap[1:-1, 1:] - lap[1:-1, :-1]
    flux_j = np.where(flux_j * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, flux_j)
    out[:] = field[2:-2, 2:-2] - coefficient * (flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1])


def smagorinsky(u, v, weight, u_out, v_out):
    east, west, north, south = (
        np.s_[:, 2:, 1:-1],
        np.s_[:, :-2, 1:-1],
        np.s_[:, 1:-1, 2:],
        np.s_[:, 1:-1, :-2],
    )
    centre = np.s_[:, 1:-1, 1:-1]
    tension = 0.4 * (u[east] - u[west]) - 0.5 * (v[north] - v[south])
    shear = 0.5 * (u[north] - u[south]) + 0.4 * (v[east] - v[west])
    strain = np.clip(weight * np.sqrt(tension**2 + shear**2) - 0.1, 0.0, 0.5)
    u_out[:] = u[centre] + strain * (u[east] + u[west] + u[north] + u[south] - 4.0 * u[centre])
    v_out[:] = v[centre] + strain * (v[east] + v[west] + v[north] + v[south] - 4.0 * v[centre])


def _laplacian(u):
    return (
        u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - u.dtype.type(6) * u[1:-1, 1:-1, 1:-1]
    )  # fmt: skip


def laplacian_chain(u, out):
    out[:] = u[2:-2, 2:-2, 2:-2] - u.dtype.type(0.01) * _laplacian(_laplacian(u))


def upwind_transport(q, ci, cj, air, out):
    flux_i = np.where(ci > 0, ci * q[:-1, 1:-1], ci * q[1:, 1:-1])
    flux_j = np.where(cj > 0, cj * q[1:-1, :-1], cj * q[1:-1, 1:])
    out[:] = q[1:-1, 1:-1] - (np.diff(flux_i, axis=0) + np.diff(flux_j, axis=1)) / air


def shallow_water(u, v, p, u_out, v_out, p_out):
    cu = 0.5 * (p[1:] + p[:-1]) * u[1:]
    cv = 0.5 * (p[:, 1:] + p[:, :-1]) * v[:, 1:]
    vorticity = (4.0 * (v[1:, 1:] - v[:-1, 1:]) - 4.0 * (u[1:, 1:] - u[1:, :-1])) / (
        p[:-1, :-1] + p[1:, :-1] + p[1:, 1:] + p[:-1, 1:]
    )
    head = p[:-1, :-1] + 0.25 * (u[1:, :-1] ** 2 + u[:-1, :-1] ** 2 + v[:-1, 1:] ** 2 + v[:-1, :-1] ** 2)
    mean_cv = cv[1:-1, 1:] + cv[:-2, 1:] + cv[:-2, :-1] + cv[1:-1, :-1]
    mean_cu = cu[1:, 1:-1] + cu[1:, :-2] + cu[:-1, :-2] + cu[:-1, 1:-1]
    u_out[:] = (
        u[1:-1, 1:-1] + 0.01 * (vorticity[:-1, 1:] + vorticity[:-1, :-1]) * mean_cv
        - 0.02 * (head[1:, :-1] - head[:-1, :-1])
    )  # fmt: skip
    v_out[:] = (
        v[1:-1, 1:-1] - 0.01 * (vorticity[1:, :-1] + vorticity[:-1, :-1]) * mean_cu
        - 0.02 * (head[:-1, 1:] - head[:-1, :-1])
    )  # fmt: skip
    p_out[:] = p[1:-1, 1:-1] - 0.02 * np.diff(cu, axis=0)[:, 1:-1] - 0.02 * np.diff(cv, axis=1)[1:-1]


def momentum_advection(u, v, w, below, above, su, sv, sw):
    def at(a, i, j, k):
        m, n, o = a.shape
        return a[1 + i : m - 1 + i, 1 + j : n - 1 + j, 1 + k : o - 1 + k]

    u0, v0, w0 = at(u, 0, 0, 0), at(v, 0, 0, 0), at(w, 0, 0, 0)
    su[:] = (
        0.3 * (at(u, -1, 0, 0) * (u0 + at(u, -1, 0, 0)) - at(u, 1, 0, 0) * (u0 + at(u, 1, 0, 0)))
        + 0.2
        * (at(u, 0, -1, 0) * (at(v, 0, -1, 0) + at(v, 1, -1, 0)) - at(u, 0, 1, 0) * (v0 + at(v, 1, 0, 0)))
        + below * at(u, 0, 0, -1) * (at(w, 0, 0, -1) + at(w, 1, 0, -1))
        - above * at(u, 0, 0, 1) * (w0 + at(w, 1, 0, 0))
    )
    sv[:] = (
        0.2 * (at(v, 0, -1, 0) * (v0 + at(v, 0, -1, 0)) - at(v, 0, 1, 0) * (v0 + at(v, 0, 1, 0)))
        + 0.3
        * (at(v, -1, 0, 0) * (at(u, -1, 0, 0) + at(u, -1, 1, 0)) - at(v, 1, 0, 0) * (u0 + at(u, 0, 1, 0)))
        + below * at(v, 0, 0, -1) * (at(w, 0, 0, -1) + at(w, 0, 1, -1))
        - above * at(v, 0, 0, 1) * (w0 + at(w, 0, 1, 0))
    )
    sw[:] = (
        below * at(w, 0, 0, -1) * (w0 + at(w, 0, 0, -1))
        - above * at(w, 0, 0, 1) * (w0 + at(w, 0, 0, 1))
        + 0.3
        * (at(w, -1, 0, 0) * (at(u, -1, 0, 0) + at(u, -1, 0, 1)) - at(w, 1, 0, 0) * (u0 + at(u, 0, 0, 1)))
        + 0.2
        * (at(w, 0, -1, 0) * (at(v, 0, -1, 0) + at(v, 0, -1, 1)) - at(w, 0, 1, 0) * (v0 + at(v, 0, 0, 1)))
    )


def vertical_advection(wind, now, start, slow, out):
    levels = now.shape[2]
    faces = 0.0625 * (wind[1:] + wind[:-1])
    upper, solution = np.empty_like(now), np.empty_like(now)
    for k in range(levels):
        pivot = np.full(now.shape[:2], 3.0)
        rhs = 3.0 * start[:, :, k] + slow[:, :, k]
        if k > 0:
            down = -faces[:, :, k]
            pivot -= down * (1.0 + upper[:, :, k - 1])
            rhs -= down * (now[:, :, k - 1] - now[:, :, k] + solution[:, :, k - 1])
        if k < levels - 1:
            up = faces[:, :, k + 1]
            pivot -= up
            rhs -= up * (now[:, :, k + 1] - now[:, :, k])
            upper[:, :, k] = up / pivot
        solution[:, :, k] = rhs / pivot
    for k in range(levels - 2, -1, -1):
        solution[:, :, k] -= upper[:, :, k] * solution[:, :, k + 1]
    out[:] = 3.0 * (solution - start)


def implicit_diffusion(diffusivity, field, out):
    levels = len(field)
    one = field.dtype.type(1)
    upper = np.empty_like(field)
    for k in range(levels):
        pivot = one + diffusivity[k + 1]
        out[k] = field[k]
        if k > 0:
            pivot += diffusivity[k] * (one - upper[k - 1])
            out[k] += diffusivity[k] * out[k - 1]
        upper[k] = diffusivity[k + 1] / pivot
        out[k] /= pivot
    for k in range(levels - 2, -1, -1):
        out[k] += upper[k] * out[k + 1]


def pressure_solver(u, v, p, STEPS):
    source = 2.0 * (u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2]) - (
        (u[1:-1, 2:] - u[1:-1, :-2]) * (v[2:, 1:-1] - v[:-2, 1:-1])
    )
    for _ in range(STEPS):
        p[1:-1, 1:-1] = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 0.01 * source)
        p[:, 0] = p[:, 1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[-1, :] = 0.0
