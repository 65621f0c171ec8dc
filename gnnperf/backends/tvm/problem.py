"""Inputs of a workload and what it computes from them: what every candidate is verified against."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.tvm.kernel import Build
from gnnperf.measure import equivalent_length, perturbed, verify
from gnnperf.measure.remote import random_array


@dataclass(frozen=True)
class Problem:
    """inputs: arrays in the function's order. reference, moved: outputs of the unscheduled function on them
    and on inputs with one rounding error each, in memory shared with forked processes, which fill them."""

    inputs: tuple[NDArray[Any], ...]
    reference: NDArray[Any]
    moved: NDArray[Any]
    reduction_length: int

    @classmethod
    def random(cls, module: Any, seed: int = 0) -> Problem:
        """Normally distributed numbers, or integers of the whole range. The last parameter is the output."""
        rng = np.random.default_rng(seed)
        buffers = module["main"].params
        shapes = [(tuple(int(extent) for extent in b.shape), np.dtype(str(b.dtype))) for b in buffers]
        inputs = tuple(random_array(rng, *shape) for shape in shapes[:-1])
        return cls(inputs, _shared(*shapes[-1]), _shared(*shapes[-1]), reduction_length(module))

    def solve(self, module: Any, target: Any, build: Build) -> Any:
        """Compile the unscheduled function and fill `reference` and `moved`; the kernel."""
        kernel = build(module, target)
        arguments = self.arguments()
        kernel.run(arguments)
        self.reference[...] = arguments[-1].numpy()
        names = [str(n) for n in range(len(self.inputs))]
        changed = perturbed(dict(zip(names, self.inputs, strict=True)))
        arguments = self.arguments([changed[name] for name in names])
        kernel.run(arguments)
        self.moved[...] = arguments[-1].numpy()
        return kernel

    def arguments(self, inputs: Sequence[NDArray[Any]] | None = None) -> list[Any]:
        """TVM tensors with the inputs, and one for the output."""
        import tvm

        given = self.inputs if inputs is None else inputs
        return [*(tvm.runtime.tensor(array) for array in given), self.output()]

    def output(self) -> Any:
        """A TVM tensor for the output, of NaN or of bytes of ones."""
        import tvm

        poisoned = np.empty_like(self.reference)
        poisoned.view(np.uint8).fill(0xFF)
        return tvm.runtime.tensor(poisoned)

    def tolerated_length(self) -> int:
        """The length of the sum whose tolerance applies to this problem."""
        return equivalent_length({"out": self.reference}, {"out": self.moved}, self.reduction_length)

    def fault(self, output: NDArray[Any], length: int) -> str | None:
        """None when an output is right, else one line that says what is wrong with it."""
        return verify({"out": self.reference}, {"out": output}, length)


def _shared(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    count = int(np.prod(shape))
    memory = mmap.mmap(-1, max(1, count * dtype.itemsize))
    return np.frombuffer(memory, dtype, count).reshape(shape)


def reduction_length(module: Any) -> int:
    """The longest sum in the function: the largest product of the reduction extents of a block."""
    from tvm.s_tir import Schedule
    from tvm.tirx import IterVar

    schedule, longest = Schedule(module), 1
    for handle in schedule.get_child_blocks(schedule.get_sblock("root")):
        variables = schedule.get(handle).iter_vars
        extents = [int(v.dom.extent) for v in variables if v.iter_type == IterVar.CommReduce]
        longest = max(longest, math.prod(extents))
    return longest
