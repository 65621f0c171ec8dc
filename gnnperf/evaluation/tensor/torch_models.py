"""Whole networks of PyTorch tuned by transfer, beside MetaSchedule's search and PyTorch itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.competitors import TORCH, torch_program
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.metrics import geometric_mean
from gnnperf.evaluation.tensor.search import best_of, metaschedule
from gnnperf.frontends.tvm.eligibility import objection
from gnnperf.frontends.tvm.relax_programs import exported_program, plain_program
from gnnperf.frontends.tvm.whole_program import WholeProgram
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.traces import TensorBundle
from gnnperf.retrieval.tensor import TensorOptions, TensorTransfer
from gnnperf.retrieval.tensor.whole import exported_problem, timed_whole
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store

RELAX, FUSED, OURS, MS = "relax", "fused", "ours", "ms"
"""TVM by itself, operator by operator; the same fused as it is tuned; tuned by transfer; by MetaSchedule."""
K = 8
"""Candidates that are measured per task."""
TRIALS = 64
"""Of MetaSchedule, per task."""
Notify = Callable[[str], None]
Scheduled = dict[str, Any]


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

        program = exported_program(path, target)
        return Network(path.stem, path, program, plain_program(torch.export.load(path), target))

    def server(self) -> BenchServer:
        """Measures the tasks and the program."""
        program = self.program
        modules = [task.module for task in program.tasks]
        return BenchServer(modules, program.target, programs=[program, self.plain])


@dataclass(frozen=True)
class TorchModels:
    """One run of the benchmark. servers: of the networks. store, nests: of TVM workloads and of DaCe nests,
    as `gnnperf retrieve` knows them. trials: of MetaSchedule, per task."""

    networks: Sequence[Network]
    servers: Sequence[BenchServer]
    bundle: Bundle
    model: TensorBundle
    store: Store
    nests: Store
    k: int = K
    trials: int = TRIALS
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=10.0))

    @staticmethod
    def load(
        networks: Sequence[Network], servers: Sequence[BenchServer], checkpoint: Path, **options: Any
    ) -> TorchModels:
        """Raises GnnperfError where the checkpoint cannot be read."""
        model, store = load_checkpoint(checkpoint, TensorBundle), Store.open(checkpoint / "store")
        nests = Store.open(shipped_bundle() / "store")
        return TorchModels(
            networks, servers, load_checkpoint(shipped_bundle(), Bundle), model, store, nests, **options
        )

    def row(self, number: int, notify: Notify = lambda _: None) -> dict[str, Any]:
        """Everything about network `number`; latencies in seconds, in turn with one another."""
        network, server = self.networks[number], self.servers[number]
        row: dict[str, Any] = {"network": network.name, "failures": []}
        try:
            tasks = network.program.tasks
            row["tasks"], row["calls"] = len(tasks), sum(task.calls for task in tasks)
            case = exported_problem(network.path, tasks)
            notify("transferring")
            ours, told = self._transferred(network, server)
            searched, search = self._searched(network, server, notify)
            notify("timing in turn")
            players: dict[str, tuple[int, Scheduled]] = {
                RELAX: (1, {}), FUSED: (0, {}), OURS: (0, ours), MS: (0, searched),
            }  # fmt: skip
            others = {TORCH: partial(torch_program, network.path)}
            timed = timed_whole(server, players, case, others, self.pace)
        except GnnperfError as error:
            return {**row, "failures": [f"{network.name}: {error}"]}
        return row | told | search | _timed(network.name, timed)

    def _transferred(self, network: Network, server: BenchServer) -> tuple[Scheduled, dict[str, Any]]:
        """Winners of `gnnperf retrieve`, and what is said of it. Timed from when the program, the models and
        the store are loaded until every task has its schedule."""
        started = time.monotonic()
        transfer = TensorTransfer(
            kernel=network.name,
            tasks=network.program.tasks,
            target=network.program.target,
            bundle=self.bundle,
            model=self.model,
            stores=[self.store],
            lenders=[self.nests],
            device=describe_host(),
            server=server,
            options=TensorOptions(k=self.k),
        )
        result, queries = transfer.run()
        about = {
            "ours_tuning_s": time.monotonic() - started,
            "ours_stages_s": result.stages_s,
            "ours_candidates": result.candidates_measured,
            "ours_tasks": {
                nest.name: {"default_s": nest.baseline_s, "ours_s": nest.best_s, "reason": nest.reason}
                for nest in result.nests
            },
        }
        return {q.task.name: q.winner[0].program for q in queries if q.winner}, about

    def _searched(
        self, network: Network, server: BenchServer, notify: Notify
    ) -> tuple[Scheduled, dict[str, Any]]:
        """The best schedules of MetaSchedule's own search, which measures as ours does, task after task."""
        started, target = time.monotonic(), network.program.target
        best: Scheduled = {}
        found: dict[str, float | None] = {}
        trials = 0
        for number, task in enumerate(network.program.tasks):
            if objection(task) is None:
                measure, say = partial(server.measure, number), partial(_say, notify, task.name)
                tried = metaschedule(None, task.module, target, self.trials, measure, self.seed, say)
                trials += len(tried)
                winner = best_of(tried)
                # As with ours, what is not faster than the unscheduled function is not kept.
                before_s = server.baseline(number).runtime_s or math.inf
                found[task.name] = winner.outcome.runtime_s if winner else None
                if winner is not None and (winner.outcome.runtime_s or math.inf) < before_s:
                    best[task.name] = winner.module
        about = {"ms_tuning_s": time.monotonic() - started, "ms_trials": trials, "ms_tasks_s": found}
        return best, about


def _say(notify: Notify, task: str, text: str) -> None:
    notify(f"{task}: {text}")


def _timed(network: str, timed: Mapping[str, Measurement]) -> dict[str, Any]:
    """Latencies, and what went wrong: without one of them there is no ratio."""
    wrong = [f"{network}: {name}: {m.status}: {m.detail}" for name, m in timed.items() if m.status != "ok"]
    row: dict[str, Any] = {f"{name}_s": m.runtime_s for name, m in timed.items()}
    row["intervals_s"] = {name: m.interval_s for name, m in timed.items() if m.interval_s}
    return row | {"failures": wrong}


def summarise_torch_models(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> BenchmarkResult:
    """The table and, over networks, the least ratios of latencies (higher is better): `min_vs_untuned`, of
    TVM that schedules nothing, whichever of the two ways is faster, over ours; `min_vs_ms64`, of
    MetaSchedule's over ours; `min_vs_torch`. `vs_*` are their geometric means. `time_share_of_ms64` is the
    largest ratio of tuning times, ours over MetaSchedule's (lower is better), `time_share_mean` their
    geometric mean."""
    good = [row for row in rows if not row["failures"]]
    figures: dict[str, float] = {}
    if good:
        ratios = {
            "untuned": [min(row["relax_s"], row["fused_s"]) / row["ours_s"] for row in good],
            "ms64": [row["ms_s"] / row["ours_s"] for row in good],
            "torch": [row["torch_s"] / row["ours_s"] for row in good],
        }
        shares = [row["ours_tuning_s"] / row["ms_tuning_s"] for row in good]
        figures = {f"min_vs_{name}": min(found) for name, found in ratios.items()}
        figures["time_share_of_ms64"] = max(shares)
        figures |= {f"vs_{name}": geometric_mean(found) for name, found in ratios.items()}
        figures["time_share_mean"] = geometric_mean(shares)
    figures["networks"] = len(good)
    return BenchmarkResult("torch-models", figures, rows, settings)
