"""Sparse times dense as `retrieve` tunes it, beside Intel MKL, SciPy and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.cases import CaseResult, Effort, Released, run_case
from gnnperf.evaluation.spmm.known import best_known
from gnnperf.evaluation.spmm.mkl import code_path, mkl_source
from gnnperf.evaluation.spmm.products import Product
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.confine import available_threads
from gnnperf.schedules.recipes import Recipe

FASTEST, SHIPPED, ORACLE = "mkl_fastest", "mkl_shipped", "oracle"
COMPETITORS = (FASTEST, SHIPPED, "scipy", "torch")


@dataclass(frozen=True)
class SpmmResult:
    """One product of the grid. `oracle`: the best known schedule, which was timed with the others."""

    product: Product
    case: CaseResult
    oracle: Recipe | None = None

    @property
    def oracle_speedup(self) -> float | None:
        """Of the best that is known, ours included, over MKL on its fastest path."""
        ours, oracle, mkl = (self.case.measurements.get(n) for n in ("ours", ORACLE, FASTEST))
        known = [m.runtime_s for m in (ours, oracle) if m is not None and m.runtime_s]
        if oracle is None or not known or mkl is None or not mkl.runtime_s:
            return None
        return mkl.runtime_s / min(known)

    def row(self) -> dict[str, Any]:
        """One row of the table; times in seconds, intervals of 95%."""
        found = self.case.row(COMPETITORS)
        oracle = self.case.measurements.get(ORACLE)
        return {
            "structure": self.product.structure,
            "size": self.product.size,
            "dtype": self.product.dtype,
            "features": self.product.features,
            "rows": self.product.rows,
            "nonzeros": self.product.nonzeros,
            "size_bytes": self.product.size_bytes,
            **{name: value for name, value in found.items() if name != "kernel"},
            "oracle_s": oracle and oracle.runtime_s,
            "oracle_vs_mkl_fastest": self.oracle_speedup,
            "oracle_schedule": self.oracle and self.oracle.describe(),
        }


def run_product(
    product: Product,
    released: Released,
    k: int,
    effort: Effort,
    oracle: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> SpmmResult:
    """Tune one product with at most k measured candidates, and time it beside everything else."""
    case, best = product.case(), None
    with Compiler() as compiler:
        shape = (product.rows, product.rows, product.features, product.dtype)
        # Built one by one: in one library, MKL would take the path of both.
        mkl = {
            name: compiler.build(mkl_source(*shape, fastest=fastest))
            for name, fastest in ((FASTEST, True), (SHIPPED, False))
        }
        competitors: dict[str, Any] = {**mkl, **case.competitors}
        if oracle:
            notify("measuring the best known schedules")
            try:
                with Runner() as runner:
                    best, library, _ = best_known(case, mkl[FASTEST], compiler, runner)
            except GnnperfError as error:
                return SpmmResult(product, CaseResult(case.name, None, {}, str(error)))
            competitors[ORACLE] = library
        return SpmmResult(
            product, run_case(replace(case, competitors=competitors), released, k, effort, notify), best
        )


def summarise(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> BenchmarkResult:
    """The table, and geometric means over the products that were compared."""
    shipped, fastest, oracle = (
        [row[name] for row in rows if row[name]]
        for name in (f"vs_{SHIPPED}", f"vs_{FASTEST}", "oracle_vs_mkl_fastest")
    )
    figures: dict[str, float] = {}
    if shipped and fastest:
        figures["geomean_vs_mkl_shipped"] = _geomean(shipped)
        figures["geomean_vs_mkl_fastest"] = _geomean(fastest)
        figures["min_vs_mkl_fastest"] = min(fastest)
    if oracle:
        figures["oracle_vs_mkl_fastest"] = _geomean(oracle)
    figures["candidates_measured_max"] = max((row["candidates_measured"] or 0 for row in rows), default=0)
    return BenchmarkResult("case-spmm", figures, rows, settings)


def describe_setup() -> dict[str, Any]:
    """Machine, versions, and the kernels that MKL loads on either path. Raises InputError without MKL."""
    with Compiler() as compiler, Runner() as runner:
        paths = {
            name: code_path(compiler, runner, fastest=fastest)
            for name, fastest in ((FASTEST, True), (SHIPPED, False))
        }
    host = describe_host()
    return {
        "device": host.fingerprint,
        "name": host.name,
        "threads": available_threads(),
        "mkl_kernels": paths,
        "versions": {name: version(name) for name in ("mkl", "dace", "scipy", "torch")},
    }


def _geomean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
