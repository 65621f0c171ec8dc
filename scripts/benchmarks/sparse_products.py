"""Sparse times dense: a grid of structure x size x dtype x columns of the dense matrix, and the best known
schedules."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.comparisons import KERNELS, ComparedKernel
from gnnperf.backends.cpp.trials import NestBench, NestCase
from gnnperf.errors import MeasureError
from gnnperf.frontends.dace import load_kernel
from gnnperf.measure import Compiler, Library, Limits, Measurement, Runner
from gnnperf.measure.competitors import PythonFunction
from gnnperf.measure.problem import Problem
from gnnperf.schedules.recipes import Recipe

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

    def kernel(self) -> ComparedKernel:
        """The kernel, with the Python packages it is compared with."""
        suffix = "_f32" if self.dtype == "float32" else ""
        return ComparedKernel(
            self.name,
            f"{KERNELS / 'spmm.py'}:spmm{suffix}",
            self.symbols,
            f"{KERNELS / 'spmm.py'}:inputs_{self.structure}{suffix}",
            {p: PythonFunction(KERNELS / f"spmm_{p}.py", "spmm", p) for p in ("scipy", "torch")},
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


# --------------------------------------------------------------------------- what is known

_ROWS = Recipe(order="rowtile", register_p=16, omp_schedule="balanced")

KNOWN = (
    # A row of Y stays in registers; what the lookahead is worth depends on where X is.
    replace(_ROWS, unroll=4),
    replace(_ROWS, prefetch=12),
    replace(_ROWS, prefetch=32),
    replace(_ROWS, prefetch=64),
    replace(_ROWS, prefetch=96),
    # Y goes past the caches.
    replace(_ROWS, prefetch=64, nontemporal=True),
    replace(_ROWS, prefetch=128, nontemporal=True),
    # Each thread has columns of its own: its share of X is smaller.
    replace(_ROWS, prefetch=12, tile_p=32),
    replace(_ROWS, prefetch=12, tile_p=64),
    # Rows of very different lengths.
    replace(_ROWS, prefetch=32, omp_schedule="dynamic", chunk=64),
)
LIMITS = Limits(timeout_s=30.0, budget_s=0.3)


def best_known(
    compared: ComparedKernel, baseline: Library, compiler: Compiler, runner: Runner
) -> tuple[Recipe, Library, Measurement]:
    """The fastest of KNOWN on a product, each timed in turn with `baseline`, whose results are right."""
    kernel = load_kernel(compared.program, compared.symbols, compared.inputs)
    (unit,) = kernel.units
    reference = runner.reference(baseline, kernel.data, kernel.outputs)
    problem = Problem(kernel.data, kernel.outputs, reference, unit.reduction_length)
    bench = NestBench(NestCase(unit.nest, problem, (), baseline), compiler, runner, LIMITS)
    trial = min(bench.run(KNOWN, "known"), key=lambda t: t.runtime_s)
    prepared = bench.prepare(trial.recipe)
    if trial.measurement.status != "ok" or isinstance(prepared, Measurement):
        raise MeasureError(f"no known schedule of {compared.name} works: {trial.measurement.detail}")
    return trial.recipe, compiler.build(prepared), trial.measurement
