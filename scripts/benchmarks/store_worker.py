"""One of the processes that search and write a store: `python -m benchmarks.store_worker STORE SEED SECONDS`.

It says that it is ready, begins when it is told to, and prints what it did as one JSON object.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import numpy as np

from benchmarks.made_up_store import DEVICE, nest, record
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Store

ENCODER, WIDTH = "made-up", 96
SEARCHES, RECORDS = 3, 4
"""Searches before every nest that is written, and records that are written with it."""


def work(location: str, seed: int, seconds: float) -> dict[str, object]:
    """What a user's runs do: look for neighbours, then add a nest and what was measured on it."""
    store, chance = Store.open(location), np.random.default_rng(seed)
    print("ready", flush=True)
    sys.stdin.readline()
    search_ms: list[float] = []
    write_ms: list[float] = []
    acknowledged: list[str] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(SEARCHES):
            vector = chance.standard_normal(WIDTH).astype(np.float32)
            started = time.perf_counter()
            store.nearest(vector, 10, ENCODER, DEVICE)
            search_ms.append(1e3 * (time.perf_counter() - started))
        digest = hashlib.sha256(f"{seed} {len(write_ms)}".encode()).hexdigest()
        started = time.perf_counter()
        store.add_nest(nest(digest), "{}", vector, ENCODER)
        written = store.add_records(record(digest, Recipe(tile_p=8 * (1 + n))) for n in range(RECORDS))
        write_ms.append(1e3 * (time.perf_counter() - started))
        acknowledged += [r.record_id for r in written]
    return {"search_ms": search_ms, "write_ms": write_ms, "acknowledged": acknowledged}


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
