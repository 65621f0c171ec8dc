"""Programs whose steps go through the same large arrays: once is enough."""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64 = dace.float32, dace.float64


@dace.program
def normal_product(A: f32[M, N], x: f32[N], z: f32[N]):
    """A^T A x."""
    z[:] = (A @ x) @ A


@dace.program
def logistic_gradient(A: f64[M, N], w: f64[N], labels: f64[M], gradient: f64[N]):
    """Of the loss of logistic regression."""
    p = 1.0 / (1.0 + np.exp(-(A @ w)))
    gradient[:] = (p - labels) @ A


@dace.program
def both_products(A: f64[M, N], x: f64[N], y: f64[M], u: f64[M], v: f64[N]):
    """A x and A^T y."""
    u[:] = A @ x
    v[:] = A.T @ y


@dace.program
def both_sums(A: f64[M, N], rows: f64[M], columns: f64[N]):
    """Sums along both axes."""
    rows[:] = np.sum(A, axis=1)
    columns[:] = np.sum(A, axis=0)


@dace.program
def descent_step(x: f64[N], p: f64[N], r: f64[N], q: f64[N], alpha: f64, norm: f64[1]):
    """The updates of conjugate gradients, and the new residual's norm."""
    x[:] = x + alpha * p
    r[:] = r - alpha * q
    norm[0] = np.sum(r * r)


@dace.program
def scaled_with_total(A: f32[M, N], scale: f32[N], B: f32[M, N], total: f32[N]):
    """Columns scaled, and their sums."""
    B[:] = A * scale
    total[:] = np.sum(B, axis=0)


@dace.program
def two_moments(A: f64[M, N], mean: f64[N], square: f64[N]):
    """Sums of the values and of their squares."""
    mean[:] = np.sum(A, axis=0)
    square[:] = np.sum(A * A, axis=0)


@dace.program
def squared_error(a: f64[M, N], b: f64[M, N], difference: f64[M, N], error: f64[1]):
    """The difference of two fields, and its norm."""
    difference[:] = a - b
    error[0] = np.sum(difference * difference)


@dace.program
def power_step(A: f32[N, N], x: f32[N], y: f32[N], product: f32[1]):
    """A step of the power method with the quotient of Rayleigh."""
    y[:] = A @ x
    product[0] = np.sum(x * y)


@dace.program
def leapfrog(x: f64[N], v: f64[N], force: f64[N], energy: f64[1]):
    """Positions and velocities of particles, and their energy."""
    v[:] = v + 0.01 * force
    x[:] = x + 0.01 * v
    energy[0] = np.sum(v * v)
