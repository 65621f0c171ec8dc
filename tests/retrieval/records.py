"""Records and neighbours made up for the tests of retrieval."""

from __future__ import annotations

import json
from typing import Any

from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour, Nest, Record

DEVICE, ENCODER = "cpu/x86_64/avx512", "encoder"


def recipe(number: int) -> Recipe:
    """Different numbers, different recipes."""
    return Recipe(order="row", tile_p=32 * number)


def make_nest(name: str) -> Nest:
    return Nest(f"digest-{name}", name, "family", "dace")


def make_record(nest: str, schedule: Recipe, speedup: float | None, **changes: Any) -> Record:
    """A record of a nest with a baseline of 1 s; `speedup` None is a wrong result."""
    figures: dict[str, Any] = {"status": "wrong_result"}
    if speedup is not None:
        runtime = 1.0 / speedup
        figures = {
            "status": "ok",
            "runtime_s": runtime,
            "interval_lo_s": runtime,
            "interval_hi_s": runtime,
            "baseline_s": 1.0,
            "speedup": speedup,
            "samples": 6,
        }
    fields: dict[str, Any] = {
        "nest_digest": f"digest-{nest}",
        "kernel": nest,
        "family": "family",
        "frontend": "dace",
        "device_fingerprint": DEVICE,
        "device_name": "a CPU",
        "baseline": "dace-auto",
        "schedule": json.dumps(schedule.to_dict(), sort_keys=True, separators=(",", ":")),
        "schedule_kind": "recipe",
    }
    return Record(**(fields | figures | changes))


def neighbour(name: str, distance: float, speedups: dict[int, float | None]) -> Neighbour:
    """A nest that measured `recipe(number)` with a speedup, or found it wrong."""
    records = tuple(make_record(name, recipe(number), speedup) for number, speedup in speedups.items())
    return Neighbour(make_nest(name), distance, records)
