"""A scheduled module compiled in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Kernel(Protocol):
    """What a build gives: something to call and to time."""

    def run(self, arguments: Sequence[Any]) -> None:
        """One run on TVM tensors, the output last."""

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


def build_kernel(module: Any, target: Any) -> Kernel:
    """Compile a scheduled IRModule."""
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    module = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    return CompiledKernel(tvm.tirx.build(module, target))
