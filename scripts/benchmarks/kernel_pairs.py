"""Kernels that exist in both frontends: a file of DaCe programs, and beside it one of TVM functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.options import chosen
from gnnperf.errors import InputError
from gnnperf.frontends.tvm import TvmTask, load_tasks
from gnnperf.frontends.user_files import load_attribute


@dataclass(frozen=True)
class Pair:
    """One kernel at one size. program: `file.py:name` of the DaCe program; function: of the TVM function."""

    name: str
    program: str
    function: str
    symbols: Mapping[str, int]

    def task(self) -> TvmTask:
        """The TVM function. Raises InputError."""
        found = load_tasks(self.function, self.symbols)
        if len(found) != 1:
            raise InputError(f"{self.function}: expected one function, got {len(found)}")
        return found[0]


def read_pairs(path: Path, wanted: Sequence[str] = ()) -> list[Pair]:
    """The kernels of `NAME.py`, which has DaCe programs and `SIZES`, and of `NAME_tvm.py`: those called
    `wanted`, or all, in the order of the file, with each one's sizes. Raises InputError."""
    other = path.with_name(f"{path.stem}_tvm.py")
    sizes: Any = load_attribute(path, "SIZES", "kernels")
    if not isinstance(sizes, dict) or not all(isinstance(found, list) for found in sizes.values()):
        raise InputError(f"{path}: expected SIZES to be a dict of lists of dicts, got {sizes!r}")
    return [
        Pair(_name(kernel, symbols), f"{path}:{kernel}", f"{other}:{kernel}", symbols)
        for kernel in chosen(sizes, wanted)
        for symbols in sizes[kernel]
    ]


def _name(kernel: str, symbols: Mapping[str, int]) -> str:
    return "-".join([kernel, *(f"{key}_{value}" for key, value in symbols.items())])
