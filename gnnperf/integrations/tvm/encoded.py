"""Encoded graphs of many scheduled modules at once, on all processors that there are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.graph import EncodedGraph, encode
from gnnperf.measure.confine import available_threads
from gnnperf.measure.workers import spread

Graphs = dict[int, EncodedGraph | None]
"""By a module's key; None for one that has no graph."""

SHARE = 32
"""Modules for each process, at least, so that a fork costs little beside what it does."""


def encoded_graphs(modules: Mapping[int, Any]) -> Graphs:
    """Graphs of scheduled IRModules, by their keys and in their order. Where there are many, several
    processes describe them; what one leaves undone when something kills it, this one does."""
    jobs = [partial(_graph, module) for module in modules.values()]
    found = spread(jobs, min(available_threads(), len(jobs) // SHARE))
    return {key: found[n] if n in found else jobs[n]() for n, key in enumerate(modules)}


def _graph(module: Any) -> EncodedGraph | None:
    try:
        return encode(scheduled_graph(module))
    except UnsupportedConstruct:
        return None
