"""The sweeps of `sweeps.py` in Numba, as its users write them: loops, which are no `prange`, because each
element needs the ones before."""

from __future__ import annotations

import numba
import numpy as np

jit = numba.njit(fastmath=True, cache=True)
f32 = np.float32


@jit
def edit_distance(s, t, distance):
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            change = 0 if s[i - 1] == t[j - 1] else 1
            distance[i, j] = min(
                distance[i - 1, j - 1] + change, distance[i, j - 1] + 1, distance[i - 1, j] + 1
            )


@jit
def common_subsequence(s, t, length):
    for i in range(len(s)):
        for j in range(len(t)):
            if s[i] == t[j]:
                length[i + 1, j + 1] = length[i, j] + 1
            else:
                length[i + 1, j + 1] = max(length[i, j + 1], length[i + 1, j])


@jit
def local_alignment(s, t, score, best):
    highest = best[0]
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            match = 2 if s[i - 1] == t[j - 1] else -3
            found = max(0, score[i - 1, j - 1] + match, score[i - 1, j] - 2, score[i, j - 1] - 2)
            score[i, j] = found
            highest = max(highest, found)
    best[0] = highest


@jit
def scored_alignment(s, t, table, gap, score):
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            kept = score[i - 1, j - 1] + table[s[i - 1], t[j - 1]]
            score[i, j] = max(kept, max(score[i - 1, j], score[i, j - 1]) - gap)


@jit
def time_warping(x, y, cost):
    for i in range(1, len(x)):
        for j in range(1, len(y)):
            cost[i, j] = abs(x[i] - y[j]) + min(cost[i - 1, j], cost[i - 1, j - 1], cost[i, j - 1])


@jit
def warping_in_two_rows(x, y, distance):
    above = np.full(len(y) + 1, 1e30)
    row = np.full(len(y) + 1, 1e30)
    above[0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            row[j + 1] = abs(x[i] - y[j]) + min(above[j + 1], above[j], row[j])
        above, row = row, above
        row[0] = 1e30
    distance[0] = above[len(y)]


@jit
def cheapest_path(toll, cost):
    n, m = cost.shape
    cost[n - 1, m - 1] = toll[n - 1, m - 1]
    for i in range(n - 2, -1, -1):
        cost[i, m - 1] = toll[i, m - 1] + cost[i + 1, m - 1]
    for j in range(m - 2, -1, -1):
        cost[n - 1, j] = toll[n - 1, j] + cost[n - 1, j + 1]
    for i in range(n - 2, -1, -1):
        for j in range(m - 2, -1, -1):
            cost[i, j] = toll[i, j] + min(cost[i + 1, j], cost[i, j + 1])


@jit
def over_relaxation(u, rhs, omega):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            mean = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - rhs[i, j])
            u[i, j] += omega * (mean - u[i, j])


@jit
def nine_points(u, STEPS):
    for _ in range(STEPS):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                edges = u[i - 1, j] + u[i, j - 1] + u[i, j + 1] + u[i + 1, j]
                corners = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
                u[i, j] = f32(0.2) * edges + f32(0.05) * corners


@jit
def there_and_back(u, rhs, STEPS):
    for _ in range(STEPS):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] + rhs[i, j]) / 4.0
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] + rhs[i, j]) / 4.0


@jit
def heated_block(u, source):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                below = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                u[i, j, k] = (
                    below + u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1] + source[i, j, k]
                ) / 6.0


@jit
def error_diffusion(image, dots):
    for i in range(image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            dot = f32(1.0) if image[i, j] > f32(0.5) else f32(0.0)
            dots[i, j] = dot
            error = image[i, j] - dot
            image[i, j + 1] += f32(0.4375) * error
            image[i + 1, j - 1] += f32(0.1875) * error
            image[i + 1, j] += f32(0.3125) * error
            image[i + 1, j + 1] += f32(0.0625) * error
