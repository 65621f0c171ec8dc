"""What every implementation of a kernel must compute, and how much it may differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.measure.verification import equivalent_length, is_inexact, perturbed, verify

Arrays = Mapping[str, NDArray[Any]]

OUTPUT = "out"
"""Name of the output of a TVM function, whose parameters have none."""


@dataclass(frozen=True)
class Problem:
    """inputs: arrays and scalars by name, initial values of outputs that are updated among them. outputs:
    arrays that are written. reference: what is right, by name. reduction_length: terms of the longest sum
    behind an output; it widens the tolerance (`relative_tolerance`). updated: outputs that are read before
    they are written. quantised: outputs that are integers made of real numbers."""

    inputs: Mapping[str, Any]
    outputs: Sequence[str]
    reference: Arrays
    reduction_length: int = 1
    updated: Sequence[str] = ()
    quantised: Collection[str] = ()

    @classmethod
    def solved(
        cls, inputs: Mapping[str, Any], solve: Callable[[Mapping[str, Any]], Arrays], reduction_length: int,
        rounding: float = 0.0,
    ) -> Problem:  # fmt: skip
        """With what `solve` computes from the inputs as the reference. The tolerance covers what it makes of
        one rounding error in each of them. rounding: relative, of what it computes in, where that is shorter
        than its inputs."""
        reference, moved = solve(inputs), solve(perturbed(inputs, rounding))
        length = equivalent_length(reference, moved, reduction_length)
        return cls(inputs, [*reference], reference, length, [name for name in reference if name in inputs])

    def verify(self, found: Arrays) -> str | None:
        """None when every output is right, else one line that says what is not."""
        return verify(self.reference, found, self.reduction_length, self.quantised)


def random_inputs(
    signature: Sequence[tuple[Sequence[int], np.dtype[Any]]], seed: int, ends: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """Arrays `x0`, `x1`, ... of the given shapes and types: normally distributed numbers, or integers of the
    whole range. ends: by place, of those that hold indices, from 0 to below that."""
    rng = np.random.default_rng(seed)

    def array(place: int, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        if is_inexact(dtype):
            return rng.standard_normal(tuple(shape), np.float32).astype(dtype)
        if dtype.kind == "b":
            return rng.integers(0, 2, tuple(shape)).astype(dtype)
        bounds = np.iinfo(dtype)
        if ends and place in ends:
            return rng.integers(0, min(ends[place], int(bounds.max) + 1), tuple(shape), dtype)
        return rng.integers(bounds.min, bounds.max, tuple(shape), dtype, endpoint=True)

    return {f"x{n}": array(n, shape, dtype) for n, (shape, dtype) in enumerate(signature)}
