"""The lines of a corpus: a nest, and a measurement of a recipe on it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.backends.cpp.trials import Trial
from gnnperf.corpus.nest_config import Entry
from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Case, Measurement, Runner, profile
from gnnperf.schedules.recipes import Recipe


def nest_line(
    entry: Entry, case: UnitCase, graph: ProgramGraph, device: DeviceSpec, runner: Runner, compiler: str
) -> dict[str, Any]:
    """A nest with its dynamic profile, which is measured now."""
    return {
        "digest": graph.digest,
        "kernel": entry.name,
        "family": entry.family,
        "frontend": "dace",
        "symbols": dict(entry.symbols),
        "graph": json.loads(graph.to_json()),
        "baseline": case.baseline_name,
        "baseline_s": case.baseline_s,
        "profile": _profile(case, graph, device, runner),
        "device": {"fingerprint": device.fingerprint, "name": device.name},
        "threads": runner.threads,
        "compiler": compiler,
        "collected": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def measurement_line(digest: str, trial: Trial, baseline_s: float, device: str) -> dict[str, Any]:
    """A trial; what failed before its baseline was timed gets `baseline_s`, the nest's."""
    m = trial.measurement
    return {
        "digest": digest,
        "schedule_id": trial.recipe.id,
        "schedule": trial.recipe.to_dict(),
        "status": m.status,
        "runtime_s": m.runtime_s,
        "interval_s": m.interval_s,
        "samples": m.samples,
        "baseline_s": m.baseline_s or baseline_s,
        "baseline_interval_s": m.baseline_interval_s or [baseline_s] * 2,
        "speedup": m.speedup,
        "speedup_interval": m.speedup_interval,
        "device": device,
        "origin": trial.origin,
        "detail": m.detail,
    }


def trial_of(line: Mapping[str, Any]) -> Trial:
    """The trial that a line is about."""
    runtime, baseline, speedup = (
        tuple(line[name]) if line[name] else None
        for name in ("interval_s", "baseline_interval_s", "speedup_interval")
    )
    m = Measurement(
        line["status"], line["runtime_s"], runtime, line["samples"], line["baseline_s"], baseline,
        line["speedup"], speedup, line["detail"],
    )  # fmt: skip
    return Trial(Recipe.from_dict(line["schedule"]), m, line["origin"])


def _profile(
    case: UnitCase, graph: ProgramGraph, device: DeviceSpec, runner: Runner
) -> dict[str, Any] | None:
    c = case.case
    dtypes = {b.dtype for b in c.nest.buffers.values() if b.dtype.startswith("float")}
    baseline = Case(
        c.baseline, c.data, tuple(c.outputs), tuple(c.inouts),
        _value(graph, "total_flops"), _value(graph, "distinct_bytes"),
        "float32" if dtypes == {"float32"} else "float64",
    )  # fmt: skip
    try:
        return profile(runner, baseline, device, case.limits).to_dict()
    except MeasureError:
        return None


def _value(graph: ProgramGraph, name: str) -> float:
    """A graph-level number; absent where it is zero."""
    value = graph.values.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0
