"""Held-out TVM workloads tuned by transfer, beside MetaSchedule's own search and PyTorch."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.metaschedule import SearchTrial, best_of, best_s, metaschedule, trials_to_reach
from benchmarks.options import (
    held_out_workloads,
    ready_to_measure,
    tensor_checkpoint_option,
    workload_options,
)
from benchmarks.tvm_in_turn import (
    DEFAULT,
    Tried,
    about_workload,
    first_candidates,
    program_of,
    raced,
    ratio,
    timed_in_turn,
    tvm_setup,
)
from gnnperf.backends.tvm.competitors import TORCH
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.eval.trace_options import cache_option, corpus_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import GnnperfError
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.frontends.tvm.spaces import tune_context, workload_generator
from gnnperf.frontends.tvm.vector_math import needs_vector_math
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace

if TYPE_CHECKING:
    from benchmarks.models_without_kinds import ModelsWithoutKinds
    from gnnperf.retrieval.query import Query
    from gnnperf.session import Session

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


@click.command("tensor-transfer", cls=Verb, page=True)
@workload_options()
@tensor_checkpoint_option("--checkpoint", "Cost model and schedule store.")
@click.option(
    "--trials", default=128, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule; from 1000 on, its first 128 and all of them are compared.",
)  # fmt: skip
@click.option(
    "--held-out-kinds", is_flag=True,
    help="Also transfer from workloads of other kinds only, by cost models trained without the kind (minutes "
    "each; `-o DIR` keeps them).",
)  # fmt: skip
@corpus_option
@cache_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of MetaSchedule.")
@output_option
def tensor_transfer(
    config: Path, checkpoint: Path, trials: int, count: int | None, only: str | None, skip: tuple[str, ...],
    held_out_kinds: bool, corpus: Path, cache: Path | None, seed: int, output: Path | None,
) -> Report:  # fmt: skip
    """Held-out TVM workloads tuned by transfer, beside MetaSchedule's own search.

    Ratios are latency of MetaSchedule after 128 trials over ours, higher is better, geometric means: with 8
    and with 1 measured candidates, with the first of the ranking unmeasured, and of the floor: one trace of
    the nearest workload of the kind with its tiles decided anew, the best of 8. What fails counts as the
    unscheduled function. All contenders of a workload, PyTorch among them, are verified and timed in turn.
    """
    chosen = held_out_workloads(config, only, skip)[:count]
    target = ready_to_measure()
    # Forked before torch and the store are loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        without = None
        if held_out_kinds:
            from benchmarks.models_without_kinds import ModelsWithoutKinds

            without = ModelsWithoutKinds.of(corpus, cache, output)
        from gnnperf.session import Session

        session = Session(checkpoint, store=False)
        study = TensorTransferStudy(chosen, server, target, session, checkpoint, trials, without, seed)
        return study.run(output)


@dataclass(frozen=True)
class TensorTransferStudy(Study):
    """One run of the benchmark. trials: of MetaSchedule; from `LONG` on, its beginning is judged as well.
    without_kinds: also transfer from workloads of other kinds only, by models that do not know the kind."""

    name = "tensor-transfer"
    key = "workload"

    workloads: Sequence[TvmWorkload]
    server: BenchServer
    target: Any
    session: Session
    checkpoint: Path
    trials: int = SHORT
    without_kinds: ModelsWithoutKinds | None = None
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=6.0))

    def settings(self) -> Mapping[str, Any]:
        return {
            **tvm_setup(), "checkpoint": self.checkpoint, "trials": self.trials, "seed": self.seed,
            "held_out_kinds": self.without_kinds and self.without_kinds.corpus.digest,
        }  # fmt: skip

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {workload.name: partial(self.row, n) for n, workload in enumerate(self.workloads)}

    def about(self, name: str) -> dict[str, Any]:
        return about_workload(self.workloads, name)

    def row(self, number: int, say: Say) -> Row:
        """Everything about workload `number`; times in seconds, those in turn with one another."""
        workload = self.workloads[number]
        say("transferring")
        query, tried = self._transferred(number)
        task = self.program.tasks[number]
        chosen = {
            OURS_8: raced(self.server, number, tried),
            OURS_1: raced(self.server, number, tried[:1]),
            MODEL: tried[0][0] if tried else None,
        }
        if self.without_kinds is not None:
            model = self.without_kinds.without(workload.kind, say)
            _, strangers = self._transferred(number, model=model, exclude_families={workload.kind})
            chosen |= {
                KIND_8: raced(self.server, number, strangers),
                KIND_1: raced(self.server, number, strangers[:1]),
            }
        floor = self._measure(number, self._re_decided(task, query, workload.kind))
        chosen[FLOOR] = raced(self.server, number, floor)
        measure = partial(self.server.measure, number)
        trials = metaschedule(
            task.module, self.target, self.trials, measure, self.seed, say,
            generator=workload_generator(workload),
        )  # fmt: skip
        for name, end in ((MS, SHORT), (MS_LONG, self.trials)):
            if name == MS or self.trials >= LONG:
                found = [(trial.module, trial.outcome) for trial in trials[:end]]
                chosen[name] = raced(self.server, number, found)
        say("timing in turn")
        modules = {name: module for name, module in chosen.items() if module is not None}
        timed = timed_in_turn(self.server, number, workload, modules, self.target, self.pace, True)
        return self._told(workload, query, tried, trials, timed)

    @cached_property
    def program(self) -> TvmProgram:
        return program_of(self.workloads, self.target)

    def _transferred(self, number: int, **about: Any) -> tuple[Query, Tried]:
        """The first candidates of a workload, measured, from all but the workload itself. about: other fields
        of the proposer."""
        query, tried = first_candidates(self.session, self.program, number, self.server, K, **about)
        return query, [(candidate.program, measurement) for candidate, measurement in tried]

    def _measure(self, number: int, modules: Sequence[Any]) -> Tried:
        return list(zip(modules, self.server.measure(number, modules), strict=True)) if modules else []

    def _re_decided(self, task: Any, query: Query, kind: str) -> list[Any]:
        """The floor: the best trace of the nearest workload of the kind, its tiles decided anew, no model."""
        from gnnperf.retrieval.traces.proposals import best_traces
        from gnnperf.schedules.traces import TraceDocument, transfer

        for neighbour in query.neighbours:
            if neighbour.nest.family != kind:
                continue
            for record in best_traces(neighbour.records, 1):
                try:
                    proposals = transfer(
                        TraceDocument.from_json(record.schedule), tune_context(task.module, self.target), K
                    )
                except GnnperfError:
                    break
                return [proposal.schedule.mod for proposal in proposals]
        return []

    def _told(
        self,
        workload: TvmWorkload,
        query: Query,
        tried: Tried,
        trials: Sequence[SearchTrial],
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
        row["vector_math"] = needs_vector_math(workload.build())
        row["trials"] = len(trials)
        row["ms_best_after_s"] = {n: best_s(trials[:n]) for n in AFTER if n <= len(trials)}
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

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Geometric means of latency MetaSchedule / ours (higher is better)."""
        good = [row for row in table if not row["failures"]]
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
                figures[name] = statistics.geometric_mean(ratios)
        # MetaSchedule's schedules call libm for exponentials, ours do not: how is it where there are none?
        plain = [row for row in good if not row.get("vector_math")]
        for k in (1, 8) if plain else ():
            ratios = [row["ms_s"] / row[f"ours_{k}_s"] for row in plain]
            figures[f"ratio_no_exp_at_{k}"] = statistics.geometric_mean(ratios)
        ratios = [row["torch_s"] / row["ours_8_s"] for row in good if _calls_a_library(row)]
        if ratios:
            figures["vs_torch_products_convs"] = statistics.geometric_mean(ratios)
            figures["min_vs_torch_products_convs"] = min(ratios)
        if good:
            # Where the whole search did not get there, it takes more than all its trials.
            needed = [row["trials_to_match_8"] or row["trials"] + 1 for row in good]
            figures["median_trials_to_match_8"] = statistics.median(needed)
        figures["workloads"] = len(good)
        return figures

    @staticmethod
    def shown(row: Row) -> Row:
        ours = row.get("ours_8_s")
        return {
            "workload": row["workload"],
            "ours us": ours and 1e6 * ours,
            "at 8": ratio(row, "ms_s", "ours_8_s"),
            "at 1": ratio(row, "ms_s", "ours_1_s"),
            "model only": ratio(row, "ms_s", "model_only_s"),
            "floor": ratio(row, "ms_s", "floor_8_s"),
            "long": ratio(row, "ms_long_s", "ours_8_s"),
            "other kinds": ratio(row, "ms_s", "kind_8_s"),
            "vs torch": ratio(row, "torch_s", "ours_8_s"),
            "trials to match": row.get("trials_to_match_8"),
            "note": "; ".join(filter(None, [row.get("note", ""), *row["failures"]])),
        }


def _calls_a_library(row: Row) -> bool:
    """Whether PyTorch answers with a product or a convolution of its library."""
    kinds = ("matmul", "batch_matmul", "dense", "attention_scores", "attention_values")
    kind = row.get("kind", "")
    return bool(row.get("torch_s")) and (kind in kinds or "conv" in kind) and "int8" not in kind
