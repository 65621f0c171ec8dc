"""Stencils of one step whose rows share what they read: windows over images, fields and levels."""

import dace
import numpy as np

M, N, K = (dace.symbol(s) for s in "MNK")
f64, f32, i32 = dace.float64, dace.float32, dace.int32


# --------------------------------------------------------------------------- images


@dace.program
def eroded(a: f32[M, N], out: f32[M, N]):
    """The least of three by three."""
    rows = np.minimum(np.minimum(a[:, :-2], a[:, 1:-1]), a[:, 2:])
    out[1:-1, 1:-1] = np.minimum(np.minimum(rows[:-2, :], rows[1:-1, :]), rows[2:, :])


@dace.program
def weighted_window(a: f32[M, N], w: f32[3, 3], out: f32[M, N]):
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        out[i, j] = (
            w[0, 0] * a[i - 1, j - 1] + w[0, 1] * a[i - 1, j] + w[0, 2] * a[i - 1, j + 1]
            + w[1, 0] * a[i, j - 1] + w[1, 1] * a[i, j] + w[1, 2] * a[i, j + 1]
            + w[2, 0] * a[i + 1, j - 1] + w[2, 1] * a[i + 1, j] + w[2, 2] * a[i + 1, j + 1]
        )  # fmt: skip


@dace.program
def edges(a: f32[M, N], out: f32[M, N]):
    """Prewitt's operator."""
    down = a[2:, :-2] + a[2:, 1:-1] + a[2:, 2:] - a[:-2, :-2] - a[:-2, 1:-1] - a[:-2, 2:]
    right = a[:-2, 2:] + a[1:-1, 2:] + a[2:, 2:] - a[:-2, :-2] - a[1:-1, :-2] - a[2:, :-2]
    out[1:-1, 1:-1] = np.abs(down) + np.abs(right)


@dace.program
def neighbours_alive(a: i32[M, N], out: i32[M, N]):
    out[1:-1, 1:-1] = (
        a[:-2, :-2]
        + a[:-2, 1:-1]
        + a[:-2, 2:]
        + a[1:-1, :-2]
        + a[1:-1, 2:]
        + a[2:, :-2]
        + a[2:, 1:-1]
        + a[2:, 2:]
    )


# --------------------------------------------------------------------------- fields


@dace.program
def compact_laplacian(u: f64[M, N], out: f64[M, N]):
    """Nine points, fourth order."""
    sides = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    corners = u[:-2, :-2] + u[:-2, 2:] + u[2:, :-2] + u[2:, 2:]
    out[1:-1, 1:-1] = (4.0 * sides + corners - 20.0 * u[1:-1, 1:-1]) / 6.0


@dace.program
def bracket(f: f64[M, N], g: f64[M, N], out: f64[M, N]):
    """Poisson's bracket, by rows and columns and by diagonals."""
    straight = (f[2:, 1:-1] - f[:-2, 1:-1]) * (g[1:-1, 2:] - g[1:-1, :-2]) - (f[1:-1, 2:] - f[1:-1, :-2]) * (
        g[2:, 1:-1] - g[:-2, 1:-1]
    )
    oblique = (f[2:, 2:] - f[:-2, :-2]) * (g[:-2, 2:] - g[2:, :-2]) - (f[:-2, 2:] - f[2:, :-2]) * (
        g[2:, 2:] - g[:-2, :-2]
    )
    out[1:-1, 1:-1] = 0.25 * straight + 0.125 * oblique


@dace.program
def curvature(h: f64[M, N], out: f64[M, N]):
    """Of a surface."""
    hx = 0.5 * (h[2:, 1:-1] - h[:-2, 1:-1])
    hy = 0.5 * (h[1:-1, 2:] - h[1:-1, :-2])
    hxx = h[2:, 1:-1] - 2.0 * h[1:-1, 1:-1] + h[:-2, 1:-1]
    hyy = h[1:-1, 2:] - 2.0 * h[1:-1, 1:-1] + h[1:-1, :-2]
    hxy = 0.25 * (h[2:, 2:] - h[2:, :-2] - h[:-2, 2:] + h[:-2, :-2])
    out[1:-1, 1:-1] = ((1.0 + hy * hy) * hxx - 2.0 * hx * hy * hxy + (1.0 + hx * hx) * hyy) / (
        1.0 + hx * hx + hy * hy
    )


@dace.program
def deformation(u: f64[M, N], v: f64[M, N], rate: f64[M, N], turn: f64[M, N]):
    """Of a flow: how fast it is strained, and how fast it turns."""
    stretch = (u[2:, 1:-1] - u[:-2, 1:-1]) - (v[1:-1, 2:] - v[1:-1, :-2])
    shear = (v[2:, 1:-1] - v[:-2, 1:-1]) + (u[1:-1, 2:] - u[1:-1, :-2])
    rate[1:-1, 1:-1] = 0.5 * np.sqrt(stretch * stretch + shear * shear)
    turn[1:-1, 1:-1] = 0.5 * ((v[2:, 1:-1] - v[:-2, 1:-1]) - (u[1:-1, 2:] - u[1:-1, :-2]))


