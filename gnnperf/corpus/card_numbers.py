"""The numbers of a corpus's data card, from its tasks and records and a model's configuration."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusRecord, CorpusTask
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.measure.record_log import Line

MIB = 1 << 20
FEW = 3
"""Samples that no schedule that was timed to the end has less of."""


def numbers_of(corpus: MeasuredTasks, model: Path | None = None) -> dict[str, Any]:
    """Everything that a card says.

    model: configuration whose held-out families are marked, where the corpus itself marks none. Raises
    InputError where it is no such configuration.
    """
    tasks = sorted(corpus.tasks.values(), key=_place)
    ok = [record for record in corpus.sequence if record.status == "ok"]
    best = {name: _best(records.values()) for name, records in corpus.records.items()}
    graphs = [task.graph for task in tasks if task.graph is not None]
    return {
        "frontends": _counts(task.frontend for task in tasks),
        "tasks": len(tasks),
        "nests": sum(task.nest is not None for task in tasks),
        "kernels": len({(task.name, json.dumps(task.parameters, sort_keys=True)) for task in tasks}),
        "measurements": len(corpus.sequence),
        "timed": len(ok),
        "distinct_timings": len({(m.task, m.runtime_s, m.baseline_s, m.samples) for m in ok}),
        "schedules": _counts(record.schedule["kind"] for record in corpus.sequence),
        "machines": _counts(map(_machine, tasks)),
        "threads": _counts(task.threads or "not recorded" for task in tasks),
        "versions": _counts(
            ", ".join(f"{k} {v}" for k, v in task.about.get("versions", {}).items()) or "not recorded"
            for task in tasks
        ),
        "collected": sorted({task.about["collected"][:10] for task in tasks if "collected" in task.about}),
        "baselines": _counts(task.baseline for task in tasks),
        "statuses": _counts(record.status for record in corpus.sequence),
        "origins": _counts(record.origin for record in corpus.sequence),
        "passes": _passes(corpus.done),
        "searches": _searches(corpus),
        "long_searches": any(line["key"].startswith("random search ") for line in corpus.done),
        "foreign_per_task": _percentiles(
            [sum(m.origin == "foreign" for m in of.values()) for of in corpus.records.values()]
        ),
        "portfolio": max((len(line["recipes"]) for line in corpus.done if "recipes" in line), default=0),
        "portfolio_of": next((line["of"] for line in corpus.done if "of" in line), ""),
        "traits": _traits(graphs),
        "families": _families(tasks, corpus, best, _splits(model)),
        "best_speedup": _distribution(best.values()),
        "noise": _noise(ok),
    }


def _place(task: CorpusTask) -> tuple[str, ...]:
    return task.family, task.name, json.dumps(task.parameters, sort_keys=True), task.task


def _machine(task: CorpusTask) -> str:
    """Name and fingerprint of its machine, and what tells it from others with that fingerprint."""
    name, spec = f"{task.machine} ({task.device})", task.spec
    if spec is None:
        return name
    caches = (("L1d", spec.l1d_bytes), ("L2", spec.l2_bytes), ("L3", spec.l3_bytes))
    return "; ".join((
        f"{name}: {spec.cores} cores",
        *(f"{level} {size >> 10:,} KiB" for level, size in caches if size),
        *([f"{spec.peak_gflops_fp32:.0f} GFLOP/s (float32)"] if spec.peak_gflops_fp32 else []),
        *([f"{spec.bandwidth_gbps:.0f} GB/s"] if spec.bandwidth_gbps else []),
    ))  # fmt: skip


def _counts(values: Iterable[Any]) -> dict[str, int]:
    """Most frequent first; equal counts in alphabetical order."""
    return dict(sorted(Counter(map(str, values)).items(), key=lambda pair: (-pair[1], pair[0])))


def _best(records: Iterable[CorpusRecord]) -> float:
    """The best speedup found for a task; the baseline itself is 1."""
    return max([1.0, *(record.speedup or 0.0 for record in records)])


def _splits(model: Path | None) -> dict[str, str]:
    """family -> "validation" or "test"; all others train."""
    if model is None:
        return {}
    try:
        data = yaml.safe_load(model.read_text(encoding="utf-8"))["data"]
        splits = ("validation", "test")
        return {family: split for split in splits for family in data[f"{split}_families"]}
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(f"--model: expected the configuration of a model, got {model}: {error}") from None


def _families(
    tasks: Sequence[CorpusTask], corpus: MeasuredTasks, best: Mapping[str, float], splits: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    learned_from = "training" if splits else "left to models"
    grouped: dict[str, list[CorpusTask]] = {}
    for task in tasks:
        grouped.setdefault(task.family, []).append(task)
    found = {}
    for family, of_family in grouped.items():
        records = [record for task in of_family for record in corpus.records[task.task].values()]
        marked = _counts(task.split or splits.get(family, learned_from) for task in of_family)
        found[family] = {
            "split": next(iter(marked)) if len(marked) == 1 else marked,
            "tasks": len(of_family),
            "measurements": len(records),
            "failed": sum(record.status != "ok" for record in records),
            "best_speedup": statistics.geometric_mean([best[task.task] for task in of_family]),
        }
    return found


def _passes(done: Sequence[Line]) -> dict[str, int]:
    """Kernels that each pass has finished with the settings it last had."""
    finished: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for line in done:
        work, _, rest = line["key"].partition(" ")
        if rest.startswith("["):  # the entry of the configuration, then a digest of settings
            last[work] = f"{work} {rest.rpartition(']')[2]}"
            finished.setdefault(last[work], set()).add(rest)
        elif work == "pass":
            name = f"to {line['pass']} schedules"
            last[name] = name
            finished.setdefault(name, set()).add(rest)
    return {work: len(finished[settings]) for work, settings in last.items()}


def _searches(corpus: MeasuredTasks) -> dict[str, Any] | None:
    """Budgets of the searches, what ended them, and what they took; None where it was not recorded."""
    last = {line["key"]: line for line in corpus.done if line["key"].startswith("nest ")}
    lines = [line for key, line in last.items() if key.partition(" ")[2] in corpus.tasks]
    if not lines:
        return None
    return {
        "recorded": len(lines),
        "budgets": _counts(
            f"({b['trials']} trials, patience {b['patience'] or 'endless'}, {b['seconds']:g} s)"
            for b in (line["budget"] for line in lines)
        ),
        "ended": _counts(line["ended"] for line in lines),
        "trials": _percentiles([line["trials"] for line in lines]),
        "seconds": _percentiles([line["search_s"] for line in lines]),
    }


def _traits(graphs: Sequence[ProgramGraph]) -> dict[str, int]:
    """In how many nests something occurs, from their graphs."""
    found: Counter[str] = Counter()
    for graph in graphs:
        loops: list[Mapping[str, Any]] = [node.features for node in graph.nodes if node.kind == "loop"]
        values: Mapping[str, Any] = graph.values
        size = values.get("distinct_bytes", 0)
        occurs = {
            f"computes in {n.features['dtype']}"
            for n in graph.nodes
            if n.kind == "compute" and "dtype" in n.features
        }
        occurs |= {f"a {f['loop_kind']} loop" for f in loops if f.get("loop_kind") not in (None, "spatial")}
        limits = {MIB: "up to 1 MiB of data", 32 * MIB: "1 to 32 MiB of data"}
        largest = "more than 32 MiB of data"
        occurs.add(next((text for limit, text in limits.items() if size <= limit), largest))
        if any(f.get("extent_varies") and f.get("loop_kind") != "data-dependent" for f in loops):
            occurs.add("a triangular loop")
        if any(node.features.get("indirect") for node in graph.nodes):
            occurs.add("an indirect access")
        if values.get("statements", 1) > 1:
            occurs.add("several statements")
        found.update(occurs)
    return dict(sorted(found.items()))


def _distribution(best: Iterable[float]) -> dict[str, float]:
    values = sorted(best)
    at_least = {f"at_least_{x:g}": sum(v >= x for v in values) for x in (1.05, 1.5, 2.0, 5.0, 10.0)}
    quantiles = {f"p{q}": float(np.quantile(values, q / 100)) for q in (10, 25, 50, 75, 90)}
    return {
        "minimum": values[0], **quantiles, "maximum": values[-1],
        "geometric_mean": statistics.geometric_mean(values),
        "none_found": sum(v == 1.0 for v in values), **at_least,
    }  # fmt: skip


def _noise(ok: Sequence[CorpusRecord]) -> dict[str, Any]:
    """Half-widths of the intervals over the medians, and how far the medians of one and the same code, the
    baseline of a task, lie apart from candidate to candidate."""
    full = [m for m in ok if m.samples >= FEW]
    again: dict[str, set[float]] = {}  # sets: schedules with equal code repeat one measurement
    for m in full:
        again.setdefault(m.task, set()).add(m.baseline_s or 0.0)
    repeated = [sorted(times) for times in again.values() if len(times) >= 5]
    spreads = [float(np.subtract(*np.quantile(t, (0.9, 0.1)))) / statistics.median(t) for t in repeated]
    return {
        "given_up": len(ok) - len(full),
        "samples": _percentiles([float(m.samples) for m in full]),
        "half_width": _percentiles([_half_width(m.interval_s, m.runtime_s) for m in full]),
        "baseline_half_width": _percentiles([_half_width(m.baseline_interval_s, m.baseline_s) for m in full]),
        "repeated_baselines": len(repeated),
        "baseline_spread": _percentiles(spreads),
    }


def _half_width(interval: tuple[float, float] | None, median: float | None) -> float:
    assert interval is not None and median is not None
    return (interval[1] - interval[0]) / 2 / median


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    middle, high = np.quantile(values, (0.5, 0.95))
    return {"p50": float(middle), "p95": float(high), "maximum": float(max(values))}
