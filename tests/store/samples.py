"""What the tests of the store put into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnnperf.store import Nest, Record, Store

ENCODER, DEVICE, OTHER_DEVICE = "encoder-1", "cpu/x86_64/avx512", "cpu/x86_64/avx2"


def make_nest(number: int) -> Nest:
    return Nest(f"{number:064x}", f"kernel{number}", f"family{number % 3}", "dace")


def make_embedding(number: int, width: int = 8) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(width).astype(np.float32)


def make_graph(number: int) -> str:
    return f'{{"nodes":[{number}],"text":"größer"}}'


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
