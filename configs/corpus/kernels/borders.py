"""Stencils beside what their borders get, and stencils with several results."""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- borders of their own


@dace.program
def relax_inside(old: f64[M, N], after: f64[M, N]):
    """A sweep of Jacobi's method; the borders stay."""
    after[:] = old
    after[1:-1, 1:-1] = 0.25 * (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1])


@dace.program
def sharpen(image: f32[M, N], strength: f32, out: f32[M, N]):
    """Unsharp masking, away from the borders."""
    out[:] = image
    out[1:-1, 1:-1] += strength * (
        4 * image[1:-1, 1:-1] - image[1:-1, 2:] - image[1:-1, :-2] - image[2:, 1:-1] - image[:-2, 1:-1]
    )


@dace.program
def slope_inside(height: f64[M, N], slope: f64[M, N]):
    """The steepness of a terrain, zero at the borders."""
    slope[:] = 0.0
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        east = height[i, j + 1] - height[i, j - 1]
        south = height[i + 1, j] - height[i - 1, j]
        slope[i, j] = np.sqrt(east * east + south * south)


@dace.program
def mix_layers(old: f32[M, N, K], after: f32[M, N, K]):
    """Diffusion along the first two axes."""
    after[:] = old
    after[1:-1, 1:-1, :] = old[1:-1, 1:-1, :] + np.float32(0.1) * (
        old[2:, 1:-1, :] + old[:-2, 1:-1, :] + old[1:-1, 2:, :] + old[1:-1, :-2, :] - 4 * old[1:-1, 1:-1, :]
    )


@dace.program
def heat_box(old: f64[M, N, K], source: f64[M, N, K], after: f64[M, N, K]):
    """Heat in a box with walls of fixed temperature."""
    after[:] = old
    for i, j, k in dace.map[1 : M - 1, 1 : N - 1, 1 : K - 1]:
        around = old[i - 1, j, k] + old[i + 1, j, k] + old[i, j - 1, k] + old[i, j + 1, k]
        ends = old[i, j, k - 1] + old[i, j, k + 1]
        after[i, j, k] = old[i, j, k] + 0.02 * (around + ends - 6.0 * old[i, j, k]) + source[i, j, k]


@dace.program
def smooth_along(old: f64[M, N], after: f64[M, N]):
    """A filter of five points along the columns; two rows at each end stay."""
    after[:] = old
    after[2:-2] = 0.4 * old[2:-2] + 0.2 * (old[1:-3] + old[3:-1]) + 0.1 * (old[:-4] + old[4:])


@dace.program
def advance_wave(before: f64[M, N], now: f64[M, N], after: f64[M, N]):
    """A membrane that leaves by its edges: the rims are damped, the inside moves."""
    after[:] = 0.99 * now
    after[1:-1, 1:-1] = (
        2.0 * now[1:-1, 1:-1]
        - before[1:-1, 1:-1]
        + 0.2 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4.0 * now[1:-1, 1:-1])
    )


@dace.program
def drift(u: f64[M, N], v: f64[M, N], new_u: f64[M, N], new_v: f64[M, N]):
    """Burgers' equation: each velocity is carried by both."""
    new_u[:] = u
    new_v[:] = v
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        new_u[i, j] = u[i, j] - 0.1 * (u[i, j] * (u[i, j] - u[i - 1, j]) + v[i, j] * (u[i, j] - u[i, j - 1]))
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        new_v[i, j] = v[i, j] - 0.1 * (u[i, j] * (v[i, j] - v[i - 1, j]) + v[i, j] * (v[i, j] - v[i, j - 1]))


# --------------------------------------------------------------------------- several results


@dace.program
def magnetic_update(ez: f64[M, N], hx: f64[M, N], hy: f64[M, N]):
    """Both magnetic fields from the electric one."""
    hx[:, :-1] -= 0.5 * (ez[:, 1:] - ez[:, :-1])
    hy[:-1, :] += 0.5 * (ez[1:, :] - ez[:-1, :])


@dace.program
def strain(u: f32[M, N], v: f32[M, N], xx: f32[M, N], yy: f32[M, N], xy: f32[M, N]):
    """The strain of a plate from its displacement."""
    xx[1:-1, 1:-1] = u[1:-1, 2:] - u[1:-1, :-2]
    yy[1:-1, 1:-1] = v[2:, 1:-1] - v[:-2, 1:-1]
    xy[1:-1, 1:-1] = np.float32(0.5) * (u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2])


@dace.program
def shallow_fluxes(
    h: f64[M, N], u: f64[M, N], v: f64[M, N], mass: f64[M, N], along: f64[M, N], across: f64[M, N]
):
    """Fluxes of mass and momentum of shallow water."""
    for i, j in dace.map[0 : M - 1, 0 : N - 1]:
        depth = 0.5 * (h[i, j] + h[i, j + 1])
        speed = 0.5 * (u[i, j] + u[i, j + 1])
        mass[i, j] = depth * speed
        along[i, j] = depth * speed * speed + 4.9 * depth * depth
        across[i, j] = depth * speed * 0.5 * (v[i, j] + v[i, j + 1])


@dace.program
def potential_flow(psi: f64[M, N], u: f64[M, N], v: f64[M, N], pressure: f64[M, N]):
    """Velocities from a stream function, and the pressure they leave."""
    east = psi[1:-1, 2:] - psi[1:-1, :-2]
    south = psi[2:, 1:-1] - psi[:-2, 1:-1]
    u[1:-1, 1:-1] = 0.5 * south
    v[1:-1, 1:-1] = -0.5 * east
    pressure[1:-1, 1:-1] = 1.0 - 0.125 * (east * east + south * south)


@dace.program
def image_gradients(image: f32[M, N], xx: f32[M, N], xy: f32[M, N], yy: f32[M, N]):
    """The entries of the structure tensor."""
    for i, j in dace.map[1 : M - 1, 1 : N - 1]:
        x = image[i, j + 1] - image[i, j - 1]
        y = image[i + 1, j] - image[i - 1, j]
        xx[i, j] = x * x
        xy[i, j] = x * y
        yy[i, j] = y * y


@dace.program
def forces(p: f64[M, N, K], fx: f64[M, N, K], fy: f64[M, N, K], fz: f64[M, N, K]):
    """A pressure pushes along three axes."""
    fx[1:-1, :, :] = p[:-2, :, :] - p[2:, :, :]
    fy[:, 1:-1, :] = p[:, :-2, :] - p[:, 2:, :]
    fz[:, :, 1:-1] = p[:, :, :-2] - p[:, :, 2:]
