"""Elementwise chains and transpositions. float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any


def elementwise(m: int, n: int, chain: str) -> Any:
    """A chain of elementwise operations on matrices of m x n, some with a row vector: one of CHAINS."""
    from tvm import te

    a, b = (te.placeholder((m, n), name=name) for name in "AB")
    u, v = (te.placeholder((n,), name=name) for name in "uv")
    chains: dict[str, tuple[list[Any], Callable[..., Any], Callable[..., Any]]] = {
        "add_relu": ([a, b], lambda i, j: a[i, j] + b[i, j], lambda x, i, j: activate("relu", x)),
        "bias_gelu": ([a, u], lambda i, j: a[i, j] + u[j], lambda x, i, j: activate("gelu", x)),
        "silu_mul": ([a, b], lambda i, j: activate("silu", a[i, j]), lambda x, i, j: x * b[i, j]),
        "scale_shift": ([a, u, v], lambda i, j: a[i, j] * u[j], lambda x, i, j: x + v[j]),
        "residual": ([a, b, u], lambda i, j: a[i, j] * u[j], lambda x, i, j: x + b[i, j]),
        "tanh_gate": ([a, b], lambda i, j: activate("tanh", a[i, j]), lambda x, i, j: x * b[i, j] + x),
    }
    inputs, first, second = chains[chain]
    middle = te.compute((m, n), first, name="middle")
    out = te.compute((m, n), lambda i, j: second(middle[i, j], i, j), name="out")
    return te.create_prim_func([*inputs, out])


CHAINS = ("add_relu", "bias_gelu", "silu_mul", "scale_shift", "residual", "tanh_gate")


def transpose(shape: Sequence[int], order: Sequence[int]) -> Any:
    """Copy an array with its axes permuted. order: the input's axis that each axis of the output is."""
    from tvm import te, topi

    data = te.placeholder(tuple(shape), name="data")
    return te.create_prim_func([data, topi.transpose(data, tuple(order))])


def activate(name: str, x: Any) -> Any:
    """An activation of a scalar expression: none, relu, tanh, sigmoid, silu, or gelu in its tanh form."""
    from tvm import te, tirx

    def number(value: float) -> Any:
        return tirx.const(value, "float32")

    if name == "relu":
        return te.max(x, number(0.0))
    if name == "tanh":
        return te.tanh(x)
    if name in ("sigmoid", "silu"):
        gate = number(1.0) / (number(1.0) + te.exp(number(0.0) - x))
        return gate if name == "sigmoid" else x * gate
    if name == "gelu":
        inner = number(math.sqrt(2 / math.pi)) * (x + number(0.044715) * x * x * x)
        return number(0.5) * x * (number(1.0) + te.tanh(inner))
    assert name == "none", name
    return x
