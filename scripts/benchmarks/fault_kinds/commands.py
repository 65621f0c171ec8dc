"""Whole processes that are killed or interrupted at some moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.fault_kinds import material
from benchmarks.fault_kinds.injecting import (
    Injector,
    Place,
    checked_line,
    expect,
    may_start_processes,
    partials,
)
from benchmarks.fault_kinds.writers import _sound, _template
from benchmarks.options import REPO
from gnnperf.store import Store

ADD = """
import sys
from benchmarks.fault_kinds.writers import new_records
from gnnperf.store import Store
store = Store.open(sys.argv[1])
while True:
    print(*(record.record_id for record in store.add_records(new_records(100))), flush=True)
"""
KERNEL = """
import dace

N = dace.symbol("N")

@dace.program
def scale(x: dace.float64[N], y: dace.float64[N]):
    y[:] = 2.0 * x + 1.0
"""


def commands(place: Place) -> Injector:
    """`store import`, `merge`, `prune`, `retrieve`, and programs that add records."""
    template = _template(place)
    (place.material / "kernel.py").write_text(KERNEL)

    def inject(chance: random.Random, work: Path) -> str:
        folder = material.copied(template, work / "place")
        acknowledged = material.held(Store.open(folder / "store"))
        store, out = str(folder / "store"), folder / "out"
        kernel = f"{place.material / 'kernel.py'}:scale"
        retrieve = ["retrieve", kernel, "--set", "N=1000", "--store", store, "--output", str(out)]
        program = ["-m", "gnnperf"]
        words = chance.choice(
            (
                [*program, "store", "import", store, str(folder / "more.jsonl.zst")],
                [*program, "store", "merge", store, str(folder / "other")],
                [*program, "store", "prune", "--keep-best", "9", store],
                [*program, *retrieve], [*program, *retrieve], ["-c", ADD, store], ["-c", ADD, store],
            )
        )  # fmt: skip
        number = (
            signal.SIGKILL if "-c" in words else chance.choice((signal.SIGKILL, signal.SIGINT, signal.SIGINT))
        )
        slow = "retrieve" in words
        with may_start_processes():
            code, printed, said = _struck(words, work, number, chance.uniform(0.2, 20.0 if slow else 3.0))
        if "-c" in words:  # the last line may be cut
            acknowledged |= {name for line in printed.split("\n")[:-1] for name in line.split()}
        _sound(folder, acknowledged)
        if number == signal.SIGINT:
            expect(
                code in (0, 130, -signal.SIGINT),
                "unexpected",
                f"{words[2:4]}: exit code {code}: {said[-200:]}",
            )
            expect(("unexpected" not in said and "Traceback" not in said) or code == -signal.SIGINT,
                   "unexpected", f"{words[2:4]}: {said[-200:]}")  # fmt: skip
            checked_line(said.splitlines()[-1] if said else "nothing")
            left = [*partials(folder), *(work / "tmp").iterdir()]
            expect(not left, "leftovers", f"{words[2:4]}: {left[:1]}")
        _gone(lambda: _processes(str(work)))
        return {0: "done before", 130: "interrupted"}.get(code, "killed")

    return inject


def _struck(words: Sequence[str], work: Path, number: int, after_s: float) -> tuple[int, str, str]:
    """Exit code, standard output and error of Python that gets a signal after a while."""
    path = os.pathsep.join((str(REPO), str(REPO / "scripts")))
    temporary = work / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-P", *words], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        if process.poll() is None:
            process.send_signal(number)
        printed, said = process.communicate(timeout=30)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode, printed, said


def _processes(words: str) -> list[str]:
    """Command lines of processes that name these words or whose folder they name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if words in line or str((entry / "cwd").resolve()).startswith(words):
                found.append(line)
    return found


def _gone(alive: Callable[[], list[str]]) -> None:
    deadline = time.monotonic() + 20
    while left := alive():
        expect(time.monotonic() < deadline, "leftovers", f"still running: {left[0][:200]}")
        time.sleep(0.05)
