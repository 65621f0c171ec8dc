"""A scheduled module compiled in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gnnperf.frontends.tvm.vendor.functions import libraries_called
from gnnperf.frontends.tvm.vendor.library import load
from gnnperf.frontends.tvm.weights import Packing, unpacked


class Kernel(Protocol):
    """What a build gives: something to call and to time."""

    def run(self, arguments: Sequence[Any]) -> None:
        """One run on TVM tensors, in the order of the parameters."""

    def times_s(self, arguments: Sequence[Any], repeats: int, sample_s: float) -> list[float]:
        """Mean seconds of a run, `repeats` times, each over at least `sample_s`; 0: a single run."""


Build = Callable[[Any, Any], Kernel]
"""IRModule, target -> kernel. Raises when the module does not compile."""


class CompiledKernel:
    """A module in machine code, in memory: no linker, no file."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._function = library.get_function("main")  # compiles now, not at the first call

    def run(self, arguments: Sequence[Any]) -> None:
        self._function(*arguments)

    def times_s(self, arguments: Sequence[Any], repeats: int, sample_s: float) -> list[float]:
        import tvm

        if not sample_s:  # the evaluator would run it once more, to warm up
            return [self._clock(arguments) for _ in range(repeats)]
        evaluate = self._library.time_evaluator(
            "main", tvm.cpu(), number=1, repeat=repeats, min_repeat_ms=round(sample_s * 1000)
        )
        return [float(seconds) for seconds in evaluate(*arguments).results]

    def _clock(self, arguments: Sequence[Any]) -> float:
        started = time.perf_counter()
        self._function(*arguments)
        return time.perf_counter() - started


class PackedKernel(CompiledKernel):
    """With constant weights: those of the latest call are kept, packed, and packed anew where a call has
    others. That is no part of what is timed."""

    def __init__(self, library: Any, packing: Packing) -> None:
        super().__init__(library)
        self._packing = packing
        self._weights: list[Any] = []
        self._packed: list[Any] = []

    def run(self, arguments: Sequence[Any]) -> None:
        super().run(self._taken(arguments))

    def times_s(self, arguments: Sequence[Any], repeats: int, sample_s: float) -> list[float]:
        return super().times_s(self._taken(arguments), repeats, sample_s)

    def _taken(self, arguments: Sequence[Any]) -> list[Any]:
        """What `main` takes."""
        import tvm

        *given, result = arguments
        weights = [given[place] for place in self._packing.weights]
        if len(weights) != len(self._weights) or any(
            a is not b for a, b in zip(weights, self._weights, strict=True)
        ):
            values = [*given]
            for name, places, results in self._packing.steps:
                made = [tvm.runtime.empty(shape, dtype) for dtype, shape in results]
                self._library.get_function(name)(*(values[place] for place in places), *made)
                values += made
            self._weights, self._packed = weights, values[len(given) :]
        values = [*given, *self._packed]
        return [*(values[place] for place in self._packing.takes), result]


def build_kernel(module: Any, target: Any) -> Kernel:
    """Compile a scheduled IRModule."""
    import tvm

    module, packing = unpacked(module)
    load_called(module)
    library = tvm.tirx.build(module, target)
    return CompiledKernel(library) if packing is None else PackedKernel(library, packing)


def load_called(module: Any) -> None:
    """Load the libraries that a module calls: machine code in memory finds them in the process."""
    for library in libraries_called(module):
        load(library)
