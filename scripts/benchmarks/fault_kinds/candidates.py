"""Candidates that do everything that a candidate must not do, at some run and some place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fault_kinds.injecting import Found, Injector, Place, attempt, expect, may_start_processes
from gnnperf.measure import Argument, Compiler, Library, Limits, Runner, Source

N = 1_000
QUICK = Limits(timeout_s=0.4, budget_s=0.001, min_samples=6, memory_bytes=256 << 20)


class Fault(NamedTuple):
    """code: C++; `at` is a place in the arrays. statuses: that its measurement may have; "ok" is among them
    where it does no harm. later: it may wait for a later run."""

    code: str
    statuses: tuple[str, ...]
    later: bool = True


FAULTS = (
    Fault("*(volatile int*)(16 + at) = 1;", ("run_error",)),
    Fault("abort();", ("run_error",)),
    Fault("exit(at % 256);", ("run_error",)),
    Fault("_exit(at % 256);", ("run_error",)),
    Fault("throw 1;", ("run_error",)),
    Fault("kill(getpid(), 1 + at % 64); usleep(1000);", ("ok", "run_error", "timeout")),
    Fault("raise(SIGSTOP);", ("timeout", "run_error")),
    Fault("for (volatile int go = 1; go;) {}", ("timeout",)),
    Fault("for (;;) sleep(1000);", ("timeout",)),
    Fault("for (;;) memset(new char[1 << 24], 1, 1 << 24);", ("run_error", "timeout")),
    Fault("for (;;) memset(malloc(1 << 24), 1, 1 << 24);", ("run_error", "timeout")),
    Fault("for (;;) fork();", ("run_error", "timeout", "ok", "wrong_result"), later=False),
    Fault("if (fork() == 0) for (;;) pause();", ("ok",), later=False),
    Fault("for (int d = 3; d < 64; ++d) (void)!write(d, \"{}\\nnoise\\n\", 9);", ("run_error", "ok")),
    Fault("for (int d = 0; d < 64; ++d) close(d);", ("run_error", "ok")),
    Fault("printf(\"noise %ld\\n\", at); fputs(\"noise\\n\", stderr);", ("ok",)),
    Fault("FILE* f = fopen(\"written\", \"w\"); for (int i = 0; f && i < 99999; ++i) fwrite(x, 8, n, f);",
          ("ok", "run_error", "timeout")),
    Fault("chdir(\"/\"); setenv(\"LD_PRELOAD\", \"x\", 1); signal(SIGTERM, SIG_IGN); alarm(1);", ("ok",
    "run_error")),
    Fault("y[at % n] += 1e-3;", ("wrong_result",)),
    Fault("y[at % n] = 0.0 / 0.0; memset(&y[at % n], 0xff, 8);", ("wrong_result",)),
    Fault("y[n + at % 500] = 0;", ("wrong_result",)),
    Fault("y[-1 - at % 500] = 0;", ("wrong_result",)),
    Fault("x[at % n] += 0.5;", ("wrong_result",)),
    Fault("memset(y - 512, 0xee, 8 * n + 8192);", ("wrong_result",)),
    Fault("y[at % n] = 2 * x[at % n] + rand() % 2;", ("ok", "wrong_result")),
    Fault("_Pragma(\"omp parallel\") if (omp_get_thread_num()) *(volatile int*)16 = 1;", ("run_error", "ok")),
)  # fmt: skip
DOUBLE = "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];"


def candidates(place: Place) -> Injector:
    """Each is measured beside a baseline that is right, which is then measured as if nothing had happened."""
    with may_start_processes():
        compiler, runner = Compiler(place.material / "build"), Runner(threads=2)
        cases = "\n".join(f"case {i}: {{ {fault.code} }} break;" for i, fault in enumerate(FAULTS))
        right, *wrong = compiler.build_all(
            [
                _source("right", DOUBLE),
                _source("wrong", f"{DOUBLE} if (++runs >= when) switch (fault) {{ {cases} }}"),
            ]
        )
        assert isinstance(right, Library) and isinstance(wrong[0], Library), wrong
        baseline, candidate = right, wrong[0]
        runner.start()
    chosen = np.linspace(-1, 1, N)

    def inject(chance: random.Random, work: Path) -> str:
        number = chance.randrange(len(FAULTS))
        fault, at = FAULTS[number], chance.randrange(10**6)
        when = chance.choice((1, 1, 2, 4)) if fault.later else 1
        x = chosen.copy()
        data = {"x": x, "y": np.ones(N), "n": N, "fault": number, "at": at, "when": when}
        reference = {"y": 2 * chosen}
        with may_start_processes():
            measured, line = attempt(
                lambda: runner.measure(baseline, candidate, data, ["y"], reference=reference, limits=QUICK)
            )
            again, _ = attempt(
                lambda: runner.measure(baseline, baseline, data, ["y"], reference=reference, limits=QUICK)
            )
        if measured is None:
            raise Found("unexpected", f"fault {number}: {line}")
        # What a candidate does wrong on some of its runs only may go by the run that is looked at.
        figure = "wrong_accepted" if measured.status == "ok" else "unexpected"
        expect(
            measured.status in fault.statuses,
            figure,
            f"fault {number}, run {when}: {measured.status} {measured.detail}",
        )
        expect(measured.detail.isprintable(), "unexpected", f"fault {number}: {measured.detail!r}")
        expect(np.array_equal(x, chosen), "wrong_accepted", f"fault {number}: our inputs were changed")
        expect(again is not None and again.status == "ok", "unexpected", f"after fault {number}: {again}")
        alive = _beneath(runner)
        expect(not alive, "leftovers", f"fault {number}: {alive} is left")
        return measured.status

    return inject


def _beneath(runner: Runner) -> list[str]:
    """Processes of the server's session but itself."""
    server = runner._server
    assert server is not None
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if (
            int(fields[3]) == server.child.pid
            and int(stat.parent.name) != server.child.pid
            and fields[0] != "Z"
        ):
            found.append(stat.parent.name)
    return found


def _source(symbol: str, body: str) -> Source:
    """`void symbol(double* x, double* y, int64_t n, int64_t fault, int64_t at, int64_t when)`."""
    headers = ("csignal", "cstdint", "cstdio", "cstdlib", "cstring", "omp.h", "unistd.h")
    text = "".join(f"#include <{h}>\n" for h in headers)
    scalars = ("n", "fault", "at", "when")
    listed = "".join(f", int64_t {name}" for name in scalars)
    text += f'extern "C" void {symbol}(double* x, double* y{listed}) {{ static int runs; {body} }}\n'
    arguments = (Argument("x"), Argument("y"), *(Argument(name, "int64_t") for name in scalars))
    return Source(text, symbol, arguments)
