"""The best schedules that each frontend's store has for a kernel, carried over to the other frontend and
measured beside what is retrieved there natively."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gnnperf.backends.cpp.cases import UnitCase, unit_graph
from gnnperf.backends.cpp.trials import Bench
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError, InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.cross_frontend.carrying import Carried, to_dace, to_tvm
from gnnperf.evaluation.cross_frontend.kernels import Pair
from gnnperf.evaluation.tensor.contenders import DEFAULT, timed_in_turn
from gnnperf.evaluation.tensor.study import describe_setup
from gnnperf.frontends.dace import Unit, capture_inputs, load_kernel
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Measurement, Runner, Source
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.outcome import Outcome
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.traces import TensorBundle
from gnnperf.retrieval.neighbours import nearest
from gnnperf.retrieval.ranking import Candidate, rank
from gnnperf.retrieval.tensor import TaskQuery, TensorOptions, TensorTransfer
from gnnperf.retrieval.transfer import Options
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour, Store

POOL = 64
"""Schedules that are looked at for each kernel."""
CARRIED, NATIVE = "carried", "native"
Notify = Callable[[str], None]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """One run of the benchmark. tasks: TVM functions of the pairs, in their order, as the server has them.
    bundle, recipes: for loop nests, with its store; model, traces: for tensor programs. k: schedules that are
    measured."""

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
        pairs: Sequence[Pair], tasks: Sequence[TvmTask], server: BenchServer, target: Any, checkpoint: Path,
        tensor_checkpoint: Path, k: int,
    ) -> Study:  # fmt: skip
        """Raises GnnperfError where a checkpoint cannot be read."""
        return Study(
            pairs, tasks, server, target,
            load_checkpoint(checkpoint, Bundle), Store.open(checkpoint / "store"),
            load_checkpoint(tensor_checkpoint, TensorBundle), Store.open(tensor_checkpoint / "store"), k,
        )  # fmt: skip

    def row(self, number: int, notify: Notify = lambda _: None) -> dict[str, Any]:
        """Everything about kernel `number`."""
        pair, task = self.pairs[number], self.tasks[number]
        row: dict[str, Any] = {"kernel": pair.name, "failures": []}
        try:
            with Compiler() as compiler, Runner() as runner:
                kernel = load_kernel(pair.program, pair.symbols)
                capture_inputs(kernel, compiler, runner)
                units = [u for u in kernel.units if u.skipped is None and u.nest.has_loops]
                if len(units) != 1:
                    raise InputError(f"{pair.program}: expected one loop nest, got {len(units)}")
                row["same_graph"] = unit_graph(units[0]).digest == task.graph.digest
                notify("TVM")
                row |= self._in_tvm(number, task)
                notify("DaCe")
                row |= self._in_dace(units[0], compiler, runner)
        except GnnperfError as error:
            row["failures"] = [f"{pair.name}: {error}"]
        return row

    def _nearest(self, store: Store, graph: ProgramGraph) -> list[Neighbour]:
        """Neighbours in a store, without the kernel itself."""
        (vector,) = self.bundle.embed([graph])
        count, host = Options().neighbours, describe_host().fingerprint
        found = nearest([store], vector, count + 1, self.bundle.encoder_id, host)
        return [n for n in found if n.nest.digest != graph.digest][:count]

    def _ranked(self, graph: ProgramGraph) -> list[Candidate]:
        """Recipes of the nearest nests in the order in which retrieval tries them."""
        return rank(self._nearest(self.recipes, graph), POOL, lambda r: self.bundle.score([graph], r)[0])

    # ------------------------------------------------------------------ recipes in TVM

    def _in_tvm(self, number: int, task: TvmTask) -> dict[str, Any]:
        carried = to_tvm(task, self._ranked(task.graph), self.k)
        query = self._native(number, task)
        native = self._measure(number, [c.program for c in query.candidates[: self.k]])
        self.server.baseline(number)
        tried = self._measure(number, [module for _, module in carried.schedules])
        chosen = {CARRIED: _fastest(tried), NATIVE: _fastest(native)}
        modules = {name: found[0] for name, found in chosen.items() if found is not None}
        about = Workload(self.pairs[number].name, self.pairs[number].symbols)
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

    def _native(self, number: int, task: TvmTask) -> TaskQuery:
        query = TaskQuery(task, number)
        options = TensorOptions(k=self.k, exclude=frozenset({task.graph.digest}))
        TensorTransfer(
            kernel=task.name, tasks=[task], target=self.target, bundle=self.bundle, model=self.model,
            stores=[self.traces], device=describe_host(), server=None, options=options,
        ).ask([query])  # fmt: skip
        return query

    def _measure(self, number: int, modules: Sequence[Any]) -> list[tuple[Any, Outcome]]:
        return list(zip(modules, self.server.measure(number, modules), strict=True)) if modules else []

    # ------------------------------------------------------------------ traces in DaCe

    def _in_dace(self, unit: Unit, compiler: Compiler, runner: Runner) -> dict[str, Any]:
        graph = unit_graph(unit)
        case = UnitCase.prepare(unit, "auto", compiler, runner)
        bench = Bench(case.case, compiler, runner, case.limits)
        carried = to_dace(self._nearest(self.traces, graph), POOL)
        recipes = [recipe for recipe, _ in carried.schedules]
        if recipes:  # all that is known of them here is what the retrieval head expects
            order = (-self.bundle.score([graph], recipes)[0]).argsort()
            carried.schedules = [carried.schedules[n] for n in order]
            carried.lenders = [carried.lenders[n] for n in order]
        tried = _tried(bench, (recipe for recipe, _ in carried.schedules), self.k)
        native = _tried(bench, (candidate.schedule for candidate in self._ranked(graph)), self.k)
        fastest = max(tried, key=lambda found: found[1].speedup or 0.0, default=None)
        position = None
        if fastest is not None and fastest[1].speedup:
            position = [recipe for recipe, _ in carried.schedules].index(fastest[0])
        return {
            "dace_baseline": case.baseline_name,
            "dace_baseline_s": case.baseline_s,
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


def _tried(bench: Bench, recipes: Iterable[Recipe], k: int) -> list[tuple[Recipe, Measurement]]:
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


def summarise(rows: Sequence[Row], settings: Mapping[str, Any]) -> BenchmarkResult:
    """The table, and geometric means of how much faster the carried schedules are (higher is better). Where
    nothing could be carried over the default counts for it; kernels for which a store has nothing native are
    left out of the comparison with that."""
    good = [row for row in rows if not row["failures"]]
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
    figures |= {name: math.exp(sum(map(math.log, found)) / len(found)) for name, found in ratios.items()}
    return BenchmarkResult("cross-frontend", figures, rows, settings)


def setup() -> dict[str, Any]:
    """Machine and versions."""
    found = describe_setup()
    return {**found, "versions": {**found["versions"], "dace": version("dace")}}
