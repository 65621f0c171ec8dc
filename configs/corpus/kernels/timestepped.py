"""Stencils inside a sequential time loop: pairs of arrays, leap-frog, staggered grids."""

import dace

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
