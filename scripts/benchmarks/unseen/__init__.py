"""Sixty DaCe programs of twenty kinds that no corpus holds: what a tuner meets in its users' hands.

`FILE.py` has the programs, and `inputs_NAME` where random arguments would not do; `FILE_numpy.py` and
`FILE_numba.py` the same functions as users of these write them, where that is not the program itself;
`in_torch.py` those that PyTorch has operators for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
SIZES = ("cache", "memory")
Symbols = Mapping[str, int]


@dataclass(frozen=True)
class UnseenKernel:
    """One program. cache: sizes at which its data takes some hundred kB; memory: at which it takes 100 MB, or
    whatever half a second of work leaves of that."""

    file: str
    name: str
    kind: str
    cache: Symbols
    memory: Symbols

    def sizes(self, of: str) -> Symbols:
        """of: one of `SIZES`."""
        return {"cache": self.cache, "memory": self.memory}[of]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.file}.py"

    @property
    def program(self) -> str:
        """`file.py:name`, as `gnnperf retrieve` takes it."""
        return f"{self.path}:{self.name}"

    @property
    def inputs(self) -> str | None:
        """What makes the arguments, likewise."""
        name = f"inputs_{self.name}"
        return f"{self.path}:{name}" if name in functions(self.path) else None

    @property
    def competitors(self) -> Mapping[str, str]:
        """What `--beside` takes, by the package that it is written for. A program that loops over elements by
        `dace.map` is no function of NumPy."""
        found = {}
        for package in ("numpy", "numba"):
            other = FOLDER / f"{self.file}_{package}.py"
            if self.name in functions(other):
                found[package] = f"{other}:{self.name}"
            elif "dace.map" not in functions(self.path)[self.name]:
                found[package] = package
        torch = FOLDER / "in_torch.py"
        return {**found, "torch": f"{torch}:{self.name}"} if self.name in functions(torch) else found


@cache
def functions(path: Path) -> Mapping[str, str]:
    """Name -> text of the functions of a file, which is not run: Numba need not be installed."""
    text = path.read_text(encoding="utf-8")
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(text, node) or "" for node in found}


def _symbols(text: str) -> Symbols:
    """`M=3 N=4`."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


KERNELS: Mapping[str, UnseenKernel] = {
    name: UnseenKernel(file, name, kind, _symbols(small), _symbols(large))
    for line in (FOLDER / "table.txt").read_text(encoding="utf-8").splitlines()[1:]
    for file, kind, name, small, large in [map(str.strip, line.split("|"))]
}
"""By name, in the order of the table."""
