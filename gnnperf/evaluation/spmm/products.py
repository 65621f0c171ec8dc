"""The grid of `gnnperf eval case-spmm`: structure x size x dtype x number of columns of the dense matrix."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gnnperf.evaluation.cases import Case, PythonFunction
from gnnperf.evaluation.cases.suites import cases_folder

STRUCTURES = ("uniform", "banded", "power_law", "block", "diagonal")
DTYPES: Mapping[str, int] = {"float32": 4, "float64": 8}
"""Bytes of an element by dtype."""
FEATURES = (16, 64, 128, 256)
"""Columns of the dense matrix."""
DENSE_BYTES: Mapping[str, int] = {"in_cache": 2 << 20, "in_memory": 64 << 20}
"""Of the dense matrix X by size: what its rows are gathered from. Y is as large."""
NONZEROS_PER_ROW = 16


@dataclass(frozen=True)
class Product:
    """One product Y[M, F] = A[M, M] X[M, F] of the grid, A in CSR; `features` is F."""

    structure: str
    size: str
    dtype: str
    features: int

    @property
    def rows(self) -> int:
        return DENSE_BYTES[self.size] // (self.features * DTYPES[self.dtype])

    @property
    def nonzeros(self) -> int:
        return NONZEROS_PER_ROW * self.rows

    @property
    def name(self) -> str:
        return f"{self.structure} {self.size} {self.dtype} F={self.features}"

    @property
    def size_bytes(self) -> int:
        """Of all arrays."""
        dense = 2 * self.rows * self.features * DTYPES[self.dtype]
        return dense + self.nonzeros * (4 + DTYPES[self.dtype]) + 4 * (self.rows + 1)

    @property
    def symbols(self) -> dict[str, int]:
        return {"M": self.rows, "N": self.rows, "NNZ": self.nonzeros, "F": self.features}

    def case(self, folder: Path | None = None) -> Case:
        """The kernel, with the Python packages it is compared with. `folder`: where its files are."""
        folder = folder or cases_folder()
        suffix = "_f32" if self.dtype == "float32" else ""
        return Case(
            self.name,
            f"{folder / 'spmm.py'}:spmm{suffix}",
            self.symbols,
            f"{folder / 'spmm.py'}:inputs_{self.structure}{suffix}",
            {p: PythonFunction(folder / f"spmm_{p}.py", "spmm", p) for p in ("scipy", "torch")},
        )


STRIDE = 11
"""Has no factor in common with the length of any axis."""


def grid(quick: bool = False) -> list[Product]:
    """All products; `quick`: a tenth of them, in which every value of every axis occurs."""
    axes = (STRUCTURES, DENSE_BYTES, DTYPES, FEATURES)
    products = [Product(*values) for values in itertools.product(*axes)]
    return products[::STRIDE] if quick else products


def scattered(products: Sequence[Product]) -> list[Product]:
    """The same in an order of which every part stands for the whole: a study that is cut short has seen all
    structures, sizes and widths."""
    return sorted(products, key=lambda product: STRIDE * products.index(product) % len(products))
