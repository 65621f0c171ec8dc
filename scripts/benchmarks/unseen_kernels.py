"""`gnnperf retrieve` on kernels that the corpus does not hold: none may be slower, none wrong."""

from __future__ import annotations

import importlib.util
import inspect
import math
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType
from typing import Any

import click

from benchmarks.machine import setup
from benchmarks.options import REPO, kernels_option
from benchmarks.retrieving import retrieve
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import InputError

KERNELS = REPO / "tests" / "e2e" / "kernels" / "unseen.py"
"""Its `UNSEEN` lists name, kind, sizes and the function that makes the inputs."""


@click.command("unseen-kernels", cls=Verb, page=True)
@kernels_option
@click.option(
    "-k", default=3, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@click.option("--numpy/--no-numpy", default=True, help="Compare with the NumPy references.  [default: do]")
@nests_checkpoint_option
@output_option
def unseen_kernels(
    kernels: tuple[str, ...], k: int, numpy: bool, checkpoint: Path, output: Path | None
) -> Report:
    """`gnnperf retrieve` on kernels that the corpus does not hold: none may be slower, none wrong.

    Every kernel of tests/e2e/kernels/unseen.py runs in a process of its own, with the released store and an
    empty store of the user's, so that no kernel learns from another; about ten minutes. Beside what
    `retrieve` verifies itself (against the unoptimised DaCe program), the library that `--output` writes is
    called on the same inputs and compared with the kernel's NumPy reference. A kernel counts as slower where
    the whole interval of its speedup lies below 1. Exit code 1: one is wrong, failed, is slower, or is left
    untuned without a reason.
    """
    table = {row[0]: row[1:] for row in _module(KERNELS).UNSEEN}
    if unknown := [name for name in kernels if name not in table]:
        raise InputError(f"--kernels: expected some of {', '.join(table)}, got {unknown[0]!r}")
    chosen = {name: found for name, found in table.items() if not kernels or name in kernels}
    return UnseenStudy(chosen, checkpoint, k, numpy).run(output)


@dataclass(frozen=True)
class UnseenStudy(Study):
    """kernels: kind, sizes and inputs function by name. numpy: compare with the references.

    Of a row, decision is "tuned", "kept" (candidates were measured, none won), "abstained" (none was
    measured), or "failed"; numpy is "ok", what differs, or "" where it was not compared.
    """

    name = "unseen-kernels"

    kernels: Mapping[str, tuple[str, Mapping[str, int], str | None]]
    checkpoint: Path
    k: int
    numpy: bool

    def settings(self) -> Mapping[str, Any]:
        return {**setup(), "k": self.k, "checkpoint": self.checkpoint}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {name: partial(self.row, name) for name in self.kernels}

    def row(self, name: str, say: Say) -> Row:
        """Retrieve for one kernel."""
        kind, symbols, inputs = self.kernels[name]
        made_by = f"{KERNELS}:{inputs}" if inputs else None
        numpy = ""
        with tempfile.TemporaryDirectory(prefix="gnnperf-unseen-") as folder:
            words = ["--checkpoint", str(self.checkpoint), *(["--output", folder] if self.numpy else [])]
            answer = retrieve(f"{KERNELS}:{name}", symbols, made_by, self.k, words)
            if answer.document is not None and self.numpy:
                say("comparing with NumPy")
                numpy = _in_a_process(name, symbols, made_by, folder)
        row: dict[str, Any] = {"kernel": name, "kind": kind, **_told(answer.document), "numpy": numpy}
        if answer.document is None:
            row |= {"decision": "failed", "reason": answer.error}
        row["wall_s"] = answer.wall_s
        return {**row, "failures": [f"{name}: {fault}" for fault in faults(row)]}

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        speedups = [row["speedup"] for row in table if row["speedup"] is not None]
        untuned = [row for row in table if row["decision"] in ("kept", "abstained")]
        return {
            "kernels": len(table),
            "kinds": len({row["kind"] for row in table}),
            "speedup, geometric mean": geometric_mean(speedups) if speedups else math.nan,
            "speedup, minimum": min(speedups, default=math.nan),
            "verified": sum(row["verified"] for row in table),
            "equal to NumPy": sum(row["numpy"] == "ok" for row in table),
            "wrong or failed": sum(_wrong(row) for row in table),
            "slower than the baseline": sum(_slower(row) for row in table),
            "tuned": sum(row["decision"] == "tuned" for row in table),
            "kept or abstained, with a reason": sum(bool(row["reason"]) for row in untuned),
        }

    @staticmethod
    def shown(row: Row) -> Row:
        return {
            "kernel": row["kernel"],
            "kind": row["kind"],
            "nests": f"{row['tuned_nests']} of {row['nests']}",
            "baseline": f"{row['baseline']} {_ms(row['baseline_s'])}",
            "tuned": _ms(row["tuned_s"]),
            "speedup": _speedup(row),
            "verified": "NO" if _wrong(row) else "yes",
            "decision": row["decision"],
            "wall": f"{row['wall_s']:.0f} s",
        }

    @staticmethod
    def notes(table: Rows) -> list[str]:
        lines = [f"{row['kernel']}: {row['reason']}" for row in table if row["reason"]]
        return lines + [f"{row['kernel']}: NumPy: {row['numpy']}" for row in table if _unequal(row)]


def _told(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """What retrieval says of a kernel; the same fields without values where it says nothing."""
    if found is None:
        return {
            "nests": 0, "tuned_nests": 0, "baseline": "", "baseline_s": None, "tuned_s": None,
            "speedup": None, "speedup_interval": None, "verified": False, "decision": "", "reason": "",
            "candidates_measured": 0,
        }  # fmt: skip
    kept = "kept" if found["candidates_measured"] else "abstained"
    return {
        "nests": len(found["nests"]),
        "tuned_nests": sum(nest["accepted"] is not None for nest in found["nests"]),
        "baseline": found["baseline"]["name"],
        "baseline_s": found["baseline"]["runtime_s"],
        "tuned_s": found["tuned"]["runtime_s"],
        "speedup": found["speedup"],
        "speedup_interval": found["speedup_interval"],
        "verified": found["verified"],
        "decision": kept if found["kept_baseline"] else "tuned",
        "reason": _reason(found),
        "candidates_measured": found["candidates_measured"],
    }


def faults(row: Row) -> list[str]:
    """What must not be."""
    said = []
    if _wrong(row):
        said.append(row["numpy"] if _unequal(row) else row["reason"] or "it was not verified")
    if _slower(row):
        said.append(f"slower than the baseline: {_speedup(row)}")
    if row["decision"] != "tuned" and not row["reason"]:
        said.append("left untuned without a reason")
    return said


def _wrong(row: Row) -> bool:
    return not row["verified"] or _unequal(row)


def _unequal(row: Row) -> bool:
    return row["numpy"] not in ("ok", "")


def _slower(row: Row) -> bool:
    interval = row["speedup_interval"]
    return interval is not None and interval[1] < 1.0


def _reason(found: Mapping[str, Any]) -> str:
    """Why nests were left as they are, each reason once; what the whole says comes first."""
    said = [found["note"], found["baseline"]["note"]]
    said += [nest["reason"] for nest in found["nests"] if nest["accepted"] is None]
    said += [f"{part['part']}: {part['reason']}" for part in found["skipped"]]
    return "; ".join(dict.fromkeys(text for text in said if text))


# --------------------------------------------------------------------------- against NumPy


def _in_a_process(name: str, symbols: Mapping[str, int], inputs: str | None, folder: str) -> str:
    """`against_numpy`, where a crash of the library costs one kernel."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(against_numpy, name, dict(symbols), inputs, folder).result() or "ok"
        except BrokenProcessPool:
            return "the library that --output wrote crashes"


def against_numpy(name: str, symbols: dict[str, int], inputs: str | None, folder: str) -> str | None:
    """Call the library that `--output` wrote; one line on what differs from the kernel's reference."""
    from gnnperf.frontends.dace import load_kernel
    from gnnperf.measure import verify

    kernel = load_kernel(f"{KERNELS}:{name}", symbols, inputs)
    expected, got = deepcopy(kernel.data), kernel.data
    _module(Path(folder) / "run.py").call(**got)
    reference = getattr(_module(KERNELS), f"reference_{name}")
    reference(**{n: ({**symbols, **expected})[n] for n in inspect.signature(reference).parameters})
    outputs = kernel.outputs
    return verify({n: expected[n] for n in outputs}, {n: got[n] for n in outputs}, kernel.reduction_length)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f} ms"


def _speedup(row: Row) -> str:
    if row["speedup"] is None:
        return "no speedup"
    ends = row["speedup_interval"]
    return f"{row['speedup']:.2f}x" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")
