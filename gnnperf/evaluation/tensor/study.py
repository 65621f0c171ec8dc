"""Transfer of TVM schedules to held-out workloads, beside MetaSchedule's own search and PyTorch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.competitors import TORCH
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.metrics import geometric_mean
from gnnperf.evaluation.tensor.contenders import DEFAULT, Tried, raced, timed_in_turn
from gnnperf.evaluation.tensor.kinds import ModelsWithoutKinds
from gnnperf.evaluation.tensor.search import Trial, best_of, metaschedule, trials_to_reach
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.target import host_mcpu
from gnnperf.frontends.tvm.vector_math import needs_vector_math
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.measure import Measurement
from gnnperf.measure.confine import available_threads
from gnnperf.measure.interleaved import Pace
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.traces import TensorBundle
from gnnperf.retrieval.tensor import TaskQuery, TensorOptions, TensorTransfer
from gnnperf.retrieval.tensor.contexts import context_of
from gnnperf.retrieval.tensor.proposals import best_traces
from gnnperf.schedules.traces import TraceDocument, transfer
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store

K = 8
"""Candidates of ours that are measured."""
LONG = 1000
"""Trials of a long search; the short one is its beginning."""
SHORT = 128
AFTER = (1, 8, 16, 32, 64, 128, 256, 512, 1000)
"""Trials after which a row says how far the search was."""

OURS_8, OURS_1, MODEL, KIND_8, KIND_1, FLOOR, MS, MS_LONG = (
    "ours_8", "ours_1", "model_only", "kind_8", "kind_1", "floor_8", "ms", "ms_long",
)  # fmt: skip
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Study:
    """One run of the benchmark. trials: of MetaSchedule; from `LONG` on, its beginning is judged as well.
    without_kinds: also transfer from workloads of other kinds only, by models that do not know the kind."""

    workloads: Sequence[Workload]
    server: BenchServer
    target: Any
    bundle: Bundle
    model: TensorBundle
    store: Store
    trials: int = SHORT
    without_kinds: ModelsWithoutKinds | None = None
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=6.0))

    @staticmethod
    def load(
        workloads: Sequence[Workload], server: BenchServer, target: Any, checkpoint: Path, **options: Any
    ) -> Study:
        """Raises GnnperfError where the checkpoint cannot be read."""
        model, store = load_checkpoint(checkpoint, TensorBundle), Store.open(checkpoint / "store")
        return Study(
            workloads, server, target, load_checkpoint(shipped_bundle(), Bundle), model, store, **options
        )

    def row(self, number: int, notify: Notify = lambda _: None) -> dict[str, Any]:
        """Everything about workload `number`; times in seconds, those in turn with one another."""
        workload = self.workloads[number]
        try:
            return self._row(number, workload, notify)
        except GnnperfError as error:
            return {
                "workload": workload.name,
                "kind": workload.kind,
                "failures": [f"{workload.name}: {error}"],
            }

    def _row(self, number: int, workload: Workload, notify: Notify) -> dict[str, Any]:
        task = TvmTask(workload.name, workload.build())
        self.server.baseline(number)
        notify("transferring")
        query, tried = self._transferred(task, number, self.model)
        chosen = {
            OURS_8: raced(self.server, number, tried),
            OURS_1: raced(self.server, number, tried[:1]),
            MODEL: tried[0][0] if tried else None,
        }
        if self.without_kinds is not None:
            model = self.without_kinds.without(workload.kind, notify)
            _, strangers = self._transferred(task, number, model, frozenset({workload.kind}))
            chosen |= {
                KIND_8: raced(self.server, number, strangers),
                KIND_1: raced(self.server, number, strangers[:1]),
            }
        floor = self._measure(number, self._re_decided(task, query, workload.kind))
        chosen[FLOOR] = raced(self.server, number, floor)
        measure = partial(self.server.measure, number)
        trials = metaschedule(workload, task.module, self.target, self.trials, measure, self.seed, notify)
        for name, end in ((MS, SHORT), (MS_LONG, self.trials)):
            if name == MS or self.trials >= LONG:
                found = [(trial.module, trial.outcome) for trial in trials[:end]]
                chosen[name] = raced(self.server, number, found)
        notify("timing in turn")
        modules = {name: module for name, module in chosen.items() if module is not None}
        timed = timed_in_turn(self.server, number, workload, modules, self.target, self.pace, True)
        return self._report(workload, query, tried, trials, timed)

    def _transferred(
        self, task: TvmTask, number: int, model: TensorBundle, without: frozenset[str] = frozenset()
    ) -> tuple[TaskQuery, Tried]:
        """The first candidates, measured, from all but the workload itself, and from no workload of some
        kinds."""
        query = TaskQuery(task, number)
        transfer = TensorTransfer(
            kernel=task.name,
            tasks=[task],
            target=self.target,
            bundle=self.bundle,
            model=model,
            stores=[self.store],
            device=describe_host(),
            server=None,
            options=TensorOptions(k=K, exclude=frozenset({task.graph.digest}), exclude_families=without),
        )
        transfer.ask([query])
        tried = transfer.try_first(query, self.server)
        return query, [(candidate.program, outcome) for candidate, outcome in tried]

    def _measure(self, number: int, modules: Sequence[Any]) -> Tried:
        return list(zip(modules, self.server.measure(number, modules), strict=True)) if modules else []

    def _re_decided(self, task: TvmTask, query: TaskQuery, kind: str) -> list[Any]:
        """The floor: the best trace of the nearest workload of the kind, its tiles decided anew, no model."""
        for neighbour in query.neighbours:
            if neighbour.nest.family != kind:
                continue
            for record in best_traces(neighbour.records, 1):
                try:
                    proposals = transfer(
                        TraceDocument.from_json(record.schedule), context_of(task.module, self.target), K
                    )
                except GnnperfError:
                    break
                return [proposal.schedule.mod for proposal in proposals]
        return []

    def _report(
        self,
        workload: Workload,
        query: TaskQuery,
        tried: Tried,
        trials: Sequence[Trial],
        timed: Mapping[str, Measurement],
    ) -> dict[str, Any]:
        def seconds(name: str) -> float | None:
            """What is not there, or failed, leaves the user with the unscheduled function."""
            found = timed.get(name)
            return found.runtime_s if found and found.runtime_s else timed[DEFAULT].runtime_s

        ms_s, torch = seconds(MS), timed.get(TORCH)
        row: dict[str, Any] = {"workload": workload.name, "kind": workload.kind}
        row |= {f"{name}_s": seconds(name) for name in (MS, OURS_8, OURS_1, MODEL)}
        row["floor_8_s"] = seconds(FLOOR) if FLOOR in timed else None
        row |= {f"{name}_s": seconds(name) if self.without_kinds else None for name in (KIND_8, KIND_1)}
        row["ms_long_s"] = seconds(MS_LONG) if MS_LONG in timed else None
        row["torch_s"] = torch.runtime_s if torch else None
        row["default_s"] = timed[DEFAULT].runtime_s
        row["vector_math"] = needs_vector_math(query.task.module)
        row["trials"] = len(trials)
        row["ms_best_after_s"] = {n: _best_s(trials[:n]) for n in AFTER if n <= len(trials)}
        best = best_of(trials[:SHORT])
        if best and best.outcome.runtime_s and ms_s and row["ours_8_s"]:
            # In turn, both are compared fairly: the search's own figures are from another moment.
            wanted_s = best.outcome.runtime_s * row["ours_8_s"] / ms_s
            row["trials_to_match_8"] = trials_to_reach(trials, wanted_s)
        else:
            row["trials_to_match_8"] = None
        row["candidates"] = [outcome.status for _, outcome in tried]
        row["neighbours"] = [n.nest.kernel for n in query.neighbours[:3]]
        row["intervals_s"] = {name: m.interval_s for name, m in timed.items() if m.interval_s}
        wrong = [f"{n}: {m.status}: {m.detail}" for n, m in timed.items() if m.status != "ok"]
        row["note"] = "; ".join([*([query.reason] if query.reason else []), *wrong])
        row["failures"] = []
        return row


def _best_s(trials: Sequence[Trial]) -> float | None:
    """As measured during the search."""
    found = best_of(trials)
    return found.outcome.runtime_s if found else None


def summarise(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> BenchmarkResult:
    """The table, and geometric means of latency MetaSchedule / ours (higher is better)."""
    good = [row for row in rows if not row["failures"]]
    figures: dict[str, float] = {}
    for name, above, below in (
        ("ratio_to_ms128_at_8", "ms_s", "ours_8_s"),
        ("ratio_to_ms128_at_1", "ms_s", "ours_1_s"),
        ("ratio_to_ms128_model_only", "ms_s", "model_only_s"),
        ("ratio_to_ms1000_at_8", "ms_long_s", "ours_8_s"),
        ("floor_ratio_at_8", "ms_s", "floor_8_s"),
        ("heldout_kind_ratio_at_8", "ms_s", "kind_8_s"),
        ("heldout_kind_ratio_at_1", "ms_s", "kind_1_s"),
        ("vs_torch_at_8", "torch_s", "ours_8_s"),
    ):
        ratios = [row[above] / row[below] for row in good if row.get(above) and row.get(below)]
        if ratios:
            figures[name] = geometric_mean(ratios)
    # MetaSchedule's schedules call libm for exponentials, ours do not: how is it where there are none?
    plain = [row["ms_s"] / row["ours_8_s"] for row in good if not row.get("vector_math")]
    if plain:
        figures["ratio_to_ms128_at_8_without_exponentials"] = geometric_mean(plain)
    if good:
        # Where the whole search did not get there, it takes more than all its trials.
        needed = [row["trials_to_match_8"] or row["trials"] + 1 for row in good]
        figures["median_trials_to_match_8"] = statistics.median(needed)
    figures["workloads"] = len(good)
    return BenchmarkResult("tensor-transfer", figures, rows, settings)


def describe_setup() -> dict[str, Any]:
    """Machine and versions."""
    host = describe_host()
    return {
        "device": host.fingerprint,
        "name": host.name,
        "mcpu": host_mcpu(),
        "threads": available_threads(),
        "versions": {name: version(name) for name in ("apache-tvm", "torch", "xgboost")},
    }
