"""Kernels tuned by `retrieve`, then timed side by side with what their users would use instead.

A suite is in `kernels`: `NAME.py` holds the DaCe programs and `SIZES`, `NAME_<competitor>.py` the same
functions for each competitor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeVar

import click

from benchmarks.machine import setup
from benchmarks.options import chosen, kernels_option
from benchmarks.plots import plot_kernels
from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.backends.cpp.executor import CppExecutor
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import nests_checkpoint_option
from gnnperf.cli.output import Report
from gnnperf.documents import to_json
from gnnperf.errors import GnnperfError
from gnnperf.evaluation import BenchmarkResult
from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.dace.source import load_attribute
from gnnperf.measure import Compiler, Measurement, Runner
from gnnperf.measure.competitors import Effort, PythonFunction, measure_side_by_side
from gnnperf.retrieval import Options, RetrievalReport
from gnnperf.session import Session

KERNELS = Path(__file__).with_name("kernels")
AUTO, OURS = "auto_optimize", "ours"
QUICK_KERNELS = 3
CAPTION = "Speedup over each competitor, with 95% intervals. A bar that hangs down is a loss."
BRIEF = Effort(processes=1, budget_s=1.0)
Interval = tuple[float, float]
F = TypeVar("F", bound=Callable[..., Any])


# --------------------------------------------------------------------------- kernels


@dataclass(frozen=True)
class ComparedKernel:
    """A DaCe program (`FILE.py:NAME`), its sizes, a function that makes its inputs, and its competitors."""

    name: str
    program: str
    symbols: Mapping[str, int]
    inputs: str | None
    competitors: Mapping[str, Any]


@dataclass(frozen=True)
class Suite:
    """competitors: Python packages whose versions of the kernels exist; "torch-compile": PyTorch's version,
    compiled. folder: where its files are."""

    name: str
    competitors: tuple[str, ...]
    folder: Path = KERNELS

    @property
    def file(self) -> Path:
        """The DaCe programs."""
        return self.folder / f"{self.name}.py"

    def kernels(self, wanted: Sequence[str] = ()) -> list[ComparedKernel]:
        """The kernels called `wanted`, or all, in the order of the file. Raises InputError."""
        sizes: dict[str, dict[str, int]] = load_attribute(self.file, "SIZES", "kernels")
        return [self._kernel(name, sizes[name]) for name in chosen(sizes, wanted)]

    def _competitor(self, kernel: str, competitor: str) -> PythonFunction:
        package, _, compiled = competitor.partition("-")
        path = self.folder / f"{self.name}_{package}.py"
        return PythonFunction(path, kernel, package, compiled=package if compiled else "")

    def _kernel(self, name: str, symbols: Mapping[str, int]) -> ComparedKernel:
        inputs = f"inputs_{name}"
        made = f"def {inputs}(" in self.file.read_text(encoding="utf-8")
        competitors = {competitor: self._competitor(name, competitor) for competitor in self.competitors}
        return ComparedKernel(
            name, f"{self.file}:{name}", symbols, f"{self.file}:{inputs}" if made else None, competitors
        )


# --------------------------------------------------------------------------- one kernel


@dataclass(frozen=True)
class ComparedRow:
    """One kernel. `measurements`: of `ours`, `auto_optimize` and the competitors, by name; where the
    baseline was kept, `ours` is the baseline. Empty, with `failure`, where the kernel could not be tuned."""

    kernel: str
    retrieval: RetrievalReport | None
    measurements: Mapping[str, Measurement]
    failure: str = ""

    def speedup(self, competitor: str) -> tuple[float, Interval] | None:
        """Median runtime of a competitor over ours, with its interval; None where one of them failed."""
        ours, other = self.measurements.get(OURS), self.measurements.get(competitor)
        if ours is None or other is None or not ours.runtime_s or not other.runtime_s:
            return None
        if ours is other:
            return 1.0, (1.0, 1.0)
        found = ours.over(other)
        assert found.speedup is not None and found.speedup_interval is not None
        return found.speedup, found.speedup_interval

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
        fallback = (
            [f"the baseline is {told.baseline_name}: {told.baseline_note}"] if told.baseline_note else []
        )
        skipped = [f"not tuned: {part['part']}: {part['reason']}" for part in told.skipped]
        return [note for note in (*fallback, told.note, *missing, *skipped) if note]


def _measured(nest: Any) -> int:
    return sum(tried.status not in ("not_applicable", "not_measured") for tried in nest.candidates)


def _kept(told: RetrievalReport) -> str:
    if told.kept_baseline:
        return "baseline"
    words = [f"{nest.name}: {nest.accepted_words}" for nest in told.nests if nest.accepted is not None]
    return f"{len(words)} of {len(told.nests)} nests: " + "; ".join(words)


def compare(kernel: ComparedKernel, session: Session, k: int, effort: Effort, say: Say) -> ComparedRow:
    """Tune one kernel as `gnnperf retrieve -k K --no-store` does, and time it beside everything else."""
    retrieval: RetrievalReport | None = None
    try:
        with Compiler() as compiler, Runner() as runner:
            loaded = load_kernel(kernel.program, kernel.symbols, kernel.inputs)
            executor = CppExecutor(loaded, None, compiler, runner)
            retrieval, _ = session.pipeline(loaded, executor, options=Options(k=k), notify=say).run()
            whole = WholeKernel.prepare(loaded, "auto", compiler, runner)
            contenders: dict[str, Any] = {AUTO: whole.built.library, **kernel.competitors}
            if executor.tuned is not None:
                tuned = compiler.build(executor.tuned.source(f"{loaded.name}_tuned"))
                contenders = {OURS: tuned, **contenders}
            problem = whole.built.problem
            problem = replace(problem, inputs={**problem.inputs, **loaded.sizes})
            found = measure_side_by_side(contenders, problem, effort, notify=say)
    except GnnperfError as error:
        return ComparedRow(kernel.name, retrieval, {}, str(error))
    return ComparedRow(kernel.name, retrieval, {OURS: found.get(OURS, found[AUTO]), **found})


# --------------------------------------------------------------------------- the table


def comparison_options(command: F) -> F:
    """`--kernels`, `--quick`, `-k`, `--output`, `--checkpoint`, for `ComparisonStudy.of`."""
    for option in (
        nests_checkpoint_option,
        output_option,
        click.option(
            "-k", default=5, show_default=True, type=click.IntRange(1, 100),
            help="Candidates measured per nest.",
        ),
        click.option(
            "--quick", is_flag=True, help=f"The first {QUICK_KERNELS} kernels, timed briefly: a first look."
        ),
        kernels_option,
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class ComparisonStudy(Study):
    """One suite. output: where what retrieve said of every kernel is written, as `KERNEL.json`."""

    name: str
    suite: Suite
    kernels: Sequence[ComparedKernel]
    checkpoint: Path
    k: int
    quick: bool
    output: Path | None

    @staticmethod
    def report(
        name: str, suite: Suite, kernels: tuple[str, ...], quick: bool, k: int, output: Path | None,
        checkpoint: Path,
    ) -> Report:  # fmt: skip
        """Run a suite, kernel by kernel; the arguments but the first two are `comparison_options`."""
        chosen = suite.kernels(kernels)
        if quick and not kernels:
            chosen = chosen[:QUICK_KERNELS]
        return ComparisonStudy(name, suite, chosen, checkpoint, k, quick, output).run(output)

    @property
    def effort(self) -> Effort:
        return BRIEF if self.quick else Effort()

    def settings(self) -> Mapping[str, Any]:
        about = setup("dace", "numpy", *(name for name in self.suite.competitors if "-" not in name))
        return {
            **about, "k": self.k, "quick": self.quick, "checkpoint": self.checkpoint, "effort": self.effort
        }  # fmt: skip

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        session = Session(self.checkpoint, store=False)
        return {kernel.name: partial(self._row, kernel, session) for kernel in self.kernels}

    def _row(self, kernel: ComparedKernel, session: Session, say: Say) -> Row:
        found = compare(kernel, session, self.k, self.effort, say)
        if self.output is not None and found.retrieval is not None:
            said = to_json(found.retrieval.to_dict())
            (self.output / f"{kernel.name}.json").write_text(said + "\n", encoding="utf-8")
        return found.row(self.suite.competitors)

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Geometric means over the kernels that were compared."""
        figures: dict[str, float] = {}
        for name in _competitors(table):
            if speedups := [row[f"vs_{name}"] for row in table if row[f"vs_{name}"]]:
                figures[f"geomean_vs_{name}"] = geometric_mean(speedups)
                figures[f"min_vs_{name}"] = min(speedups)
        figures["kernels"] = len(table)
        most = max((row["candidates_per_nest_max"] or 0 for row in table), default=0)
        return figures | {"candidates_per_nest_max": most}

    @staticmethod
    def shown(row: Row) -> Row:
        """The schedules are in the documents."""
        cells: dict[str, Any] = {"kernel": row["kernel"], "ours": None}
        if row["ours_s"] is not None:
            runtime, lo, hi = (
                f"{t * 1e3:#.3g}".rstrip(".") for t in (row["ours_s"], *row["ours_interval_s"])
            )
            cells["ours"] = f"{runtime} [{lo}, {hi}] ms"
        for name in _competitors([row]):
            speedup, interval = row[f"vs_{name}"], row[f"vs_{name}_interval"]
            cells[f"vs {name}"] = interval and f"{speedup:.2f}x [{interval[0]:.2f}, {interval[1]:.2f}]"
        kept = row["kept"] and row["kept"].partition(":")[0]
        return {**cells, "candidates": row["candidates_measured"], "kept": kept}

    @staticmethod
    def notes(table: Rows) -> list[str]:
        return [f"{row['kernel']}: {row['note']}" for row in table if row["note"]]

    def plots(self, result: BenchmarkResult) -> Mapping[str, Callable[[Path], None]]:
        return {CAPTION: partial(plot_kernels, result.rows, _competitors(result.rows), title(result))}


def title(result: BenchmarkResult) -> str:
    """Of a plot."""
    return f"gnnperf, {result.settings['threads']} threads, {result.settings['name']}"


def _competitors(table: Rows) -> list[str]:
    """Those that rows have a speedup over, in the order of their columns."""
    names = (name for name in (table[0] if table else ()) if name.startswith("vs_"))
    return [name.removeprefix("vs_") for name in names if not name.endswith("_interval")]
