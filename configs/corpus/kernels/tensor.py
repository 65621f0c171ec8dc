"""Batched matrix products and tensor contractions."""

import dace
import numpy as np

B, H, M, N, K, P, Q, R, S = (dace.symbol(s, dtype=dace.int64) for s in "BHMNKPQRS")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- batched products


@dace.program
def bmm(X: f64[B, M, K], Y: f64[B, K, N], Z: f64[B, M, N]):
    """One matrix product per batch entry."""
    Z[:] = X @ Y


@dace.program
def attention_scores(Qs: f32[B, H, M, K], Ks: f32[B, H, N, K], scores: f32[B, H, M, N]):
    """scores += Q K^T for every batch entry and head."""
    for b, h, i, j, k in dace.map[0:B, 0:H, 0:M, 0:N, 0:K]:
        scores[b, h, i, j] += Qs[b, h, i, k] * Ks[b, h, j, k]


@dace.program
def attention_values(weights: f32[B, H, M, N], V: f32[B, H, N, K], out: f32[B, H, M, K]):
    """out = weights V for every batch entry and head."""
    out[:] = np.einsum("bhij,bhjd->bhid", weights, V)


@dace.program
def batched_gemv(A: f64[B, M, N], x: f64[B, N], y: f64[B, M]):
    """A different matrix and vector for every batch entry."""
    for b, i, j in dace.map[0:B, 0:M, 0:N]:
        y[b, i] += A[b, i, j] * x[b, j]


@dace.program
def shared_weight_product(X: f32[B, M, K], W: f32[N, K], Y: f32[B, M, N]):
    """The linear layer of a network: one weight matrix for the whole batch."""
    for b, i, j, k in dace.map[0:B, 0:M, 0:N, 0:K]:
        Y[b, i, j] += X[b, i, k] * W[j, k]


# --------------------------------------------------------------------------- contractions


@dace.program
def ttm_mode1(X: f64[P, Q, R], U: f64[P, S], Y: f64[S, Q, R]):
    """Tensor times matrix along the first mode (Tucker)."""
    Y[:] = np.einsum("pqr,ps->sqr", X, U)


@dace.program
def ttm_mode2(X: f32[P, Q, R], U: f32[Q, S], Y: f32[P, S, R]):
    """Tensor times matrix along the middle mode."""
    for p, s, r, q in dace.map[0:P, 0:S, 0:R, 0:Q]:
        Y[p, s, r] += X[p, q, r] * U[q, s]


@dace.program
def tensordot2(X: f64[P, Q, R], Y: f64[Q, R, S], Z: f64[P, S]):
    """Contraction over two neighbouring modes."""
    for p, s, q, r in dace.map[0:P, 0:S, 0:Q, 0:R]:
        Z[p, s] += X[p, q, r] * Y[q, r, s]


@dace.program
def ccsd_contraction(A: f64[P, R, Q, R], B2: f64[S, R, K, R], C: f64[P, Q, K, S]):
    """C[a,b,c,d] += A[a,e,b,f] B[d,f,c,e]: four free and two contracted indices, as in coupled cluster."""
    for a, b, c, d, e, f in dace.map[0:P, 0:Q, 0:K, 0:S, 0:R, 0:R]:
        C[a, b, c, d] += A[a, e, b, f] * B2[d, f, c, e]


@dace.program
def bilinear(X: f32[B, P], W: f32[N, P, Q], Y: f32[B, Q], Z: f32[B, N]):
    """Z[b,n] += x_b^T W_n y_b: three factors under one sum."""
    for b, n, p, q in dace.map[0:B, 0:N, 0:P, 0:Q]:
        Z[b, n] += X[b, p] * W[n, p, q] * Y[b, q]


@dace.program
def tensor_times_vector(X: f32[P, Q, R], v: f32[Q], Y: f32[P, R]):
    """The middle mode contracted with a vector."""
    Y[:] = np.einsum("pqr,q->pr", X, v)
