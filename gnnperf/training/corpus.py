"""Reading a corpus: measured (nest, schedule) pairs, as `gnnperf collect` writes them.

A corpus is a folder with `nests.jsonl` and `measurements.jsonl`, each plain (append-only, while it
is collected), compressed (`.jsonl.zst`, as it is committed), or both, the compressed part first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.corpus.lines import read_corpus_lines
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.measure.measurement import STATUSES, Status

if TYPE_CHECKING:
    from gnnperf.training.efficiency import EfficiencyTable


@dataclass(frozen=True)
class CorpusNest:
    """One nest: what is embedded (its graph, with the dynamic profile if one was taken), and where it
    comes from. `baseline_s` is in seconds, `symbols` are the sizes that the kernel was specialised to."""

    digest: str
    kernel: str
    family: str
    frontend: str
    graph: ProgramGraph
    baseline: str
    baseline_s: float
    symbols: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CorpusMeasurement:
    """One schedule on one nest, with the baseline that was timed interleaved with it.

    Intervals are the 95% intervals of the medians, in seconds. Runtimes and intervals, also of the
    baseline, are None unless `status` is "ok": a schedule that failed may not have been timed.
    """

    digest: str
    schedule_id: str
    schedule: Mapping[str, Any]
    status: Status
    runtime_s: float | None
    interval_s: tuple[float, float] | None
    baseline_s: float | None
    baseline_interval_s: tuple[float, float] | None
    origin: str


@dataclass(frozen=True)
class Corpus:
    """Nests and their measurements on one device.

    Attributes:
        nests: in order of first appearance; digests are unique.
        measurements: digest -> schedule id -> measurement (the last one, where it was repeated).
        device: fingerprint of the device everything was measured on.
        digest: hash of everything above: which corpus a model was trained on.
    """

    nests: tuple[CorpusNest, ...]
    measurements: Mapping[str, Mapping[str, CorpusMeasurement]]
    device: str
    digest: str

    @property
    def families(self) -> list[str]:
        return sorted({nest.family for nest in self.nests})

    @property
    def measurement_count(self) -> int:
        return sum(len(of_nest) for of_nest in self.measurements.values())

    @cached_property
    def regret(self) -> NDArray[np.float32]:
        """f32[n, n], see `gnnperf.training.regret.regret_matrix`."""
        from gnnperf.training.regret import regret_matrix

        return regret_matrix([self.measurements[nest.digest] for nest in self.nests])

    @cached_property
    def efficiency(self) -> EfficiencyTable:
        """Of every recipe on every nest."""
        from gnnperf.training.efficiency import efficiency_table

        return efficiency_table([self.measurements[nest.digest] for nest in self.nests])


def load_corpus(path: Path | str, device: str | None = None) -> Corpus:
    """Read a corpus folder.

    A last line torn by an interrupted collection is ignored. Nests without measurements, and
    measurements whose nest is missing, are left out.

    Args:
        path: the folder.
        device: fingerprint of the device to read; needed only where the corpus holds several.

    Raises:
        InputError: no such corpus, a damaged line, or several devices and none chosen.
    """
    folder = Path(path)
    lines = list(_read(folder, "measurements"))
    device = _choose_device(folder, {raw["device"] for _, raw in lines}, device)
    digest = hashlib.sha256()
    measurements: dict[str, dict[str, CorpusMeasurement]] = {}
    for where, raw in lines:
        if raw["device"] == device:
            of_nest = measurements.setdefault(raw["digest"], {})
            of_nest[raw["schedule_id"]] = _measurement(where, raw)
            digest.update(json.dumps(raw, sort_keys=True).encode())
    nests: dict[str, CorpusNest] = {}
    for where, raw in _read(folder, "nests"):
        if raw["digest"] in measurements and raw["device"]["fingerprint"] == device:
            nests.setdefault(raw["digest"], _nest(where, raw))
            digest.update(json.dumps(raw, sort_keys=True).encode())
    if not nests:
        raise InputError(f"{folder} holds no measured nest; collect a corpus with `gnnperf collect`")
    return Corpus(tuple(nests.values()), {d: measurements[d] for d in nests}, device, digest.hexdigest()[:16])


def _choose_device(folder: Path, found: set[str], device: str | None) -> str:
    if device is None and len(found) == 1:
        return next(iter(found))
    if device not in found:
        raise InputError(
            f"{folder} was measured on {', '.join(sorted(found)) or 'no device'}, "
            f"got device {device}; choose one of them (`data.device`)"
        )
    return device


# --------------------------------------------------------------------------- lines

NEST_KEYS = ("digest", "kernel", "family", "frontend", "graph", "baseline", "baseline_s", "device")
MEASUREMENT_KEYS = (
    "digest",
    "schedule",
    "schedule_id",
    "status",
    "baseline_s",
    "baseline_interval_s",
    "device",
)


def _read(folder: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) for each line of `name`."""
    keys = NEST_KEYS if name == "nests" else MEASUREMENT_KEYS
    return read_corpus_lines(folder, name, keys, "a corpus folder", "`gnnperf collect`")


def _nest(where: str, raw: Mapping[str, Any]) -> CorpusNest:
    try:
        graph = ProgramGraph.from_dict(raw["graph"])
        return CorpusNest(
            digest=raw["digest"],
            kernel=raw["kernel"],
            family=raw["family"],
            frontend=raw["frontend"],
            graph=replace(graph, profile=raw.get("profile") or graph.profile),
            baseline=raw["baseline"],
            baseline_s=float(raw["baseline_s"]),
            symbols=dict(raw.get("symbols") or {}),
        )
    except (InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not a nest of this version ({error}); collect it again") from error


def _measurement(where: str, raw: Mapping[str, Any]) -> CorpusMeasurement:
    if raw["status"] not in STATUSES:
        known = ", ".join(sorted(STATUSES))
        raise InputError(f"{where}: expected a status among {known}, got {raw['status']!r}; collect it again")
    ok = raw["status"] == "ok"
    try:
        return CorpusMeasurement(
            digest=raw["digest"],
            schedule_id=raw["schedule_id"],
            schedule=raw["schedule"],
            status=raw["status"],
            runtime_s=float(raw["runtime_s"]) if ok else None,
            interval_s=_pair(raw["interval_s"]) if ok else None,
            baseline_s=float(raw["baseline_s"]) if ok else None,
            baseline_interval_s=_pair(raw["baseline_interval_s"]) if ok else None,
            origin=raw.get("origin", ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not a measurement of this version ({error}); collect it again") from error


def _pair(raw: Any) -> tuple[float, float]:
    low, high = raw
    return float(low), float(high)
