"""Chains of stencils through scratch arrays, as images are filtered and fluxes become tendencies."""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64, i32 = dace.float32, dace.float64, dace.int32

# --------------------------------------------------------------------------- images


@dace.program
def binomial_filter(image: f32[M, N], out: f32[M, N]):
    """Five binomial weights along columns, then along rows."""
    across = np.zeros((M, N), dtype=np.float32)
    across[2:-2, :] = (
        np.float32(0.0625)
        * (image[:-4, :] + image[4:, :] + np.float32(4) * (image[1:-3, :] + image[3:-1, :]))
        + np.float32(0.375) * image[2:-2, :]
    )
    out[2:-2, 2:-2] = (
        np.float32(0.0625)
        * (across[2:-2, :-4] + across[2:-2, 4:] + np.float32(4) * (across[2:-2, 1:-3] + across[2:-2, 3:-1]))
        + np.float32(0.375) * across[2:-2, 2:-2]
    )


@dace.program
def box_then_rows(image: f64[M, N], out: f64[M, N]):
    """Sums of three along rows, then of five down columns."""
    along = np.empty((M, N), dtype=np.float64)
    for i, j in dace.map[0:M, 1 : N - 1]:
        along[i, j] = image[i, j - 1] + image[i, j] + image[i, j + 1]
    for i, j in dace.map[2 : M - 2, 1 : N - 1]:
        out[i, j] = (
            along[i - 2, j] + along[i - 1, j] + along[i, j] + along[i + 1, j] + along[i + 2, j]
        ) / 15.0


@dace.program
def corner_measure(image: f32[M, N], out: f32[M, N]):
    """Determinant and trace of smoothed products of gradients."""
    gx = np.zeros((M, N), dtype=np.float32)
    gy = np.zeros((M, N), dtype=np.float32)
    gx[1:-1, 1:-1] = image[1:-1, 2:] - image[1:-1, :-2]
    gy[1:-1, 1:-1] = image[2:, 1:-1] - image[:-2, 1:-1]
    xx = gx * gx
    yy = gy * gy
    xy = gx * gy
    sxx = xx[2:, 1:-1] + xx[1:-1, 1:-1] + xx[:-2, 1:-1]
    syy = yy[2:, 1:-1] + yy[1:-1, 1:-1] + yy[:-2, 1:-1]
    sxy = xy[2:, 1:-1] + xy[1:-1, 1:-1] + xy[:-2, 1:-1]
    out[1:-1, 1:-1] = sxx * syy - sxy * sxy - np.float32(0.05) * (sxx + syy) * (sxx + syy)


@dace.program
def sharpen(image: f32[M, N], amount: f32, out: f32[M, N]):
    """What a smoothed image lacks, added where it is more than noise."""
    smooth = np.copy(image)
    smooth[1:-1, 1:-1] = np.float32(0.2) * (
        image[1:-1, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + image[2:, 1:-1] + image[:-2, 1:-1]
    )
    smoother = np.copy(smooth)
    smoother[1:-1, 1:-1] = np.float32(0.2) * (
        smooth[1:-1, 1:-1] + smooth[1:-1, :-2] + smooth[1:-1, 2:] + smooth[2:, 1:-1] + smooth[:-2, 1:-1]
    )
    lacking = image - smoother
    out[:] = np.where(np.abs(lacking) > np.float32(0.02), image + amount * lacking, image)


@dace.program
def gradient_magnitude(image: i32[M, N], out: i32[M, N]):
    """Sobel's operators after a rounded mean of four, in integers."""
    mean = np.zeros((M, N), dtype=np.int32)
    for i, j in dace.map[0 : M - 1, 0 : N - 1]:
        mean[i, j] = (image[i, j] + image[i + 1, j] + image[i, j + 1] + image[i + 1, j + 1] + 2) >> 2
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        right = mean[i - 1, j + 1] + 2 * mean[i, j + 1] + mean[i + 1, j + 1]
        left = mean[i - 1, j - 1] + 2 * mean[i, j - 1] + mean[i + 1, j - 1]
        below = mean[i + 1, j - 1] + 2 * mean[i + 1, j] + mean[i + 1, j + 1]
        above = mean[i - 1, j - 1] + 2 * mean[i - 1, j] + mean[i - 1, j + 1]
        out[i, j] = max(right - left, left - right) + max(below - above, above - below)


# --------------------------------------------------------------------------- fluxes on a plane


@dace.program
def double_gyre(psi: f64[M, N], q: f64[M, N], out: f64[M, N]):
    """Velocities of a stream function, the vorticity that they carry, and its friction."""
    u = np.zeros((M, N), dtype=np.float64)
    v = np.zeros((M, N), dtype=np.float64)
    lap = np.zeros((M, N), dtype=np.float64)
    u[1:-1, 1:-1] = psi[:-2, 1:-1] - psi[2:, 1:-1]
    v[1:-1, 1:-1] = psi[1:-1, 2:] - psi[1:-1, :-2]
    lap[1:-1, 1:-1] = q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2] - 4.0 * q[1:-1, 1:-1]
    out[2:-2, 2:-2] = (
        0.01 * (lap[3:-1, 2:-2] + lap[1:-3, 2:-2] + lap[2:-2, 3:-1] + lap[2:-2, 1:-3] - 4.0 * lap[2:-2, 2:-2])
        - 0.5 * (u[2:-2, 3:-1] * q[2:-2, 3:-1] - u[2:-2, 1:-3] * q[2:-2, 1:-3])
        - 0.5 * (v[3:-1, 2:-2] * q[3:-1, 2:-2] - v[1:-3, 2:-2] * q[1:-3, 2:-2])
    )


