"""What DaCe's parser misreads means what Python makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dace.frontend.python.parser import DaceProgram
from frontends.kit import build, reference_source, run

from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.dace.source import load_program
from gnnperf.measure import Compiler, Runner

PROGRAMS = Path(__file__).parent / "misread.py"
SIZES: dict[str, dict[str, int]] = {
    "decimated": dict(N=23, M=4, K=8),
    "looking_back": dict(N=7),
    "triangle": dict(N=7),
    "falling_counter": dict(N=7, M=2, K=2),
    "reversed_window": dict(N=7, M=5),
    "two_ways": dict(N=6),
    "down_a_column": dict(N=5, K=4),
    "counted_by_two": dict(N=8, M=2, K=5),
    "parts_of_rows": dict(N=9, M=3, K=4),
    "held_numbers": dict(N=6, M=3),
    "held_in_a_map": dict(N=6, M=3),
    "rolled": dict(N=7, M=5),
    "spread": dict(N=6, M=4),
    "differences": dict(N=6, M=4),
    "words_of_cpp": dict(N=6, M=4),
    "choices": dict(N=7),
    "every_second": dict(N=6, M=4),
    "kept_axes": dict(N=6, M=4),
    "as_methods": dict(N=6, M=4),
    "filled": dict(N=7),
    "centred": dict(N=6, M=4, steps=3),
    "rolled_steps": dict(N=6, M=4, steps=3),
}


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler(batch=16) as compiler, Runner(threads=2) as runner:
        yield compiler, runner


def test_programs_mean_what_python_makes_of_them(tools: tuple[Compiler, Runner]) -> None:
    compiler, runner = tools
    kernels = {name: load_kernel(f"{PROGRAMS}:{name}", sizes) for name, sizes in SIZES.items()}
    libraries = build(compiler, map(reference_source, kernels.values()))
    for (name, kernel), library in zip(kernels.items(), libraries, strict=True):
        expected = of_python(load_program(f"{PROGRAMS}:{name}"), kernel.data, SIZES[name])
        for output, values in run(runner, kernel, library).items():
            np.testing.assert_allclose(values, expected[output], err_msg=f"{name}: {output}")


def of_python(program: DaceProgram, data: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """The arguments once Python has run the program's function."""
    arguments = {n: np.array(v) for n, v in data.items() if n in program.argnames}
    program.f.__globals__.update(sizes)
    program.f(**arguments)
    return arguments
