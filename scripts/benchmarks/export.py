"""What a compiler pays for an embedding, a search, and the start of the C++ client."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.cpp_client import Client, build_client, check_sources
from benchmarks.machine import setup
from benchmarks.million import Searched, search_many
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import FILE, nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import InputError
from gnnperf.export import export_checkpoint, load_exported
from gnnperf.graph import ProgramGraph, collate, encode
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.threads import one_thread
from gnnperf.store import Store

NODES, BATCH = 60, 256
QUERIES = 200
STARTS = 7
"""Processes timed."""
TARGETS = {
    "cpp_embed_ms_median": "< 1",
    "batch256_speedup": ">= 1.5",
    "artefact_mb": "< 20",
    "start_to_answer_s_median": "< 1.5",
    "parity_max_abs": "< 1e-5",
    "search_1m_ms_p50": "< 10",
    "search_1m_recall10": ">= 0.98",
}


@click.command("export", cls=Verb, page=True)
@nests_checkpoint_option
@click.option(
    "--client", type=FILE, metavar="PATH",
    help="A built gnnperf-client.  [default: it is built, with optimisation]",
)  # fmt: skip
@click.option(
    "--nests", default=1_000_000, show_default=True, type=click.IntRange(1000),
    help="Made-up nests in the store that is searched.",
)  # fmt: skip
@click.option("--repeat", default=300, show_default=True, type=click.IntRange(20), help="Embeddings timed.")
@click.option("--aoti/--no-aoti", default=True, help="Compile the model too, which takes a minute or two.")
@output_option
def export(
    checkpoint: Path, client: Path | None, nests: int, repeat: int, aoti: bool, output: Path | None
) -> Report:
    """Time the C++ client, and searches in a store of a million nests.

    Everything runs on one thread. The graph that is embedded is the nest of the store nearest to 60 nodes.
    The nests that are searched are made up: vectors between pairs of known embeddings, with noise. Recall
    is of the ten nearest, beside a comparison with every vector. Parity is the largest difference of any
    number of an embedding to the encoder in Python, over 200 nests, one by one and in a batch, TorchScript
    and AOTInductor, Python and C++.
    """
    if not (checkpoint / "store").is_dir():
        raise InputError(f"expected a checkpoint with a store, got {checkpoint}")
    if client is None:
        check_sources()
    return ExportStudy(checkpoint, client, nests, repeat, aoti).run(output)


@dataclass(frozen=True)
class ExportStudy(Study):
    """program: gnnperf-client; None: it is built. nests: in the store that is searched. repeat: embeddings
    timed. aoti: compile the model as well, and compare what it computes."""

    name = "export"
    key = "figure"

    checkpoint: Path
    program: Path | None = None
    nests: int = 1_000_000
    repeat: int = 300
    aoti: bool = True

    def settings(self) -> Mapping[str, Any]:
        about = setup("torch")
        return {
            "checkpoint": str(self.checkpoint), "nests_searched": self.nests, "repeat": self.repeat,
            "aoti": self.aoti, "threads": 1, "torch": about["versions"]["torch"], "device": about["name"],
        }  # fmt: skip

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        """One step: everything is made of one exported model."""
        return {"everything": self.measure}

    def measure(self, say: Say) -> Row:
        """Export a retrieval checkpoint with its store, and measure."""
        bundle = load_checkpoint(self.checkpoint, Bundle)
        with tempfile.TemporaryDirectory() as name, one_thread():
            folder = Path(name)
            say("building the C++ client")
            client = Client(self.program) if self.program else build_client(folder / "build")
            say("exporting")
            done = export_checkpoint(self.checkpoint, folder, "torchscript")
            graphs = _graphs(self.checkpoint, bundle)
            say("embedding")
            figures = _embedding(folder, done.model, bundle, graphs, client, self)
            figures["artefact_mb"] = done.model_bytes / 1e6
            models = [done.model]
            if self.aoti:
                models.append(export_checkpoint(self.checkpoint, folder / "aoti", "aoti").model)
            figures["parity_max_abs"] = _parity(folder, models, bundle, graphs[:QUERIES], client)
            searched = search_many(folder, bundle, graphs[:QUERIES], done.model, client, self.nests, say)
        return {"rows": _rows(figures, searched)}

    def table(self, measured: Mapping[str, Row]) -> Rows:
        return [row for found in measured.values() for row in found.get("rows", ())]

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Those that have a target."""
        return {row["figure"]: row["value"] for row in table if row["target"]}


