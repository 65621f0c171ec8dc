"""The lines of a corpus of loop nests: a nest, and a recipe on it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.backends.cpp.trials import Trial
from gnnperf.corpus.config import NestEntry
from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Case, Measurement, Runner, profile
from gnnperf.measure.statistics import Interval, speedup_interval
from gnnperf.nests.document import nest_to_dict
from gnnperf.nests.trip_counts import measured_trip_counts
from gnnperf.schedules.recipes import Recipe


def task_line(
    entry: NestEntry, case: UnitCase, graph: ProgramGraph, device: DeviceSpec, runner: Runner, compiler: str
) -> dict[str, Any]:
    """A nest with its dynamic profile, which is measured now."""
    return {
        "task": graph.digest,
        "name": entry.name,
        "family": entry.family,
        "frontend": "dace",
        "parameters": dict(entry.symbols),
        "graph": json.loads(graph.to_json()),
        "nest": nest_to_dict(case.case.nest),
        "trip_counts": measured_trip_counts(case.case.nest, case.case.problem.inputs),
        "baseline": {"name": case.built.name, "runtime_s": case.baseline.runtime_s},
        "profile": _profile(case, graph, device, runner),
        "device": device.to_record(),
        "threads": runner.threads,
        "versions": {"compiler": compiler},
        "collected": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def record_line(digest: str, trial: Trial, device: str) -> dict[str, Any]:
    """A recipe on a nest, without what is empty."""
    m = trial.measurement
    line = {
        "task": digest,
        "schedule_id": trial.recipe.id,
        "schedule": trial.recipe.to_dict(),
        "status": m.status,
        "runtime_s": m.runtime_s,
        "interval_s": m.interval_s,
        "samples": m.samples,
        "baseline_s": m.baseline_s,
        "baseline_interval_s": m.baseline_interval_s,
        "device": device,
        "origin": trial.origin,
        "detail": m.detail,
    }
    return {key: value for key, value in line.items() if value not in (None, "")}


def trial_of(line: Mapping[str, Any]) -> Trial:
    """The trial that a line is about."""
    recipe, origin = Recipe.from_dict(line["schedule"]), line["origin"]
    if line["status"] != "ok":
        return Trial(recipe, Measurement(line["status"], detail=line.get("detail", "")), origin)
    interval, baseline = _interval(line["interval_s"]), _interval(line["baseline_interval_s"])
    measurement = Measurement(
        "ok", line["runtime_s"], interval, line["samples"], line["baseline_s"], baseline,
        speedup_of(line), speedup_interval(baseline, interval),
    )  # fmt: skip
    return Trial(recipe, measurement, origin)


def speedup_of(line: Mapping[str, Any]) -> float:
    """Of a schedule that was timed, over the baseline beside it."""
    return float(line["baseline_s"]) / float(line["runtime_s"])


def _interval(pair: Sequence[float]) -> Interval:
    low, high = pair
    return low, high


def _profile(
    case: UnitCase, graph: ProgramGraph, device: DeviceSpec, runner: Runner
) -> dict[str, Any] | None:
    c, problem = case.case, case.case.problem
    dtypes = {b.dtype for b in c.nest.buffers.values() if b.dtype.startswith("float")}
    baseline = Case(
        c.baseline, problem.inputs, tuple(problem.outputs), tuple(c.inouts), tuple(problem.updated),
        graph.number("total_flops"), graph.number("distinct_bytes"),
        "float32" if dtypes == {"float32"} else "float64",
    )  # fmt: skip
    try:
        return profile(runner, baseline, device, case.limits).to_dict()
    except MeasureError:
        return None
