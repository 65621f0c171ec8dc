"""Stencils in two and three dimensions, weather, time loops and line solvers.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

I, J, K, M, N, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("I", "J", "K", "M", "N", "STEPS"))
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- two dimensions


@dace.program
def cavity_flow_step(u: f64[M, N], v: f64[M, N], p: f64[M, N], b: f64[M, N], un: f64[M, N], vn: f64[M, N]):
    """Lid-driven cavity: the pressure source, one pressure sweep and the velocity update."""
    ux = u[1:-1, 2:] - u[1:-1, :-2]
    uy = u[2:, 1:-1] - u[:-2, 1:-1]
    vx = v[1:-1, 2:] - v[1:-1, :-2]
    vy = v[2:, 1:-1] - v[:-2, 1:-1]
    b[1:-1, 1:-1] = 50.0 * (ux + vy) - 0.25 * (ux * ux + 2.0 * uy * vx + vy * vy)
    sweep = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) - 0.01 * b[1:-1, 1:-1]
    un[1:-1, 1:-1] = u[1:-1, 1:-1] - 0.01 * (u[1:-1, 1:-1] * ux + v[1:-1, 1:-1] * uy + sweep)
    vn[1:-1, 1:-1] = v[1:-1, 1:-1] - 0.01 * (u[1:-1, 1:-1] * vx + v[1:-1, 1:-1] * vy + sweep)


@dace.program
def edge_preserving_diffusion(image: f32[M, N], kappa: f32, out: f32[M, N]):
    """One step of Perona and Malik: diffusion that stops at edges."""
    north = image[:-2, 1:-1] - image[1:-1, 1:-1]
    south = image[2:, 1:-1] - image[1:-1, 1:-1]
    west = image[1:-1, :-2] - image[1:-1, 1:-1]
    east = image[1:-1, 2:] - image[1:-1, 1:-1]
    flux = (
        north / (1 + (north / kappa) ** 2)
        + south / (1 + (south / kappa) ** 2)
        + west / (1 + (west / kappa) ** 2)
        + east / (1 + (east / kappa) ** 2)
    )
    out[:] = image
    out[1:-1, 1:-1] += np.float32(0.2) * flux


@dace.program
def chip_temperature(temperature: f64[M, N], power: f64[M, N]):
    """The next temperature of a chip that is heated by its parts and loses heat to its surroundings."""
    new = np.copy(temperature)
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        here = temperature[i, j]
        rows = (temperature[i - 1, j] + temperature[i + 1, j] - 2.0 * here) / 0.8
        columns = (temperature[i, j - 1] + temperature[i, j + 1] - 2.0 * here) / 0.5
        new[i, j] = here + 0.05 * (power[i, j] + rows + columns + (80.0 - here) / 4.75)
    return new


# --------------------------------------------------------------------------- three dimensions


@dace.program
def curl(
    u: f64[I, J, K], v: f64[I, J, K], w: f64[I, J, K], cx: f64[I, J, K], cy: f64[I, J, K], cz: f64[I, J, K]
):
    """The curl of a vector field by central differences."""
    cx[1:-1, 1:-1, 1:-1] = 0.5 * (
        w[1:-1, 2:, 1:-1] - w[1:-1, :-2, 1:-1] - v[1:-1, 1:-1, 2:] + v[1:-1, 1:-1, :-2]
    )
    cy[1:-1, 1:-1, 1:-1] = 0.5 * (
        u[1:-1, 1:-1, 2:] - u[1:-1, 1:-1, :-2] - w[2:, 1:-1, 1:-1] + w[:-2, 1:-1, 1:-1]
    )
    cz[1:-1, 1:-1, 1:-1] = 0.5 * (
        v[2:, 1:-1, 1:-1] - v[:-2, 1:-1, 1:-1] - u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
    )


@dace.program
def scalar_transport(c: f32[I, J, K], u: f32[I, J, K], v: f32[I, J, K], w: f32[I, J, K], out: f32[I, J, K]):
    """Advection by a wind, and diffusion, of a concentration."""
    here = c[1:-1, 1:-1, 1:-1]
    advected = (
        u[1:-1, 1:-1, 1:-1] * (c[2:, 1:-1, 1:-1] - c[:-2, 1:-1, 1:-1])
        + v[1:-1, 1:-1, 1:-1] * (c[1:-1, 2:, 1:-1] - c[1:-1, :-2, 1:-1])
        + w[1:-1, 1:-1, 1:-1] * (c[1:-1, 1:-1, 2:] - c[1:-1, 1:-1, :-2])
    )
    around = (
        c[2:, 1:-1, 1:-1] + c[:-2, 1:-1, 1:-1] + c[1:-1, 2:, 1:-1]
        + c[1:-1, :-2, 1:-1] + c[1:-1, 1:-1, 2:] + c[1:-1, 1:-1, :-2]
    )  # fmt: skip
    out[1:-1, 1:-1, 1:-1] = here - np.float32(0.05) * advected + np.float32(0.1) * (around - 6 * here)


@dace.program
def poisson_residual(u: f64[I, J, K], f: f64[I, J, K], r: f64[I, J, K]):
    """What is left of Poisson's equation, by a compact stencil of 19 points."""
    for i, j, k in dace.map[1 : I - 1, 1 : J - 1, 1 : K - 1]:
        faces = (
            u[i - 1, j, k]
            + u[i + 1, j, k]
            + u[i, j - 1, k]
            + u[i, j + 1, k]
            + u[i, j, k - 1]
            + u[i, j, k + 1]
        )
        edges = (
            u[i - 1, j - 1, k] + u[i - 1, j + 1, k] + u[i + 1, j - 1, k] + u[i + 1, j + 1, k]
            + u[i - 1, j, k - 1] + u[i - 1, j, k + 1] + u[i + 1, j, k - 1] + u[i + 1, j, k + 1]
            + u[i, j - 1, k - 1] + u[i, j - 1, k + 1] + u[i, j + 1, k - 1] + u[i, j + 1, k + 1]
        )  # fmt: skip
        r[i, j, k] = f[i, j, k] - (2.0 * faces + edges - 24.0 * u[i, j, k]) / 6.0


