"""Pieces of weather and ocean models: chains of stencils on thin levels, and columns that are solved."""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- horizontal chains


@dace.program
def laplacian_of_laplacian(u: f64[M, N], lap: f64[M, N], out: f64[M, N]):
    """Two dependent five-point stencils on one level."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        lap[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
    for i, j in dace.map[2 : M - 2, 2 : N - 2]:
        out[i, j] = u[i, j] - 0.1 * (
            lap[i - 1, j] + lap[i + 1, j] + lap[i, j - 1] + lap[i, j + 1] - 4.0 * lap[i, j]
        )


@dace.program
def smagorinsky(u: f32[M, N], v: f32[M, N], du: f32[M, N], dv: f32[M, N]):
    """Horizontal mixing with a viscosity that depends on the deformation of the flow."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        tension = (u[i + 1, j] - u[i - 1, j]) - (v[i, j + 1] - v[i, j - 1])
        shear = (u[i, j + 1] - u[i, j - 1]) + (v[i + 1, j] - v[i - 1, j])
        viscosity = np.float32(0.03) * np.sqrt(tension * tension + shear * shear)
        lap_u = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - np.float32(4) * u[i, j]
        lap_v = v[i + 1, j] + v[i - 1, j] + v[i, j + 1] + v[i, j - 1] - np.float32(4) * v[i, j]
        du[i, j] = viscosity * lap_u
        dv[i, j] = viscosity * lap_v


@dace.program
def shallow_water(h: f64[M, N], u: f64[M, N], v: f64[M, N], h1: f64[M, N], u1: f64[M, N], v1: f64[M, N]):
    """One forward step of the linear shallow-water equations: three fields, three stencils."""
    u1[1:-1, 1:-1] = u[1:-1, 1:-1] - 0.1 * (h[2:, 1:-1] - h[:-2, 1:-1]) + 0.01 * v[1:-1, 1:-1]
    v1[1:-1, 1:-1] = v[1:-1, 1:-1] - 0.1 * (h[1:-1, 2:] - h[1:-1, :-2]) - 0.01 * u[1:-1, 1:-1]
    h1[1:-1, 1:-1] = h[1:-1, 1:-1] - 0.1 * (u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2])


@dace.program
def flux_limited_advection(u: f32[M, N, K], cfl: f32[M, N, K], out: f32[M, N, K]):
    """Upwind fluxes with a minmod limiter along the middle axis."""
    for i, j, k in dace.map[0:M, 2 : N - 2, 0:K]:
        left = u[i, j, k] - u[i, j - 1, k]
        right = u[i, j + 1, k] - u[i, j, k]
        slope = max(min(left, right), np.float32(0)) + min(max(left, right), np.float32(0))
        out[i, j, k] = u[i, j, k] - cfl[i, j, k] * (left + np.float32(0.5) * slope)


# --------------------------------------------------------------------------- columns


def _thomas(dtype):
    @dace.program
    def thomas(a: dtype[M, N, K], b: dtype[M, N, K], c: dtype[M, N, K], d: dtype[M, N, K]):
        """One tridiagonal system per column, levels contiguous: elimination, then substitution."""
        for k in range(1, K):
            for i, j in dace.map[0:M, 0:N]:
                w = a[i, j, k] / (b[i, j, k - 1] + 4.0)
                b[i, j, k] = b[i, j, k] - w * c[i, j, k - 1]
                d[i, j, k] = d[i, j, k] - w * d[i, j, k - 1]
        for k in range(K - 2, -1, -1):
            for i, j in dace.map[0:M, 0:N]:
                d[i, j, k] = (d[i, j, k] - c[i, j, k] * d[i, j, k + 1]) / (b[i, j, k] + 4.0)

    return thomas


thomas, thomas_f32 = _thomas(f64), _thomas(f32)


@dace.program
def thomas_levels_first(a: f64[K, M, N], b: f64[K, M, N], c: f64[K, M, N], d: f64[K, M, N]):
    """The same with whole levels contiguous."""
    for k in range(1, K):
        for i, j in dace.map[0:M, 0:N]:
            w = a[k, i, j] / (b[k - 1, i, j] + 4.0)
            b[k, i, j] = b[k, i, j] - w * c[k - 1, i, j]
            d[k, i, j] = d[k, i, j] - w * d[k - 1, i, j]
    for k in range(K - 2, -1, -1):
        for i, j in dace.map[0:M, 0:N]:
            d[k, i, j] = (d[k, i, j] - c[k, i, j] * d[k + 1, i, j]) / (b[k, i, j] + 4.0)


@dace.program
def hydrostatic_pressure(rho: f64[K, M, N], dz: f64[K], p: f64[K, M, N]):
    """Pressure from the weight of the levels above."""
    for k in range(1, K):
        for i, j in dace.map[0:M, 0:N]:
            p[k, i, j] = p[k - 1, i, j] + 0.5 * 9.81 * dz[k] * (rho[k, i, j] + rho[k - 1, i, j])


@dace.program
def sedimentation(q: f32[M, K], fall: f32[M, K], rain: f32[M]):
    """Rain falls through the levels of every column, implicit in time."""
    for k in range(1, K):
        for i in dace.map[0:M]:
            q[i, k] = (q[i, k] + fall[i, k - 1] * q[i, k - 1]) / (np.float32(1) + fall[i, k])
    for i in dace.map[0:M]:
        rain[i] = q[i, K - 1]


@dace.program
def column_integral(q: f64[M, N, K], dp: f64[K], total: f64[M, N]):
    """Water in every column: a reduction over the contiguous levels."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        total[i, j] += q[i, j, k] * dp[k]


@dace.program
def saturation_adjustment(t: f32[M, N], q: f32[M, N], p: f32[M, N], cloud: f32[M, N]):
    """Condense what is above saturation: transcendental arithmetic at every point."""
    for i, j in dace.map[0:M, 0:N]:
        warm = t[i, j] + np.float32(273)
        es = np.float32(611) * np.exp(np.float32(17.3) * t[i, j] / (warm - np.float32(35.9)))
        qs = np.float32(0.622) * es / (p[i, j] * np.float32(100000) + es)
        cloud[i, j] = max(np.float32(0.02) * q[i, j] - qs, np.float32(0))
