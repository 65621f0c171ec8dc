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


# --------------------------------------------------------------------------- several results


@dace.program
def slopes(a: f32[M, N], down: f32[M, N], right: f32[M, N]):
    """Scharr's operators."""
    down[1:-1, 1:-1] = 3.0 * (a[2:, :-2] - a[:-2, :-2] + a[2:, 2:] - a[:-2, 2:]) + 10.0 * (
        a[2:, 1:-1] - a[:-2, 1:-1]
    )
    right[1:-1, 1:-1] = 3.0 * (a[:-2, 2:] - a[:-2, :-2] + a[2:, 2:] - a[2:, :-2]) + 10.0 * (
        a[1:-1, 2:] - a[1:-1, :-2]
    )


@dace.program
def second_derivatives(h: f64[M, N], hxx: f64[M, N], hxy: f64[M, N], hyy: f64[M, N]):
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        hxx[i, j] = h[i + 1, j] - 2.0 * h[i, j] + h[i - 1, j]
        hyy[i, j] = h[i, j + 1] - 2.0 * h[i, j] + h[i, j - 1]
        hxy[i, j] = 0.25 * (h[i + 1, j + 1] - h[i + 1, j - 1] - h[i - 1, j + 1] + h[i - 1, j - 1])


@dace.program
def structure(a: f32[M, N], xx: f32[M, N], xy: f32[M, N], yy: f32[M, N]):
    """Products of slopes, summed over three by three."""
    dx = a[2:, 1:-1] - a[:-2, 1:-1]
    dy = a[1:-1, 2:] - a[1:-1, :-2]
    pxx = dx[:, :-2] * dx[:, :-2] + dx[:, 1:-1] * dx[:, 1:-1] + dx[:, 2:] * dx[:, 2:]
    pxy = dx[:, :-2] * dy[:, :-2] + dx[:, 1:-1] * dy[:, 1:-1] + dx[:, 2:] * dy[:, 2:]
    pyy = dy[:, :-2] * dy[:, :-2] + dy[:, 1:-1] * dy[:, 1:-1] + dy[:, 2:] * dy[:, 2:]
    xx[2:-2, 2:-2] = pxx[:-2, :] + pxx[1:-1, :] + pxx[2:, :]
    xy[2:-2, 2:-2] = pxy[:-2, :] + pxy[1:-1, :] + pxy[2:, :]
    yy[2:-2, 2:-2] = pyy[:-2, :] + pyy[1:-1, :] + pyy[2:, :]


@dace.program
def carried(u: f64[M, N], v: f64[M, N], u1: f64[M, N], v1: f64[M, N]):
    """A flow that carries itself, and is viscous (Burgers)."""
    uc = u[1:-1, 1:-1]
    vc = v[1:-1, 1:-1]
    u1[1:-1, 1:-1] = (
        uc
        - 0.05 * (uc * (u[2:, 1:-1] - u[:-2, 1:-1]) + vc * (u[1:-1, 2:] - u[1:-1, :-2]))
        + 0.01 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * uc)
    )
    v1[1:-1, 1:-1] = (
        vc
        - 0.05 * (uc * (v[2:, 1:-1] - v[:-2, 1:-1]) + vc * (v[1:-1, 2:] - v[1:-1, :-2]))
        + 0.01 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * vc)
    )


@dace.program
def strained(
    vx: f64[M, N],
    vy: f64[M, N],
    lam: f64[M, N],
    mu: f64[M, N],
    sxx: f64[M, N],
    syy: f64[M, N],
    sxy: f64[M, N],
):
    """Stresses of an elastic wave, on a staggered grid, updated in place."""
    dvx = vx[2:, 1:-1] - vx[1:-1, 1:-1]
    dvy = vy[1:-1, 1:-1] - vy[1:-1, :-2]
    sxx[1:-1, 1:-1] += (lam[1:-1, 1:-1] + 2.0 * mu[1:-1, 1:-1]) * dvx + lam[1:-1, 1:-1] * dvy
    syy[1:-1, 1:-1] += (lam[1:-1, 1:-1] + 2.0 * mu[1:-1, 1:-1]) * dvy + lam[1:-1, 1:-1] * dvx
    sxy[1:-1, 1:-1] += (
        0.25
        * (mu[1:-1, 1:-1] + mu[:-2, 1:-1] + mu[1:-1, 2:] + mu[:-2, 2:])
        * (vx[1:-1, 2:] - vx[1:-1, 1:-1] + vy[1:-1, 1:-1] - vy[:-2, 1:-1])
    )


@dace.program
def inducted(
    u: f64[M, N], v: f64[M, N], bx: f64[M, N], by: f64[M, N], ex: f64[M, N], ey: f64[M, N], heat: f64[M, N]
):
    """A magnetic field in a flow: what changes it on both axes, and the heat of its currents."""
    out = u[2:, 1:-1] * by[2:, 1:-1] - v[2:, 1:-1] * bx[2:, 1:-1]
    back = u[:-2, 1:-1] * by[:-2, 1:-1] - v[:-2, 1:-1] * bx[:-2, 1:-1]
    up = u[1:-1, 2:] * by[1:-1, 2:] - v[1:-1, 2:] * bx[1:-1, 2:]
    low = u[1:-1, :-2] * by[1:-1, :-2] - v[1:-1, :-2] * bx[1:-1, :-2]
    current = by[2:, 1:-1] - by[:-2, 1:-1] - bx[1:-1, 2:] + bx[1:-1, :-2]
    ex[1:-1, 1:-1] = 0.5 * (up - low)
    ey[1:-1, 1:-1] = 0.5 * (back - out)
    heat[1:-1, 1:-1] = 0.25 * current * current