@dace.program
def limited_fluxes(c: f64[M, N], u: f64[M, N], v: f64[M, N], out: f64[M, N]):
    """Advection with slopes limited in both directions, fluxes through faces, their divergence."""
    fx = np.zeros((M, N), dtype=np.float64)
    fy = np.zeros((M, N), dtype=np.float64)
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        left = c[i, j] - c[i, j - 1]
        right = c[i, j + 1] - c[i, j]
        slope = max(min(left, right), 0.0) + min(max(left, right), 0.0)
        fx[i, j] = u[i, j] * (c[i, j] + 0.5 * slope)
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        below = c[i, j] - c[i - 1, j]
        above = c[i + 1, j] - c[i, j]
        slope = max(min(below, above), 0.0) + min(max(below, above), 0.0)
        fy[i, j] = v[i, j] * (c[i, j] + 0.5 * slope)
    for i, j in dace.map[2 : M - 1, 2 : N - 1]:
        out[i, j] = c[i, j] - 0.1 * (fx[i, j] - fx[i, j - 1] + fy[i, j] - fy[i - 1, j])


@dace.program
def two_stages(a: f64[M, N], k: f64[M, N], out: f64[M, N]):
    """Half a step of diffusion with a coefficient of its own everywhere, and a whole one with its result."""
    half = np.copy(a)
    half[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.05 * k[1:-1, 1:-1] * (
        a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4.0 * a[1:-1, 1:-1]
    )
    out[2:-2, 2:-2] = a[2:-2, 2:-2] + 0.1 * k[2:-2, 2:-2] * (
        half[3:-1, 2:-2] + half[1:-3, 2:-2] + half[2:-2, 3:-1] + half[2:-2, 1:-3] - 4.0 * half[2:-2, 2:-2]
    )


@dace.program
def strain_viscosity(u: f32[M, N], v: f32[M, N], du: f32[M, N], dv: f32[M, N]):
    """Stresses of a flow whose viscosity grows with its strain, and the accelerations that they cause."""
    sxx = np.zeros((M, N), dtype=np.float32)
    syy = np.zeros((M, N), dtype=np.float32)
    sxy = np.zeros((M, N), dtype=np.float32)
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        ux = u[i, j + 1] - u[i, j - 1]
        uy = u[i + 1, j] - u[i - 1, j]
        vx = v[i, j + 1] - v[i, j - 1]
        vy = v[i + 1, j] - v[i - 1, j]
        viscosity = np.float32(0.01) + np.float32(0.1) * np.sqrt(ux * ux + vy * vy + (uy + vx) * (uy + vx))
        sxx[i, j] = viscosity * ux
        syy[i, j] = viscosity * vy
        sxy[i, j] = viscosity * (uy + vx)
    du[2:-2, 2:-2] = sxx[2:-2, 3:-1] - sxx[2:-2, 1:-3] + sxy[3:-1, 2:-2] - sxy[1:-3, 2:-2]
    dv[2:-2, 2:-2] = sxy[2:-2, 3:-1] - sxy[2:-2, 1:-3] + syy[3:-1, 2:-2] - syy[1:-3, 2:-2]


@dace.program
def pressure_forces(p: f64[M, N], rho: f64[M, N], out: f64[M, N]):
    """Divergence of accelerations between cells whose densities differ."""
    ax = np.empty((M, N), dtype=np.float64)
    ay = np.empty((M, N), dtype=np.float64)
    for i, j in dace.map[0:M, 0 : N - 1]:
        ax[i, j] = (p[i, j + 1] - p[i, j]) * 2.0 / (rho[i, j + 1] + rho[i, j] + 1.0)
    for i, j in dace.map[0 : M - 1, 0:N]:
        ay[i, j] = (p[i + 1, j] - p[i, j]) * 2.0 / (rho[i + 1, j] + rho[i, j] + 1.0)
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        out[i, j] = ax[i, j] - ax[i, j - 1] + ay[i, j] - ay[i - 1, j]


# --------------------------------------------------------------------------- three dimensions


@dace.program
def biharmonic_levels(u: f64[M, N, K], out: f64[M, N, K]):
    """The Laplacian of a Laplacian over every level, levels contiguous."""
    lap = np.empty((M, N, K), dtype=np.float64)
    lap[1:-1, 1:-1, :] = (
        u[2:, 1:-1, :] + u[:-2, 1:-1, :] + u[1:-1, 2:, :] + u[1:-1, :-2, :] - 4.0 * u[1:-1, 1:-1, :]
    )
    out[2:-2, 2:-2, :] = u[2:-2, 2:-2, :] - 0.02 * (
        lap[3:-1, 2:-2, :] + lap[1:-3, 2:-2, :] + lap[2:-2, 3:-1, :] + lap[2:-2, 1:-3, :]
        - 4.0 * lap[2:-2, 2:-2, :]
    )  # fmt: skip


@dace.program
def smooth_three_ways(a: f32[M, N, K], out: f32[M, N, K]):
    """Means of three along each axis, one after the other."""
    x = np.zeros((M, N, K), dtype=np.float32)
    y = np.zeros((M, N, K), dtype=np.float32)
    third = np.float32(0.33333334)
    x[:, :, 1:-1] = third * (a[:, :, :-2] + a[:, :, 1:-1] + a[:, :, 2:])
    y[:, 1:-1, :] = third * (x[:, :-2, :] + x[:, 1:-1, :] + x[:, 2:, :])
    out[1:-1, 1:-1, 1:-1] = third * (y[:-2, 1:-1, 1:-1] + y[1:-1, 1:-1, 1:-1] + y[2:, 1:-1, 1:-1])


@dace.program
def flux_divergence(t: f64[M, N, K], c: f64[M, N, K], out: f64[M, N, K]):
    """Heat through the faces of cells of different conductivity."""
    qi = np.empty((M, N, K), dtype=np.float64)
    qj = np.empty((M, N, K), dtype=np.float64)
    qk = np.empty((M, N, K), dtype=np.float64)
    qi[1:, :, :] = (c[1:, :, :] + c[:-1, :, :]) * (t[1:, :, :] - t[:-1, :, :])
    qj[:, 1:, :] = (c[:, 1:, :] + c[:, :-1, :]) * (t[:, 1:, :] - t[:, :-1, :])
    qk[:, :, 1:] = (c[:, :, 1:] + c[:, :, :-1]) * (t[:, :, 1:] - t[:, :, :-1])
    out[1:-1, 1:-1, 1:-1] = 0.05 * (
        qi[2:, 1:-1, 1:-1] - qi[1:-1, 1:-1, 1:-1]
        + qj[1:-1, 2:, 1:-1] - qj[1:-1, 1:-1, 1:-1]
        + qk[1:-1, 1:-1, 2:] - qk[1:-1, 1:-1, 1:-1]
    )  # fmt: skip


@dace.program
def rotation_energy(u: f32[M, N, K], v: f32[M, N, K], out: f32[M, N, K]):
    """Squared rotation of horizontal winds, averaged over its neighbours."""
    rotation = np.zeros((M, N, K), dtype=np.float32)
    rotation[1:-1, 1:-1, :] = v[1:-1, 2:, :] - v[1:-1, :-2, :] - u[2:, 1:-1, :] + u[:-2, 1:-1, :]
    energy = rotation * rotation
    out[1:-1, 1:-1, :] = np.float32(0.25) * (
        energy[2:, 1:-1, :] + energy[:-2, 1:-1, :] + energy[1:-1, 2:, :] + energy[1:-1, :-2, :]
    )
