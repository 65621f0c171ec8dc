"""Stencils inside a sequential time loop: pairs of arrays, leap-frog, staggered grids, in place, borders."""

import dace
import numpy as np

M, N, K, TSTEPS = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "TSTEPS"))
f32, f64 = dace.float32, dace.float64


@dace.program
def jacobi_1d_steps(A: f32[N], B: f32[N]):
    """Three-point average, to and fro between two arrays."""
    for _t in range(TSTEPS):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@dace.program
def jacobi_2d_steps(A: f64[M, N], B: f64[M, N]):
    """Five-point average, to and fro between two arrays."""
    for _t in range(TSTEPS):
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i - 1, j] + A[i + 1, j])
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i - 1, j] + B[i + 1, j])


@dace.program
def fdtd_2d(source: f64[TSTEPS], ex: f64[M, N], ey: f64[M, N], hz: f64[M, N]):
    """Maxwell's equations on a staggered grid."""
    for t in range(TSTEPS):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@dace.program
def wave_3d_steps(u: f32[M, N, K], v: f32[M, N, K]):
    """Leap-frog wave equation; the new field overwrites the oldest."""
    for _t in range(TSTEPS):
        v[1:-1, 1:-1, 1:-1] = (
            2.0 * u[1:-1, 1:-1, 1:-1]
            - v[1:-1, 1:-1, 1:-1]
            + 0.1
            * (
                u[2:, 1:-1, 1:-1]
                + u[:-2, 1:-1, 1:-1]
                + u[1:-1, 2:, 1:-1]
                + u[1:-1, :-2, 1:-1]
                + u[1:-1, 1:-1, 2:]
                + u[1:-1, 1:-1, :-2]
                - 6.0 * u[1:-1, 1:-1, 1:-1]
            )
        )
        u[1:-1, 1:-1, 1:-1] = (
            2.0 * v[1:-1, 1:-1, 1:-1]
            - u[1:-1, 1:-1, 1:-1]
            + 0.1
            * (
                v[2:, 1:-1, 1:-1]
                + v[:-2, 1:-1, 1:-1]
                + v[1:-1, 2:, 1:-1]
                + v[1:-1, :-2, 1:-1]
                + v[1:-1, 1:-1, 2:]
                + v[1:-1, 1:-1, :-2]
                - 6.0 * v[1:-1, 1:-1, 1:-1]
            )
        )


@dace.program
def heat_3d_steps(A: f64[M, N, K], B: f64[M, N, K]):
    """Seven-point average, to and fro between two arrays."""
    for _t in range(TSTEPS):
        B[1:-1, 1:-1, 1:-1] = A[1:-1, 1:-1, 1:-1] + 0.12 * (
            A[2:, 1:-1, 1:-1]
            + A[:-2, 1:-1, 1:-1]
            + A[1:-1, 2:, 1:-1]
            + A[1:-1, :-2, 1:-1]
            + A[1:-1, 1:-1, 2:]
            + A[1:-1, 1:-1, :-2]
            - 6.0 * A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = B[1:-1, 1:-1, 1:-1] + 0.12 * (
            B[2:, 1:-1, 1:-1]
            + B[:-2, 1:-1, 1:-1]
            + B[1:-1, 2:, 1:-1]
            + B[1:-1, :-2, 1:-1]
            + B[1:-1, 1:-1, 2:]
            + B[1:-1, 1:-1, :-2]
            - 6.0 * B[1:-1, 1:-1, 1:-1]
        )


@dace.program
def blur_steps(A: f32[M, N], B: f32[M, N]):
    """Nine-point average into a second array, and back; the borders are what lies beside them."""
    for _t in range(TSTEPS):
        B[1:-1, 1:-1] = (
            0.25 * A[1:-1, 1:-1]
            + 0.125 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])
            + 0.0625 * (A[:-2, :-2] + A[:-2, 2:] + A[2:, :-2] + A[2:, 2:])
        )
        B[0, :] = B[1, :]
        B[-1, :] = B[-2, :]
        A[:] = B


@dace.program
def upwind_steps(u: f64[M, N], after: f64[M, N], speed: f64[M, N]):
    """Transport to the right and down with a speed that differs from place to place."""
    for _t in range(TSTEPS):
        for i, j in dace.map[1:M, 1:N]:
            after[i, j] = u[i, j] - speed[i, j] * (2.0 * u[i, j] - u[i - 1, j] - u[i, j - 1])
        for i, j in dace.map[1:M, 1:N]:
            u[i, j] = after[i, j]


