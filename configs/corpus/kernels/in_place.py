"""Loops over time that update their arrays in place, as users of NumPy write them: what a step reads of the
neighbours has to be put by, unless steps go from one copy of the arrays to another."""

import dace
import numpy as np

M, N, K, T = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "T"))
f32, f64, i32 = dace.float32, dace.float64, dace.int32


@dace.program
def rod(u: f64[N], c: f64):
    """Heat in one dimension."""
    for _t in range(T):
        u[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])


@dace.program
def plate(u: f64[M, N], c: f64):
    """Heat in two dimensions."""
    for _t in range(T):
        u[1:-1, 1:-1] += c * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])


@dace.program
def block(u: f32[M, N, K], c: f32):
    """Heat in three dimensions."""
    for _t in range(T):
        u[1:-1, 1:-1, 1:-1] += c * (
            u[2:, 1:-1, 1:-1]
            + u[:-2, 1:-1, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:]
            + u[1:-1, 1:-1, :-2]
            - f32(6.0) * u[1:-1, 1:-1, 1:-1]
        )


@dace.program
def thin_beam(u: f64[N], c: f64):
    """Differences of fourth order along a line."""
    for _t in range(T):
        u[2:-2] = u[2:-2] - c * (u[4:] - 4.0 * u[3:-1] + 6.0 * u[2:-2] - 4.0 * u[1:-3] + u[:-4])


@dace.program
def thin_plate(u: f32[M, N], c: f32):
    """Differences of fourth order in two dimensions, thirteen points."""
    for _t in range(T):
        u[2:-2, 2:-2] = u[2:-2, 2:-2] - c * (
            f32(20.0) * u[2:-2, 2:-2]
            - f32(8.0) * (u[1:-3, 2:-2] + u[3:-1, 2:-2] + u[2:-2, 1:-3] + u[2:-2, 3:-1])
            + f32(2.0) * (u[1:-3, 1:-3] + u[1:-3, 3:-1] + u[3:-1, 1:-3] + u[3:-1, 3:-1])
            + (u[:-4, 2:-2] + u[4:, 2:-2] + u[2:-2, :-4] + u[2:-2, 4:])
        )


@dace.program
def uneven_plate(u: f64[M, N], conductivity: f64[M, N], c: f64):
    """Heat where every place conducts differently."""
    for _t in range(T):
        u[1:-1, 1:-1] += (
            c
            * conductivity[1:-1, 1:-1]
            * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
        )


@dace.program
def heated_plate(u: f64[M, N], before: f64[M, N], source: f64[M, N]):
    """Relaxation with a source and insulated borders; the field before the step is an array of the caller."""
    for _t in range(T):
        before[:] = u
        u[1:-1, 1:-1] = 0.25 * (
            before[2:, 1:-1] + before[:-2, 1:-1] + before[1:-1, 2:] + before[1:-1, :-2] + source[1:-1, 1:-1]
        )
        u[:, 0] = u[:, 1]
        u[:, -1] = u[:, -2]


@dace.program
def two_phases(u: f32[M, N], c: f32, reaction: f32):
    """A boundary between phases moves (Allen and Cahn)."""
    for _t in range(T):
        u[1:-1, 1:-1] += c * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - f32(4.0) * u[1:-1, 1:-1]
        ) + reaction * (u[1:-1, 1:-1] - u[1:-1, 1:-1] * u[1:-1, 1:-1] * u[1:-1, 1:-1])


@dace.program
def oscillating_reaction(u: f64[M, N], v: f64[M, N], a: f64, b: f64, c: f64):
    """Two substances (Brusselator): both old fields are read by both new ones."""
    for _t in range(T):
        lu = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        lv = v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * v[1:-1, 1:-1]
        made = u[1:-1, 1:-1] * u[1:-1, 1:-1] * v[1:-1, 1:-1]
        u[1:-1, 1:-1] += c * lu + 0.001 * (a + made - (b + 1.0) * u[1:-1, 1:-1])
        v[1:-1, 1:-1] += 0.5 * c * lv + 0.001 * (b * u[1:-1, 1:-1] - made)


@dace.program
def hunters(prey: f64[M, N], hunter: f64[M, N], c: f64, born: f64, caught: f64):
    """Animals that wander, eat and multiply."""
    for _t in range(T):
        p = prey.copy()
        h = hunter.copy()
        prey[1:-1, 1:-1] = (
            p[1:-1, 1:-1]
            + c * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4.0 * p[1:-1, 1:-1])
            + born * p[1:-1, 1:-1] * (1.0 - p[1:-1, 1:-1])
            - caught * p[1:-1, 1:-1] * h[1:-1, 1:-1]
        )
        hunter[1:-1, 1:-1] = (
            h[1:-1, 1:-1]
            + 2.0 * c * (h[2:, 1:-1] + h[:-2, 1:-1] + h[1:-1, 2:] + h[1:-1, :-2] - 4.0 * h[1:-1, 1:-1])
            + caught * p[1:-1, 1:-1] * h[1:-1, 1:-1]
            - 0.5 * born * h[1:-1, 1:-1]
        )


