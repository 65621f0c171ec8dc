"""The numbers of a corpus's data card, from its files and the model's configuration."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
import zstandard

from gnnperf.errors import InputError
from gnnperf.measure import Limits

Lines = Sequence[Mapping[str, Any]]


# --------------------------------------------------------------------------- reading


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """The lines of `name`.jsonl.zst and `name`.jsonl; a last line torn by an interruption is left out."""
    packed, plain = folder / f"{name}.jsonl.zst", folder / f"{name}.jsonl"
    if not packed.is_file() and not plain.is_file():
        raise InputError(f"expected {packed} or {plain.name} beside it; give the folder of a corpus")
    text = b""
    if packed.is_file():
        with packed.open("rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    text += plain.read_bytes() if plain.is_file() else b""
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines() if line.strip()]


def finished(folder: Path) -> Lines:
    """What the log says is done; nothing where it was not kept."""
    try:
        return read(folder, "done")
    except InputError:
        return []


# --------------------------------------------------------------------------- numbers


def numbers(folder: Path, model: Path) -> dict[str, Any]:
    """Everything the card says."""
    done = finished(folder)
    # As the collector and the trainer read it: the first line of a nest, the last of a measurement.
    nests = {line["digest"]: line for line in reversed(read(folder, "nests"))}
    lines = {(m["digest"], m["schedule_id"]): m for m in read(folder, "measurements") if m["digest"] in nests}
    if not lines:
        raise InputError(f"{folder} holds no measured nest; collect it with `gnnperf collect`")
    measured: dict[str, list[Mapping[str, Any]]] = {}
    for m in lines.values():
        measured.setdefault(m["digest"], []).append(m)
    ordered = sorted((n for n in nests.values() if n["digest"] in measured), key=_place)
    best = {digest: _best(of_nest) for digest, of_nest in measured.items()}
    ok = [m for m in lines.values() if m["status"] == "ok"]
    return {
        "nests": len(ordered),
        "kernels": len({(n["kernel"], json.dumps(n["symbols"], sort_keys=True)) for n in ordered}),
        "measurements": len(lines),
        "timed": len(ok),
        "distinct_timings": len({(m["digest"], m["runtime_s"], m["baseline_s"], m["samples"]) for m in ok}),
        "machines": _counts(f"{n['device']['name']} ({n['device']['fingerprint']})" for n in ordered),
        "threads": _counts(n.get("threads", "not recorded") for n in ordered),
        "compilers": _counts(n.get("compiler", "not recorded") for n in ordered),
        "collected": sorted({n["collected"][:10] for n in ordered if "collected" in n}),
        "baselines": _counts(n["baseline"] for n in ordered),
        "frontends": _counts(n["frontend"] for n in ordered),
        "statuses": _counts(m["status"] for m in lines.values()),
        "origins": _counts(m["origin"] for m in lines.values()),
        "passes": _passes(done),
        "searches": _searches(done, set(measured)),
        "foreign_per_nest": _percentiles(
            [sum(m["origin"] == "foreign" for m in of) for of in measured.values()]
        ),
        "portfolio": max((len(line["recipes"]) for line in done if "recipes" in line), default=0),
        "traits": _traits(ordered),
        "families": _families(ordered, measured, best, _splits(model)),
        "best_speedup": _distribution(best.values()),
        "noise": _noise(ok),
    }


def _place(nest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return nest["family"], nest["kernel"], json.dumps(nest["symbols"], sort_keys=True), nest["digest"]


def _counts(values: Iterable[Any]) -> dict[str, int]:
    """Most frequent first; equal counts in alphabetical order."""
    return dict(sorted(Counter(map(str, values)).items(), key=lambda pair: (-pair[1], pair[0])))


def _best(of_nest: Lines) -> float:
    """The best speedup found for a nest; the baseline itself is 1."""
    return max([1.0, *(float(m["speedup"]) for m in of_nest if m["status"] == "ok")])


def _splits(model: Path) -> dict[str, str]:
    """family -> "validation" or "test"; all others train."""
    try:
        data = yaml.safe_load(model.read_text())["data"]
        named = {split: data[f"{split}_families"] for split in ("validation", "test")}
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(f"--model: expected the configuration of a model, got {model}: {error}") from None
    return {family: split for split, families in named.items() for family in families}


def _families(
    nests: Lines, measured: Mapping[str, Lines], best: Mapping[str, float], splits: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    grouped: dict[str, list[str]] = {}
    for nest in nests:
        grouped.setdefault(nest["family"], []).append(nest["digest"])
    return {
        family: {
            "split": splits.get(family, "training"),
            "nests": len(digests),
            "measurements": sum(len(measured[d]) for d in digests),
            "failed": sum(m["status"] != "ok" for d in digests for m in measured[d]),
            "best_speedup": _geometric_mean([best[d] for d in digests]),
        }
        for family, digests in grouped.items()
    }


def _passes(done: Lines) -> dict[str, int]:
    """Kernels that each pass has finished with the settings it last had."""
    finished: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for line in done:
        work, _, rest = line["key"].partition(" ")
        if rest.startswith("["):  # the entry of the configuration, then a digest of settings
            last[work] = f"{work} {rest.rpartition(']')[2]}"
            finished.setdefault(last[work], set()).add(rest)
    return {work: len(finished[settings]) for work, settings in last.items()}


def _searches(done: Lines, digests: Collection[str]) -> dict[str, Any] | None:
    """Budgets of the searches, what ended them, and what they took; None where it was not recorded."""
    last = {line["key"]: line for line in done if line["key"].startswith("nest ")}
    lines = [line for key, line in last.items() if key.partition(" ")[2] in digests]
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


MIB = 1 << 20


def _traits(nests: Lines) -> dict[str, int]:
    """In how many nests something occurs, from their graphs."""
    found: Counter[str] = Counter()
    for nest in nests:
        nodes = [(node["kind"], node.get("features", {})) for node in nest["graph"]["nodes"]]
        loops = [f for kind, f in nodes if kind == "loop"]
        values = nest["graph"].get("values", {})
        size = values.get("distinct_bytes", 0)
        occurs = {f"computes in {f['dtype']}" for kind, f in nodes if kind == "compute" and "dtype" in f}
        occurs |= {f"a {f['loop_kind']} loop" for f in loops if f.get("loop_kind") not in (None, "spatial")}
        limits = {MIB: "up to 1 MiB of data", 32 * MIB: "1 to 32 MiB of data"}
        occurs.add(
            next((text for limit, text in limits.items() if size <= limit), "more than 32 MiB of data")
        )
        if any(f.get("extent_varies") and f.get("loop_kind") != "data-dependent" for f in loops):
            occurs.add("a triangular loop")
        if any(f.get("indirect") for _, f in nodes):
            occurs.add("an indirect access")
        if values.get("statements", 1) > 1:
            occurs.add("several statements")
        found.update(occurs)
    return dict(sorted(found.items()))


def _distribution(best: Iterable[float]) -> dict[str, float]:
    values = sorted(best)
    at_least = {f"at_least_{x:g}": sum(v >= x for v in values) for x in (1.05, 1.5, 2.0, 5.0, 10.0)}
    quantiles = {f"p{q}": _quantile(values, q / 100) for q in (10, 25, 50, 75, 90)}
    return {
        "minimum": values[0], **quantiles, "maximum": values[-1],
        "geometric_mean": _geometric_mean(values), "none_found": sum(v == 1.0 for v in values), **at_least,
    }  # fmt: skip


def _noise(ok: Lines) -> dict[str, Any]:
    """Half-widths of the 95% intervals over the medians, and how far the medians of one and the same
    code, the baseline of a nest, lie apart from candidate to candidate."""
    full = [m for m in ok if m["samples"] >= Limits().min_samples]
    again: dict[str, set[float]] = {}  # sets: schedules with equal code repeat one measurement
    for m in full:
        again.setdefault(m["digest"], set()).add(float(m["baseline_s"]))
    repeated = [sorted(times) for times in again.values() if len(times) >= 5]
    spreads = [(_quantile(t, 0.9) - _quantile(t, 0.1)) / statistics.median(t) for t in repeated]
    baselines = [_half_width(m["baseline_interval_s"], m["baseline_s"]) for m in full]
    return {
        "given_up": len(ok) - len(full),
        "samples": _percentiles([float(m["samples"]) for m in full]),
        "half_width": _percentiles([_half_width(m["interval_s"], m["runtime_s"]) for m in full]),
        "baseline_half_width": _percentiles(baselines),
        "repeated_baselines": len(repeated),
        "baseline_spread": _percentiles(spreads),
    }


def _half_width(interval: Sequence[float], median: float) -> float:
    return (interval[1] - interval[0]) / 2 / median


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    return {"p50": _quantile(ordered, 0.5), "p95": _quantile(ordered, 0.95), "maximum": ordered[-1]}


def _quantile(ordered: Sequence[float], share: float) -> float:
    """With linear interpolation, as NumPy's default."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0