# --------------------------------------------------------------------------- weather


@dace.program
def horizontal_diffusion(u: f64[M + 4, N + 4, K], coefficient: f64[M, N, K], out: f64[M, N, K]):
    """Limited fourth-order diffusion of COSMO: a Laplacian, two limited fluxes, an update."""
    lap = 4.0 * u[1:-1, 1:-1, :] - (u[2:, 1:-1, :] + u[:-2, 1:-1, :] + u[1:-1, 2:, :] + u[1:-1, :-2, :])
    dx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    fx = np.where(dx * (u[2:-1, 2:-2, :] - u[1:-2, 2:-2, :]) > 0.0, 0.0, dx)
    dy = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    fy = np.where(dy * (u[2:-2, 2:-1, :] - u[2:-2, 1:-2, :]) > 0.0, 0.0, dy)
    out[:] = u[2:-2, 2:-2, :] - coefficient * (fx[1:, :, :] - fx[:-1, :, :] + fy[:, 1:, :] - fy[:, :-1, :])


@dace.program
def vorticity_tendency(psi: f64[M, N], zeta: f64[M, N], beta: f64, out: f64[M, N]):
    """Barotropic vorticity: Arakawa's Jacobian of stream function and vorticity, and the Earth's rotation."""
    plain = (psi[2:, 1:-1] - psi[:-2, 1:-1]) * (zeta[1:-1, 2:] - zeta[1:-1, :-2]) - (
        psi[1:-1, 2:] - psi[1:-1, :-2]
    ) * (zeta[2:, 1:-1] - zeta[:-2, 1:-1])
    flux = (
        psi[2:, 1:-1] * (zeta[2:, 2:] - zeta[2:, :-2])
        - psi[:-2, 1:-1] * (zeta[:-2, 2:] - zeta[:-2, :-2])
        - psi[1:-1, 2:] * (zeta[2:, 2:] - zeta[:-2, 2:])
        + psi[1:-1, :-2] * (zeta[2:, :-2] - zeta[:-2, :-2])
    )
    advective = (
        zeta[1:-1, 2:] * (psi[2:, 2:] - psi[:-2, 2:])
        - zeta[1:-1, :-2] * (psi[2:, :-2] - psi[:-2, :-2])
        - zeta[2:, 1:-1] * (psi[2:, 2:] - psi[2:, :-2])
        + zeta[:-2, 1:-1] * (psi[:-2, 2:] - psi[:-2, :-2])
    )
    out[1:-1, 1:-1] = (plain + flux + advective) / 12.0 - beta * (psi[1:-1, 2:] - psi[1:-1, :-2]) / 2.0


@dace.program
def warm_rain(qv: f64[K, M], qc: f64[K, M], qr: f64[K, M], t: f64[K, M], p: f64[K, M]):
    """Kessler's cloud physics: saturation, conversion of cloud to rain, collection, evaporation."""
    saturated = 380.0 / p * np.exp(17.27 * (t - 273.0) / (t - 36.0))
    converted = np.maximum(0.001 * (qc - 0.001), 0.0)
    collected = 2.2 * qc * qr**0.875
    rain = np.minimum(converted + collected, qc)
    dry = np.maximum(saturated - qv, 0.0)
    evaporated = np.minimum(
        dry * (1.6 + 124.9 * qr**0.2046) * qr**0.525 / (2.55e8 / (p * saturated) + 5.4e5), qr
    )
    excess = np.where(
        qv > saturated, (qv - saturated) / (1.0 + 4097.0 * 2500.0 * saturated / (t - 36.0) ** 2), 0.0
    )
    qc[:] = qc - rain + excess
    qr[:] = qr + rain - evaporated
    qv[:] = qv - excess + evaporated
    t[:] = t + 2488.0 * (excess - evaporated)


# --------------------------------------------------------------------------- time loops


