"""`retrieve --output DIR` of an exported program, besides the files of its tasks: what runs it as a whole.

DIR/libprogram.so    the program with its scheduled tasks, for relax's virtual machine
DIR/weights.npz      its weights, as it was exported with them
DIR/model.py         loads both; `model(*arrays)` for other programs, `python model.py` to try it
DIR/torch_runtime.py where operators stay with PyTorch: what calls it
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gnnperf.backends.folder import MODEL
from gnnperf.errors import GnnperfError, last_line
from gnnperf.frontends.tvm import torch_runtime
from gnnperf.frontends.tvm.whole_program import MAIN, WholeProgram

PROGRAM, WEIGHTS, TORCH = "libprogram.so", "weights.npz", "torch_runtime.py"


def write_program(
    folder: Path, name: str, program: WholeProgram, scheduled: Mapping[str, Any], options: Sequence[str] = ()
) -> tuple[str, ...]:
    """Write the files; their names. scheduled: IRModules by task. options: of the linker. Raises
    GnnperfError and OSError."""
    compiled = program.compiled(scheduled)
    with linked(PROGRAM):
        compiled.executable.export_library(str(folder / PROGRAM), options=[*options])
    np.savez(folder / WEIGHTS, *program.weights)
    (folder / MODEL).write_text(_script(name, program, compiled.preparing), encoding="utf-8")
    if not program.kept:
        return PROGRAM, WEIGHTS, MODEL
    shutil.copyfile(torch_runtime.__file__, folder / TORCH)
    return PROGRAM, WEIGHTS, MODEL, TORCH


@contextmanager
def linked(file: str) -> Iterator[None]:
    """Around what makes a shared library. Raises GnnperfError where that fails, and OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # the linker, or what it could not find
        raise GnnperfError(
            f"cannot link {file}: {last_line(error)}; --output needs a C++ compiler"
        ) from error


def _script(name: str, program: WholeProgram, preparing: Sequence[str]) -> str:
    main = program.module[MAIN]
    given = main.params[: len(main.params) if main.attrs is None else int(main.attrs["num_input"])]
    inputs = [(str(p.ty.dtype), tuple(int(n) for n in p.ty.shape.values)) for p in given]
    dtypes = [str(weight.dtype) for weight in program.weights]
    needs = "apache-tvm, NumPy and PyTorch" if program.kept else "apache-tvm and NumPy"
    return _TEMPLATE.format(
        name=name, script=MODEL, library=PROGRAM, weights=WEIGHTS, main=MAIN, inputs=inputs,
        preparing=[*preparing], dtypes=dtypes, needs=needs, torch=_TORCH if program.kept else "",
    )  # fmt: skip


_TORCH = f"""
from {TORCH.removesuffix(".py")} import register

register()  # what stays with PyTorch
"""

_TEMPLATE = '''"""{name}: a program tuned by gnnperf. Needs {needs}.

model(*arrays) gives a list of arrays. `python {script}` runs it on made-up inputs.
"""

import os
import pathlib
import time

os.environ.setdefault("TVM_NUM_THREADS", str(len(os.sched_getaffinity(0))))  # by itself it takes half of them

import numpy as np
import tvm
from tvm import relax
{torch}
INPUTS = {inputs}
"""(dtype, shape) of every input."""
WEIGHTS = {dtypes}
"""dtype of every weight: to the file, bfloat16 is just bytes."""

folder = pathlib.Path(__file__).resolve().parent
machine = relax.VirtualMachine(tvm.runtime.load_module(str(folder / "{library}")), tvm.cpu())
with np.load(folder / "{weights}") as file:
    weights = [tvm.runtime.tensor(file[name].view(dtype)) for name, dtype in zip(file.files, WEIGHTS)]
for function in {preparing}:  # once: from the form that they were exported in
    weights = list(machine[function](tuple(weights)))


def model(*arrays):
    """Run the program on NumPy arrays."""
    got = [(str(array.dtype), array.shape) for array in arrays]
    if got != INPUTS:
        raise TypeError(f"expected {{INPUTS}}, got {{got}}")
    results = machine["{main}"](*(tvm.runtime.tensor(array) for array in arrays), *weights)
    return [results.numpy()] if hasattr(results, "numpy") else [result.numpy() for result in results]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    given = [rng.random(shape).astype(dtype) for dtype, shape in INPUTS]
    times = []
    for _ in range(6):
        start = time.perf_counter()
        model(*given)
        times.append(time.perf_counter() - start)
    print(f"{name}: {{min(times) * 1e3:.3f}} ms")
'''
