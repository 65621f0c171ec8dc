"""Compile scheduled nests and run them between guard zones."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nests.interpret import Memory

from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import CppFunction

FLAGS = ("-O1", "-march=native", "-ffast-math", "-fopenmp", "-std=c++17", "-w")
"""As measured, but for the optimisation level: tests should not take long."""

GUARD = 64
"""Elements on either side of every array that nobody may write."""


def build(functions: Sequence[CppFunction], folder: Path, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """All functions in one library."""
    source, compiled, library = (folder / f"candidates.{suffix}" for suffix in ("cpp", "o", "so"))
    source.write_text("\n".join(f.source for f in functions), encoding="utf-8")
    # Linked without -ffast-math, which would make this very process flush subnormal numbers to zero.
    for command in (
        ["-c", *flags, "-fPIC", source, "-o", compiled],
        ["-shared", "-fopenmp", compiled, "-o", library],
    ):
        done = subprocess.run(["g++", *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, function: CppFunction, nest: LoopNest, memory: Memory) -> Memory:
    """Memory of the arguments after the call; fails where a guard zone was written."""
    guarded: dict[str, np.ndarray] = {}
    for name in function.buffers:
        values = memory[name]
        guarded[name] = np.full(values.size + 2 * GUARD, _guard(values.dtype), values.dtype)
        guarded[name][GUARD:-GUARD] = values
    pointers = [
        ctypes.c_void_p(guarded[n].ctypes.data + GUARD * guarded[n].itemsize) for n in function.buffers
    ]
    getattr(library, function.symbol)(
        *pointers, *(ctypes.c_int64(nest.parameters[p]) for p in function.parameters)
    )
    result = dict(memory)
    for name, array in guarded.items():
        zone = np.concatenate([array[:GUARD], array[-GUARD:]])
        assert (zone == _guard(array.dtype)).all(), f"{function.symbol} writes outside of {name}"
        result[name] = array[GUARD:-GUARD].copy()
    return result


def _guard(dtype: np.dtype) -> Any:
    return dtype.type(77)


def has_single(nest: LoopNest) -> bool:
    """Do fp32 values go into the results, so that the order of a sum shows?"""
    return any(b.dtype in ("float32", "complex64") for b in nest.buffers.values())


def differences(
    expected: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], single: bool = False
) -> list[str]:
    """One line for every buffer that differs. `single`: fp32 values went into fp64 results."""
    lines = []
    for name, want in expected.items():
        have = got[name]
        if want.dtype.kind in "fc":
            double = want.dtype in (np.float64, np.complex128) and not single
            tolerance = 1e-9 if double else 2e-4
            wrong = ~np.isclose(have, want, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            wrong = have != want
        if wrong.any():
            at = int(np.argmax(wrong))
            lines.append(f"{name}[{at}]: expected {want[at]}, got {have[at]}")
    return lines
