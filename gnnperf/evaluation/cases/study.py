"""A case study: every kernel of a suite tuned by `retrieve`, then timed beside its competitors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.cases.suites import Case, Suite
from gnnperf.frontends.dace import DaceKernel, dace_source, load_kernel
from gnnperf.measure import Compiler, Measurement, Runner, speedup_interval
from gnnperf.measure.competitors import Effort, measure_side_by_side
from gnnperf.measure.confine import available_threads
from gnnperf.measure.problem import Problem
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval import Retrieval
from gnnperf.retrieval.neighbours import Calibration
from gnnperf.retrieval.transfer import Options, Transfer
from gnnperf.store import Store

AUTO, OURS = "auto_optimize", "ours"
Notify = Callable[[str], None]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Released:
    """What `gnnperf retrieve --no-store` works with."""

    bundle: Bundle
    store: Store
    calibration: Calibration

    @staticmethod
    def load(checkpoint: Path) -> Released:
        """Raises GnnperfError where the checkpoint cannot be read."""
        bundle = load_checkpoint(checkpoint, Bundle)
        return Released(bundle, Store.open(checkpoint / "store"), Calibration.of(bundle))


@dataclass(frozen=True)
class CaseResult:
    """One kernel. `measurements`: of `ours`, `auto_optimize` and the competitors, by name; where the
    baseline was kept, `ours` is the baseline. Empty, with `failure`, where the kernel could not be tuned."""

    kernel: str
    retrieval: Retrieval | None
    measurements: Mapping[str, Measurement]
    failure: str = ""

    def speedup(self, competitor: str) -> tuple[float, Interval] | None:
        """Median runtime of a competitor over ours, with its interval; None where one of them failed."""
        ours, other = self.measurements.get(OURS), self.measurements.get(competitor)
        if ours is None or other is None or not ours.runtime_s or not other.runtime_s:
            return None
        if ours is other:
            return 1.0, (1.0, 1.0)
        assert ours.interval_s is not None and other.interval_s is not None
        return other.runtime_s / ours.runtime_s, speedup_interval(other.interval_s, ours.interval_s)

    @property
    def wrong(self) -> list[str]:
        """What failed that should not have: one line each. A package that is not installed may be missing."""
        said = [f"{self.kernel}: {self.failure}"] if self.failure else []
        return said + [
            f"{self.kernel}: {name}: {m.status}: {m.detail}"
            for name, m in self.measurements.items()
            if m.status not in ("ok", "not_applicable")
        ]

    def row(self, competitors: Sequence[str]) -> dict[str, Any]:
        """One row of the table; times in seconds, intervals of 95%."""
        ours = self.measurements.get(OURS)
        row: dict[str, Any] = {
            "kernel": self.kernel,
            "ours_s": ours and ours.runtime_s,
            "ours_interval_s": ours and ours.interval_s,
        }
        for name in (AUTO, *competitors):
            found, other = self.speedup(name), self.measurements.get(name)
            row[f"{name}_s"] = other and other.runtime_s
            row[f"vs_{name}"] = found and found[0]
            row[f"vs_{name}_interval"] = found and found[1]
        told = self.retrieval
        row["baseline"] = told and told.baseline_name
        row["candidates_measured"] = told and told.candidates_measured
        row["candidates_per_nest_max"] = told and max((_measured(n) for n in told.nests), default=0)
        row["kept"] = told and _kept(told)
        row["note"] = "; ".join(self._notes())
        row["failures"] = self.wrong
        return row

    def _notes(self) -> list[str]:
        missing = [f"{n}: {m.detail}" for n, m in self.measurements.items() if m.status != "ok"]
        told = self.retrieval
        if told is None:
            return [self.failure, *missing]
        fallback = [f"no auto_optimize: {told.baseline_note}"] if told.baseline_note else []
        skipped = [f"not tuned: {part['part']}: {part['reason']}" for part in told.skipped]
        return [note for note in (*fallback, told.note, *missing, *skipped) if note]


def _measured(nest: Any) -> int:
    return sum(tried.status not in ("not_applicable", "not_measured") for tried in nest.candidates)


def _kept(told: Retrieval) -> str:
    if told.kept_baseline:
        return "baseline"
    words = [f"{nest.name}: {nest.accepted_words}" for nest in told.nests if nest.accepted is not None]
    return f"{len(words)} of {len(told.nests)} nests: " + "; ".join(words)


def run_case(
    case: Case, released: Released, k: int, effort: Effort, notify: Notify = lambda _: None
) -> CaseResult:
    """Tune one kernel as `gnnperf retrieve -k K --no-store` does, and time it beside everything else."""
    retrieval: Retrieval | None = None
    try:
        with Compiler() as compiler, Runner() as runner:
            kernel = load_kernel(case.program, case.symbols, case.inputs)
            transfer = Transfer(
                kernel, released.bundle, [released.store], describe_host(), released.calibration,
                Options(k=k), notify,
            )  # fmt: skip
            retrieval, tuned, _ = transfer.run(compiler, runner)
            whole = WholeKernel.prepare(kernel, "auto", compiler, runner)
            contenders: dict[str, Any] = {AUTO: whole.library, **case.competitors}
            if tuned is not None:
                contenders = {OURS: compiler.build(dace_source(tuned, f"{kernel.name}_tuned")), **contenders}
            found = measure_side_by_side(contenders, _problem(kernel, whole), effort, notify=notify)
    except GnnperfError as error:
        return CaseResult(case.name, retrieval, {}, str(error))
    return CaseResult(case.name, retrieval, {OURS: found.get(OURS, found[AUTO]), **found})


def _problem(kernel: DaceKernel, whole: WholeKernel) -> Problem:
    inputs = {**kernel.data, **kernel.symbols}
    return Problem(inputs, kernel.outputs, whole.reference, whole.reduction_length)


def summarise(
    suite: Suite, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> BenchmarkResult:
    """The table of a suite and its geometric means over the kernels that were compared."""
    figures: dict[str, float] = {}
    for name in (AUTO, *suite.competitors):
        if speedups := [row[f"vs_{name}"] for row in rows if row[f"vs_{name}"]]:
            figures[f"geomean_vs_{name}"] = math.exp(sum(map(math.log, speedups)) / len(speedups))
            figures[f"min_vs_{name}"] = min(speedups)
    figures["kernels"] = len(rows)
    figures["candidates_per_nest_max"] = max((row["candidates_per_nest_max"] or 0 for row in rows), default=0)
    return BenchmarkResult(f"case-{suite.name}", figures, rows, settings)


def describe_setup(suite: Suite) -> dict[str, Any]:
    """Machine and versions."""
    host = describe_host()
    versions = {}
    for package in ("dace", "numpy", *suite.competitors):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "device": host.fingerprint,
        "name": host.name,
        "threads": available_threads(),
        "versions": versions,
    }
