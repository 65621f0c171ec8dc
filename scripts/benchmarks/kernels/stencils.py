"""Stencils of weather and ocean models, as their users write them: array expressions and column loops.

`SIZES` are those of a limited-area model on one node: fields from a megabyte (in cache) to some thirty.
No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

I, J, K, STEPS = (dace.symbol(s, dtype=dace.int64) for s in ("I", "J", "K", "STEPS"))
f32, f64 = dace.float32, dace.float64

SIZES = {
    "horizontal_diffusion": {"I": 256, "J": 256, "K": 64},
    "vertical_advection": {"I": 128, "J": 128, "K": 90},
    "implicit_diffusion": {"K": 80, "I": 192, "J": 200},
    "smagorinsky": {"K": 60, "I": 200, "J": 224},
    "momentum_advection": {"I": 160, "J": 160, "K": 80},
    "upwind_transport": {"I": 180, "J": 190, "K": 60},
    "shallow_water": {"I": 1500, "J": 1600},
    "laplacian_chain": {"I": 140, "J": 150, "K": 160},
    "pressure_solver": {"I": 300, "J": 320, "STEPS": 40},
}

# --------------------------------------------------------------------------- chains of stencils


@dace.program
def horizontal_diffusion(field: f64[I + 4, J + 4, K], coefficient: f64[I, J, K], out: f64[I, J, K]):
    """Fourth-order diffusion with a flux limiter (COSMO): a Laplacian, its differences, an update."""
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flux_i = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux_i = np.where(flux_i * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0.0, 0.0, flux_i)
    flux_j = lap[1:-1, 1:] - lap[1:-1, :-1]
    flux_j = np.where(flux_j * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0.0, 0.0, flux_j)
    out[:] = field[2:-2, 2:-2] - coefficient * (flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1])


@dace.program
def smagorinsky(
    u: f64[K, I + 2, J + 2],
    v: f64[K, I + 2, J + 2],
    weight: f64[I, J],
    u_out: f64[K, I, J],
    v_out: f64[K, I, J],
):
    """Diffusion of momentum with a coefficient from the local rates of strain and shear."""
    tension = (u[:, 2:, 1:-1] - u[:, :-2, 1:-1]) * 0.4 - (v[:, 1:-1, 2:] - v[:, 1:-1, :-2]) * 0.5
    shear = (u[:, 1:-1, 2:] - u[:, 1:-1, :-2]) * 0.5 + (v[:, 2:, 1:-1] - v[:, :-2, 1:-1]) * 0.4
    strain = weight * np.sqrt(tension * tension + shear * shear) - 0.1
    strain = np.minimum(0.5, np.maximum(0.0, strain))
    lap_u = u[:, 2:, 1:-1] + u[:, :-2, 1:-1] + u[:, 1:-1, 2:] + u[:, 1:-1, :-2] - 4.0 * u[:, 1:-1, 1:-1]
    lap_v = v[:, 2:, 1:-1] + v[:, :-2, 1:-1] + v[:, 1:-1, 2:] + v[:, 1:-1, :-2] - 4.0 * v[:, 1:-1, 1:-1]
    u_out[:] = u[:, 1:-1, 1:-1] + strain * lap_u
    v_out[:] = v[:, 1:-1, 1:-1] + strain * lap_v


@dace.program
def laplacian_chain(u: f32[I + 4, J + 4, K + 4], out: f32[I, J, K]):
    """Hyperdiffusion in three dimensions: the Laplacian of a Laplacian, scaled and added."""
    inner = (
        u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - np.float32(6) * u[1:-1, 1:-1, 1:-1]
    )  # fmt: skip
    outer = (
        inner[2:, 1:-1, 1:-1] + inner[:-2, 1:-1, 1:-1] + inner[1:-1, 2:, 1:-1] + inner[1:-1, :-2, 1:-1]
        + inner[1:-1, 1:-1, 2:] + inner[1:-1, 1:-1, :-2] - np.float32(6) * inner[1:-1, 1:-1, 1:-1]
    )  # fmt: skip
    out[:] = u[2:-2, 2:-2, 2:-2] - np.float32(0.01) * outer


@dace.program
def upwind_transport(
    q: f64[I + 2, J + 2, K], ci: f64[I + 1, J, K], cj: f64[I, J + 1, K], air: f64[I, J, K], out: f64[I, J, K]
):
    """Transport of a tracer by its upwind value at every face, flux by flux, per mass of air."""
    flux_i = np.where(ci > 0.0, ci * q[:-1, 1:-1], ci * q[1:, 1:-1])
    flux_j = np.where(cj > 0.0, cj * q[1:-1, :-1], cj * q[1:-1, 1:])
    out[:] = q[1:-1, 1:-1] - (flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1]) / air


def inputs_upwind_transport(I: int, J: int, K: int) -> dict[str, np.ndarray]:
    """Winds (Courant numbers) in all directions."""
    rng = np.random.default_rng(0)
    return {"ci": rng.random((I + 1, J, K)) - 0.5, "cj": rng.random((I, J + 1, K)) - 0.5}


@dace.program
def shallow_water(
    u: f64[I + 1, J + 1],
    v: f64[I + 1, J + 1],
    p: f64[I + 1, J + 1],
    u_out: f64[I - 1, J - 1],
    v_out: f64[I - 1, J - 1],
    p_out: f64[I - 1, J - 1],
):
    """Shallow-water equations on a staggered grid (Sadourny): mass fluxes, vorticity, head, update."""
    cu = 0.5 * (p[1:, :] + p[:-1, :]) * u[1:, :]
    cv = 0.5 * (p[:, 1:] + p[:, :-1]) * v[:, 1:]
    vorticity = (4.0 * (v[1:, 1:] - v[:-1, 1:]) - 4.0 * (u[1:, 1:] - u[1:, :-1])) / (
        p[:-1, :-1] + p[1:, :-1] + p[1:, 1:] + p[:-1, 1:]
    )
    head = p[:-1, :-1] + 0.25 * (
        u[1:, :-1] * u[1:, :-1]
        + u[:-1, :-1] * u[:-1, :-1]
        + v[:-1, 1:] * v[:-1, 1:]
        + v[:-1, :-1] * v[:-1, :-1]
    )
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
    p_out[:] = p[1:-1, 1:-1] - 0.02 * (cu[1:, 1:-1] - cu[:-1, 1:-1]) - 0.02 * (cv[1:-1, 1:] - cv[1:-1, :-1])


# --------------------------------------------------------------------------- single large stencils


@dace.program
def momentum_advection(
    u: f64[I + 2, J + 2, K + 2],
    v: f64[I + 2, J + 2, K + 2],
    w: f64[I + 2, J + 2, K + 2],
    below: f64[K],
    above: f64[K],
    su: f64[I, J, K],
    sv: f64[I, J, K],
    sw: f64[I, J, K],
):
    """Piacsek-Williams advection of all three components of momentum (MONC)."""
    for i, j, k in dace.map[1 : I + 1, 1 : J + 1, 1 : K + 1]:
        su[i - 1, j - 1, k - 1] = (
            0.3
            * (
                u[i - 1, j, k] * (u[i, j, k] + u[i - 1, j, k])
                - u[i + 1, j, k] * (u[i, j, k] + u[i + 1, j, k])
            )
            + 0.2
            * (
                u[i, j - 1, k] * (v[i, j - 1, k] + v[i + 1, j - 1, k])
                - u[i, j + 1, k] * (v[i, j, k] + v[i + 1, j, k])
            )
            + below[k - 1] * u[i, j, k - 1] * (w[i, j, k - 1] + w[i + 1, j, k - 1])
            - above[k - 1] * u[i, j, k + 1] * (w[i, j, k] + w[i + 1, j, k])
        )
        sv[i - 1, j - 1, k - 1] = (
            0.2
            * (
                v[i, j - 1, k] * (v[i, j, k] + v[i, j - 1, k])
                - v[i, j + 1, k] * (v[i, j, k] + v[i, j + 1, k])
            )
            + 0.3
            * (
                v[i - 1, j, k] * (u[i - 1, j, k] + u[i - 1, j + 1, k])
                - v[i + 1, j, k] * (u[i, j, k] + u[i, j + 1, k])
            )
            + below[k - 1] * v[i, j, k - 1] * (w[i, j, k - 1] + w[i, j + 1, k - 1])
            - above[k - 1] * v[i, j, k + 1] * (w[i, j, k] + w[i, j + 1, k])
        )
        sw[i - 1, j - 1, k - 1] = (
            below[k - 1] * w[i, j, k - 1] * (w[i, j, k] + w[i, j, k - 1])
            - above[k - 1] * w[i, j, k + 1] * (w[i, j, k] + w[i, j, k + 1])
            + 0.3
            * (
                w[i - 1, j, k] * (u[i - 1, j, k] + u[i - 1, j, k + 1])
                - w[i + 1, j, k] * (u[i, j, k] + u[i, j, k + 1])
            )
            + 0.2
            * (
                w[i, j - 1, k] * (v[i, j - 1, k] + v[i, j - 1, k + 1])
                - w[i, j + 1, k] * (v[i, j, k] + v[i, j, k + 1])
            )
        )


# --------------------------------------------------------------------------- column solves, iterations


@dace.program
def vertical_advection(
    wind: f64[I + 1, J, K + 1], now: f64[I, J, K], start: f64[I, J, K], slow: f64[I, J, K], out: f64[I, J, K]
):
    """Implicit vertical advection (COSMO): coefficients and the solution of a tridiagonal system in every
    column, levels contiguous in memory."""
    upper = np.empty((I, J, K), dtype=np.float64)
    solution = np.empty((I, J, K), dtype=np.float64)
    for k in range(K):
        down = -0.0625 * (wind[1:, :, k] + wind[:-1, :, k])
        up = 0.0625 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        if k == 0:
            pivot = 3.0 - up
            rhs = 3.0 * start[:, :, k] + slow[:, :, k] - up * (now[:, :, k + 1] - now[:, :, k])
            upper[:, :, k] = up / pivot
            solution[:, :, k] = rhs / pivot
        elif k < K - 1:
            known = -down * (now[:, :, k - 1] - now[:, :, k]) - up * (now[:, :, k + 1] - now[:, :, k])
            pivot = 3.0 - down - up - upper[:, :, k - 1] * down
            rhs = 3.0 * start[:, :, k] + slow[:, :, k] + known - solution[:, :, k - 1] * down
            upper[:, :, k] = up / pivot
            solution[:, :, k] = rhs / pivot
        else:
            pivot = 3.0 - down - upper[:, :, k - 1] * down
            rhs = 3.0 * start[:, :, k] + slow[:, :, k] - down * (now[:, :, k - 1] - now[:, :, k])
            solution[:, :, k] = (rhs - solution[:, :, k - 1] * down) / pivot
    for k in range(K - 2, -1, -1):
        solution[:, :, k] = solution[:, :, k] - upper[:, :, k] * solution[:, :, k + 1]
    out[:] = 3.0 * (solution - start)


@dace.program
def implicit_diffusion(diffusivity: f32[K + 1, I, J], field: f32[K, I, J], out: f32[K, I, J]):
    """Implicit vertical diffusion: a tridiagonal system in every column, swept level by level, with
    columns contiguous in memory."""
    upper = np.empty((K, I, J), dtype=np.float32)
    pivot0 = np.float32(1) + diffusivity[1]
    upper[0] = diffusivity[1] / pivot0
    out[0] = field[0] / pivot0
    for k in range(1, K):
        pivot = np.float32(1) + diffusivity[k] + diffusivity[k + 1] - diffusivity[k] * upper[k - 1]
        upper[k] = diffusivity[k + 1] / pivot
        out[k] = (field[k] + diffusivity[k] * out[k - 1]) / pivot
    for k in range(K - 2, -1, -1):
        out[k] = out[k] + upper[k] * out[k + 1]


@dace.program
def pressure_solver(u: f64[I, J], v: f64[I, J], p: f64[I, J]):
    """Pressure of an incompressible flow: the divergence of the velocity, then Jacobi sweeps with walls."""
    source = np.zeros((I, J), dtype=np.float64)
    source[1:-1, 1:-1] = 2.0 * (u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2]) - (
        (u[1:-1, 2:] - u[1:-1, :-2]) * (v[2:, 1:-1] - v[:-2, 1:-1])
    )
    for _step in range(STEPS):
        old = np.copy(p)
        p[1:-1, 1:-1] = 0.25 * (
            old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2] - 0.01 * source[1:-1, 1:-1]
        )
        p[:, 0] = p[:, 1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[-1, :] = 0.0
