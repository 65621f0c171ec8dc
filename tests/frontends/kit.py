"""What the tests of the DaCe frontend share: kernels loaded once, compiled together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from frontends.interpret import Interpreter
from frontends.kernels import CASES, INPUTS

from gnnperf.errors import BuildError
from gnnperf.frontends.dace import DaceKernel, Unit, dace_source, load_kernel
from gnnperf.measure import Compiler, Library, Runner, Source, verify

KERNELS = Path(__file__).parent / "kernels.py"


def load(name: str) -> DaceKernel:
    """A kernel of `kernels.py` at its tiny size."""
    inputs = f"{KERNELS}:{INPUTS[name]}" if name in INPUTS else None
    return load_kernel(f"{KERNELS}:{name}", CASES[name], inputs)


def build(compiler: Compiler, sources: Iterable[Source]) -> list[Library]:
    """Compile together; any failure is the test's."""
    libraries = compiler.build_all(sources)
    failed = [r for r in libraries if isinstance(r, BuildError)]
    assert not failed, failed
    return [r for r in libraries if isinstance(r, Library)]


def reference_source(kernel: DaceKernel) -> Source:
    return dace_source(kernel.simplified, f"{kernel.name}_reference")


def run(runner: Runner, kernel: DaceKernel, library: Library) -> dict[str, Any]:
    return runner.reference(library, kernel.data, kernel.outputs, kernel.inouts)


def interpret_program(kernel: DaceKernel, reverse: bool = False) -> dict[str, Any]:
    """Outputs of a kernel whose units are the whole of it, one after the other."""
    assert not kernel.skipped
    assert not any(u.in_loop for u in kernel.units)
    memory = {n: np.array(v) for n, v in kernel.data.items()}
    for unit in kernel.units:
        for name in unit.outputs:
            if name not in memory:
                buffer = unit.nest.buffers[name]
                kind = np.dtype(buffer.dtype)
                memory[name] = np.full(buffer.shape, np.nan if kind.kind in "fc" else 77, kind)
        Interpreter(unit.nest, memory, reverse).run()
    return {n: memory[n] for n in kernel.outputs}


def interpret_unit(unit: Unit, reverse: bool = False) -> dict[str, Any]:
    """Outputs of one unit from its captured inputs; what it must write starts as NaN."""
    memory = {n: np.array(v) for n, v in unit.data.items()}
    for name in set(unit.outputs) - set(unit.inouts):
        if memory[name].dtype.kind == "f":
            memory[name][...] = np.nan
    Interpreter(unit.nest, memory, reverse).run()
    return {n: memory[n] for n in unit.outputs}


def assert_same(expected: dict[str, Any], got: dict[str, Any], what: str) -> None:
    shaped = {n: np.asarray(got[n]).reshape(np.shape(expected[n])) for n in expected}
    problem = verify({n: np.asarray(v) for n, v in expected.items()}, shaped, 100)
    assert problem is None, f"{what}: {problem}"
