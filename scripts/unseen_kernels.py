"""`gnnperf retrieve` on kernels that the corpus does not hold: none may be slower, none wrong.

python scripts/unseen_kernels.py              (about ten minutes; nothing else may run on the machine)
python scripts/unseen_kernels.py --kernel sddmm --kernel mttkrp -k 5

Every kernel of tests/e2e/kernels/unseen.py runs in a process of its own, with the released store and an
empty store of the user's, so that no kernel learns from another. Beside what `retrieve` verifies itself
(against the unoptimised DaCe program), the library that `--output` writes is called on the same inputs and
compared with the kernel's NumPy reference (`numpy`: ok). A kernel counts as slower where the whole interval
of its speedup lies below 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import math
import multiprocessing
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from _job import REPO, job_parser, machine, retrieve, run_job, say

from gnnperf.cli.output import Report
from gnnperf.errors import InputError

KERNELS = REPO / "tests" / "e2e" / "kernels" / "unseen.py"


@dataclass(frozen=True)
class Row:
    """What became of one kernel. decision: tuned, kept (candidates were measured, none won), abstained
    (none was measured), or failed. numpy: "ok", what differs, or "" where it was not compared."""

    kernel: str
    kind: str
    nests: int
    tuned_nests: int
    baseline: str
    baseline_s: float | None
    tuned_s: float | None
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    verified: bool
    numpy: str
    decision: str
    reason: str
    candidates_measured: int
    wall_s: float

    @property
    def wrong(self) -> bool:
        return not self.verified or self.numpy not in ("ok", "")

    @property
    def slower(self) -> bool:
        return self.speedup_interval is not None and self.speedup_interval[1] < 1.0

    @property
    def silent(self) -> bool:
        """Not tuned, and nobody says why."""
        return self.decision != "tuned" and not self.reason


def unseen(name: str, kind: str, symbols: Mapping[str, int], inputs: str | None, k: int, options: Any) -> Row:
    """Retrieve for one kernel."""
    with tempfile.TemporaryDirectory(prefix="gnnperf-unseen-") as folder:
        words = ["--checkpoint", str(options.checkpoint)]
        words += [] if options.no_numpy else ["--output", folder]
        made_by = f"{KERNELS}:{inputs}" if inputs else None
        answer = retrieve(f"{KERNELS}:{name}", symbols, made_by, k, words)
        if answer.document is None:
            nothing = (0, 0, "", None, None, None, None, False, "")
            return Row(name, kind, *nothing, "failed", answer.error, 0, answer.wall_s)
        numpy = "" if options.no_numpy else _in_a_process(name, symbols, made_by, folder)
    found = answer.document
    interval = found["speedup_interval"]
    return Row(
        kernel=name,
        kind=kind,
        nests=len(found["nests"]),
        tuned_nests=sum(nest["accepted"] is not None for nest in found["nests"]),
        baseline=found["baseline"]["name"],
        baseline_s=found["baseline"]["runtime_s"],
        tuned_s=found["tuned"]["runtime_s"],
        speedup=found["speedup"],
        speedup_interval=None if interval is None else (interval[0], interval[1]),
        verified=found["verified"],
        numpy=numpy,
        decision=_decision(found),
        reason=_reason(found),
        candidates_measured=found["candidates_measured"],
        wall_s=answer.wall_s,
    )


def _decision(found: Mapping[str, Any]) -> str:
    if not found["kept_baseline"]:
        return "tuned"
    return "kept" if found["candidates_measured"] else "abstained"


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
    from gnnperf.backends.cpp.cases import reduction_length
    from gnnperf.frontends.dace import load_kernel
    from gnnperf.measure import verify

    kernel = load_kernel(f"{KERNELS}:{name}", symbols, inputs)
    expected, got = deepcopy(kernel.data), kernel.data
    _module(Path(folder) / "run.py").call(**got)
    reference = getattr(_module(KERNELS), f"reference_{name}")
    reference(**{n: ({**symbols, **expected})[n] for n in inspect.signature(reference).parameters})
    outputs = kernel.outputs
    return verify({n: expected[n] for n in outputs}, {n: got[n] for n in outputs}, reduction_length(kernel))


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --------------------------------------------------------------------------- all of them


def measure(options: argparse.Namespace) -> tuple[Report, bool]:
    table = _module(KERNELS).UNSEEN
    names = [name for name, *_ in table]
    if unknown := sorted(set(options.kernel or names) - {*names}):
        raise InputError(f"--kernel: expected one of {', '.join(names)}, got {unknown[0]}")
    rows = []
    for name, kind, symbols, inputs in table:
        if not options.kernel or name in options.kernel:
            rows.append(unseen(name, kind, symbols, inputs, options.candidates, options))
            say(f"{name}: {rows[-1].decision}, {_speedup(rows[-1])}, {rows[-1].wall_s:.0f} s")
    figures = summary(rows)
    document = {
        "benchmark": "unseen_kernels",
        "figures": figures,
        "rows": [asdict(row) for row in rows],
        "settings": {**machine(), "k": options.candidates, "checkpoint": options.checkpoint},
    }
    good = not any(row.wrong or row.slower or row.silent for row in rows)
    return Report(document, _view(rows, figures)), good


def summary(rows: list[Row]) -> dict[str, float]:
    speedups = [row.speedup for row in rows if row.speedup is not None]
    logs = [math.log(speedup) for speedup in speedups]
    return {
        "kernels": len(rows),
        "kinds": len({row.kind for row in rows}),
        "speedup, geometric mean": math.exp(sum(logs) / len(logs)) if logs else math.nan,
        "speedup, minimum": min(speedups, default=math.nan),
        "verified": sum(row.verified for row in rows),
        "equal to NumPy": sum(row.numpy == "ok" for row in rows),
        "wrong or failed": sum(row.wrong for row in rows),
        "slower than the baseline": sum(row.slower for row in rows),
        "tuned": sum(row.decision == "tuned" for row in rows),
        "kept or abstained, with a reason": sum(row.decision in ("kept", "abstained") for row in rows)
        - sum(row.silent for row in rows),
    }


def _view(rows: list[Row], figures: Mapping[str, float]) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for column in ("kernel", "kind", "nests", "baseline", "tuned", "speedup", "verified", "decision", "wall"):
        table.add_column(column, no_wrap=column != "kind", overflow="fold")
    for row in rows:
        nests, baseline = f"{row.tuned_nests} of {row.nests}", f"{row.baseline} {_ms(row.baseline_s)}"
        right, wall = "NO" if row.wrong else "yes", f"{row.wall_s:.0f} s"
        table.add_row(
            row.kernel, row.kind, nests, baseline, _ms(row.tuned_s), _speedup(row), right, row.decision, wall
        )
    lines = [f"{row.kernel}: {row.reason}" for row in rows if row.reason]
    lines += [f"{row.kernel}: NumPy: {row.numpy}" for row in rows if row.numpy not in ("ok", "")]
    lines += [f"{name}: {value:.4g}" for name, value in figures.items()]
    return Group(table, *map(Text, ["", *lines]))


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f} ms"


def _speedup(row: Row) -> str:
    if row.speedup is None:
        return "no speedup"
    low_high = row.speedup_interval
    return f"{row.speedup:.2f}x" + (f" [{low_high[0]:.2f}, {low_high[1]:.2f}]" if low_high else "")


def main() -> int:
    parser = job_parser(__doc__, "a kernel is wrong, failed, is slower, or is left untuned without a reason")
    parser.add_argument("--kernel", action="append", metavar="NAME", help="this kernel; may be repeated")
    parser.add_argument("--no-numpy", action="store_true", help="do not compare with the NumPy references")
    return run_job(measure, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
