"""How long the parts of the main job take, beside what they may take."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.machine import setup
from benchmarks.options import REPO
from benchmarks.retrieving import GNNPERF, Retrieved, retrieve
from benchmarks.unseen import KERNELS
from gnnperf.backends.folder import load_script
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.main import VERBS
from gnnperf.cli.options import nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import MeasureError
from gnnperf.report.words import duration

CORPUS = REPO / "configs" / "corpus" / "first.yaml"
SINGLE_NEST = {
    "doitgen": {"R": 64, "Q": 72, "P": 96, "S": 96},
    "mttkrp": {"M": 96, "K": 90, "P": 100, "R": 48},
    "nbody_accelerations": {"N": 2000},
}
"""Sizes of unseen kernels that are one nest."""
HELP_RUNS = 7
NESTS, RECORDS_PER_NEST, QUERIES = 20_000, 5, 300
CALLS, CALL_ROUNDS = 500, 21


@dataclass(frozen=True)
class Figure:
    """One number, in seconds, and the most it may be (None: only told)."""

    name: str
    value_s: float
    limit_s: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        return self.limit_s is None or self.value_s < self.limit_s

    @property
    def row(self) -> Row:
        return {**asdict(self), "name": self.name.strip(), "met": self.met}


# --------------------------------------------------------------------------- help


def help_figures() -> Iterator[Figure]:
    yield Figure("gnnperf --help, median", _help_s(), 1.0, f"of {HELP_RUNS} processes")
    for verb in VERBS:
        yield Figure(f"gnnperf {verb} --help, median", _help_s(verb), 1.0)


def _help_s(*verb: str) -> float:
    times = []
    for _ in range(HELP_RUNS):
        started = time.perf_counter()
        subprocess.run([*GNNPERF, *verb, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


# --------------------------------------------------------------------------- graphs and search


def graph_figures(graphs: list[Any], say: Say) -> Iterator[Figure]:
    """Appends the graphs, for `search_figures`."""
    from gnnperf.measure import Compiler, Runner

    times: dict[str, float] = {}
    with Compiler() as compiler, Runner() as runner:
        for kernel in _one_kernel_per_family(compiler, runner, say):
            for unit in kernel.units:
                started = time.perf_counter()
                graph = unit.graph
                graph.digest  # noqa: B018  (computed when it is asked for; retrieval always asks)
                times[f"{kernel.name}: {unit.name}"] = time.perf_counter() - started
                graphs.append(graph)
    yield from _spread("graph extraction of a nest", list(times.values()), 0.050, f"{len(times)} nests")
    slowest = max(times, key=lambda name: times[name])
    yield Figure("graph extraction, slowest nest", times[slowest], 0.050, slowest)


def _one_kernel_per_family(compiler: Any, runner: Any, say: Say) -> Iterator[Any]:
    """The first entry of each family, with the inputs of nests whose loops depend on data."""
    from gnnperf.corpus.config import NestConfig, load_config
    from gnnperf.frontends.dace import load_kernel

    config = load_config(CORPUS)
    assert isinstance(config, NestConfig)
    first = {entry.family: entry for entry in reversed(config.entries) if entry.random is None}
    for family in sorted(first):
        entry = first[family]
        say(f"reading {entry.kernel}")
        inputs = config.path(entry.inputs) if entry.inputs else None
        kernel = load_kernel(config.path(entry.kernel), entry.symbols, inputs)
        kernel.capture(compiler, runner, for_graphs=True)
        yield kernel


def search_figures(checkpoint: Path, graphs: Sequence[Any]) -> Iterator[Figure]:
    import lancedb  # noqa: F401  (a store imports it when it is opened; imports are not counted)

    from gnnperf.devices import describe_host
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.retrieval.neighbours import nearest
    from gnnperf.store import Store

    fingerprint = describe_host().fingerprint
    started = time.perf_counter()
    bundle = load_checkpoint(checkpoint, Bundle)
    loaded = time.perf_counter()
    store = Store.open(checkpoint / "store")
    opened = time.perf_counter()
    times = []
    for graph in graphs:
        asked = time.perf_counter()
        (vector,) = bundle.embed([graph])
        nearest([store], vector, 8, bundle.encoder_id, fingerprint)
        times.append(time.perf_counter() - asked)
    info = store.info()
    note = f"{info.nests} nests, {info.records} records"
    yield Figure("load the weights, once", loaded - started)
    yield Figure("open the released store, once", opened - loaded, None, note)
    yield Figure("embedding and search, first in the process", times[0], 0.100)
    yield from _spread("embedding and search", times, 0.100, f"{len(times)} nests")


# --------------------------------------------------------------------------- a large store


def store_figures(say: Say) -> Iterator[Figure]:
    from gnnperf.store import Store

    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((NESTS, 64), dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="gnnperf-large-store-") as folder:
        say(f"writing a store of {NESTS * RECORDS_PER_NEST} records")
        _fill(Path(folder), vectors, rng)
        started = time.perf_counter()
        store = Store.open(folder)
        opened = time.perf_counter() - started
        times = []
        for row in rng.integers(0, NESTS, QUERIES):
            query = vectors[row] + 0.05 * rng.standard_normal(64, dtype=np.float32)
            asked = time.perf_counter()
            found = store.nearest(query, 8, "synthetic", "cpu/synthetic")
            times.append(time.perf_counter() - asked)
            assert found[0].nest.digest == f"{row:032x}", "the search is exact"
            assert [len(n.records) for n in found] == [RECORDS_PER_NEST] * 8
        info = store.info()
    note = f"{info.nests} nests, {info.records} records, {(info.size_bytes or 0) / 1e6:.0f} MB"
    yield Figure("open a large store, once", opened, None, note)
    yield Figure("nearest 8 in a large store, first", times[0], 0.020)
    yield from _spread("nearest 8 in a large store", times, 0.020, f"{QUERIES} queries")


def _fill(folder: Path, vectors: Any, rng: np.random.Generator) -> None:
    from gnnperf.schedules.recipes import DEFAULTS
    from gnnperf.store import Nest, Record, Store

    schedules = [json.dumps(recipe.to_dict()) for recipe in DEFAULTS[:RECORDS_PER_NEST]]
    digests = [f"{i:032x}" for i in range(NESTS)]
    store = Store.open(folder, create=True)
    nests = [Nest(digest, "synthetic", "synthetic", "dace") for digest in digests]
    store.add_nests(nests, ["{}"] * NESTS, vectors, "synthetic")
    for chunk in np.array_split(np.arange(NESTS), 10):
        runtimes = rng.uniform(1e-4, 1e-2, (len(chunk), RECORDS_PER_NEST))
        store.add_records(
            Record(
                nest_digest=digests[i], kernel="synthetic", family="synthetic", frontend="dace",
                device_fingerprint="cpu/synthetic", device_name="synthetic", baseline="dace-auto",
                schedule=schedule, schedule_kind="recipe", status="ok", baseline_s=1e-2, runtime_s=runtime,
                interval_lo_s=0.99 * runtime, interval_hi_s=1.01 * runtime, samples=30,
                speedup=1e-2 / runtime,
            )
            for i, row in zip(chunk, runtimes.tolist(), strict=True)
            for schedule, runtime in zip(schedules, row, strict=True)
        )  # fmt: skip


# --------------------------------------------------------------------------- the main job


def retrieve_figures(runs: int, k: int, checkpoint: Path, say: Say) -> Iterator[Figure]:
    stages: dict[str, list[float]] = {}
    for name, symbols in SINGLE_NEST.items():
        walls = []
        for run in range(runs):
            say(f"{name}, run {run + 1} of {runs}")
            options = ("--checkpoint", str(checkpoint))
            answer = retrieve(KERNELS[name].program, symbols, None, k, options)
            for stage, seconds in _stages(name, answer).items():
                stages.setdefault(stage, []).append(seconds)
            walls.append(answer.wall_s)
        note = f"of {runs} runs; slowest {max(walls):.2f} s"
        yield Figure(f"retrieve {name} -k {k}, median", statistics.median(walls), 20.0, note)
    asking = [e + s for e, s in zip(stages["embedding"], stages["search"], strict=True)]
    yield Figure("  embedding and search, slowest", max(asking), 0.100, "the only query of its process")
    yield Figure("  graph, slowest", max(stages["graphs"]), 0.050, "the only nest of its process")
    for stage, times in stages.items():
        yield Figure(f"  stage {stage}, median", statistics.median(times))


def _stages(name: str, answer: Retrieved) -> dict[str, float]:
    """Seconds by stage; whatever retrieval does not count itself is "start": imports, DaCe's parser."""
    if answer.document is None:
        raise MeasureError(f"{name}: {answer.error}")
    assert len(answer.document["nests"]) == 1, f"{name}: expected a kernel of one nest"
    counted: dict[str, float] = dict(answer.document["stages_s"])
    return {"start": answer.wall_s - answer.document["wall_s"], **counted}


