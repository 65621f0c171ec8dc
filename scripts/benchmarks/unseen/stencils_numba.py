"""The programs of `stencils.py` as one writes them in Numba."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


@jit
def cavity_flow_step(u, v, p, b, un, vn):
    M, N = u.shape
    for i in prange(1, M - 1):
        for j in range(1, N - 1):
            ux, uy = u[i, j + 1] - u[i, j - 1], u[i + 1, j] - u[i - 1, j]
            vx, vy = v[i, j + 1] - v[i, j - 1], v[i + 1, j] - v[i - 1, j]
            b[i, j] = 50.0 * (ux + vy) - 0.25 * (ux * ux + 2.0 * uy * vx + vy * vy)
            sweep = 0.25 * (p[i, j + 1] + p[i, j - 1] + p[i + 1, j] + p[i - 1, j]) - 0.01 * b[i, j]
            un[i, j] = u[i, j] - 0.01 * (u[i, j] * ux + v[i, j] * uy + sweep)
            vn[i, j] = v[i, j] - 0.01 * (u[i, j] * vx + v[i, j] * vy + sweep)


@numba.njit(fastmath=True, inline="always")
def _limited(difference, kappa):
    ratio = difference / kappa
    return difference / (np.float32(1) + ratio * ratio)


@jit
def edge_preserving_diffusion(image, kappa, out):
    M, N = image.shape
    kappa = np.float32(kappa)
    out[0], out[M - 1] = image[0], image[M - 1]
    for i in prange(1, M - 1):
        out[i, 0], out[i, N - 1] = image[i, 0], image[i, N - 1]
        for j in range(1, N - 1):
            here = image[i, j]
            flux = _limited(image[i - 1, j] - here, kappa) + _limited(image[i + 1, j] - here, kappa)
            flux += _limited(image[i, j - 1] - here, kappa) + _limited(image[i, j + 1] - here, kappa)
            out[i, j] = here + np.float32(0.2) * flux


@jit
def chip_temperature(temperature, power):
    M, N = temperature.shape
    new = np.empty_like(temperature)
    new[0], new[M - 1] = temperature[0], temperature[M - 1]
    for i in prange(1, M - 1):
        new[i, 0], new[i, N - 1] = temperature[i, 0], temperature[i, N - 1]
        for j in range(1, N - 1):
            here = temperature[i, j]
            rows = (temperature[i - 1, j] + temperature[i + 1, j] - 2.0 * here) / 0.8
            columns = (temperature[i, j - 1] + temperature[i, j + 1] - 2.0 * here) / 0.5
            new[i, j] = here + 0.05 * (power[i, j] + rows + columns + (80.0 - here) / 4.75)
    return new


@jit
def curl(u, v, w, cx, cy, cz):
    I, J, K = u.shape
    for i in prange(1, I - 1):
        for j in range(1, J - 1):
            for k in range(1, K - 1):
                cx[i, j, k] = 0.5 * (w[i, j + 1, k] - w[i, j - 1, k] - v[i, j, k + 1] + v[i, j, k - 1])
                cy[i, j, k] = 0.5 * (u[i, j, k + 1] - u[i, j, k - 1] - w[i + 1, j, k] + w[i - 1, j, k])
                cz[i, j, k] = 0.5 * (v[i + 1, j, k] - v[i - 1, j, k] - u[i, j + 1, k] + u[i, j - 1, k])


@jit
def scalar_transport(c, u, v, w, out):
    I, J, K = c.shape
    for i in prange(1, I - 1):
        for j in range(1, J - 1):
            for k in range(1, K - 1):
                advected = (
                    u[i, j, k] * (c[i + 1, j, k] - c[i - 1, j, k])
                    + v[i, j, k] * (c[i, j + 1, k] - c[i, j - 1, k])
                    + w[i, j, k] * (c[i, j, k + 1] - c[i, j, k - 1])
                )
                around = c[i + 1, j, k] + c[i - 1, j, k] + c[i, j + 1, k]
                around += c[i, j - 1, k] + c[i, j, k + 1] + c[i, j, k - 1]
                spread = np.float32(0.1) * (around - np.float32(6) * c[i, j, k])
                out[i, j, k] = c[i, j, k] - np.float32(0.05) * advected + spread


@jit
def poisson_residual(u, f, r):
    I, J, K = u.shape
    for i in prange(1, I - 1):
        for j in range(1, J - 1):
            for k in range(1, K - 1):
                faces = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                faces += u[i, j, k - 1] + u[i, j, k + 1]
                edges = u[i - 1, j - 1, k] + u[i - 1, j + 1, k] + u[i + 1, j - 1, k] + u[i + 1, j + 1, k]
                edges += u[i - 1, j, k - 1] + u[i - 1, j, k + 1] + u[i + 1, j, k - 1] + u[i + 1, j, k + 1]
                edges += u[i, j - 1, k - 1] + u[i, j - 1, k + 1] + u[i, j + 1, k - 1] + u[i, j + 1, k + 1]
                r[i, j, k] = f[i, j, k] - (2.0 * faces + edges - 24.0 * u[i, j, k]) / 6.0


@jit
def horizontal_diffusion(u, coefficient, out):
    M, N, K = out.shape
    lap = np.empty((M + 2, N + 2, K))
    for i in prange(M + 2):
        for j in range(N + 2):
            for k in range(K):
                lap[i, j, k] = 4.0 * u[i + 1, j + 1, k] - (
                    u[i + 2, j + 1, k] + u[i, j + 1, k] + u[i + 1, j + 2, k] + u[i + 1, j, k]
                )
    for i in prange(M):
        for j in range(N):
            for k in range(K):
                here = u[i + 2, j + 2, k]
                right = lap[i + 2, j + 1, k] - lap[i + 1, j + 1, k]
                if right * (u[i + 3, j + 2, k] - here) > 0.0:
                    right = 0.0
                left = lap[i + 1, j + 1, k] - lap[i, j + 1, k]
                if left * (here - u[i + 1, j + 2, k]) > 0.0:
                    left = 0.0
                above = lap[i + 1, j + 2, k] - lap[i + 1, j + 1, k]
                if above * (u[i + 2, j + 3, k] - here) > 0.0:
                    above = 0.0
                below = lap[i + 1, j + 1, k] - lap[i + 1, j, k]
                if below * (here - u[i + 2, j + 1, k]) > 0.0:
                    below = 0.0
                out[i, j, k] = here - coefficient[i, j, k] * (right - left + above - below)


@jit
def vorticity_tendency(psi, zeta, beta, out):
    M, N = psi.shape
    for i in prange(1, M - 1):
        for j in range(1, N - 1):
            east, west, north, south = psi[i + 1, j], psi[i - 1, j], psi[i, j + 1], psi[i, j - 1]
            ne, se, nw, sw = psi[i + 1, j + 1], psi[i + 1, j - 1], psi[i - 1, j + 1], psi[i - 1, j - 1]
            z_east, z_west, z_north, z_south = zeta[i + 1, j], zeta[i - 1, j], zeta[i, j + 1], zeta[i, j - 1]
            z_ne, z_se = zeta[i + 1, j + 1], zeta[i + 1, j - 1]
            z_nw, z_sw = zeta[i - 1, j + 1], zeta[i - 1, j - 1]
            plain = (east - west) * (z_north - z_south) - (north - south) * (z_east - z_west)
            flux = east * (z_ne - z_se) - west * (z_nw - z_sw) - north * (z_ne - z_nw) + south * (z_se - z_sw)
            advective = z_north * (ne - nw) - z_south * (se - sw) - z_east * (ne - se) + z_west * (nw - sw)
            out[i, j] = (plain + flux + advective) / 12.0 - beta * (north - south) / 2.0


@jit
def warm_rain(qv, qc, qr, t, p):
    K, M = qv.shape
    for k in prange(K):
        for i in range(M):
            cold = t[k, i] - 36.0
            saturated = 380.0 / p[k, i] * math.exp(17.27 * (t[k, i] - 273.0) / cold)
            converted = max(0.001 * (qc[k, i] - 0.001), 0.0)
            rain = min(converted + 2.2 * qc[k, i] * qr[k, i] ** 0.875, qc[k, i])
            wet = (1.6 + 124.9 * qr[k, i] ** 0.2046) * qr[k, i] ** 0.525
            evaporated = max(saturated - qv[k, i], 0.0) * wet / (2.55e8 / (p[k, i] * saturated) + 5.4e5)
            evaporated = min(evaporated, qr[k, i])
            excess = max(qv[k, i] - saturated, 0.0)
            excess /= 1.0 + 4097.0 * 2500.0 * saturated / (cold * cold)
            qc[k, i] += excess - rain
            qr[k, i] += rain - evaporated
            qv[k, i] += evaporated - excess
            t[k, i] += 2488.0 * (excess - evaporated)


@jit
def gray_scott(u, v, STEPS):
    M, N = u.shape
    us, vs = np.empty((2, M, N)), np.empty((2, M, N))
    us[0], us[1], vs[0], vs[1] = u, u, v, v
    for step in range(STEPS):
        a, b, c, d = us[step % 2], us[1 - step % 2], vs[step % 2], vs[1 - step % 2]
        for i in prange(1, M - 1):
            for j in range(1, N - 1):
                here, other = a[i, j], c[i, j]
                lu = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * here
                lv = c[i - 1, j] + c[i + 1, j] + c[i, j - 1] + c[i, j + 1] - 4.0 * other
                reaction = here * other * other
                b[i, j] = here + 0.16 * lu - reaction + 0.06 * (1.0 - here)
                d[i, j] = other + 0.08 * lv + reaction - 0.122 * other
    u[:], v[:] = us[STEPS % 2], vs[STEPS % 2]


@jit
def membrane(now, before, STEPS):
    M, N = now.shape
    two, four, share = np.float32(2), np.float32(4), np.float32(0.2)
    for _ in range(STEPS):
        for a, b in ((now, before), (before, now)):
            for i in prange(1, M - 1):
                for j in range(1, N - 1):
                    around = a[i + 1, j] + a[i - 1, j] + a[i, j + 1] + a[i, j - 1] - four * a[i, j]
                    b[i, j] = two * a[i, j] - b[i, j] + share * around


@numba.njit(fastmath=True, cache=True)
def gauss_seidel(phi, rho, STEPS):
    M, N = phi.shape
    for _ in range(STEPS):
        for i in range(1, M - 1):
            for j in range(1, N - 1):
                phi[i, j] = 0.25 * (phi[i - 1, j] + phi[i + 1, j] + phi[i, j - 1] + phi[i, j + 1] - rho[i, j])


@jit
def vertical_advection(lower, upper, rhs, out):
    K, M, N = lower.shape
    factor = np.empty((K, M, N))
    for i in prange(M):
        for j in range(N):
            factor[0, i, j] = upper[0, i, j] / 4.0
            out[0, i, j] = rhs[0, i, j] / 4.0
        for k in range(1, K):
            for j in range(N):
                pivot = 4.0 - lower[k, i, j] * factor[k - 1, i, j]
                factor[k, i, j] = upper[k, i, j] / pivot
                out[k, i, j] = (rhs[k, i, j] - lower[k, i, j] * out[k - 1, i, j]) / pivot
        for k in range(K - 2, -1, -1):
            for j in range(N):
                out[k, i, j] -= factor[k, i, j] * out[k + 1, i, j]


@jit
def alternating_directions(u, v, STEPS):
    N = u.shape[0]
    p, q = np.empty(N), np.empty((N, N))
    p[0] = 0.0
    for j in range(1, N - 1):
        p[j] = 0.5 / (2.0 - 0.5 * p[j - 1])
    parts = numba.get_num_threads()
    for _ in range(STEPS):
        for part in prange(parts):  # every thread has columns of its own
            first, last = 1 + part * (N - 2) // parts, 1 + (part + 1) * (N - 2) // parts
            for i in range(first, last):
                v[0, i] = q[0, i] = v[N - 1, i] = 1.0
            for j in range(1, N - 1):
                for i in range(first, last):
                    known = 0.4 * u[j, i - 1] + 0.2 * u[j, i] + 0.4 * u[j, i + 1]
                    q[j, i] = (known + 0.5 * q[j - 1, i]) / (2.0 - 0.5 * p[j - 1])
            for j in range(N - 2, 0, -1):
                for i in range(first, last):
                    v[j, i] = p[j] * v[j + 1, i] + q[j, i]
        for i in prange(1, N - 1):
            u[i, 0] = q[i, 0] = u[i, N - 1] = 1.0
            for j in range(1, N - 1):
                known = 0.4 * v[i - 1, j] + 0.2 * v[i, j] + 0.4 * v[i + 1, j]
                q[i, j] = (known + 0.5 * q[i, j - 1]) / (2.0 - 0.5 * p[j - 1])
            for j in range(N - 2, 0, -1):
                u[i, j] = p[j] * u[i, j + 1] + q[i, j]


@jit
def implicit_rods(temperature, conductivity):
    M, N = temperature.shape
    for i in prange(M):
        factor = np.zeros(N)
        for j in range(1, N - 1):
            pivot = 1.0 + conductivity[i, j] * (2.0 - factor[j - 1])
            factor[j] = conductivity[i, j] / pivot
            temperature[i, j] = (temperature[i, j] + conductivity[i, j] * temperature[i, j - 1]) / pivot
        for j in range(N - 2, 0, -1):
            temperature[i, j] += factor[j] * temperature[i, j + 1]
