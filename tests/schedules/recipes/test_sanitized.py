"""Emitted code under the address and undefined-behaviour sanitizers: no read or write is out of bounds,
no scratch memory too small, no overflow in an address."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from schedules.recipes.kernels import Kernel, every_kernel

from gnnperf.errors import NotApplicable
from gnnperf.nests import normalise
from gnnperf.schedules.recipes import CppFunction, apply, emit, random_recipe
from gnnperf.schedules.recipes.expressions import CTYPES

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = ("-O0", "-g1", *SANITIZERS, "-fopenmp", "-std=c++17", "-w")
NAMES = (
    "dense-gemm", "dense-conv2d", "dense-trmm_upper", "dense-contraction_9_deep", "dense-gemm_nt_fp32",
    "reductions-add_all", "reductions-max_bool", "reductions-polynomial", "units-softmax",
    "units-dense_layer", "units-locals", "sparse-spmm", "sparse-spmv", "sparse-histogram",
    "elementwise-stencil2d", "elementwise-integers", "elementwise-far_choice", "dense-strictly_upper",
    "elementwise-views", "elementwise-permute_3d", "extremes-empty_reduction", "dense-conv2d_strided",
    "elementwise-every_second", "elementwise-every_second_uint8",
)  # fmt: skip
RECIPES = 2


def case(function: CppFunction, kernel: Kernel, rng: np.random.Generator) -> str:
    """C++ that calls a function with arrays exactly as large as their buffers span."""
    memory = kernel.memory(rng)
    lines, arguments = [], []
    for name in function.buffers:
        values = memory[name]
        ctype = CTYPES[str(values.dtype)]
        text = ", ".join(repr(v) if values.dtype.kind != "b" else str(v).lower() for v in values.tolist())
        lines.append(f"{{ static const {ctype} v[] = {{{text}}};")
        lines.append(f"  {name} = ({ctype}*)malloc(sizeof v); memcpy({name}, v, sizeof v); }}")
        lines.insert(0, f"{ctype}* {name};")
        arguments.append(name)
    arguments += [str(kernel.nest.parameters[p]) for p in function.parameters]
    lines.append(f"{function.symbol}({', '.join(arguments)});")
    lines += [f"free({name});" for name in function.buffers]
    return "{ " + "\n".join(lines) + " }\n"


@pytest.mark.parametrize("part", range(2))
def test_no_access_is_out_of_bounds(part: int, tmp_path: Path) -> None:
    kernels, rng = dict(every_kernel()), np.random.default_rng(0)
    functions: list[CppFunction] = []
    calls = []
    for name in NAMES[part::2]:
        kernel, draw = kernels[name], Random(name)
        nest = normalise(kernel.nest)
        for number in range(RECIPES):
            try:
                scheduled = apply(random_recipe(nest, draw), nest)
            except NotApplicable:
                continue
            functions.append(emit(scheduled, f"{name.replace('-', '_')}_{number}"))
            calls.append(case(functions[-1], kernel, rng))
    source, program = tmp_path / "sanitized.cpp", tmp_path / "sanitized"
    main = "#include <cstdlib>\nint main() {\n" + "".join(calls) + "return 0; }\n"
    source.write_text("\n".join(f.source for f in functions) + main, encoding="utf-8")
    subprocess.run(["g++", *FLAGS, str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[:4000]
