"""The page: its data, packed, in a template with its style sheet and scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from jaxtyping import Float64

from gnnperf.report.explore.gathering import MappedNest
from gnnperf.report.explore.plane import nearest_neighbours
from gnnperf.report.explore.recipes import NO_GAIN, OTHER, UNMEASURED, gains, group, in_words
from gnnperf.store import Record

NEIGHBOURS = 8
CHUNK = 64
"""Nests whose details are compressed together: more compress better, fewer are unpacked faster."""
EXTENT = 65_535
"""Of the plane, in whole numbers: finer than a screen at the largest magnification."""

SCRIPTS = (
    "data.js", "marks.js", "view.js", "picture.js", "map.js", "legend.js", "panel.js", "search.js",
    "controls.js", "main.js",
)  # fmt: skip
"""In the order in which they need one another; together they are one script."""


@dataclass(frozen=True, slots=True)
class Page:
    """html: self-contained, needs no network. The rest says what is on it."""

    html: str
    nests: int
    families: int
    measurements: int
    devices: tuple[str, ...]


def make_page(nests: Sequence[MappedNest], places: Float64[np.ndarray, "n 2"], encoder_id: str) -> Page:
    """The map of some nests, at least one, at their places on the plane (see `project`)."""
    data = _data(nests, places, encoder_id)
    html = _html(data, title=f"Map of {len(nests)} loop nests")
    families, devices = len(data["families"]), tuple(data["devices"])
    return Page(html, len(nests), families, data["measurements"], devices)


def _data(nests: Sequence[MappedNest], places: Float64[np.ndarray, "n 2"], encoder_id: str) -> dict[str, Any]:
    """What data.js reads: tables of texts, columns of numbers into them, and packed details."""
    best = [nest.best for nest in nests]
    groups = group(best)
    families = _Table(nest.nest.family for nest in nests)
    kernels = _Table(nest.nest.kernel for nest in nests)
    sizes = _Table(nest.picture.sizes for nest in nests)
    schedules = _Table("" if record is None else in_words(record) for record in best)
    x, y = _whole(places).T.tolist()
    return {
        "encoder": encoder_id,
        "dimensions": len(nests[0].embedding),
        "devices": sorted({_device(record) for record in best if record is not None}),
        "measurements": sum(nest.measurements for nest in nests),
        "families": families.texts,
        "kernels": kernels.texts,
        "sizes": sizes.texts,
        "schedules": schedules.texts,
        "groups": groups.names,
        "recipe_groups": sum(name not in (OTHER, NO_GAIN, UNMEASURED) for name in groups.names),
        "columns": {
            "x": x,
            "y": y,
            "family": families.of,
            "kernel": kernels.of,
            "sizes": sizes.of,
            "group": groups.of,
            "schedule": schedules.of,
            "speedup": [None if r is None or r.speedup is None else _rounded(r.speedup) for r in best],
        },
        "chunk": CHUNK,
        "details": list(_packed(_details(nests))),
    }


class _Table:
    """texts: each once, sorted. of: for every item of the column, which of them it is."""

    def __init__(self, column: Iterable[str]) -> None:
        items = list(column)
        self.texts = sorted(set(items))
        number = {text: i for i, text in enumerate(self.texts)}
        self.of = [number[text] for text in items]


def _details(nests: Sequence[MappedNest]) -> Iterable[dict[str, Any]]:
    """What the page shows of a nest when it is asked for."""
    near, distances = nearest_neighbours(np.stack([nest.embedding for nest in nests]), NEIGHBOURS)
    for i, nest in enumerate(nests):
        pairs = zip(near[i].tolist(), np.round(distances[i], 6).tolist(), strict=True)
        yield {
            "digest": nest.nest.digest,
            "dtype": nest.picture.dtype,
            "work": nest.picture.work,
            "picture": nest.picture.rows,
            "measurements": nest.measurements,
            "best": None if nest.best is None else _measured(nest.best),
            "neighbours": list(pairs),
        }


def _measured(record: Record) -> dict[str, Any]:
    assert record.runtime_s is not None and record.baseline_s is not None
    assert record.interval_lo_s is not None and record.interval_hi_s is not None
    return {
        "runtime_s": _rounded(record.runtime_s),
        "interval_s": [_rounded(record.interval_lo_s), _rounded(record.interval_hi_s)],
        "baseline_s": _rounded(record.baseline_s),
        "baseline": record.baseline,
        "gains": gains(record),
        "device": _device(record),
    }


def _device(record: Record) -> str:
    return f"{record.device_name} ({record.device_fingerprint})"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _whole(places: Float64[np.ndarray, "n 2"]) -> np.ndarray:
    """Whole numbers from 0 to EXTENT, with the same unit along both axes."""
    lowest = places.min(axis=0)
    span = float((places.max(axis=0) - lowest).max()) or 1.0
    return np.round((places - lowest) / span * EXTENT).astype(np.int64)


def _packed(details: Iterable[dict[str, Any]]) -> Iterable[str]:
    """JSON lists of CHUNK nests, each compressed with zlib and written in base64."""
    everything = list(details)
    for start in range(0, len(everything), CHUNK):
        text = json.dumps(everything[start : start + CHUNK], separators=(",", ":"), ensure_ascii=False)
        yield base64.b64encode(zlib.compress(text.encode(), level=9)).decode()


def _html(data: dict[str, Any], title: str) -> str:
    assets = files(__package__) / "assets"

    def read(name: str) -> str:
        return (assets / name).read_text(encoding="utf-8")

    style = read("page.css")
    script = '(() => {\n"use strict";\n' + "\n".join(read(name) for name in SCRIPTS) + "})();\n"
    # Inside a script element only `<` can end it or open a comment; JSON can do without.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return Template(read("page.html")).substitute(
        title=title,
        style=style,
        script=script,
        data=text,
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
    )


def _csp_hash(source: str) -> str:
    """Source expression for the content security policy: only this very text may run, or style the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