@dace.program
def four_means(a: f32[M, N], north: f32[M, N], east: f32[M, N], centre: f32[M, N], spread: f32[M, N]):
    """Means on the sides and in the middle of cells, and how much their corners differ."""
    north[:-1, :-1] = 0.5 * (a[:-1, :-1] + a[:-1, 1:])
    east[:-1, :-1] = 0.5 * (a[:-1, :-1] + a[1:, :-1])
    centre[:-1, :-1] = 0.25 * (a[:-1, :-1] + a[1:, :-1] + a[:-1, 1:] + a[1:, 1:])
    spread[:-1, :-1] = np.maximum(
        np.maximum(a[:-1, :-1], a[1:, :-1]), np.maximum(a[:-1, 1:], a[1:, 1:])
    ) - np.minimum(np.minimum(a[:-1, :-1], a[1:, :-1]), np.minimum(a[:-1, 1:], a[1:, 1:]))


@dace.program
def squeezed(u: f64[M, N, K], v: f64[M, N, K], w: f64[M, N, K], volume: f64[M, N, K], shape: f64[M, N, K]):
    """How fast a flow in three dimensions is squeezed, and how fast it is sheared."""
    ux = u[2:, 1:-1, 1:-1] - u[:-2, 1:-1, 1:-1]
    uy = u[1:-1, 2:, 1:-1] - u[1:-1, :-2, 1:-1]
    uz = u[1:-1, 1:-1, 2:] - u[1:-1, 1:-1, :-2]
    vx = v[2:, 1:-1, 1:-1] - v[:-2, 1:-1, 1:-1]
    vy = v[1:-1, 2:, 1:-1] - v[1:-1, :-2, 1:-1]
    vz = v[1:-1, 1:-1, 2:] - v[1:-1, 1:-1, :-2]
    wx = w[2:, 1:-1, 1:-1] - w[:-2, 1:-1, 1:-1]
    wy = w[1:-1, 2:, 1:-1] - w[1:-1, :-2, 1:-1]
    wz = w[1:-1, 1:-1, 2:] - w[1:-1, 1:-1, :-2]
    volume[1:-1, 1:-1, 1:-1] = 0.5 * (ux + vy + wz)
    shape[1:-1, 1:-1, 1:-1] = (
        ux * ux
        + vy * vy
        + wz * wz
        + 0.5 * ((uy + vx) * (uy + vx) + (uz + wx) * (uz + wx) + (vz + wy) * (vz + wy))
    )


# --------------------------------------------------------------------------- long expressions


@dace.program
def limited(t: f64[M, N], u: f64[M, N], v: f64[M, N], out: f64[M, N]):
    """Second-order upwind transport along both axes."""
    for i, j in dace.map[2 : M - 2, 2 : N - 2]:
        up = np.maximum(u[i, j], 0.0)
        um = np.minimum(u[i, j], 0.0)
        vp = np.maximum(v[i, j], 0.0)
        vm = np.minimum(v[i, j], 0.0)
        out[i, j] = t[i, j] - 0.1 * (
            up * (3.0 * t[i, j] - 4.0 * t[i - 1, j] + t[i - 2, j])
            + um * (4.0 * t[i + 1, j] - 3.0 * t[i, j] - t[i + 2, j])
            + vp * (3.0 * t[i, j] - 4.0 * t[i, j - 1] + t[i, j - 2])
            + vm * (4.0 * t[i, j + 1] - 3.0 * t[i, j] - t[i, j + 2])
        )


@dace.program
def spread_twice(u: f32[M, N, K], out: f32[M, N, K]):
    """A laplacian of a laplacian, which is larger by its border."""
    once = (
        u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6.0 * u[1:-1, 1:-1, 1:-1]
    )  # fmt: skip
    out[2:-2, 2:-2, 2:-2] = u[2:-2, 2:-2, 2:-2] - 0.02 * (
        once[2:, 1:-1, 1:-1] + once[:-2, 1:-1, 1:-1] + once[1:-1, 2:, 1:-1] + once[1:-1, :-2, 1:-1]
        + once[1:-1, 1:-1, 2:] + once[1:-1, 1:-1, :-2] - 6.0 * once[1:-1, 1:-1, 1:-1]
    )  # fmt: skip


@dace.program
def smoothed_thrice(u: f64[M, N], out: f64[M, N]):
    """One laplacian after another, three times."""
    first = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
    second = first[2:, 1:-1] + first[:-2, 1:-1] + first[1:-1, 2:] + first[1:-1, :-2] - 4.0 * first[1:-1, 1:-1]
    out[3:-3, 3:-3] = u[3:-3, 3:-3] + 0.001 * (
        second[2:, 1:-1] + second[:-2, 1:-1] + second[1:-1, 2:] + second[1:-1, :-2] - 4.0 * second[1:-1, 1:-1]
    )