def _rows(measured: Mapping[str, float], searched: Sequence[Searched]) -> list[dict[str, Any]]:
    by_lists = [way for way in searched if way.how.startswith(("exported", "Store"))]
    values = {
        **measured,
        "search_1m_ms_p50": max(way.ms_p50 for way in by_lists),
        "search_1m_recall10": min(way.recall for way in by_lists),
    }
    for way in searched:
        values |= {f"{way.how}: ms, median": way.ms_p50, f"{way.how}: recall@10": way.recall}
    return [
        {"figure": name, "value": value, "target": TARGETS.get(name, "")} for name, value in values.items()
    ]


def _graphs(checkpoint: Path, bundle: Bundle) -> list[ProgramGraph]:
    """The nests of the store, in the order of their digests."""
    entries = sorted(Store.open(checkpoint / "store").entries(bundle.encoder_id), key=lambda e: e.nest.digest)
    return [ProgramGraph.from_json(entry.graph_json) for entry in entries]


def _embedding(
    folder: Path, model: Path, bundle: Bundle, graphs: Sequence[ProgramGraph], client: Client,
    study: ExportStudy,
) -> dict[str, float]:  # fmt: skip
    """Times of the graph of the store that is nearest to NODES nodes."""
    graph = min(graphs, key=lambda g: (abs(len(g.nodes) - NODES), g.digest))
    path = folder / "graph.json"
    path.write_text(graph.to_json(), encoding="utf-8")
    single = client("time", model, path, "--repeat", study.repeat)
    batch = client("time", model, path, "--repeat", max(3, study.repeat // 20), "--batch", BATCH)
    eager_ms = _eager_ms(bundle, graph, study.repeat)
    store = model.with_name("store.gnnstore")
    starts = [client.seconds("retrieve", model, store, path) for _ in range(STARTS)]
    return {
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "cpp_embed_ms_median": single["median_ms"],
        "cpp_embed_ms_p95": single["p95_ms"],
        "cpp_embed_cpu_ms_median": single["cpu_median_ms"],
        "eager_embed_ms_median": eager_ms,
        "batch256_ms_median": batch["median_ms"],
        "batch256_cpu_ms_median": batch["cpu_median_ms"],
        "batch256_speedup": BATCH * eager_ms / batch["median_ms"],
        "start_to_answer_s_median": statistics.median(starts),
    }


def _eager_ms(bundle: Bundle, graph: ProgramGraph, repeat: int) -> float:
    """Median of the encoder alone, its input ready."""
    batch = collate([encode(graph)])
    times = []
    with torch.inference_mode():
        for _ in range(10):
            bundle.encoder.embed(batch)
        for _ in range(repeat):
            started = time.perf_counter()
            bundle.encoder.embed(batch)
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def _parity(
    folder: Path, models: Sequence[Path], bundle: Bundle, graphs: Sequence[ProgramGraph], client: Client
) -> float:
    """Largest difference of any number of an embedding: one by one, in a batch, from Python and C++."""
    expected = np.concatenate([bundle.embed([graph]) for graph in graphs])
    files = [folder / f"{i}.json" for i in range(len(graphs))]
    for file, graph in zip(files, graphs, strict=True):
        file.write_text(graph.to_json(), encoding="utf-8")
    apart = []
    for path in models:
        model = load_exported(path)
        alone = np.concatenate([model.embed([graph]) for graph in graphs])
        from_cpp = np.array([found["embedding"] for found in client("embed", path, *files)["graphs"]])
        apart += [float(np.abs(got - expected).max()) for got in (alone, model.embed(graphs), from_cpp)]
    return max(apart)