@dace.program
def anisotropic_steps(A: f64[M, N], B: f64[M, N], east: f64[M, N], south: f64[M, N]):
    """Diffusion whose coefficients lie on the edges between cells."""
    for _t in range(TSTEPS):
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            B[i, j] = (
                A[i, j]
                + east[i, j] * (A[i, j + 1] - A[i, j])
                - east[i, j - 1] * (A[i, j] - A[i, j - 1])
                + south[i, j] * (A[i + 1, j] - A[i, j])
                - south[i - 1, j] * (A[i, j] - A[i - 1, j])
            )
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            A[i, j] = (
                B[i, j]
                + east[i, j] * (B[i, j + 1] - B[i, j])
                - east[i, j - 1] * (B[i, j] - B[i, j - 1])
                + south[i, j] * (B[i + 1, j] - B[i, j])
                - south[i - 1, j] * (B[i, j] - B[i - 1, j])
            )


@dace.program
def shallow_steps(h: f32[M, N], u: f32[M, N], v: f32[M, N]):
    """Linear waves of shallow water on a staggered grid."""
    for _t in range(TSTEPS):
        u[:, 1:] -= 0.1 * (h[:, 1:] - h[:, :-1])
        v[1:, :] -= 0.1 * (h[1:, :] - h[:-1, :])
        h[:-1, :-1] -= 0.1 * (u[:-1, 1:] - u[:-1, :-1] + v[1:, :-1] - v[:-1, :-1])


@dace.program
def far_steps(A: f64[M, N], B: f64[M, N]):
    """Differences of fourth order: rows two away."""
    for _t in range(TSTEPS):
        for i, j in dace.map[2 : M - 2, 2 : N - 2]:
            B[i, j] = A[i, j] + 0.01 * (
                16.0 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
                - (A[i - 2, j] + A[i + 2, j] + A[i, j - 2] + A[i, j + 2])
                - 60.0 * A[i, j]
            )
        for i, j in dace.map[2 : M - 2, 2 : N - 2]:
            A[i, j] = B[i, j]


@dace.program
def excitable_steps(u: f64[M, N], v: f64[M, N], w: f64[M, N]):
    """A medium that is excited, and recovers (FitzHugh and Nagumo)."""
    for _t in range(TSTEPS):
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            w[i, j] = u[i, j] + 0.05 * (
                u[i - 1, j]
                + u[i + 1, j]
                + u[i, j - 1]
                + u[i, j + 1]
                - 4.0 * u[i, j]
                + u[i, j] * (1.0 - u[i, j]) * (u[i, j] - 0.1)
                - v[i, j]
            )
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            v[i, j] = v[i, j] + 0.01 * (0.5 * w[i, j] - v[i, j])
            u[i, j] = w[i, j]


@dace.program
def minimum_steps(A: f32[M, N], B: f32[M, N]):
    """The least of neighbours spreads (erosion)."""
    for _t in range(TSTEPS):
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            B[i, j] = np.minimum(
                np.minimum(A[i, j], A[i - 1, j]),
                np.minimum(A[i + 1, j], np.minimum(A[i, j - 1], A[i, j + 1])),
            )
        for i, j in dace.map[1 : M - 1, 1 : N - 1]:
            A[i, j] = np.minimum(
                np.minimum(B[i, j], B[i - 1, j]),
                np.minimum(B[i + 1, j], np.minimum(B[i, j - 1], B[i, j + 1])),
            )


@dace.program
def successive_steps(A: f64[M, N]):
    """Relaxation in place, from row to row."""
    for _t in range(TSTEPS):
        for i in range(1, M - 1):
            for j in dace.map[1 : N - 1]:
                A[i, j] = 0.2 * (A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j] + A[i + 1, j])


@dace.program
def wave_2d_steps(past: f64[M, N], now: f64[M, N], following: f64[M, N]):
    """A membrane: three fields that move up by one."""
    for _t in range(TSTEPS):
        following[1:-1, 1:-1] = (
            2.0 * now[1:-1, 1:-1]
            - past[1:-1, 1:-1]
            + 0.2 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4.0 * now[1:-1, 1:-1])
        )
        past[:] = now
        now[:] = following
