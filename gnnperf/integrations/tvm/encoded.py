"""Encoded graphs of many scheduled modules at once, on all processors that there are."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from multiprocessing import current_process
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.graph import EncodedGraph, encode
from gnnperf.measure.confine import available_threads
from gnnperf.tuning.workers import Send, each

Graphs = dict[int, EncodedGraph | None]
"""By a module's key; None for one that has no graph."""

SHARE = 32
"""Modules for each process, at least, so that a fork costs little beside what it does."""


def encoded_graphs(modules: Mapping[int, Any]) -> Graphs:
    """Graphs of scheduled IRModules, by their keys and in their order.

    Where there are many, forks of this process take a share each. They only walk the modules and fill arrays,
    for the threads of TVM and torch do not live on in a fork. What one leaves undone when something kills it,
    this process does.
    """
    found: Graphs = {}
    processes = min(available_threads(), len(modules) // SHARE)
    if processes > 1 and not current_process().daemon:  # whose processes may have none
        keys = list(modules)
        shares = [{key: modules[key] for key in keys[n::processes]} for n in range(processes)]
        for _ in each(shares, _send, found.update, processes):
            pass
    found |= _graphs({key: module for key, module in modules.items() if key not in found})
    return {key: found[key] for key in modules}


def _send(modules: Mapping[int, Any], send: Send) -> None:
    gc.disable()  # a collection would write to, and so copy, all that this process shares with its parent
    send(_graphs(modules))


def _graphs(modules: Mapping[int, Any]) -> Graphs:
    return {key: _graph(module) for key, module in modules.items()}


def _graph(module: Any) -> EncodedGraph | None:
    try:
        return encode(scheduled_graph(module))
    except UnsupportedConstruct:
        return None
