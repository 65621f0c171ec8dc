"""`gnnperf collect`: measure nests x recipes of a corpus configuration into an append-only log.

Two passes. The first cuts every kernel into nests and searches the schedule space of each. The second
measures on each nest the recipes that were best for other nests: these pairs say which nests like the
same schedules, which is what the encoder learns. Both passes skip what the log already holds.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from gnnperf.devices import DeviceSpec, probe
from gnnperf.errors import BuildError, CorpusError, MeasureError
from gnnperf.frontends.dace import capture_inputs, load_kernel
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Case, Compiler, Measurement, Runner, profile
from gnnperf.schedules import Recipe
from gnnperf.tuning.cases import UnitCase, unit_graph
from gnnperf.tuning.config import CollectConfig, Entry
from gnnperf.tuning.corpus_log import CorpusLog
from gnnperf.tuning.search import SearchBudget, default_starts, search
from gnnperf.tuning.trials import Bench, Trial


@dataclass
class Collector:
    """Runs the two passes. `advance(steps, doing)` reports progress, `warn(text)` what was left out."""

    config: CollectConfig
    log: CorpusLog
    compiler: Compiler
    runner: Runner
    advance: Callable[[int, str], None] = lambda _steps, _doing: None
    warn: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.device: DeviceSpec = probe()

    def run(self) -> None:
        """Both passes over all entries, in an order that visits all families early."""
        entries = _spread(self.config.entries)
        for entry in entries:
            self.advance(0, f"{entry}")
            self._once(f"search {entry.key}", entry, self._search)
            self.advance(1, "")
        for entry in entries:
            self.advance(0, f"cross {entry}")
            self._once(f"cross {entry.key}", entry, self._cross)
            self.advance(1, "")

    @property
    def steps(self) -> int:
        return 2 * len(self.config.entries)

    def _once(self, key: str, entry: Entry, work: Callable[[Entry, UnitCase, ProgramGraph], None]) -> None:
        if key in self.log.done:
            return
        try:
            for case, graph in self._cases(entry):
                work(entry, case, graph)
        except CorpusError:
            raise
        except Exception as error:  # one entry must not end hours of measuring; DaCe raises anything
            self.warn(f"{entry}: {type(error).__name__}: {error}")
            return  # not done: what went wrong may be the machine, so the next start tries again
        self.log.mark_done(key)

    def _cases(self, entry: Entry) -> Iterator[tuple[UnitCase, ProgramGraph]]:
        inputs = self.config.path(entry.inputs) if entry.inputs else None
        kernel = load_kernel(self.config.path(entry.kernel), entry.symbols, inputs, self.config.seed)
        capture_inputs(kernel, self.compiler, self.runner)
        failed = []
        for skipped in kernel.skipped:
            self.warn(f"{entry.kernel}: {skipped.label}: {skipped.reason}")
        for unit in kernel.units:
            if unit.skipped is not None:
                self.warn(f"{entry.kernel}: {unit.name}: {unit.skipped}")
                continue
            if not unit.nest.has_loops:
                continue
            graph = unit_graph(unit)
            try:
                case = UnitCase.prepare(unit, "auto", self.compiler, self.runner)
            except BuildError as error:
                self.warn(f"{entry.kernel}: {unit.name}: {error}")
                continue
            except MeasureError as error:
                failed.append(f"{unit.name}: {error}")
                continue
            yield case, graph
        if failed:
            raise MeasureError("; ".join(failed))

    def _search(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        digest = graph.digest
        self._add_nest(entry, case, graph)
        budget = SearchBudget(self.config.recipes_per_nest, self.config.budget_s_per_nest)
        known = [_trial(line) for line in self.log.measurements.get(digest, {}).values()]
        seed = int(hashlib.sha256(f"{self.config.seed} {digest}".encode()).hexdigest()[:8], 16)
        search(
            self._bench(case), default_starts(), budget, Random(seed), lambda t: self._add(digest, t), known
        )  # fmt: skip

    def _cross(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        digest = graph.digest
        known = self.log.measurements.get(digest, {})
        starts = [r for r, _ in default_starts() if r.id not in known]  # new since the search was run
        tried = {*known, *(r.id for r in starts)}
        foreign = [r for r in self._foreign(digest) if r.id not in tried][: self.config.foreign_per_nest]
        bench = self._bench(case)
        for recipes, origin in ((starts, "default"), (foreign, "foreign")):
            for trial in bench.run(recipes, origin):
                self._add(digest, trial)

    def _foreign(self, digest: str) -> list[Recipe]:
        """Best recipes of other nests: in turn one of a like nest (same loops by kind and depth) and
        one drawn at random, so that near and far pairs are both measured."""
        own = _signature(self.log.nests[digest]["graph"])
        others = []
        for other, measured in self.log.measurements.items():
            best = _best(measured.values())
            if other != digest and best is not None and other in self.log.nests:
                others.append((_signature(self.log.nests[other]["graph"]), other, best))
        seed = int(hashlib.sha256(f"{self.config.seed} foreign {digest}".encode()).hexdigest()[:8], 16)
        Random(seed).shuffle(others)
        like = sorted(others, key=lambda item: sum(abs(own[k] - item[0][k]) for k in range(len(own))))
        mixed = [item for pair in zip(like, others, strict=True) for item in pair]
        return list(dict.fromkeys(Recipe.from_dict(best["schedule"]) for _, _, best in mixed))

    def _bench(self, case: UnitCase) -> Bench:
        return Bench(case.case, self.compiler, self.runner, case.limits)

    def _add_nest(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        if graph.digest in self.log.nests:
            return
        self.log.add_nest(
            {
                "digest": graph.digest,
                "kernel": entry.kernel.rpartition(":")[2],
                "family": entry.family,
                "frontend": "dace",
                "symbols": dict(entry.symbols),
                "graph": json.loads(graph.to_json()),
                "baseline": case.baseline_name,
                "baseline_s": case.baseline_s,
                "profile": self._profile(case, graph),
                "device": {"fingerprint": self.device.fingerprint, "name": self.device.name},
                "threads": self.runner.threads,
                "compiler": self.compiler.version,
                "collected": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
        )

    def _profile(self, case: UnitCase, graph: ProgramGraph) -> dict[str, Any] | None:
        c = case.case
        dtypes = {b.dtype for b in c.nest.buffers.values() if b.dtype.startswith("float")}
        baseline = Case(
            c.baseline, c.data, tuple(c.outputs), tuple(c.inouts),
            _value(graph, "total_flops"), _value(graph, "distinct_bytes"),
            "float32" if dtypes == {"float32"} else "float64",
        )  # fmt: skip
        try:
            return profile(self.runner, baseline, self.device, case.limits).to_dict()
        except MeasureError:
            return None

    def _add(self, digest: str, trial: Trial) -> None:
        m = trial.measurement
        self.log.add_measurement(
            {
                "digest": digest,
                "schedule_id": trial.recipe.id,
                "schedule": trial.recipe.to_dict(),
                "status": m.status,
                "runtime_s": m.runtime_s,
                "interval_s": m.interval_s,
                "samples": m.samples,
                "baseline_s": m.baseline_s or self.log.nests[digest]["baseline_s"],
                "baseline_interval_s": m.baseline_interval_s or [self.log.nests[digest]["baseline_s"]] * 2,
                "speedup": m.speedup,
                "speedup_interval": m.speedup_interval,
                "device": self.device.fingerprint,
                "origin": trial.origin,
                "detail": m.detail,
            }
        )


def _value(graph: ProgramGraph, name: str) -> float:
    """A graph-level number; absent where it is zero."""
    value = graph.values.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _trial(line: Mapping[str, Any]) -> Trial:
    """A trial of an earlier run."""
    m = Measurement(line["status"], line["runtime_s"], speedup=line["speedup"], detail=line["detail"])
    return Trial(Recipe.from_dict(line["schedule"]), m, line["origin"])


def _best(measured: Any) -> Mapping[str, Any] | None:
    good = [m for m in measured if m["status"] == "ok"]
    return max(good, key=lambda m: m["speedup"], default=None)


def _signature(graph: Mapping[str, Any]) -> tuple[float, ...]:
    """Counts of node kinds and loop kinds: a coarse likeness that needs no model."""
    nodes = graph["nodes"]
    kinds = ["loop", "buffer", "access", "compute"]
    loop_kinds = ["spatial", "reduction", "sequential", "data-dependent"]
    counts = [float(sum(n.get("kind") == kind for n in nodes)) for kind in kinds]
    text = json.dumps(nodes)
    return (*counts, *(2.0 * text.count(f'"{kind}"') for kind in loop_kinds))


def _spread(entries: Sequence[Entry]) -> list[Entry]:
    """Round robin over families: an interrupted collection has seen all of them."""
    by_family: dict[str, list[Entry]] = {}
    for entry in entries:
        by_family.setdefault(entry.family, []).append(entry)
    longest = max(map(len, by_family.values()), default=0)
    return [group[i] for i in range(longest) for group in by_family.values() if i < len(group)]
