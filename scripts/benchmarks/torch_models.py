"""Whole torch models tuned by transfer, beside torch eager, torch.compile, MetaSchedule and TVM untuned."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import click

from benchmarks.metaschedule import best_of, metaschedule
from benchmarks.options import ready_to_measure, tensor_checkpoint_option
from benchmarks.tvm_in_turn import ratio, tvm_setup
from gnnperf.backends.tvm.competitors import COMPILED, TORCH, torch_program
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import InputError
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.whole_program import WholeProgram
    from gnnperf.session import Session

RELAX, FUSED, OURS, MS = "relax", "fused", "ours", "ms"
"""TVM by itself, operator by operator; the same fused as it is tuned; tuned by transfer; by MetaSchedule."""
K = 8
"""Candidates that are measured per task."""
TRIALS = 64
"""Of MetaSchedule, per task."""
Scheduled = dict[str, Any]


@click.command("torch-models", cls=Verb, page=True)
@tensor_checkpoint_option("--checkpoint", "Cost model and schedule store.")
@click.option(
    "-k", default=8, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per task."
)
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule, per task.",
)  # fmt: skip
@click.option("--metaschedule/--no-metaschedule", "searches", default=True, show_default=True,
    help="Whether MetaSchedule tunes them, too, which takes most of the time.",
)  # fmt: skip
@click.option("--only", metavar="TEXT", help="Only networks whose names contain TEXT, as `mlp`.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of weights and searches.")
@output_option
def torch_models(
    checkpoint: Path, k: int, trials: int, searches: bool, only: str | None, seed: int, output: Path | None
) -> Report:
    """Whole torch models tuned by transfer, beside torch eager, torch.compile, MetaSchedule and TVM untuned.

    Ten small networks of common architectures, exported, split into tasks and tuned as
    `gnnperf.retrieve(module, inputs=...)` does it, and by MetaSchedule's own search. The programs are
    verified against PyTorch and timed in turn from end to end, PyTorch among them, on as many threads. Ratios
    are latencies of the others over ours; neither keeps a schedule slower than the unscheduled function.
    """
    from benchmarks.networks import NETWORKS, export_network

    names = [name for name in NETWORKS if (only or "") in name]
    if not names:
        raise InputError(f"--only: expected part of {', '.join(NETWORKS)}, got {only!r}")
    target = ready_to_measure()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnnperf-networks-")))
        networks = [Network.load(export_network(name, folder, seed), target) for name in names]
        # Forked before the store is loaded, and before torch has threads.
        servers = [stack.enter_context(network.server()) for network in networks]
        from gnnperf.session import Session

        session = Session(checkpoint, store=False)
        study = TorchModelsStudy(networks, servers, session, checkpoint, k, trials if searches else 0, seed)
        return study.run(output)


@dataclass(frozen=True)
class Network:
    """An exported program: fused and split into tasks, and as TVM compiles it by itself."""

    name: str
    path: Path
    program: WholeProgram
    plain: WholeProgram

    @staticmethod
    def load(path: Path, target: Any) -> Network:
        """Raises InputError."""
        import torch

        from gnnperf.frontends.tvm.relax_programs import exported_program, plain_program

        program = exported_program(path, target)
        return Network(path.stem, path, program, plain_program(torch.export.load(path), target))

    def server(self) -> BenchServer:
        """Measures the tasks and the program."""
        program = self.program
        modules = [task.module for task in program.tasks]
        return BenchServer(modules, program.target, programs=[program, self.plain])


@dataclass(frozen=True)
class TorchModelsStudy(Study):
    """One run of the benchmark. servers: of the networks. trials: of MetaSchedule, per task; 0: it is left
    out."""

    name = "torch-models"
    key = "network"

    networks: Sequence[Network]
    servers: Sequence[BenchServer]
    session: Session
    checkpoint: Path
    k: int = K
    trials: int = TRIALS
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=10.0))

    def settings(self) -> Mapping[str, Any]:
        about = {"checkpoint": self.checkpoint, "k": self.k, "trials": self.trials, "seed": self.seed}
        return {**tvm_setup(), **about}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {network.name: partial(self.row, n) for n, network in enumerate(self.networks)}

    def row(self, number: int, say: Say) -> Row:
        """Everything about network `number`; latencies in seconds, in turn with one another."""
        from gnnperf.backends.tvm.whole_kernel import exported_problem, timed_whole

        network, server = self.networks[number], self.servers[number]
        tasks = network.program.tasks
        about = {"network": network.name, "tasks": len(tasks), "calls": sum(task.calls for task in tasks)}
        case = exported_problem(network.path, tasks)
        say("transferring")
        ours, told = self._transferred(network, server)
        players: dict[str, tuple[int, Scheduled]] = {RELAX: (1, {}), FUSED: (0, {}), OURS: (0, ours)}
        search: dict[str, Any] = {}
        if self.trials:
            searched, search = self._searched(network, server, say)
            players[MS] = 0, searched
        say("timing in turn")
        others = {how: partial(torch_program, network.path, how=how) for how in (TORCH, COMPILED)}
        timed = timed_whole(server, players, case, others, self.pace)
        return about | told | search | _timed(network.name, timed)

    def _transferred(self, network: Network, server: BenchServer) -> tuple[Scheduled, dict[str, Any]]:
        """Winners of `gnnperf retrieve`, and what is said of it. Timed from when the program, the models and
        the store are loaded until the whole is verified with them, but without PyTorch's turns."""
        from gnnperf.backends.tvm.executor import TvmExecutor
        from gnnperf.frontends.tvm.program import TvmProgram
        from gnnperf.retrieval import Options

        started = time.monotonic()
        whole = network.program
        program = TvmProgram(network.name, whole.tasks, whole.target, whole, network.path)
        executor = TvmExecutor(program, server=server)
        result, queries = self.session.pipeline(program, executor, options=Options(k=self.k)).run()
        about = {
            "ours_tuning_s": time.monotonic() - started - result.stages_s.get("competitors", 0.0),
            "ours_stages_s": result.stages_s,
            "ours_candidates": result.candidates_measured,
            "ours_tasks": {
                nest.name: {"default_s": nest.baseline_s, "ours_s": nest.best_s, "reason": nest.reason}
                for nest in result.nests
            },
        }
        return {q.task.name: q.winner[0].program for q in queries if q.winner}, about

    def _searched(self, network: Network, server: BenchServer, say: Say) -> tuple[Scheduled, dict[str, Any]]:
        """The best schedules of MetaSchedule's own search, which measures as ours does, task after task."""
        started, target = time.monotonic(), network.program.target
        best: Scheduled = {}
        found: dict[str, float | None] = {}
        trials = 0
        for number, task in enumerate(network.program.tasks):
            if task.objection is None:
                measure, tell = partial(server.measure, number), partial(_say, say, task.name)
                tried = metaschedule(task.module, target, self.trials, measure, self.seed, tell)
                trials += len(tried)
                winner = best_of(tried)
                # As with ours, what is not faster than the unscheduled function is not kept.
                before_s = server.baseline(number).runtime_s or math.inf
                found[task.name] = winner.outcome.runtime_s if winner else None
                if winner is not None and (winner.outcome.runtime_s or math.inf) < before_s:
                    best[task.name] = winner.module
        about = {"ms_tuning_s": time.monotonic() - started, "ms_trials": trials, "ms_tasks_s": found}
        return best, about

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Over networks, ratios of latencies (higher is better), the others' over ours: the geometric means
        `geomean_vs_torch_eager`, `geomean_vs_torch_compile`, `geomean_vs_ms64` and `geomean_vs_untuned` (of
        TVM that schedules nothing, whichever of the two ways is faster), and the least, `min_vs_*`.
        `tuning_s_max` is the longest that ours took. `time_share_of_ms64` is the largest ratio of tuning
        times, ours over MetaSchedule's (lower is better), `time_share_mean` their geometric mean."""
        good = [row for row in table if not row["failures"]]
        figures: dict[str, float] = {"networks": len(good)}
        if not good:
            return figures
        ratios = {
            "torch_eager": [row["torch_s"] / row["ours_s"] for row in good],
            "torch_compile": [row["torch-compile_s"] / row["ours_s"] for row in good],
            "ms64": [row["ms_s"] / row["ours_s"] for row in good if "ms_s" in row],
            "untuned": [min(row["relax_s"], row["fused_s"]) / row["ours_s"] for row in good],
        }
        for name, found in ratios.items():
            if found:
                figures |= {f"geomean_vs_{name}": geometric_mean(found), f"min_vs_{name}": min(found)}
        figures["tuning_s_max"] = max(row["ours_tuning_s"] for row in good)
        shares = [row["ours_tuning_s"] / row["ms_tuning_s"] for row in good if "ms_tuning_s" in row]
        if shares:
            figures |= {"time_share_of_ms64": max(shares), "time_share_mean": geometric_mean(shares)}
        return figures

    @staticmethod
    def shown(row: Row) -> Row:
        untuned = [row[name] for name in ("relax_s", "fused_s") if row.get(name)]
        ours = row.get("ours_s")
        return {
            "network": row["network"],
            "tasks": row.get("tasks"),
            "ours us": ours and 1e6 * ours,
            "vs torch": ratio(row, "torch_s", "ours_s"),
            "vs compile": ratio(row, "torch-compile_s", "ours_s"),
            "vs ms": ratio(row, "ms_s", "ours_s"),
            "vs untuned": min(untuned) / ours if untuned and ours else None,
            "tuning s": row.get("ours_tuning_s"),
            "ms tuning s": row.get("ms_tuning_s"),
            "note": "; ".join(row["failures"]),
        }


def _say(say: Say, task: str, text: str) -> None:
    say(f"{task}: {text}")


def _timed(network: str, timed: Mapping[str, Measurement]) -> dict[str, Any]:
    """Latencies, and what went wrong: without one of them there is no ratio."""
    wrong = [f"{network}: {name}: {m.status}: {m.detail}" for name, m in timed.items() if m.status != "ok"]
    row: dict[str, Any] = {f"{name}_s": m.runtime_s for name, m in timed.items()}
    row["intervals_s"] = {name: m.interval_s for name, m in timed.items() if m.interval_s}
    return row | {"failures": wrong}