@dace.program
def anisotropic(u: f64[M, N], a: f64[M, N], out: f64[M, N]):
    """What flows in from eight sides through walls of the mean conductivity."""
    out[1:-1, 1:-1] = (
        (a[2:, 1:-1] + a[1:-1, 1:-1]) * (u[2:, 1:-1] - u[1:-1, 1:-1])
        + (a[:-2, 1:-1] + a[1:-1, 1:-1]) * (u[:-2, 1:-1] - u[1:-1, 1:-1])
        + (a[1:-1, 2:] + a[1:-1, 1:-1]) * (u[1:-1, 2:] - u[1:-1, 1:-1])
        + (a[1:-1, :-2] + a[1:-1, 1:-1]) * (u[1:-1, :-2] - u[1:-1, 1:-1])
        + 0.25 * (a[2:, 2:] + a[:-2, :-2]) * (u[2:, 2:] + u[:-2, :-2] - 2.0 * u[1:-1, 1:-1])
        + 0.25 * (a[2:, :-2] + a[:-2, 2:]) * (u[2:, :-2] + u[:-2, 2:] - 2.0 * u[1:-1, 1:-1])
    )


@dace.program
def long_cross(u: f64[M, N], out: f64[M, N]):
    """Eighth-order Laplacian: four points on each side."""
    out[4:-4, 4:-4] = (
        -5.6944444 * u[4:-4, 4:-4]
        + 1.6 * (u[3:-5, 4:-4] + u[5:-3, 4:-4] + u[4:-4, 3:-5] + u[4:-4, 5:-3])
        - 0.2 * (u[2:-6, 4:-4] + u[6:-2, 4:-4] + u[4:-4, 2:-6] + u[4:-4, 6:-2])
        + 0.025396825 * (u[1:-7, 4:-4] + u[7:-1, 4:-4] + u[4:-4, 1:-7] + u[4:-4, 7:-1])
        - 0.0017857143 * (u[:-8, 4:-4] + u[8:, 4:-4] + u[4:-4, :-8] + u[4:-4, 8:])
    )


# --------------------------------------------------------------------------- levels


@dace.program
def all_around(u: f64[M, N, K], out: f64[M, N, K]):
    """The mean of three by three by three."""
    plane = u[:, :, :-2] + u[:, :, 1:-1] + u[:, :, 2:]
    column = plane[:, :-2, :] + plane[:, 1:-1, :] + plane[:, 2:, :]
    out[1:-1, 1:-1, 1:-1] = (column[:-2, :, :] + column[1:-1, :, :] + column[2:, :, :]) / 27.0


@dace.program
def compressed(u: f64[M, N, K], v: f64[M, N, K], w: f64[M, N, K], q: f64[M, N, K], out: f64[M, N, K]):
    """What a flow carries in, by the values between cells."""
    out[1:-1, 1:-1, 1:-1] = 0.25 * (
        (u[:-2, 1:-1, 1:-1] + u[1:-1, 1:-1, 1:-1]) * (q[:-2, 1:-1, 1:-1] + q[1:-1, 1:-1, 1:-1])
        - (u[2:, 1:-1, 1:-1] + u[1:-1, 1:-1, 1:-1]) * (q[2:, 1:-1, 1:-1] + q[1:-1, 1:-1, 1:-1])
        + (v[1:-1, :-2, 1:-1] + v[1:-1, 1:-1, 1:-1]) * (q[1:-1, :-2, 1:-1] + q[1:-1, 1:-1, 1:-1])
        - (v[1:-1, 2:, 1:-1] + v[1:-1, 1:-1, 1:-1]) * (q[1:-1, 2:, 1:-1] + q[1:-1, 1:-1, 1:-1])
        + (w[1:-1, 1:-1, :-2] + w[1:-1, 1:-1, 1:-1]) * (q[1:-1, 1:-1, :-2] + q[1:-1, 1:-1, 1:-1])
        - (w[1:-1, 1:-1, 2:] + w[1:-1, 1:-1, 1:-1]) * (q[1:-1, 1:-1, 2:] + q[1:-1, 1:-1, 1:-1])
    )


@dace.program
def levels_mixed(t: f64[K, M, N], depth: f64[M, N], out: f64[K, M, N]):
    """In each level with its neighbours, more where it is shallow."""
    around = t[:, 2:, 1:-1] + t[:, :-2, 1:-1] + t[:, 1:-1, 2:] + t[:, 1:-1, :-2] - 4.0 * t[:, 1:-1, 1:-1]
    corners = t[:, 2:, 2:] + t[:, :-2, :-2] + t[:, 2:, :-2] + t[:, :-2, 2:] - 4.0 * t[:, 1:-1, 1:-1]
    out[:, 1:-1, 1:-1] = t[:, 1:-1, 1:-1] + (around + 0.5 * corners) / (1.0 + depth[1:-1, 1:-1])