def _spread(name: str, times: Sequence[float], limit_s: float, note: str) -> Iterator[Figure]:
    yield Figure(f"{name}, median", float(np.median(times)), limit_s, note)
    yield Figure(f"{name}, p95", float(np.percentile(times, 95)), limit_s, note)


def check_figures(checkpoint: Path, say: Say) -> Iterator[Figure]:
    """Where one row of twenty in the store is hostile."""
    from benchmarks.hostile_share import compared, hostile_copy

    name, symbols = next(iter(SINGLE_NEST.items()))
    with tempfile.TemporaryDirectory(prefix="gnnperf-hostile-") as folder:
        hostile = Path(folder) / "hostile"
        hostile_copy(checkpoint, hostile)
        say("asking for the neighbours of nests")
        found = compared(checkpoint, hostile)
        say(f"{name}, from both stores")
        answers = [
            retrieve(KERNELS[name].program, symbols, None, 3, ("--checkpoint", str(place)))
            for place in (checkpoint, hostile)
        ]
    tried = [
        [c["schedule"] for nest in (answer.document or {})["nests"] for c in nest["candidates"]]
        for answer in answers
    ]
    told = [sum("that cannot be right" in line for line in answer.told) for answer in answers]
    if found["differing"] or tried[0] != tried[1] or told != [0, 1]:
        raise MeasureError(f"{found}, {told} lines, the same candidates: {tried[0] == tried[1]}")
    note = f"{found['queries']} answers as without, {found['left_out']} rows left out in one line"
    yield Figure("checks of a retrieval", found["checks_s"], 0.05 * answers[1].wall_s, note)


