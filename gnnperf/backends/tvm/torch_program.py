"""A program saved by `torch.export.save`, as PyTorch runs it, on the inputs that it was exported with.

Loaded by path in a process of its own (`gnnperf.measure.competitor_process`). There is nothing to verify:
what it computes is what right means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_calls: dict[str, Callable[[], Any]] = {}


def run(path: str) -> None:
    """One run, eagerly."""
    _run(path, lambda module: module)


def run_compiled(path: str) -> None:
    """One run of what torch.compile makes of it."""
    _run(path, torch.compile)


def _run(path: str, prepared: Callable[[Any], Any]) -> None:
    if path not in _calls:
        program = torch.export.load(path)
        if program.example_inputs is None:
            raise ValueError("the program was saved without example inputs")
        positional, named = program.example_inputs
        module = prepared(program.module())
        _calls[path] = lambda: module(*positional, **named)
    _calls[path]()
