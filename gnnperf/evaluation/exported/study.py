"""`gnnperf eval export`: what a compiler pays for an embedding, a search, and the start of the client."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.exported.client import Client, build_client
from gnnperf.evaluation.exported.million import Searched, search_many
from gnnperf.export import export_checkpoint, load_exported
from gnnperf.graph import ProgramGraph, collate, encode
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.threads import one_thread
from gnnperf.store import Store

NODES, BATCH = 60, 256
QUERIES = 200
STEPS = 7
"""How often `evaluate_export` calls `advance`."""


@dataclass(frozen=True)
class ExportSettings:
    """nests: in the store that is searched. repeat: embeddings timed. starts: processes timed. aoti: compile
    the model as well, and compare what it computes."""

    nests: int = 1_000_000
    repeat: int = 300
    starts: int = 7
    aoti: bool = True


def evaluate_export(
    checkpoint: Path, program: Path | None, settings: ExportSettings, advance: Callable[..., None]
) -> BenchmarkResult:
    """Export a retrieval checkpoint with its store, and measure.

    Args:
        checkpoint: folder of the bundle.
        program: gnnperf-client; None: it is built.
        settings: how much to measure.
        advance: called before each of STEPS steps.

    Raises InputError: the checkpoint has no store.
    """
    if not (checkpoint / "store").is_dir():
        raise InputError(f"expected a checkpoint with a store, got {checkpoint}")
    bundle = load_checkpoint(checkpoint, Bundle)
    with tempfile.TemporaryDirectory() as name, one_thread():
        folder = Path(name)
        advance(0, doing="building the C++ client")
        client = Client(program) if program else build_client(folder / "build")
        advance(doing="exporting")
        done = export_checkpoint(checkpoint, folder, "torchscript")
        graphs = _graphs(checkpoint, bundle)
        advance(doing="embedding")
        figures = _embedding(folder, done.model, bundle, graphs, client, settings)
        figures["artefact_mb"] = done.model_bytes / 1e6
        models = [done.model]
        if settings.aoti:
            models.append(export_checkpoint(checkpoint, folder / "aoti", "aoti").model)
        figures["parity_max_abs"] = _parity(folder, models, bundle, graphs[:QUERIES], client)
        some = graphs[:QUERIES]
        searched = search_many(folder, bundle, some, done.model, client, settings.nests, advance)
        advance()
    return _result(figures, searched, settings, checkpoint)


def _graphs(checkpoint: Path, bundle: Bundle) -> list[ProgramGraph]:
    """The nests of the store, in the order of their digests."""
    entries = sorted(Store.open(checkpoint / "store").entries(bundle.encoder_id), key=lambda e: e.nest.digest)
    return [ProgramGraph.from_json(entry.graph_json) for entry in entries]


def _embedding(
    folder: Path, model: Path, bundle: Bundle, graphs: Sequence[ProgramGraph], client: Client,
    settings: ExportSettings,
) -> dict[str, float]:  # fmt: skip
    """Times of the graph of the store that is nearest to NODES nodes."""
    graph = min(graphs, key=lambda g: (abs(len(g.nodes) - NODES), g.digest))
    path = folder / "graph.json"
    path.write_text(graph.to_json(), encoding="utf-8")
    single = client("time", model, path, "--repeat", settings.repeat)
    batch = client("time", model, path, "--repeat", max(3, settings.repeat // 20), "--batch", BATCH)
    eager_ms = _eager_ms(bundle, graph, settings.repeat)
    store = model.with_name("store.gnnstore")
    starts = [client.seconds("retrieve", model, store, path) for _ in range(settings.starts)]
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


_TARGETS = {
    "cpp_embed_ms_median": "< 1",
    "batch256_speedup": ">= 1.5",
    "artefact_mb": "< 20",
    "start_to_answer_s_median": "< 1.5",
    "parity_max_abs": "< 1e-5",
    "search_1m_ms_p50": "< 10",
    "search_1m_recall10": ">= 0.98",
}


def _result(
    measured: dict[str, float], searched: Sequence[Searched], settings: ExportSettings, checkpoint: Path
) -> BenchmarkResult:
    by_lists = [way for way in searched if way.how.startswith(("exported", "Store"))]
    figures = {
        **{name: measured[name] for name in _TARGETS if name in measured},
        "search_1m_ms_p50": max(way.ms_p50 for way in by_lists),
        "search_1m_recall10": min(way.recall for way in by_lists),
    }
    rows: list[dict[str, Any]] = [
        {"figure": name, "value": value, "target": _TARGETS.get(name, "")}
        for name, value in {**measured, **figures}.items()
    ]
    for way in searched:
        rows.append({"figure": f"{way.how}: ms, median", "value": way.ms_p50, "target": ""})
        rows.append({"figure": f"{way.how}: recall@10", "value": way.recall, "target": ""})
    host = describe_host()
    about = {
        "checkpoint": str(checkpoint), "nests_searched": settings.nests, "repeat": settings.repeat,
        "aoti": settings.aoti, "threads": 1, "torch": torch.__version__, "device": host.name,
    }  # fmt: skip
    return BenchmarkResult("export", figures, rows, about)
