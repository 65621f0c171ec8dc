"""A store of very many nests, made up around the nests that there are, and searched."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from benchmarks.cpp_client import Client
from benchmarks.made_up_store import DEVICE, filled
from gnnperf.export import FlatStore, open_flat, write_flat
from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle
from gnnperf.store.searchable import Searchable

K = 10
_SPREAD = 0.3
"""Noise around the line between two nests, in standard deviations of all nests, in each direction."""


@dataclass(frozen=True)
class Searched:
    """Of one way to search: median milliseconds of a query, and recall of the ten nearest."""

    how: str
    ms_p50: float
    recall: float


def made_up(
    known: Float32[np.ndarray, "m d"], count: int, chance: np.random.Generator
) -> Float32[np.ndarray, "n d"]:
    """Unit vectors between pairs of known embeddings, with noise as wide as the nests are apart."""
    _, spread, directions = np.linalg.svd(known - known.mean(0), full_matrices=False)
    scale = (_SPREAD * spread / np.sqrt(len(known))).astype(np.float32)
    first, second = chance.integers(len(known), size=(2, count))
    share = chance.random((count, 1), dtype=np.float32)
    points = share * known[first] + (1 - share) * known[second]
    points += (chance.standard_normal((count, len(scale)), dtype=np.float32) * scale) @ directions
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def search_many(
    folder: Path, bundle: Bundle, graphs: Sequence[ProgramGraph], model: Path, client: Client, count: int,
    say: Callable[[str], None],
) -> list[Searched]:  # fmt: skip
    """Search `count` nests: the exported store from Python and C++, one by one, and through `Store`."""
    chance = np.random.default_rng(0)
    known = bundle.embed(graphs)
    vectors = made_up(known, count, chance)
    path = folder / "many.gnnstore"
    lines = [b'{"digest":"%d","records":[]}\n' % i for i in range(count)]
    say("writing the store")
    write_flat(path, bundle.encoder_id, vectors, {DEVICE: np.ones(count, bool)}, lines, 0)
    del vectors, lines
    store = open_flat(path)
    say("searching from Python")
    queries = made_up(known, len(graphs), chance)
    flat = _timed("exported store, Python", store, queries, lambda q: _rows(store, q))
    every = Searchable(np.asarray(store.vectors), np.ones(count, bool))
    exact = _timed("one by one, Python", store, queries, lambda q: every.search(q, K)[0].tolist())
    say("searching from C++")
    found = [flat, exact, _from_cpp(folder, store, known, graphs, model, path, client)]
    say("writing the same nests as a schedule store, and searching it")
    shared = filled(folder / "many", np.asarray(store.vectors), bundle.encoder_id)

    def nearest(query: Float32[np.ndarray, " d"]) -> list[int]:
        return [int(n.nest.digest) for n in shared.nearest(query, K, bundle.encoder_id, DEVICE)]

    return [*found, _timed("Store, Python", store, queries, nearest)]


def _rows(store: FlatStore, query: Float32[np.ndarray, " d"]) -> list[int]:
    return [row for row, _ in store.nearest(query, K, DEVICE)]


def _timed(
    how: str, store: FlatStore, queries: Float32[np.ndarray, "q d"], search: Callable[..., Sequence[int]]
) -> Searched:
    times, hits = [], 0
    search(queries[0])  # pages of the file are read, as they are for all but the first query
    for query in queries:
        started = time.perf_counter()
        found = search(query)
        times.append(time.perf_counter() - started)
        hits += len(set(found) & set(_nearest(store, query)))
    return Searched(how, float(np.median(times)) * 1e3, hits / (K * len(queries)))


def _nearest(store: FlatStore, query: Float32[np.ndarray, " d"]) -> list[int]:
    """Of all vectors, by comparing every one."""
    similarity = store.vectors @ query
    return np.argpartition(-similarity, K - 1)[:K].tolist()


def _from_cpp(
    folder: Path, store: FlatStore, known: Float32[np.ndarray, "q d"], graphs: Sequence[ProgramGraph],
    model: Path, path: Path, client: Client,
) -> Searched:  # fmt: skip
    files = [folder / f"query{i}.json" for i in range(len(graphs))]
    for file, graph in zip(files, graphs, strict=True):
        file.write_text(json.dumps(graph.to_dict()), encoding="utf-8")
    document = client("retrieve", model, path, *files, "-k", K)
    hits = 0
    for query, found in zip(known, document["graphs"], strict=True):
        expected = {store.nest(row)["digest"] for row in _nearest(store, query)}
        hits += len(expected & {neighbour["digest"] for neighbour in found["neighbours"]})
    times = [found["search_ms"] for found in document["graphs"]]
    return Searched("exported store, C++", float(np.median(times)), hits / (K * len(graphs)))
