"""What a store believes: everything in it may have been written by anybody.

A check returns why something is not believed, in a few words, or an empty text. The cheap ones are made
whenever a store hands something out, as a store is a folder, and its files may be changed by whoever may
write there. All of them are made when something is imported or merged, and by `Store.check`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gnnperf.errors import InputError, first_line
from gnnperf.graph import ProgramGraph
from gnnperf.graph.canonical import digest
from gnnperf.schedules.reading import schedule_problem
from gnnperf.store.schema import FIGURES, LONGEST_GRAPH, Nest, Record, name_problem

NODES, EDGES, LARGEST_NUMBER, LABEL = 2_000, 10_000, 1e30, 500
"""Of a graph: its nodes and edges, its largest number, characters of a label. Many times what a nest has."""
EFFORT = 50_000
"""Visits to name a graph. Those of nests take a few hundred."""
SECONDS, SPEEDUPS = (1e-9, 1e6), (1e-6, 1e6)
"""What can be believed of runtimes and of speedups."""
MATCHING, UNIT = 0.01, 1e-3
"""How far a speedup may be from its runtimes, relative, and the norm of an embedding from 1."""

_FINGERPRINT = re.compile(r"[a-z]{1,16}(/[A-Za-z0-9_.+-]{1,40}){1,3}")
_NAMES = ("kernel", "family", "frontend", "device_name", "baseline", "nest_digest")


def record_problem(record: Record) -> str:
    """Cheap: names, figures that belong together, and a schedule that may be used."""
    for name in _NAMES:
        if problem := name_problem(getattr(record, name)):
            return f"{name}: {problem}"
    return (
        _device_problem(record.device_fingerprint)
        or figures_problem(record)
        or schedule_problem(record.schedule_kind, record.schedule)
    )


def nest_problem(nest: Nest) -> str:
    """Cheap: names."""
    for name in Nest.__slots__:
        if problem := name_problem(getattr(nest, name)):
            return f"{name}: {problem}"
    return ""


def figures_problem(record: Record) -> str:
    """Figures in an order that can be, of a size that can be believed, and a speedup that is theirs."""
    if record.status != "ok":
        return ""
    figures = [getattr(record, name) for name in FIGURES]
    if any(figure is None or not math.isfinite(figure) for figure in figures):
        return "expected finite figures with status ok"
    baseline_s, runtime_s, low_s, high_s, speedup = figures
    if not all(SECONDS[0] <= s <= SECONDS[1] for s in (baseline_s, runtime_s, low_s, high_s)):
        return f"expected runtimes from {SECONDS[0]:g} s to {SECONDS[1]:g} s"
    if not low_s <= runtime_s <= high_s:
        return f"expected a runtime in its interval, got {runtime_s:g} s outside of {low_s:g} to {high_s:g} s"
    if not SPEEDUPS[0] <= speedup <= SPEEDUPS[1]:
        return f"expected a speedup from {SPEEDUPS[0]:g} to {SPEEDUPS[1]:g}, got {speedup:g}"
    if not math.isclose(speedup, baseline_s / runtime_s, rel_tol=MATCHING):
        return f"expected the speedup {baseline_s / runtime_s:.4g} of its runtimes, got {speedup:.4g}"
    return ""


def embedding_problem(vector: NDArray[np.float32], width: int) -> str:
    """The width of the encoder, and norm 1."""
    if vector.shape != (width,):
        return f"expected an embedding of {width} numbers, as of this encoder, got {vector.size}"
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    return "" if abs(norm - 1) <= UNIT else f"expected an embedding of norm 1, got {norm:.4g}"


def graph_problem(text: str, _digest: str) -> str:
    """Cheaper than `digest_problem`: a program graph of a believable size."""
    try:
        _read_graph(text)
    except InputError as error:
        return first_line(error)
    return ""


def digest_problem(text: str, claimed: str) -> str:
    """A program graph of a believable size, and the digest is its own."""
    try:
        graph = _read_graph(text)
        found = digest(graph, EFFORT)
    except InputError as error:
        return first_line(error)
    except RecursionError:
        return "expected the graph of a program, got one too deep to be named"
    return "" if found == claimed else f"expected the digest {found} of its graph, got {ascii(claimed)[:60]}"


def _read_graph(text: str) -> ProgramGraph:
    """Raises InputError."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise InputError("expected the JSON of a program graph, got half of a character") from None
    if size_bytes > LONGEST_GRAPH:
        raise InputError(f"expected a graph of at most {LONGEST_GRAPH} bytes, got {size_bytes}")
    graph = ProgramGraph.from_json(text)
    if len(graph.nodes) > NODES or len(graph.edges) > EDGES:
        raise InputError(
            f"expected a graph of at most {NODES} nodes and {EDGES} edges, "
            f"got {len(graph.nodes)} and {len(graph.edges)}"
        )
    for node in graph.nodes:
        if not isinstance(node.label, str) or len(node.label) > LABEL or not node.label.isprintable():
            raise InputError(f"expected a label of at most {LABEL} printed characters")
        _check_numbers(node.features.values())
    for edge in graph.edges:
        _check_numbers(edge.features.values())
    _check_numbers(graph.values.values())
    profile = graph.profile
    if profile is not None:
        if not isinstance(profile, dict) or any(name_problem(name) for name in profile):
            raise InputError("expected a profile of counts by name")
        _check_numbers(profile.values(), only=True)
    return graph


def _check_numbers(values: Collection[object], only: bool = False) -> None:
    """Raises InputError where a number cannot be one of a program. only: nothing else may be there, but None
    for what was not counted."""
    for value in values:
        if isinstance(value, int | float):
            if not abs(value) <= LARGEST_NUMBER:
                raise InputError(f"expected numbers up to {LARGEST_NUMBER:g} in a graph")
        elif isinstance(value, dict) and not only:
            _check_numbers(value.values())
        elif only and value is not None:
            raise InputError(f"expected numbers, got {ascii(value)[:60]}")


@lru_cache(256)
def _device_problem(fingerprint: str) -> str:
    if _FINGERPRINT.fullmatch(fingerprint):
        return ""
    return f"device_fingerprint: expected one such as cpu/x86_64/avx512, got {ascii(fingerprint)[:60]}"