# --------------------------------------------------------------------------- what it leaves behind


def call_figures(checkpoint: Path, say: Say) -> Iterator[Figure]:
    """Of a kernel with nine arrays: what `call` of the script of --output takes above the C function."""
    kernel = KERNELS["gemver"]
    say("tuning a kernel of nine arrays")
    with tempfile.TemporaryDirectory(prefix="gnnperf-call-") as folder:
        options = ("--checkpoint", str(checkpoint), "--output", folder)
        answer = retrieve(kernel.program, kernel.cache, kernel.inputs, 1, options)
        if answer.document is None:
            raise MeasureError(f"gemver: {answer.error}")
        script = load_script(Path(folder))
        arguments = script.example()
        values = script.converted(arguments)
        functions: tuple[Callable[[], Any], ...] = (
            lambda: script.call(**arguments),
            lambda: script.program(*values),
            lambda: script.converted(arguments),
        )
        rounds = [[_mean_s(function) for function in functions] for _ in range(CALL_ROUNDS)]
    call_s, program_s, checked_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    note = f"call() takes {1e6 * call_s:.1f} us, the function {1e6 * program_s:.1f} us"
    yield Figure("call() above the function, nine arrays", call_s - program_s, 5e-6, note)
    yield Figure("checking and converting nine arrays", checked_s)