@dace.program
def gray_scott(u: f64[M, N], v: f64[M, N]):
    """Two chemicals that react and diffuse, step by step, in place."""
    for _step in range(STEPS):
        lu = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
        lv = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4.0 * v[1:-1, 1:-1]
        reaction = u[1:-1, 1:-1] * v[1:-1, 1:-1] * v[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.16 * lu - reaction + 0.06 * (1.0 - u[1:-1, 1:-1])
        v[1:-1, 1:-1] += 0.08 * lv + reaction - 0.122 * v[1:-1, 1:-1]


@dace.program
def membrane(now: f32[M, N], before: f32[M, N]):
    """A vibrating membrane, held at its edges: leapfrog, with the two states exchanged in turn."""
    for _step in range(STEPS):
        before[1:-1, 1:-1] = (
            2 * now[1:-1, 1:-1]
            - before[1:-1, 1:-1]
            + np.float32(0.2)
            * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1])
        )
        now[1:-1, 1:-1] = (
            2 * before[1:-1, 1:-1]
            - now[1:-1, 1:-1]
            + np.float32(0.2)
            * (
                before[2:, 1:-1] + before[:-2, 1:-1] + before[1:-1, 2:] + before[1:-1, :-2]
                - 4 * before[1:-1, 1:-1]
            )
        )  # fmt: skip


@dace.program
def gauss_seidel(phi: f64[M, N], rho: f64[M, N]):
    """Sweeps over a plane that use the neighbours already updated."""
    for _step in range(STEPS):
        for i in range(1, M - 1):
            for j in range(1, N - 1):
                phi[i, j] = 0.25 * (phi[i - 1, j] + phi[i + 1, j] + phi[i, j - 1] + phi[i, j + 1] - rho[i, j])


# --------------------------------------------------------------------------- line solvers


@dace.program
def vertical_advection(lower: f64[K, M, N], upper: f64[K, M, N], rhs: f64[K, M, N], out: f64[K, M, N]):
    """Implicit vertical advection: a tridiagonal system per column, swept down and up level by level."""
    factor = np.empty((K, M, N), dtype=np.float64)
    for i, j in dace.map[0:M, 0:N]:
        factor[0, i, j] = upper[0, i, j] / 4.0
        out[0, i, j] = rhs[0, i, j] / 4.0
    for k in range(1, K):
        for i, j in dace.map[0:M, 0:N]:
            pivot = 4.0 - lower[k, i, j] * factor[k - 1, i, j]
            factor[k, i, j] = upper[k, i, j] / pivot
            out[k, i, j] = (rhs[k, i, j] - lower[k, i, j] * out[k - 1, i, j]) / pivot
    for k in range(K - 2, -1, -1):
        for i, j in dace.map[0:M, 0:N]:
            out[k, i, j] = out[k, i, j] - factor[k, i, j] * out[k + 1, i, j]


@dace.program
def alternating_directions(u: f64[N, N], v: f64[N, N]):
    """Diffusion, implicit along the columns of the plane, then along its rows."""
    p = np.empty((N, N), dtype=np.float64)
    q = np.empty((N, N), dtype=np.float64)
    for _step in range(STEPS):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, N - 1):
            p[1:-1, j] = 0.5 / (2.0 - 0.5 * p[1:-1, j - 1])
            q[1:-1, j] = (
                0.4 * u[j, :-2] + 0.2 * u[j, 1:-1] + 0.4 * u[j, 2:] + 0.5 * q[1:-1, j - 1]
            ) / (2.0 - 0.5 * p[1:-1, j - 1])  # fmt: skip
        v[-1, 1:-1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, N - 1):
            p[1:-1, j] = 0.5 / (2.0 - 0.5 * p[1:-1, j - 1])
            q[1:-1, j] = (
                0.4 * v[:-2, j] + 0.2 * v[1:-1, j] + 0.4 * v[2:, j] + 0.5 * q[1:-1, j - 1]
            ) / (2.0 - 0.5 * p[1:-1, j - 1])  # fmt: skip
        u[1:-1, -1] = 1.0
        for j in range(N - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


@dace.program
def implicit_rods(temperature: f64[M, N], conductivity: f64[M, N]):
    """One implicit step of the heat equation along many rods, each a row."""
    factor = np.zeros((M, N), dtype=np.float64)
    for i in range(M):
        for j in range(1, N - 1):
            pivot = 1.0 + conductivity[i, j] * (2.0 - factor[i, j - 1])
            factor[i, j] = conductivity[i, j] / pivot
            temperature[i, j] = (temperature[i, j] + conductivity[i, j] * temperature[i, j - 1]) / pivot
        for j in range(N - 2, 0, -1):
            temperature[i, j] = temperature[i, j] + factor[i, j] * temperature[i, j + 1]


def inputs_warm_rain(K: int, M: int, seed: int) -> dict[str, np.ndarray]:
    """Air near saturation, with cloud and rain here and there."""
    rng = np.random.default_rng(seed)
    t = 270.0 + 25.0 * rng.random((K, M))
    p = 70000.0 + 30000.0 * rng.random((K, M))
    saturated = 380.0 / p * np.exp(17.27 * (t - 273.0) / (t - 36.0))
    return {
        "qv": saturated * (0.5 + 0.7 * rng.random((K, M))),
        "qc": 0.003 * rng.random((K, M)),
        "qr": 0.002 * rng.random((K, M)),
        "t": t,
        "p": p,
    }
