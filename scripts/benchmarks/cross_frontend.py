"""Schedules that were found in one frontend, carried over to the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import click

from benchmarks.kernel_pairs import Pair, read_pairs
from benchmarks.options import kernels_option, ready_to_measure, tensor_checkpoint_option
from benchmarks.tvm_in_turn import DEFAULT, timed_in_turn, tvm_setup
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import FILE, nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Measurement, Runner, Source
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.outcome import Outcome
from gnnperf.schedules.recipes import Recipe

if TYPE_CHECKING:
    from benchmarks.carrying import Carried
    from gnnperf.backends.cpp.trials import NestBench
    from gnnperf.frontends.dace import Unit
    from gnnperf.nn import Bundle
    from gnnperf.nn.traces import TensorBundle
    from gnnperf.retrieval.query import Query
    from gnnperf.retrieval.ranking import RecipeCandidate
    from gnnperf.retrieval.scheduled import OfNest
    from gnnperf.store import Neighbour, Store

PAIRS = Path(__file__).with_name("kernels") / "cross_frontend.py"
POOL = 64
"""Schedules that are looked at for each kernel."""
CARRIED, NATIVE = "carried", "native"


@click.command("cross-frontend", cls=Verb, page=True)
@click.option(
    "--cases", "path", type=FILE, metavar="FILE",
    default=PAIRS, show_default="scripts/benchmarks/kernels/cross_frontend.py",
    help="DaCe programs with their SIZES; FILE with _tvm before .py has them as TVM functions.",
)  # fmt: skip
@kernels_option
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100),
    help="Schedules measured for each kernel, frontend and origin.",
)  # fmt: skip
@nests_checkpoint_option
@tensor_checkpoint_option("--tensor-checkpoint", "Cost model and schedule store of TVM programs.")
@output_option
def cross_frontend(
    path: Path, kernels: tuple[str, ...], k: int, checkpoint: Path, tensor_checkpoint: Path,
    output: Path | None,
) -> Report:  # fmt: skip
    """Schedules that were found in one frontend, carried over to the other.

    Every kernel is a DaCe program and a TVM function with the same loops. The recipes that `retrieve` would
    try on the program become TVM schedules, beside what `retrieve` tries on the function; the best traces of
    the nearest TVM workloads become recipes, beside what `retrieve` tries on the program. All are verified,
    and the best of k counts; what a store has of the kernel itself is left out. Ratios say how much faster
    the carried schedule is than the default, and than the native one.
    """
    import_tvm()
    pairs = read_pairs(path, kernels)
    target = ready_to_measure()
    tasks = [pair.task() for pair in pairs]
    # Forked before torch and the stores are loaded.
    with BenchServer([task.module for task in tasks], target) as server:
        study = CrossFrontendStudy.load(path, pairs, tasks, server, target, checkpoint, tensor_checkpoint, k)
        return study.run(output)


@dataclass(frozen=True)
class CrossFrontendStudy(Study):
    """One run of the benchmark. tasks: TVM functions of the pairs, in their order, as the server has them.
    bundle, recipes: for loop nests, with its store; model, traces: for tensor programs. k: schedules that are
    measured."""

    name = "cross-frontend"

    files: Mapping[str, Path]
    pairs: Sequence[Pair]
    tasks: Sequence[TvmTask]
    server: BenchServer
    target: Any
    bundle: Bundle
    recipes: Store
    model: TensorBundle
    traces: Store
    k: int = 5
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=4.0))

    @staticmethod
    def load(
        path: Path, pairs: Sequence[Pair], tasks: Sequence[TvmTask], server: BenchServer, target: Any,
        checkpoint: Path, tensor_checkpoint: Path, k: int,
    ) -> CrossFrontendStudy:  # fmt: skip
        """path: of the pairs. Raises GnnperfError where a checkpoint cannot be read."""
        from gnnperf.nn import Bundle, load_checkpoint
        from gnnperf.nn.traces import TensorBundle
        from gnnperf.store import Store

        files = {"cases": path, "checkpoint": checkpoint, "tensor_checkpoint": tensor_checkpoint}
        return CrossFrontendStudy(
            files, pairs, tasks, server, target,
            load_checkpoint(checkpoint, Bundle), Store.open(checkpoint / "store"),
            load_checkpoint(tensor_checkpoint, TensorBundle), Store.open(tensor_checkpoint / "store"), k,
        )  # fmt: skip

    def settings(self) -> Mapping[str, Any]:
        return {**tvm_setup("dace"), "k": self.k, **self.files}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {pair.name: partial(self.row, n) for n, pair in enumerate(self.pairs)}

    def row(self, number: int, say: Say) -> Row:
        """Everything about kernel `number`."""
        from gnnperf.frontends.dace import capture_inputs, load_kernel

        pair, task = self.pairs[number], self.tasks[number]
        with Compiler() as compiler, Runner() as runner:
            kernel = load_kernel(pair.program, pair.symbols)
            capture_inputs(kernel, compiler, runner)
            units = [u for u in kernel.units if u.skipped is None and u.nest.has_loops]
            if len(units) != 1:
                raise InputError(f"{pair.program}: expected one loop nest, got {len(units)}")
            same = units[0].graph.digest == task.graph.digest
            say("TVM")
            in_tvm = self._in_tvm(number, task)
            say("DaCe")
            in_dace = self._in_dace(units[0], compiler, runner)
        return {"kernel": pair.name, "failures": [], "same_graph": same, **in_tvm, **in_dace}

    def _nearest(self, store: Store, graph: ProgramGraph) -> list[Neighbour]:
        """Neighbours in a store, without the kernel itself."""
        from gnnperf.retrieval.neighbours import nearest
        from gnnperf.retrieval.proposers import RecipeProposer

        (vector,) = self.bundle.embed([graph])
        count, host = RecipeProposer.neighbours, describe_host().fingerprint
        return nearest([store], vector, count, self.bundle.encoder_id, host, {graph.digest})

    def _ranked(self, task: OfNest) -> list[RecipeCandidate]:
        """Recipes of the nearest nests in the order in which retrieval tries them."""
        from gnnperf.retrieval.ranking import rank
        from gnnperf.retrieval.scheduled import scores_of

        score = partial(scores_of, self.bundle, task, vectors=describe_host().vectors)
        return rank(self._nearest(self.recipes, task.graph), POOL, score)

    # ------------------------------------------------------------------ recipes in TVM

    def _in_tvm(self, number: int, task: TvmTask) -> dict[str, Any]:
        from benchmarks.carrying import to_tvm

        carried = to_tvm(task, self._ranked(task), self.k)
        query = self._native(number)
        native = self._measure(number, [c.program for c in query.candidates[: self.k]])
        self.server.baseline(number)
        tried = self._measure(number, [module for _, module in carried.schedules])
        chosen = {CARRIED: _fastest(tried), NATIVE: _fastest(native)}
        modules = {name: found[0] for name, found in chosen.items() if found is not None}
        about = TvmWorkload(self.pairs[number].name, self.pairs[number].symbols)
        timed = timed_in_turn(self.server, number, about, modules, self.target, self.pace, False)
        best = next((n for n, (m, _) in enumerate(tried) if m is modules.get(CARRIED)), None)
        return {
            "tvm_default_s": timed[DEFAULT].runtime_s,
            "tvm_carried_s": _seconds(timed, CARRIED),
            "tvm_native_s": _seconds(timed, NATIVE),
            "tvm_native_reason": query.reason,
            "tvm_intervals_s": {name: m.interval_s for name, m in timed.items()},
            "tvm_statuses": {
                name: [outcome.status for _, outcome in found]
                for name, found in ((CARRIED, tried), (NATIVE, native))
            },
            "tvm_best": None if best is None else _described(carried, best),
            **_about("tvm", carried),
        }

    def _native(self, number: int) -> Query:
        """The task as `retrieve` asks about it, without the kernel itself, and without lent recipes."""
        from gnnperf.frontends.tvm.program import TvmProgram
        from gnnperf.retrieval import Options
        from gnnperf.session import Session

        session = Session(self.files["checkpoint"], store=False)
        asking = {
            "model": self.model, "stores": [self.traces], "recipe_stores": (),
            "exclude": {self.tasks[number].graph.digest},
        }  # fmt: skip
        program = TvmProgram("pairs", self.tasks, self.target)
        (query,) = session.pipeline(program, None, options=Options(k=self.k), proposer=asking).ask([number])
        return query

    def _measure(self, number: int, modules: Sequence[Any]) -> list[tuple[Any, Outcome]]:
        return list(zip(modules, self.server.measure(number, modules), strict=True)) if modules else []

    # ------------------------------------------------------------------ traces in DaCe

    def _in_dace(self, unit: Unit, compiler: Compiler, runner: Runner) -> dict[str, Any]:
        from benchmarks.carrying import to_dace
        from gnnperf.backends.cpp.cases import UnitCase
        from gnnperf.backends.cpp.trials import NestBench
        from gnnperf.retrieval.scheduled import scores_of

        case = UnitCase.prepare(unit, "auto", compiler, runner)
        bench = NestBench(case.case, compiler, runner, case.limits)
        carried = to_dace(self._nearest(self.traces, unit.graph), POOL)
        recipes = [recipe for recipe, _ in carried.schedules]
        if recipes:  # all that is known of them here is what the network expects
            order = (-scores_of(self.bundle, unit, recipes, describe_host().vectors)).argsort()
            carried.schedules = [carried.schedules[n] for n in order]
            carried.lenders = [carried.lenders[n] for n in order]
        tried = _tried(bench, (recipe for recipe, _ in carried.schedules), self.k)
        native = _tried(bench, (candidate.schedule for candidate in self._ranked(unit)), self.k)
        fastest = max(tried, key=lambda found: found[1].speedup or 0.0, default=None)
        position = None
        if fastest is not None and fastest[1].speedup:
            position = [recipe for recipe, _ in carried.schedules].index(fastest[0])
        return {
            "dace_baseline": case.built.name,
            "dace_baseline_s": case.baseline.runtime_s,
            "dace_carried_speedup": _speedup(tried),
            "dace_native_speedup": _speedup(native),
            "dace_speedups": {
                name: [(m.status, m.speedup, m.speedup_interval) for _, m in found]
                for name, found in ((CARRIED, tried), (NATIVE, native))
            },
            "dace_best": None if position is None else _described(carried, position),
            **_about("dace", carried),
            "dace_applied": sum(m.status != "not_applicable" for _, m in tried),
        }

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Geometric means of how much faster the carried schedules are (higher is better). Where nothing
        could be carried over the default counts for it; kernels for which a store has nothing native are left
        out of the comparison with that."""
        good = [row for row in table if not row["failures"]]
        figures: dict[str, float] = {"kernels": len(good)}
        for name, counted in (("dace_to_tvm", "tvm_applied"), ("tvm_to_dace", "dace_applied")):
            figures[f"carried_over_{name}"] = sum(row[counted] for row in good)
        ratios: dict[str, list[float]] = defaultdict(list)
        for row in good:
            default_s, native_s = row["tvm_default_s"], row["tvm_native_s"]
            carried_s = row["tvm_carried_s"] or default_s
            ratios["geomean_vs_tvm_default"].append(default_s / carried_s)
            if native_s:
                ratios["geomean_vs_native_tvm"].append(native_s / carried_s)
            speedup, native = row["dace_carried_speedup"] or 1.0, row["dace_native_speedup"]
            ratios["geomean_vs_auto_optimize"].append(speedup)
            if native:
                ratios["geomean_vs_native_dace"].append(speedup / native)
        return figures | {name: geometric_mean(found) for name, found in ratios.items()}

    @staticmethod
    def shown(row: Row) -> Row:
        default_s, carried_s, native_s = (
            row.get(f"tvm_{name}_s") for name in ("default", "carried", "native")
        )
        carried, native = row.get("dace_carried_speedup"), row.get("dace_native_speedup")
        return {
            "kernel": row["kernel"],
            "tvm-default us": default_s and 1e6 * default_s,
            "carried us": carried_s and 1e6 * carried_s,
            "native us": native_s and 1e6 * native_s,
            "native / carried": native_s / carried_s if native_s and carried_s else None,
            "auto_optimize us": row.get("dace_baseline_s") and 1e6 * row["dace_baseline_s"],
            "carried": carried and f"{carried:.3g}x",
            "native": native and f"{native:.3g}x",
            "carried / native": carried / native if carried and native else None,
            "note": "; ".join(row["failures"]),
        }


