"""The stencils of `stencils.py` in Numba, as its users write them: `prange` over the outermost loop, plain
loops inside, stages kept apart where a recomputation would cost more."""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


@jit
def horizontal_diffusion(field, coefficient, out):
    I, J, K = out.shape
    lap = np.empty((I + 2, J + 2, K), field.dtype)
    for i in prange(I + 2):
        for j in range(J + 2):
            for k in range(K):
                lap[i, j, k] = 4.0 * field[i + 1, j + 1, k] - (
                    field[i + 2, j + 1, k] + field[i, j + 1, k] + field[i + 1, j + 2, k] + field[i + 1, j, k]
                )
    for i in prange(I):
        for j in range(J):
            for k in range(K):
                centre = field[i + 2, j + 2, k]
                right = lap[i + 2, j + 1, k] - lap[i + 1, j + 1, k]
                if right * (field[i + 3, j + 2, k] - centre) > 0.0:
                    right = 0.0
                left = lap[i + 1, j + 1, k] - lap[i, j + 1, k]
                if left * (centre - field[i + 1, j + 2, k]) > 0.0:
                    left = 0.0
                above = lap[i + 1, j + 2, k] - lap[i + 1, j + 1, k]
                if above * (field[i + 2, j + 3, k] - centre) > 0.0:
                    above = 0.0
                below = lap[i + 1, j + 1, k] - lap[i + 1, j, k]
                if below * (centre - field[i + 2, j + 1, k]) > 0.0:
                    below = 0.0
                out[i, j, k] = centre - coefficient[i, j, k] * (right - left + above - below)


@jit
def smagorinsky(u, v, weight, u_out, v_out):
    K, I, J = u_out.shape
    for k in prange(K):
        for i in range(I):
            for j in range(J):
                ue, uw, un, us = u[k, i + 2, j + 1], u[k, i, j + 1], u[k, i + 1, j + 2], u[k, i + 1, j]
                ve, vw, vn, vs = v[k, i + 2, j + 1], v[k, i, j + 1], v[k, i + 1, j + 2], v[k, i + 1, j]
                tension = 0.4 * (ue - uw) - 0.5 * (vn - vs)
                shear = 0.5 * (un - us) + 0.4 * (ve - vw)
                strain = weight[i, j] * np.sqrt(tension * tension + shear * shear) - 0.1
                strain = min(0.5, max(0.0, strain))
                u0, v0 = u[k, i + 1, j + 1], v[k, i + 1, j + 1]
                u_out[k, i, j] = u0 + strain * (ue + uw + un + us - 4.0 * u0)
                v_out[k, i, j] = v0 + strain * (ve + vw + vn + vs - 4.0 * v0)


@jit
def laplacian_chain(u, out):
    I, J, K = out.shape
    inner = np.empty((I + 2, J + 2, K + 2), u.dtype)
    six, small = np.float32(6), np.float32(0.01)
    for i in prange(I + 2):
        for j in range(J + 2):
            for k in range(K + 2):
                inner[i, j, k] = (
                    u[i + 2, j + 1, k + 1] + u[i, j + 1, k + 1] + u[i + 1, j + 2, k + 1] + u[i + 1, j, k + 1]
                    + u[i + 1, j + 1, k + 2] + u[i + 1, j + 1, k] - six * u[i + 1, j + 1, k + 1]
                )  # fmt: skip
    for i in prange(I):
        for j in range(J):
            for k in range(K):
                outer = (
                    inner[i + 2, j + 1, k + 1] + inner[i, j + 1, k + 1] + inner[i + 1, j + 2, k + 1]
                    + inner[i + 1, j, k + 1] + inner[i + 1, j + 1, k + 2] + inner[i + 1, j + 1, k]
                    - six * inner[i + 1, j + 1, k + 1]
                )  # fmt: skip
                out[i, j, k] = u[i + 2, j + 2, k + 2] - small * outer


