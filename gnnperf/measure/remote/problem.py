"""Inputs of a packed workload, and what it must compute from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.measure.verification import equivalent_length, perturbed, verify

if TYPE_CHECKING:
    from gnnperf.measure.remote.runtime import Runtime


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Normally distributed numbers, or integers of the whole range."""
    if dtype.kind == "f":
        return rng.standard_normal(tuple(shape), np.float32).astype(dtype)
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max, tuple(shape), dtype, endpoint=True)


@dataclass(frozen=True)
class PackedProblem:
    """inputs: in the function's order. reference: the output for them. length: of the sum whose tolerance
    applies."""

    inputs: tuple[NDArray[Any], ...]
    reference: NDArray[Any]
    length: int

    @staticmethod
    def solve(about: Mapping[str, Any], folder: Path, host: Runtime, kept: Path) -> PackedProblem:
        """The inputs from their seed, and the reference from the unscheduled function, run on the host.

        about: the workload's line. kept: a folder in which references stay, for the next process.
        """
        rng = np.random.default_rng(about["seed"])
        *shapes, (out_shape, out_dtype) = [(s, np.dtype(d)) for s, d in about["arguments"]]
        inputs = tuple(random_array(rng, shape, dtype) for shape, dtype in shapes)
        file = kept / f"{about['workload']}.npz"
        if not file.is_file():
            function = host.load(folder / about["reference"]).function("main")

            def run(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
                out = host.empty(out_shape, out_dtype)
                function(*map(host.tensor, arrays), out)
                return host.numpy(out)

            moved = perturbed({str(n): array for n, array in enumerate(inputs)})
            results = {"reference": run(inputs), "moved": run(list(moved.values()))}
            with (kept / "partial").open("wb") as partial:
                np.savez(partial, **results)
            (kept / "partial").rename(file)
        with np.load(file) as found:
            reference, changed = found["reference"], found["moved"]
        length = equivalent_length({"out": reference}, {"out": changed}, about["reduction_length"])
        return PackedProblem(inputs, reference, length)

    def fault(self, output: NDArray[Any]) -> str | None:
        """None when an output is right, else one line that says what is wrong with it."""
        return verify({"out": self.reference}, {"out": output}, self.length)
