"""Collecting the corpus: passes over the workloads, each workload in a process of its own."""

from __future__ import annotations

import itertools
import logging
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.bench import TraceBench
from gnnperf.backends.tvm.kernel import Build, build_kernel
from gnnperf.corpus.trace_config import TensorConfig
from gnnperf.corpus.trace_log import TensorLog
from gnnperf.devices import describe_host
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import Space, seed_of
from gnnperf.frontends.tvm.target import host_mcpu, host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.measure.outcome import Outcome
from gnnperf.measure.workers import Send, each
from gnnperf.schedules.traces import program_key
from gnnperf.schedules.traces.document import plain
from gnnperf.search.evolution import Tuner

BASELINE = "tvm-default"
"""The unscheduled function: relax's default pipeline for CPUs legalises and fuses, but schedules nothing."""


@dataclass
class TensorCollector:
    """Measures every workload up to the number of each pass in turn, so that a collection that is cut short
    covers all kinds. processes: searches at a time; only one times anything. report: gets a line after each
    workload."""

    config: TensorConfig
    log: TensorLog
    limits: BenchLimits = field(default_factory=BenchLimits)
    build: Build = build_kernel
    processes: int = 2
    report: Callable[[str], None] = print

    def run(self) -> None:
        """Go on until every workload has its schedules. Loads TVM, and sets its threads, in this process."""
        set_runtime_threads()
        prepare()
        for total in self.config.passes:
            tasks = [w for w in self.config.workloads if self._missing(w, total)]
            work = each(tasks, self._work(total), self._receive, self.processes)
            for ended, (workload, code) in enumerate(work, start=1):
                found = self.log.schedules[workload.name]
                fine = sum(line["status"] == "ok" for line in found)
                note = "" if code == 0 else f", FAILED with exit code {code}"
                done = f"pass {total}: {ended}/{len(tasks)} {workload.name}"
                self.report(f"{done}: {len(found)} schedules, {fine} ok{note}")

    def _missing(self, workload: Workload, total: int) -> bool:
        return len(self.log.schedules[workload.name]) < total and workload.name not in self.log.exhausted

    def _receive(self, message: tuple[str, list[Mapping[str, Any]]]) -> None:
        name, lines = message
        if name == "report":
            self.report(str(lines[0]["text"]))
        else:
            self.log.add(name, lines)

    def _work(self, total: int) -> Callable[[Workload, Send], None]:
        return lambda workload, send: self._tune(workload, total, send)

    def _tune(self, workload: Workload, total: int, send: Send) -> None:
        """In a process of its own: bring one workload to `total` schedules."""
        started = time.monotonic()
        module, target = workload.build(), host_target()
        known = self.log.schedules[workload.name]
        new = workload.name not in self.log.workloads
        try:
            bench = TraceBench(module, target, self.limits, self.build, self.config.seed, time_baseline=new)
            if new:
                send(("workloads", [self._description(workload, module, bench)]))
            tuner = self._tuner(workload, Space(workload, module, target), target, bench, known, send)
            tuner.run(total, self.config.random_share, self.config.batch)
        except MeasureError as error:
            send(("report", [{"text": f"{workload.name}: {error}"}]))
            os._exit(1)
        seconds = {key: round(value, 2) for key, value in tuner.seconds.items()}
        seconds["all"] = round(time.monotonic() - started, 2)
        line = {"workload": workload.name, "pass": total, "seconds": seconds}
        send(("done", [{**line, **({"exhausted": True} if tuner.exhausted else {})}]))

    def _tuner(
        self,
        workload: Workload,
        space: Space,
        target: Any,
        bench: TraceBench,
        known: Sequence[Mapping[str, Any]],
        send: Send,
    ) -> Tuner:
        """A search that goes on from the known lines of the log, and adds its own."""
        seed = seed_of(f"{self.config.seed} {workload.name} {len(known)}")
        numbers = itertools.count(len(known))

        def keep(origin: str, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
            about = {"workload": workload.name}
            lines = [
                {**about, "n": n, "origin": origin, "seed": seed, **outcome.to_dict()}
                | {"trace": plain(candidate.sch.trace.as_json())}
                for candidate, outcome, n in zip(candidates, outcomes, numbers, strict=False)
            ]
            send(("schedules", lines))

        tuner = Tuner(space, target, bench.measure, keep, seed)
        tuner.restore(
            [line["origin"] for line in known],
            [space.replay(line["trace"]) for line in known],
            [Outcome.from_dict(line) for line in known],
        )
        return tuner

    def _description(self, workload: Workload, module: Any, bench: TraceBench) -> dict[str, Any]:
        import tvm

        host, threads = describe_host(), int(os.environ["TVM_NUM_THREADS"])
        return {
            "workload": workload.name,
            "kind": workload.kind,
            "params": dict(workload.params),
            "split": workload.split,
            "structural_hash": f"{program_key(module):016x}",
            "flops": float(tvm.s_tir.analysis.estimate_tir_flops(module)),
            "baseline": BASELINE,
            "baseline_samples_s": list(bench.baseline.samples_s),
            "target": {"kind": "llvm", "mcpu": host_mcpu(), "num-cores": threads},
            "threads": threads,
            "device": host.fingerprint,
            "machine": host.name,
            "tvm": version("apache-tvm"),
            "llvm": int(tvm.get_global_func("target.llvm_version_major")()),
            "collected": time.strftime("%Y-%m-%d", time.gmtime()),
        }


def prepare() -> None:
    """Load, before anything is forked, what every search needs, and keep MetaSchedule quiet."""
    import_tvm(without_torch=True)
    import xgboost  # noqa: F401

    warnings.simplefilter("ignore")
    for name in ("tvm", "tvm.s_tir.meta_schedule"):
        logging.getLogger(name).setLevel(logging.ERROR)