@jit
def upwind_transport(q, ci, cj, air, out):
    I, J, K = out.shape
    for i in prange(I):
        for j in range(J):
            for k in range(K):
                here = q[i + 1, j + 1, k]
                west = ci[i, j, k] * (q[i, j + 1, k] if ci[i, j, k] > 0.0 else here)
                east = ci[i + 1, j, k] * (here if ci[i + 1, j, k] > 0.0 else q[i + 2, j + 1, k])
                south = cj[i, j, k] * (q[i + 1, j, k] if cj[i, j, k] > 0.0 else here)
                north = cj[i, j + 1, k] * (here if cj[i, j + 1, k] > 0.0 else q[i + 1, j + 2, k])
                out[i, j, k] = here - (east - west + north - south) / air[i, j, k]


@jit
def shallow_water(u, v, p, u_out, v_out, p_out):
    I, J = u.shape[0] - 1, u.shape[1] - 1
    cu, cv = np.empty((I, J + 1)), np.empty((I + 1, J))
    vorticity, head = np.empty((I, J)), np.empty((I, J))
    for i in prange(I + 1):
        for j in range(J):
            cv[i, j] = 0.5 * (p[i, j + 1] + p[i, j]) * v[i, j + 1]
    for i in prange(I):
        for j in range(J + 1):
            cu[i, j] = 0.5 * (p[i + 1, j] + p[i, j]) * u[i + 1, j]
        for j in range(J):
            curl = 4.0 * (v[i + 1, j + 1] - v[i, j + 1]) - 4.0 * (u[i + 1, j + 1] - u[i + 1, j])
            vorticity[i, j] = curl / (p[i, j] + p[i + 1, j] + p[i + 1, j + 1] + p[i, j + 1])
            head[i, j] = p[i, j] + 0.25 * (
                u[i + 1, j] * u[i + 1, j] + u[i, j] * u[i, j] + v[i, j + 1] * v[i, j + 1] + v[i, j] * v[i, j]
            )
    for i in prange(I - 1):
        for j in range(J - 1):
            mean_cv = cv[i + 1, j + 1] + cv[i, j + 1] + cv[i, j] + cv[i + 1, j]
            mean_cu = cu[i + 1, j + 1] + cu[i + 1, j] + cu[i, j] + cu[i, j + 1]
            u_out[i, j] = (
                u[i + 1, j + 1] + 0.01 * (vorticity[i, j + 1] + vorticity[i, j]) * mean_cv
                - 0.02 * (head[i + 1, j] - head[i, j])
            )  # fmt: skip
            v_out[i, j] = (
                v[i + 1, j + 1] - 0.01 * (vorticity[i + 1, j] + vorticity[i, j]) * mean_cu
                - 0.02 * (head[i, j + 1] - head[i, j])
            )  # fmt: skip
            p_out[i, j] = (
                p[i + 1, j + 1] - 0.02 * (cu[i + 1, j + 1] - cu[i, j + 1])
                - 0.02 * (cv[i + 1, j + 1] - cv[i + 1, j])
            )  # fmt: skip


@jit
def momentum_advection(u, v, w, below, above, su, sv, sw):
    I, J, K = su.shape
    for i in prange(1, I + 1):
        for j in range(1, J + 1):
            for k in range(1, K + 1):
                u0, v0, w0 = u[i, j, k], v[i, j, k], w[i, j, k]
                down, up = below[k - 1], above[k - 1]
                su[i - 1, j - 1, k - 1] = (
                    0.3 * (u[i - 1, j, k] * (u0 + u[i - 1, j, k]) - u[i + 1, j, k] * (u0 + u[i + 1, j, k]))
                    + 0.2 * (u[i, j - 1, k] * (v[i, j - 1, k] + v[i + 1, j - 1, k])
                             - u[i, j + 1, k] * (v0 + v[i + 1, j, k]))
                    + down * u[i, j, k - 1] * (w[i, j, k - 1] + w[i + 1, j, k - 1])
                    - up * u[i, j, k + 1] * (w0 + w[i + 1, j, k])
                )  # fmt: skip
                sv[i - 1, j - 1, k - 1] = (
                    0.2 * (v[i, j - 1, k] * (v0 + v[i, j - 1, k]) - v[i, j + 1, k] * (v0 + v[i, j + 1, k]))
                    + 0.3 * (v[i - 1, j, k] * (u[i - 1, j, k] + u[i - 1, j + 1, k])
                             - v[i + 1, j, k] * (u0 + u[i, j + 1, k]))
                    + down * v[i, j, k - 1] * (w[i, j, k - 1] + w[i, j + 1, k - 1])
                    - up * v[i, j, k + 1] * (w0 + w[i, j + 1, k])
                )  # fmt: skip
                sw[i - 1, j - 1, k - 1] = (
                    down * w[i, j, k - 1] * (w0 + w[i, j, k - 1])
                    - up * w[i, j, k + 1] * (w0 + w[i, j, k + 1])
                    + 0.3 * (w[i - 1, j, k] * (u[i - 1, j, k] + u[i - 1, j, k + 1])
                             - w[i + 1, j, k] * (u0 + u[i, j, k + 1]))
                    + 0.2 * (w[i, j - 1, k] * (v[i, j - 1, k] + v[i, j - 1, k + 1])
                             - w[i, j + 1, k] * (v0 + v[i, j, k + 1]))
                )  # fmt: skip