def _tried(bench: NestBench, recipes: Iterable[Recipe], k: int) -> list[tuple[Recipe, Measurement]]:
    """The first k recipes that apply and lower to code of their own, measured; also those between that do not
    apply."""
    chosen: dict[Recipe, Source | Measurement] = {}
    codes: set[str] = set()
    for recipe in recipes:
        if len(codes) == k:
            break
        prepared = bench.prepare(recipe)
        if isinstance(prepared, Source):
            if prepared.text in codes:
                continue
            codes.add(prepared.text)
        chosen[recipe] = prepared
    return list(zip(chosen, bench.measure(list(chosen.values())), strict=True))


def _speedup(tried: Sequence[tuple[Recipe, Measurement]]) -> float | None:
    """Of the fastest over the baseline; None where none is right."""
    return max((m.speedup for _, m in tried if m.speedup), default=None)


def _fastest(tried: Sequence[tuple[Any, Outcome]]) -> tuple[Any, Outcome] | None:
    right = [(outcome.runtime_s, n) for n, (_, outcome) in enumerate(tried) if outcome.runtime_s is not None]
    return tried[min(right)[1]] if right else None


def _seconds(timed: Mapping[str, Measurement], name: str) -> float | None:
    """None for what is not there, or failed."""
    return timed[name].runtime_s if name in timed else None


def _described(carried: Carried, number: int) -> str:
    return f"{carried.schedules[number][0].describe()} (of {carried.lenders[number]})"


def _about(frontend: str, carried: Carried) -> dict[str, Any]:
    return {
        f"{frontend}_applied": len(carried.schedules),
        f"{frontend}_refused": dict(carried.refused),
        f"{frontend}_dropped": dict(carried.dropped),
    }
