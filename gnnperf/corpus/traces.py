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
from gnnperf.corpus.config import WorkloadConfig
from gnnperf.devices import describe_host
from gnnperf.errors import InputError, MeasureError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace, seed_of, workload_generator
from gnnperf.frontends.tvm.target import host_mcpu, host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.outcome import Outcome
from gnnperf.measure.record_log import Line, RecordLog
from gnnperf.measure.workers import Send, each
from gnnperf.schedules.traces import program_key
from gnnperf.schedules.traces.document import plain
from gnnperf.search.evolution import Tuner

BASELINE = "tvm-default"
"""The unscheduled function: relax's default pipeline for CPUs legalises and fuses, but schedules nothing."""


@dataclass
class TraceCollector:
    """Measures every workload up to the number of each pass in turn, so that a collection that is cut short
    covers all kinds. processes: searches at a time; only one times anything. `advance(steps, doing)` reports
    progress, `warn(text)` what was left out."""

    config: WorkloadConfig
    log: RecordLog
    limits: BenchLimits = field(default_factory=BenchLimits)
    build: Build = build_kernel
    processes: int = 2
    advance: Callable[[int, str], None] = lambda _steps, _doing: None
    warn: Callable[[str], None] = lambda _: None

    @property
    def steps(self) -> int:
        """Workloads times passes."""
        return len(self.config.passes) * len(self.config.workloads)

    def run(self) -> None:
        """Go on until every workload has its schedules. Loads TVM, and sets its threads, in this process."""
        self.log.require_device(describe_host().fingerprint)
        receive = self.log.receiving(self.warn)
        set_runtime_threads()
        prepare()
        for total in self.config.passes:
            tasks = [w for w in self.config.workloads if self._missing(w, total)]
            self.advance(len(self.config.workloads) - len(tasks), f"to {total} schedules")
            for workload, code in each(tasks, self._work(total), receive, self.processes):
                if code:
                    self.warn(f"{workload.name}: its process ended with {code}")
                self.advance(1, f"to {total} schedules: {workload.name}")

    def _missing(self, workload: TvmWorkload, total: int) -> bool:
        exhausted = any(
            line.get("exhausted") for line in self.log.done.values() if line["task"] == workload.name
        )
        return len(self._known(workload)) < total and not exhausted

    def _known(self, workload: TvmWorkload) -> list[Line]:
        """What the log has of a workload, in the order of measuring."""
        return list(self.log.records.get(workload.name, {}).values())

    def _work(self, total: int) -> Callable[[TvmWorkload, Send], None]:
        return lambda workload, send: self._tune(workload, total, send)

    def _tune(self, workload: TvmWorkload, total: int, send: Send) -> None:
        """In a process of its own: bring one workload to `total` schedules."""
        started = time.monotonic()
        target, known = host_target(), self._known(workload)
        new = workload.name not in self.log.tasks
        try:
            module = workload.build()
            bench = TraceBench(module, target, self.limits, self.build, self.config.seed, time_baseline=new)
            if new:
                send(("tasks", [self._description(workload, module, bench)]))
            space = DesignSpace(module, target, workload_generator(workload))
            tuner = self._tuner(workload, space, target, bench, known, send)
            tuner.run(total, self.config.random_share, self.config.batch)
        except (InputError, MeasureError) as error:
            send(("warning", f"{workload.name}: {error}"))
            return
        seconds = {key: round(value, 2) for key, value in tuner.seconds.items()}
        seconds["all"] = round(time.monotonic() - started, 2)
        key = f"pass {total} {workload.name}"
        line = {"key": key, "task": workload.name, "pass": total, "seconds": seconds}
        send(("done", [{**line, **({"exhausted": True} if tuner.exhausted else {})}]))

    def _tuner(
        self,
        workload: TvmWorkload,
        space: DesignSpace,
        target: Any,
        bench: TraceBench,
        known: Sequence[Mapping[str, Any]],
        send: Send,
    ) -> Tuner:
        """A search that goes on from the known lines of the log, and adds its own."""
        seed = seed_of(f"{self.config.seed} {workload.name} {len(known)}")
        numbers = itertools.count(len(known))

        def keep(origin: str, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
            lines = [
                {"task": workload.name, "schedule_id": str(n), "origin": origin, "seed": seed}
                | outcome.to_dict()
                | {"schedule": {"kind": "trace", "trace": plain(candidate.sch.trace.as_json())}}
                for candidate, outcome, n in zip(candidates, outcomes, numbers, strict=False)
            ]
            send(("records", lines))

        tuner = Tuner(space, target, bench.measure, keep, seed)
        tuner.restore(
            [line["origin"] for line in known],
            [space.replay(line["schedule"]["trace"]) for line in known],
            [Outcome.from_dict(line) for line in known],
        )
        return tuner

    def _description(self, workload: TvmWorkload, module: Any, bench: TraceBench) -> dict[str, Any]:
        import tvm

        host, threads = describe_host(), int(os.environ["TVM_NUM_THREADS"])
        return {
            "task": workload.name,
            "name": workload.name,
            "family": workload.kind,
            "frontend": "tvm",
            "parameters": dict(workload.params),
            "split": workload.split,
            "structural_hash": f"{program_key(module):016x}",
            "flops": float(tvm.s_tir.analysis.estimate_tir_flops(module)),
            "baseline": {"name": BASELINE, "samples_s": list(bench.baseline.samples_s)},
            "target": {"kind": "llvm", "mcpu": host_mcpu(), "num-cores": threads},
            "device": host.to_record(),
            "threads": threads,
            "versions": {
                "tvm": version("apache-tvm"),
                "llvm": int(tvm.get_global_func("target.llvm_version_major")()),
            },
            "collected": time.strftime("%Y-%m-%d", time.gmtime()),
        }


def prepare() -> None:
    """Load, before anything is forked, what every search needs, and keep MetaSchedule quiet."""
    import_tvm(without_torch=True)
    import xgboost  # noqa: F401

    warnings.simplefilter("ignore")
    for name in ("tvm", "tvm.s_tir.meta_schedule"):
        logging.getLogger(name).setLevel(logging.ERROR)