@jit
def vertical_advection(wind, now, start, slow, out):
    I, J, K = now.shape
    for i in prange(I):
        upper, solution = np.empty(K), np.empty(K)
        for j in range(J):
            up = 0.0625 * (wind[i + 1, j, 1] + wind[i, j, 1])
            rhs = 3.0 * start[i, j, 0] + slow[i, j, 0] - up * (now[i, j, 1] - now[i, j, 0])
            upper[0] = up / (3.0 - up)
            solution[0] = rhs / (3.0 - up)
            for k in range(1, K):
                down = -up
                up = 0.0625 * (wind[i + 1, j, k + 1] + wind[i, j, k + 1]) if k < K - 1 else 0.0
                rhs = 3.0 * start[i, j, k] + slow[i, j, k] - down * (now[i, j, k - 1] - now[i, j, k])
                if k < K - 1:
                    rhs -= up * (now[i, j, k + 1] - now[i, j, k])
                pivot = 1.0 / (3.0 - down - up - upper[k - 1] * down)
                upper[k] = up * pivot
                solution[k] = (rhs - solution[k - 1] * down) * pivot
            out[i, j, K - 1] = 3.0 * (solution[K - 1] - start[i, j, K - 1])
            for k in range(K - 2, -1, -1):
                solution[k] -= upper[k] * solution[k + 1]
                out[i, j, k] = 3.0 * (solution[k] - start[i, j, k])


@jit
def implicit_diffusion(diffusivity, field, out):
    K, I, J = field.shape
    one = np.float32(1)
    for i in prange(I):
        upper = np.empty((K, J), field.dtype)
        for j in range(J):
            pivot = one / (one + diffusivity[1, i, j])
            upper[0, j] = diffusivity[1, i, j] * pivot
            out[0, i, j] = field[0, i, j] * pivot
        for k in range(1, K):
            for j in range(J):
                here, next_ = diffusivity[k, i, j], diffusivity[k + 1, i, j]
                pivot = one / (one + here + next_ - here * upper[k - 1, j])
                upper[k, j] = next_ * pivot
                out[k, i, j] = (field[k, i, j] + here * out[k - 1, i, j]) * pivot
        for k in range(K - 2, -1, -1):
            for j in range(J):
                out[k, i, j] += upper[k, j] * out[k + 1, i, j]


@jit
def pressure_solver(u, v, p, STEPS):
    I, J = p.shape
    source, old = np.empty((I, J)), np.empty((I, J))
    for i in prange(1, I - 1):
        for j in range(1, J - 1):
            source[i, j] = 2.0 * (u[i + 1, j] - u[i - 1, j] + v[i, j + 1] - v[i, j - 1]) - (
                (u[i, j + 1] - u[i, j - 1]) * (v[i + 1, j] - v[i - 1, j])
            )
    for _ in range(STEPS):
        for i in prange(I):
            for j in range(J):
                old[i, j] = p[i, j]
        for i in prange(1, I - 1):
            for j in range(1, J - 1):
                p[i, j] = 0.25 * (
                    old[i + 1, j] + old[i - 1, j] + old[i, j + 1] + old[i, j - 1] - 0.01 * source[i, j]
                )
            p[i, 0] = p[i, 1]
            p[i, J - 1] = p[i, J - 2]
        for j in range(J):
            p[0, j] = p[1, j]
            p[I - 1, j] = 0.0
