"""What the reproducible jobs share: how they report, and how they run `gnnperf retrieve`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gnnperf.cli.output import Report, stdout_to_stderr, write
from gnnperf.devices import describe_host
from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped_bundle

REPO = Path(__file__).parents[1]
GNNPERF = (sys.executable, "-m", "gnnperf")
"""The command line tool of the environment that runs the job."""


def job_parser(description: str | None, failure: str) -> argparse.ArgumentParser:
    """The options of every job that runs `gnnperf retrieve`. failure: what exit code 1 means."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Exit code 1: {failure}.",
    )  # fmt: skip
    parser.add_argument("-k", "--candidates", type=int, default=3, help="measured per nest (default 3)")
    parser.add_argument("--checkpoint", type=Path, default=shipped_bundle(), metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def run_job(work: Callable[[argparse.Namespace], tuple[Report, bool]], arguments: argparse.Namespace) -> int:
    """Do the work, print its report, return the exit code: 1 where the work found something wrong."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    try:
        with stdout_to_stderr():
            report, good = work(arguments)
    except GnnperfError as error:
        say(f"{Path(sys.argv[0]).name}: {error}")
        return error.exit_code
    write(report, as_json=arguments.json)
    return 0 if good else 1


def say(text: str) -> None:
    """Progress, on standard error."""
    click.echo(text, err=True)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    host = describe_host()
    return {"device": host.fingerprint, "name": host.name, "cores": host.cores, "threads": host.threads}


@dataclass(frozen=True)
class Retrieved:
    """One run of `gnnperf retrieve`. document: its JSON, or None with `error`, the last line it said.
    wall_s: of the whole process, from nothing to the report."""

    document: Mapping[str, Any] | None
    error: str
    wall_s: float


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
    return Retrieved(json.loads(done.stdout), "", wall_s)
