"""How long the parts of the main job take, beside what they may take.

python scripts/figures_pipeline.py            (some minutes; nothing else may run on the machine)
python scripts/figures_pipeline.py --only help --only store

help      wall time of `gnnperf --help` and of every verb's --help, as processes
graphs    graph extraction of every nest of one kernel of each corpus family, each nest once
search    embedding one nest and searching the released store for it, after import
store     a query on a synthetic store of 100,000 records
retrieve  `gnnperf retrieve -k 3` on kernels of one nest that the corpus does not hold, as processes
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _job import GNNPERF, REPO, Retrieved, job_parser, machine, retrieve, run_job, say

from gnnperf.cli.main import VERBS
from gnnperf.cli.output import Report

CORPUS = REPO / "configs" / "corpus" / "first.yaml"
UNSEEN = REPO / "tests" / "e2e" / "kernels" / "unseen.py"
SINGLE_NEST = {
    "doitgen": {"R": 64, "Q": 72, "P": 96, "S": 96},
    "mttkrp": {"M": 96, "K": 90, "P": 100, "R": 48},
    "nbody_accelerations": {"N": 2000},
}
"""Kernels of `UNSEEN` that are one nest, with their sizes there."""
HELP_RUNS = 7
NESTS, RECORDS_PER_NEST, QUERIES = 20_000, 5, 300


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


def graph_figures(graphs: list[Any]) -> Iterator[Figure]:
    """Appends the graphs, for `search_figures`."""
    from gnnperf.backends.cpp.cases import unit_graph
    from gnnperf.measure import Compiler, Runner

    times: dict[str, float] = {}
    with Compiler() as compiler, Runner() as runner:
        for kernel in _one_kernel_per_family(compiler, runner):
            for unit in kernel.units:
                started = time.perf_counter()
                graph = unit_graph(unit)
                graph.digest  # noqa: B018  (computed when it is asked for; retrieval always asks)
                times[f"{kernel.name}: {unit.name}"] = time.perf_counter() - started
                graphs.append(graph)
    yield from _spread("graph extraction of a nest", list(times.values()), 0.050, f"{len(times)} nests")
    slowest = max(times, key=lambda name: times[name])
    yield Figure("graph extraction, slowest nest", times[slowest], 0.050, slowest)


def _one_kernel_per_family(compiler: Any, runner: Any) -> Iterator[Any]:
    """The first entry of each family, with the inputs of nests whose loops depend on data."""
    from gnnperf.backends.cpp.cases import capture_for_graphs
    from gnnperf.corpus.nest_config import CollectConfig
    from gnnperf.frontends.dace import load_kernel

    config = CollectConfig.load(CORPUS)
    first = {entry.family: entry for entry in reversed(config.entries) if entry.random is None}
    for family in sorted(first):
        entry = first[family]
        say(f"reading {entry.kernel}")
        inputs = config.path(entry.inputs) if entry.inputs else None
        kernel = load_kernel(config.path(entry.kernel), entry.symbols, inputs)
        capture_for_graphs(kernel, compiler, runner)
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


def store_figures() -> Iterator[Figure]:
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


def retrieve_figures(runs: int, k: int, checkpoint: Path) -> Iterator[Figure]:
    stages: dict[str, list[float]] = {}
    for name, symbols in SINGLE_NEST.items():
        walls = []
        for run in range(runs):
            say(f"gnnperf retrieve {name}, run {run + 1} of {runs}")
            options = ("--checkpoint", str(checkpoint))
            answer = retrieve(f"{UNSEEN}:{name}", symbols, None, k, options)
            for stage, seconds in _stages(name, answer, k).items():
                stages.setdefault(stage, []).append(seconds)
            walls.append(answer.wall_s)
        note = f"of {runs} runs; slowest {max(walls):.2f} s"
        yield Figure(f"retrieve {name} -k {k}, median", statistics.median(walls), 20.0, note)
    asking = [e + s for e, s in zip(stages["embedding"], stages["search"], strict=True)]
    yield Figure("  embedding and search, slowest", max(asking), 0.100, "the only query of its process")
    yield Figure("  graph, slowest", max(stages["graphs"]), 0.050, "the only nest of its process")
    for stage, times in stages.items():
        yield Figure(f"  stage {stage}, median", statistics.median(times))


def _stages(name: str, answer: Retrieved, k: int) -> dict[str, float]:
    """Seconds by stage; whatever retrieval does not count itself is "start": imports, DaCe's parser."""
    assert answer.document is not None, f"{name}: {answer.error}"
    assert len(answer.document["nests"]) == 1, f"{name}: expected a kernel of one nest"
    if (measured := answer.document["candidates_measured"]) != k:
        reason = answer.document["nests"][0]["reason"]
        say(f"{name}: {measured} candidates were measured, not {k}: {reason}")
    counted: dict[str, float] = dict(answer.document["stages_s"])
    return {"start": answer.wall_s - answer.document["wall_s"], **counted}


# --------------------------------------------------------------------------- all of it


def _spread(name: str, times: Sequence[float], limit_s: float, note: str) -> Iterator[Figure]:
    yield Figure(f"{name}, median", float(np.median(times)), limit_s, note)
    yield Figure(f"{name}, p95", float(np.percentile(times, 95)), limit_s, note)


PARTS = ("help", "graphs", "search", "store", "retrieve")


def measure(arguments: argparse.Namespace) -> tuple[Report, bool]:
    from rich.table import Table

    parts = arguments.only or PARTS
    figures: list[Figure] = []
    graphs: list[Any] = []
    if "help" in parts:
        figures += help_figures()
    if {"graphs", "search"} & {*parts}:  # a search needs the graphs of some nests
        extraction = list(graph_figures(graphs))
        figures += extraction if "graphs" in parts else []
    if "search" in parts:
        figures += search_figures(arguments.checkpoint, graphs)
    if "store" in parts:
        figures += store_figures()
    if "retrieve" in parts:
        figures += retrieve_figures(arguments.runs, arguments.candidates, arguments.checkpoint)
    table = Table("figure", "value", "limit", "", "note", box=None)
    for f in figures:
        met = "" if f.limit_s is None else ("met" if f.met else "MISSED")
        table.add_row(f.name, _text(f.value_s), "" if f.limit_s is None else _text(f.limit_s), met, f.note)
    document = {
        "benchmark": "figures_pipeline",
        "figures": {f"{f.name.strip()} [s]": f.value_s for f in figures},
        "rows": [{**f.__dict__, "name": f.name.strip(), "met": f.met} for f in figures],
        "settings": {**machine(), "checkpoint": arguments.checkpoint, "parts": parts},
    }
    return Report(document, table), all(f.met for f in figures)


def _text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{seconds * 1e3:.2f} ms"


def main() -> int:
    parser = job_parser(__doc__, "a figure misses its limit")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--runs", type=int, default=3, help="of `retrieve` on each kernel (default 3)")
    return run_job(measure, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
