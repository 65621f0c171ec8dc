"""Flows in steps of several sweeps, as users of NumPy write them: old fields copied, scalars between them,
solvers of a few steps inside, borders set row by row."""

import dace
import numpy as np

M, N, TSTEPS, INNER = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "TSTEPS", "INNER"))
f32, f64 = dace.float32, dace.float64


@dace.program
def streaming_vortex(w: f64[M, N], psi: f64[M, N], dt: f64, refinement: f64, nu: f64):
    """Vorticity with its stream function relaxed a few times in every step."""
    old = np.empty_like(w)
    last = np.empty_like(psi)
    h = 1.0 / (1.0 + refinement)
    for _t in range(TSTEPS):
        old[:] = w
        for _s in range(INNER):
            last[:] = psi
            psi[1:-1, 1:-1] = 0.25 * (
                last[1:-1, 2:] + last[1:-1, :-2] + last[2:, 1:-1] + last[:-2, 1:-1] + h**2 * old[1:-1, 1:-1]
            )
            psi[0, :] = 0.0
            psi[-1, :] = 0.0
        w[1:-1, 1:-1] = (
            old[1:-1, 1:-1]
            - 0.05
            * dt
            / (4.0 * h**2)
            * (
                (psi[1:-1, 2:] - psi[1:-1, :-2]) * (old[2:, 1:-1] - old[:-2, 1:-1])
                - (psi[2:, 1:-1] - psi[:-2, 1:-1]) * (old[1:-1, 2:] - old[1:-1, :-2])
            )
            + 0.05
            * nu
            * dt
            / h**2
            * (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - 4.0 * old[1:-1, 1:-1])
        )
        w[0, :] = -2.0 * psi[1, :] / h**2
        w[-1, :] = -2.0 * psi[-2, :] / h**2


@dace.program
def burgers_steps(u: f64[M, N], v: f64[M, N], courant: f64, rx: f64, ry: f64, nu: f64):
    """Two coupled velocities, upwind, with diffusion."""
    un = np.empty_like(u)
    vn = np.empty_like(v)
    dt = 0.05 * courant
    for _t in range(TSTEPS):
        un[:] = u
        vn[:] = v
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - dt * rx * un[1:-1, 1:-1] * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - dt * ry * vn[1:-1, 1:-1] * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            + nu * dt * rx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt * ry**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - dt * rx * un[1:-1, 1:-1] * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - dt * ry * vn[1:-1, 1:-1] * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            + nu * dt * rx**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt * ry**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 1.0
        u[-1, :] = 1.0
        u[:, 0] = 1.0
        u[:, -1] = 1.0
        v[0, :] = 1.0
        v[-1, :] = 1.0
        v[:, 0] = 1.0
        v[:, -1] = 1.0


@dace.program
def maccormack_steps(h: f32[M, N], speed: f32, dt: f32, rx: f32, ry: f32):
    """Predictor with forward differences, corrector with backward ones."""
    guess = np.empty_like(h)
    for _t in range(TSTEPS):
        guess[:] = h
        guess[:-1, :-1] = (
            h[:-1, :-1]
            - speed * dt * rx * (h[:-1, 1:] - h[:-1, :-1])
            - speed * dt * ry * (h[1:, :-1] - h[:-1, :-1])
        )
        h[1:, 1:] = 0.5 * (
            h[1:, 1:]
            + guess[1:, 1:]
            - speed * dt * rx * (guess[1:, 1:] - guess[1:, :-1])
            - speed * dt * ry * (guess[1:, 1:] - guess[:-1, 1:])
        )
        h[0, :] = h[1, :]
        h[:, 0] = h[:, 1]


@dace.program
def two_species_steps(a: f32[M, N], b: f32[M, N], da: f32, db: f32, feed: f32, kill: f32):
    """Reaction and diffusion of two species on a torus."""
    la = np.empty_like(a)
    lb = np.empty_like(b)
    for _t in range(TSTEPS):
        la[1:-1, 1:-1] = a[1:-1, 2:] + a[1:-1, :-2] + a[2:, 1:-1] + a[:-2, 1:-1] - 4.0 * a[1:-1, 1:-1]
        lb[1:-1, 1:-1] = b[1:-1, 2:] + b[1:-1, :-2] + b[2:, 1:-1] + b[:-2, 1:-1] - 4.0 * b[1:-1, 1:-1]
        reaction = 0.1 * a[1:-1, 1:-1] * np.tanh(b[1:-1, 1:-1])
        a[1:-1, 1:-1] += 0.1 * (da * la[1:-1, 1:-1] - reaction + feed * (1.0 - a[1:-1, 1:-1]))
        b[1:-1, 1:-1] += 0.1 * (db * lb[1:-1, 1:-1] + reaction - (feed + kill) * b[1:-1, 1:-1])
        a[0, :] = a[-2, :]
        a[-1, :] = a[1, :]
        b[0, :] = b[-2, :]
        b[-1, :] = b[1, :]
