"""`gnnperf retrieve` as its users run it: a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GNNPERF = (sys.executable, "-m", "gnnperf")
"""The command line tool of the environment that runs the benchmark."""


@dataclass(frozen=True)
class Retrieved:
    """One run of `gnnperf retrieve`. document: its JSON, or None with `error`, the last line it said.
    wall_s: of the whole process, from nothing to the report. told: the lines it said beside it."""

    document: Mapping[str, Any] | None
    error: str
    wall_s: float
    told: Sequence[str] = ()


def retrieve(
    spec: str,
    symbols: Mapping[str, int],
    inputs: str | None,
    k: int,
    options: Sequence[str] = (),
    timeout_s: float = 900.0,
) -> Retrieved:
    """`gnnperf retrieve` in a process of its own; what it learns is forgotten: the user's store is empty."""
    with tempfile.TemporaryDirectory(prefix="gnnperf-store-") as store:
        command = [*GNNPERF, "retrieve", spec, "--json", "-k", str(k), "--store", f"{store}/store", *options]
        command += [word for name, value in symbols.items() for word in ("--set", f"{name}={value}")]
        command += ["--inputs", inputs] if inputs else []
        started = time.perf_counter()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return Retrieved(None, f"no answer in {timeout_s:g} s", time.perf_counter() - started)
        wall_s = time.perf_counter() - started
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return Retrieved(None, said[-1] if said else f"exit code {done.returncode}", wall_s)
    return Retrieved(json.loads(done.stdout), "", wall_s, done.stderr.splitlines())
