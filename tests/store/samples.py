"""What the tests of the store put into it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from gnnperf.graph import Node, ProgramGraph
from gnnperf.store import Nest, Record, Store

ENCODER, DEVICE, OTHER_DEVICE = "encoder-1", "cpu/x86_64/avx512", "cpu/x86_64/avx2"


@cache
def _graph(number: int) -> ProgramGraph:
    """One buffer of its own size."""
    features = {"size_bytes": 8 * (number + 1), "scope": "global", "dtype": "float64", "element_bytes": 8}
    return ProgramGraph((Node("buffer", features, "größer"),), (), {})


def make_nest(number: int) -> Nest:
    return Nest(_graph(number).digest, f"kernel{number}", f"family{number % 3}", "dace")


def make_embedding(number: int, width: int = 8) -> np.ndarray:
    vector = np.random.default_rng(number).standard_normal(width)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def make_graph(number: int) -> str:
    return _graph(number).to_json()


def make_schedule(tile: int) -> str:
    """A recipe, as records keep it."""
    recipe = {"kind": "recipe", "order": "row", "tile_p": tile, "version": 1}
    return json.dumps(recipe, sort_keys=True, separators=(",", ":"))


def make_record(number: int, *, status: str = "ok", speedup: float = 2.0, **changes: Any) -> Record:
    """A record of nest `number`."""
    nest = make_nest(number)
    figures: dict[str, Any] = {}
    if status == "ok":
        runtime_s = 0.5 / speedup
        figures = {
            "runtime_s": runtime_s,
            "interval_lo_s": 0.9 * runtime_s,
            "interval_hi_s": 1.1 * runtime_s,
            "speedup": speedup,
            "samples": 30,
        }
    fields: dict[str, Any] = {
        "nest_digest": nest.digest,
        "kernel": nest.kernel,
        "family": nest.family,
        "frontend": nest.frontend,
        "device_fingerprint": DEVICE,
        "device_name": "a CPU",
        "baseline": "dace-auto",
        "baseline_s": 0.5,
        "schedule": '{"kind":"recipe","version":1}',
        "schedule_kind": "recipe",
        "status": status,
        "provenance": '{"threads":2}',
    }
    return Record(**(fields | figures | changes))


def fill(store: Store, numbers: range) -> None:
    """One nest and one record for each number."""
    nests = [make_nest(i) for i in numbers]
    embeddings = np.stack([make_embedding(i) for i in numbers])
    store.add_nests(nests, [make_graph(i) for i in numbers], embeddings, ENCODER)
    store.add_records([make_record(i) for i in numbers])