def _mean_s(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - started) / CALLS


# --------------------------------------------------------------------------- all of it

PARTS = ("help", "graphs", "search", "store", "retrieve", "checks", "call")


@dataclass(frozen=True)
class PipelineStudy(Study):
    """parts: of PARTS. runs: of `retrieve` on each kernel. k: candidates that are measured."""

    name = "pipeline-figures"
    key = "part"

    parts: Sequence[str]
    runs: int
    k: int
    checkpoint: Path

    def settings(self) -> Mapping[str, Any]:
        return {**setup("dace", "torch"), "checkpoint": self.checkpoint, "runs": self.runs, "k": self.k}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        graphs: list[Any] = []  # a search needs the graphs of some nests

        def search(say: Say) -> Iterable[Figure]:
            if not graphs:
                list(graph_figures(graphs, say))
            return search_figures(self.checkpoint, graphs)

        parts: Mapping[str, Callable[[Say], Iterable[Figure]]] = {
            "help": lambda say: help_figures(),
            "graphs": lambda say: graph_figures(graphs, say),
            "search": search,
            "store": store_figures,
            "retrieve": lambda say: retrieve_figures(self.runs, self.k, self.checkpoint, say),
            "checks": lambda say: check_figures(self.checkpoint, say),
            "call": lambda say: call_figures(self.checkpoint, say),
        }

        def row(part: str, say: Say) -> Row:
            found = list(parts[part](say))
            missed = [
                f"{f.name.strip()}: {duration(f.value_s)}, limit {duration(f.limit_s)}"
                for f in found
                if f.limit_s is not None and not f.met
            ]
            return {"part": part, "figures": [f.row for f in found], "failures": missed}

        return {part: partial(row, part) for part in PARTS if part in self.parts}

    def table(self, measured: Mapping[str, Row]) -> Rows:
        """A row per figure."""
        return [figure for row in measured.values() for figure in row.get("figures", ())]

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {f"{row['name']} [s]": row["value_s"] for row in table}

    @staticmethod
    def shown(row: Row) -> Row:
        met = "" if row["limit_s"] is None else ("met" if row["met"] else "MISSED")
        return {
            "figure": row["name"], "value": duration(row["value_s"]),
            "limit": "" if row["limit_s"] is None else duration(row["limit_s"]), "": met,
            "note": row["note"],
        }  # fmt: skip


@click.command("pipeline-figures", cls=Verb, page=True)
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="This part; may be repeated.")
@click.option(
    "--runs", default=3, show_default=True, type=click.IntRange(1), help="Of `retrieve` on each kernel."
)
@click.option(
    "-k", default=3, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@nests_checkpoint_option
@output_option
def pipeline_figures(
    only: tuple[str, ...], runs: int, k: int, checkpoint: Path, output: Path | None
) -> Report:
    """How long the parts of the main job take, beside what they may take.

    \b
    help      wall time of `gnnperf --help` and of every verb's --help, as processes
    graphs    graph extraction of every nest of one kernel of each corpus family, each nest once
    search    embedding one nest and searching the released store for it, after import
    store     a query on a synthetic store of 100,000 records
    retrieve  `gnnperf retrieve -k 3` on kernels of one nest that the corpus does not hold, as processes
    checks    those of the store in a retrieval, where one row of twenty is hostile; 5 % of it at most
    call      calling what --output wrote, above the C function itself

    Some minutes. Exit code 1: a figure misses its limit.
    """
    return PipelineStudy(only or PARTS, runs, k, checkpoint).run(output)
