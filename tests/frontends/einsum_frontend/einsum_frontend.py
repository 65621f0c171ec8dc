"""Contractions as numpy.einsum writes them: gnnperf retrieve "einsum:mk,kn->mn" --set m=64 ..."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from gnnperf.errors import InputError
from gnnperf.frontends.base import Given
from gnnperf.frontends.nest_program import NestProgram
from gnnperf.nests import Buffer, Const, Load, Loop, LoopNest, Op, Statement, Symbol

PREFIX = "einsum:"
OPERANDS = "abcdef"


class EinsumFrontend:
    """Claims texts that begin with "einsum:"; sizes of the axes come from `--set`."""

    def claims(self, kernel: Any) -> bool:
        return isinstance(kernel, str) and kernel.startswith(PREFIX)

    def load(self, kernel: str, given: Given) -> NestProgram:
        """The program of a contraction, on random inputs. Raises InputError."""
        given.refuse("a contraction", "inputs")
        text = kernel.removeprefix(PREFIX)
        nest = contraction(text, {axis: int(size) for axis, size in given.sizes.items()})
        rng = np.random.default_rng(given.seed or 0)
        data = {name: rng.random(b.shape, dtype=np.float32) for name, b in nest.buffers.items()}
        return NestProgram("contraction", "einsum", nest, data)


def contraction(text: str, sizes: Mapping[str, int]) -> LoopNest:
    """The sum over all axes that the result has not, of the product of the operands.

    text: such as "mk,kn->mn". sizes: of every axis. Raises InputError.
    """
    operands, arrow, result = text.partition("->")
    names = OPERANDS[: operands.count(",") + 1]
    used = {*operands} - {","}
    if not arrow or not result or not {*result} <= used or not all(axis.isalpha() for axis in used):
        raise InputError(f"{PREFIX}{text}: expected axes as in {PREFIX}mk,kn->mn")
    if sizes.keys() != used:
        axes = " ".join(f"--set {axis}=64" for axis in sorted(used))
        raise InputError(f"{PREFIX}{text}: expected a size for each axis, and no other: give {axes}")
    axes_of = dict(zip((*names, "out"), (*operands.split(","), result), strict=True))

    def element(name: str) -> Load:
        return Load(name, tuple(Symbol(axis) for axis in axes_of[name]))

    value: Any = element(names[0])
    for name in names[1:]:
        value = Op("mul", (value, element(name)))
    body: Any = Statement(element("out"), value, reduce="add", init=Const(0.0))
    for axis in reversed([*result, *sorted(used - {*result})]):
        body = Loop(axis, Const(0), Const(sizes[axis]), (body,))
    return LoopNest("contraction", {n: _buffer(n, axes_of[n], sizes) for n in axes_of}, (body,))


def _buffer(name: str, axes: str, sizes: Mapping[str, int]) -> Buffer:
    shape = tuple(sizes[axis] for axis in axes)
    return Buffer(name, "float32", shape, tuple(prod(shape[n + 1 :]) for n in range(len(shape))))
