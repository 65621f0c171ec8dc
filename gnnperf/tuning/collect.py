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
from pathlib import Path
from random import Random
from typing import Any

import yaml

from gnnperf.devices import DeviceSpec, probe
from gnnperf.errors import BuildError, InputError, MeasureError
from gnnperf.frontends.dace import capture_inputs, load_kernel
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Case, Compiler, Runner, profile
from gnnperf.schedules import Recipe
from gnnperf.tuning.cases import UnitCase, unit_graph
from gnnperf.tuning.corpus_log import CorpusLog
from gnnperf.tuning.search import SearchBudget, default_starts, search
from gnnperf.tuning.trials import Bench, Trial


@dataclass(frozen=True)
class Entry:
    """One kernel at one size."""

    kernel: str
    family: str
    symbols: Mapping[str, int]
    inputs: str | None = None

    @property
    def key(self) -> str:
        return json.dumps([self.kernel, dict(self.symbols), self.inputs])


@dataclass(frozen=True)
class CollectConfig:
    """A corpus configuration; paths of kernels are relative to its file."""

    name: str
    folder: Path
    entries: tuple[Entry, ...]
    recipes_per_nest: int = 32
    foreign_per_nest: int = 12
    budget_s_per_nest: float = 20.0
    seed: int = 0

    @staticmethod
    def load(path: Path) -> CollectConfig:
        """Read a YAML file. InputError names the first thing that is wrong."""
        try:
            raw = yaml.safe_load(path.read_text())
        except (OSError, yaml.YAMLError) as error:
            raise InputError(
                f"cannot read the configuration {path}: {' '.join(str(error).split())}"
            ) from None
        known = {"name", "entries", "recipes_per_nest", "foreign_per_nest", "budget_s_per_nest", "seed"}
        if not isinstance(raw, dict) or not isinstance(raw.get("entries"), list) or not raw.get("name"):
            raise InputError(
                f"{path}: expected a mapping with `name` and a list `entries`, got {type(raw).__name__}"
            )
        if unknown := sorted(set(raw) - known):
            raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
        entries = tuple(_entry(path, number, item) for number, item in enumerate(raw["entries"], start=1))
        settings = {k: v for k, v in raw.items() if k not in ("entries", "name")}
        return CollectConfig(str(raw["name"]), path.parent, entries, **settings)

    def path(self, spec: str) -> str:
        return str(self.folder / spec)


def _entry(path: Path, number: int, item: Any) -> Entry:
    if not isinstance(item, dict) or not {"kernel", "family"} <= set(item) <= {
        "kernel",
        "family",
        "symbols",
        "inputs",
    }:
        raise InputError(
            f"{path}: entry {number}: expected kernel, family and optionally symbols and inputs, got {item!r}"
        )
    return Entry(item["kernel"], item["family"], dict(item.get("symbols") or {}), item.get("inputs"))


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
            self.advance(0, f"{entry.kernel} {_size(entry)}")
            self._once(f"search {entry.key}", entry, self._search)
            self.advance(1, "")
        for entry in entries:
            self.advance(0, f"cross {entry.kernel} {_size(entry)}")
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
        except Exception as error:  # one entry must not end hours of measuring; DaCe raises anything
            self.warn(f"{entry.kernel} {_size(entry)}: {type(error).__name__}: {error}")
        self.log.mark_done(key)

    def _cases(self, entry: Entry) -> Iterator[tuple[UnitCase, ProgramGraph]]:
        inputs = self.config.path(entry.inputs) if entry.inputs else None
        kernel = load_kernel(self.config.path(entry.kernel), entry.symbols, inputs, self.config.seed)
        capture_inputs(kernel, self.compiler, self.runner)
        for skipped in kernel.skipped:
            self.warn(f"{entry.kernel}: {skipped.label}: {skipped.reason}")
        for unit in kernel.units:
            if unit.skipped is not None:
                self.warn(f"{entry.kernel}: {unit.name}: {unit.skipped}")
                continue
            if not any(True for _ in unit.nest.loops()):
                continue
            graph = unit_graph(unit)
            try:
                yield UnitCase.prepare(unit, "auto", self.compiler, self.runner), graph
            except (BuildError, MeasureError) as error:
                self.warn(f"{entry.kernel}: {unit.name}: {error}")

    def _search(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        digest = graph.digest
        self._add_nest(entry, case, graph)
        budget = SearchBudget(self.config.recipes_per_nest, self.config.budget_s_per_nest)
        if len(self.log.measurements.get(digest, {})) >= budget.trials:
            return
        seed = int(hashlib.sha256(f"{self.config.seed} {digest}".encode()).hexdigest()[:8], 16)
        search(self._bench(case), default_starts(), budget, Random(seed), lambda t: self._add(digest, t))

    def _cross(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        digest = graph.digest
        known = self.log.measurements.get(digest, {})
        starts = [r for r, _ in default_starts() if r.id not in known]  # new since the search was run
        foreign = [r for r in self._foreign(digest) if r.id not in known][: self.config.foreign_per_nest]
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


def _size(entry: Entry) -> str:
    return " ".join(f"{k}={v}" for k, v in entry.symbols.items())