@dace.program
def quantum_box(re: f64[M, N], im: f64[M, N], potential: f64[M, N], dt: f64):
    """A wave function in real and imaginary parts, one after the other."""
    for _t in range(T):
        re[1:-1, 1:-1] += dt * (
            potential[1:-1, 1:-1] * im[1:-1, 1:-1]
            - 0.5 * (im[2:, 1:-1] + im[:-2, 1:-1] + im[1:-1, 2:] + im[1:-1, :-2] - 4.0 * im[1:-1, 1:-1])
        )
        im[1:-1, 1:-1] -= dt * (
            potential[1:-1, 1:-1] * re[1:-1, 1:-1]
            - 0.5 * (re[2:, 1:-1] + re[:-2, 1:-1] + re[1:-1, 2:] + re[1:-1, :-2] - 4.0 * re[1:-1, 1:-1])
        )


@dace.program
def drifting_cloud(q: f32[M, N], along: f32[M, N], across: f32[M, N], dt: f32):
    """What a wind carries to the right and down, from the neighbours that it comes from."""
    for _t in range(T):
        q[1:, 1:] = (
            q[1:, 1:]
            - dt * along[1:, 1:] * (q[1:, 1:] - q[1:, :-1])
            - dt * across[1:, 1:] * (q[1:, 1:] - q[:-1, 1:])
        )


@dace.program
def shock(u: f64[N], dt: f64, nu: f64):
    """A steepening wave with some friction."""
    for _t in range(T):
        old = u.copy()
        u[1:-1] = (
            old[1:-1]
            - 0.5 * dt * old[1:-1] * (old[2:] - old[:-2])
            + nu * (old[2:] - 2.0 * old[1:-1] + old[:-2])
        )
        u[0] = u[-2]
        u[-1] = u[1]


@dace.program
def traffic(density: f64[N], dt: f64):
    """Cars flow from where they are to where room is (Lighthill and Whitham, Lax and Friedrichs)."""
    for _t in range(T):
        flow = density * (1.0 - density)
        density[1:-1] = 0.5 * (density[2:] + density[:-2]) - 0.5 * dt * (flow[2:] - flow[:-2])


@dace.program
def spreading_layer(h: f64[M, N], dt: f64):
    """A thin film that flows the faster the thicker it is: fluxes between cells, then their differences."""
    for _t in range(T):
        down = 0.125 * (h[1:, :] + h[:-1, :]) ** 3 * (h[:-1, :] - h[1:, :])
        right = 0.125 * (h[:, 1:] + h[:, :-1]) ** 3 * (h[:, :-1] - h[:, 1:])
        h[1:-1, 1:-1] += dt * (down[:-1, 1:-1] - down[1:, 1:-1] + right[1:-1, :-1] - right[1:-1, 1:])


@dace.program
def burning_front(arrival: f32[M, N], cost: f32[M, N]):
    """Least time to every place, by way of its neighbours."""
    for _t in range(T):
        arrival[1:-1, 1:-1] = np.minimum(
            arrival[1:-1, 1:-1],
            cost[1:-1, 1:-1]
            + np.minimum(
                np.minimum(arrival[2:, 1:-1], arrival[:-2, 1:-1]),
                np.minimum(arrival[1:-1, 2:], arrival[1:-1, :-2]),
            ),
        )


@dace.program
def growing_colony(cells: i32[M, N]):
    """Cells live and die by how many of eight neighbours live."""
    for _t in range(T):
        near = (
            cells[:-2, :-2] + cells[:-2, 1:-1] + cells[:-2, 2:] + cells[1:-1, :-2]
            + cells[1:-1, 2:] + cells[2:, :-2] + cells[2:, 1:-1] + cells[2:, 2:]
        )  # fmt: skip
        cells[1:-1, 1:-1] = np.where((near == 3) | ((near == 2) & (cells[1:-1, 1:-1] == 1)), 1, 0)


@dace.program
def sliding_sand(grains: i32[M, N]):
    """Heaps of four grains or more give one to each neighbour."""
    for _t in range(T):
        falls = grains // 4
        grains[1:-1, 1:-1] += (
            falls[2:, 1:-1] + falls[:-2, 1:-1] + falls[1:-1, 2:] + falls[1:-1, :-2] - 4 * falls[1:-1, 1:-1]
        )


@dace.program
def filled_gaps(image: f64[M, N], known: f64[M, N]):
    """What is not known of a picture becomes the mean of what lies around it."""
    for _t in range(T):
        around = 0.25 * (image[2:, 1:-1] + image[:-2, 1:-1] + image[1:-1, 2:] + image[1:-1, :-2])
        image[1:-1, 1:-1] = np.where(known[1:-1, 1:-1] > 0.5, image[1:-1, 1:-1], around)


@dace.program
def worn_rock(height: f32[M, N], talus: f32):
    """Slopes that are too steep slide to the lower neighbours."""
    for _t in range(T):
        a = np.maximum(height[1:-1, 1:-1] - height[2:, 1:-1] - talus, f32(0.0))
        b = np.maximum(height[1:-1, 1:-1] - height[:-2, 1:-1] - talus, f32(0.0))
        c = np.maximum(height[2:, 1:-1] - height[1:-1, 1:-1] - talus, f32(0.0))
        d = np.maximum(height[:-2, 1:-1] - height[1:-1, 1:-1] - talus, f32(0.0))
        height[1:-1, 1:-1] += f32(0.2) * (c + d - a - b)
