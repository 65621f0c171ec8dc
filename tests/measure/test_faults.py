"""Candidates that do everything a candidate must not do. Each costs itself and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import MeasureError
from gnnperf.measure import Library, Limits, Measurement, Runner
from gnnperf.measure.isolation import not_isolated

Build = Callable[..., list[Library]]

DOUBLE = "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];"
QUICK = Limits(timeout_s=20, budget_s=0.001, memory_bytes=256 << 20)

FAULTS = {
    "segfault": ("*(volatile int*)16 = 1;", "run_error", "SIGSEGV"),
    "abort": ('fputs("giving up\\n", stderr); abort();', "run_error", "giving up"),
    "exit": ("exit(3);", "run_error", "exit code 3"),
    "quiet exit": ("_exit(0);", "run_error", "exit code 0"),
    "division by zero": ("volatile int64_t zero = 0; y[0] = n / zero;", "run_error", "SIGFPE"),
    "exception": ("throw 1;", "run_error", "terminate called"),
    "new until it fails": (
        "for (;;) memset(new char[1 << 24], 1, 1 << 24);", "run_error", "bad_alloc; it may allocate 0.25 GiB"
    ),
    "malloc unchecked": ("for (;;) memset(malloc(1 << 24), 1, 1 << 24);", "run_error", "SIGSEGV"),
    "shared mappings": (
        "const int may = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_ANONYMOUS;"
        "for (;;) memset(mmap(0, 1 << 24, may, kind, -1, 0), 1, 1 << 24);",
        "run_error",
        "SIGSEGV",
    ),
    "stack overflow": (
        "struct F { static int f(volatile char* p) { volatile char a[4096]; a[0] = *p;"
        " return f(a) + a[0]; } }; volatile char c = 1; y[0] = F::f(&c);",
        "run_error",
        "SIGSEGV",
    ),
    "crash in a thread": (
        "_Pragma(\"omp parallel\") if (omp_get_thread_num()) *(volatile int*)16 = 1;", "run_error", "SIGSEGV"
    ),
    "noise on every descriptor": (
        'for (int d = 3; d < 64; ++d) (void)!write(d, "{}\\nnoise\\n", 9);', "run_error", ""
    ),
    "wrong numbers": ("for (int64_t i = 0; i < n; ++i) y[i] = 3 * x[i];", "wrong_result", "elements differ"),
    "one wrong number": (DOUBLE + "y[n / 2] += 1e-3;", "wrong_result", "1 of 1000 elements differ"),
    "not a number": (DOUBLE + "memset(&y[7], 0xff, 8);", "wrong_result", "got nan"),
    "one element forgotten": ("for (int i = 1; i < n; ++i) y[i] = 2 * x[i];", "wrong_result", "1 of 1000"),
    "nothing written": ("", "wrong_result", "1000 of 1000"),
    "reads its output": (
        "for (int i = 0; i < n; ++i) y[i] = 2 * x[i] + ((volatile double*)y)[i] - 1;", "wrong_result", "nan"
    ),
    "write past the end": (DOUBLE + "y[n] = 0;", "wrong_result", "out of bounds"),
    "overwritten input": (DOUBLE + "x[3] = 0.5;", "wrong_result", "x: an input was overwritten"),
    "wrong numbers from the second run on": (
        "static volatile int runs; " + DOUBLE + "if (++runs > 1) y[7] += 1;",
        "wrong_result",
        "runs: y: 1 of 1000 elements differ",
    ),
    "write past the end in a later run": (
        "static volatile int runs; " + DOUBLE + "if (++runs > 3) y[n] = 0;", "wrong_result", "out of bounds"
    ),
    "write before the start": (DOUBLE + "y[-1] = 0;", "wrong_result", "out of bounds"),
}  # fmt: skip


def measure(runner: Runner, baseline: Library, candidate: Library, data: dict[str, Any]) -> Measurement:
    reference = {"y": 2 * data["x"]}
    return runner.measure(baseline, candidate, data, ["y"], reference=reference, limits=QUICK)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, build: Build, baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    body, status, detail = FAULTS[name]
    build(*(other for other, _, _ in FAULTS.values()))  # together, the first time
    (candidate,) = build(body)
    measured = measure(runner, baseline, candidate, data)
    assert (measured.status, measured.runtime_s, measured.speedup) == (status, None, None)
    assert detail in measured.detail
    assert "\n" not in measured.detail
    # and the next one is measured as if nothing had happened
    assert measure(runner, baseline, baseline, data).status == "ok"


def test_temporaries_may_be_much_larger_than_arrays(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    (candidate,) = build("char* volatile large = new char[3l << 29]; delete[] large; " + DOUBLE)
    assert measure(runner, baseline, candidate, data).status == "run_error"
    limits = Limits(budget_s=0.001)
    assert runner.measure(baseline, candidate, data, ["y"], limits=limits).status == "ok"


@pytest.mark.parametrize("body", ["for (volatile int go = 1; go;) {}", "for (;;) sleep(1000);"])
def test_hang(body: str, build: Build, baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    (candidate,) = build(body)
    limits = Limits(timeout_s=0.5)
    measured = runner.measure(baseline, candidate, data, ["y"], limits=limits)
    assert (measured.status, measured.detail) == ("timeout", "took longer than 0.5 s")
    assert measure(runner, baseline, baseline, data).status == "ok"


def test_hang_in_a_later_run(build: Build, baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    (candidate,) = build("static volatile int runs; while (++runs > 1) --runs; " + DOUBLE)
    limits = Limits(timeout_s=0.5)
    assert runner.measure(baseline, candidate, data, ["y"], limits=limits).status == "timeout"


def test_a_slow_candidate_is_not_a_hanging_one(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    """The time limit is one on a single run: many runs may take longer together."""
    (candidate,) = build("usleep(50000); " + DOUBLE)  # short enough to be timed further
    limits = Limits(timeout_s=1.0, budget_s=0, cutoff=1e9, min_samples=30)
    measured = runner.measure(baseline, candidate, data, ["y"], limits=limits)
    assert (measured.status, measured.samples) == ("ok", 30)


def test_a_candidate_that_will_not_win_is_run_once(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    (candidate,) = build("usleep(250000); " + DOUBLE)
    limits = Limits(timeout_s=5.0, budget_s=0, cutoff=1e9, min_samples=14)
    measured = runner.measure(baseline, candidate, data, ["y"], limits=limits)
    assert (measured.status, measured.samples) == ("ok", 1)


def test_writing_all_over_memory_reaches_no_other_candidate(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    (candidate,) = build(
        "for (int64_t i = 0; i < n; ++i) x[i] = -5; " + "memset(y - 512, 0xee, 8 * n + 8192);"
    )
    assert measure(runner, baseline, candidate, data).status == "wrong_result"
    assert measure(runner, baseline, baseline, data).status == "ok"
    np.testing.assert_array_equal(data["x"], np.linspace(-1, 1, len(data["x"])))


@pytest.mark.skipif(bool(not_isolated()), reason=not_isolated())
@pytest.mark.parametrize(
    "attempt",
    [
        'fopen("{folder}/new", "w") == 0',
        'unlink("{folder}/victim") == -1 && errno == EPERM',
        "fork() == -1",
        'system("touch {folder}/new") != 0',
        "kill(getppid(), SIGKILL) == -1",
        "socket(AF_INET, SOCK_STREAM, 0) == -1",
    ],
)
def test_a_candidate_reaches_nothing_but_its_arrays(
    attempt: str, build: Build, baseline: Library, runner: Runner, data: dict[str, Any], tmp_path: Path
) -> None:
    """It goes on where it is refused, so it is right where all was."""
    (tmp_path / "victim").write_text("as it was")
    (candidate,) = build("if (" + attempt.format(folder=tmp_path) + ") " + DOUBLE)

    measured = measure(runner, baseline, candidate, data)

    assert (measured.status, measured.detail) == ("ok", "")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"victim": "as it was"}


def test_a_baseline_that_fails_is_not_blamed_on_the_candidate(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    (broken,) = build("abort();")
    with pytest.raises(MeasureError, match=r"the baseline .* failed: run_error, killed by SIGABRT"):
        runner.measure(broken, baseline, data, ["y"])
    with pytest.raises(MeasureError, match=r"failed: run_error"):
        runner.reference(broken, data, ["y"])
    with pytest.raises(MeasureError, match=r"failed: timeout"):
        runner.reference(build("for (;;) sleep(1);")[0], data, ["y"], limits=Limits(timeout_s=0.3))


def test_a_baseline_that_writes_out_of_bounds_does_not_convict_the_candidate(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    (careless,) = build(DOUBLE + "y[n] = 0;")
    assert measure(runner, careless, baseline, data).status == "ok"
    with pytest.raises(MeasureError, match="y: written out of bounds"):
        runner.reference(careless, data, ["y"])


def test_a_library_that_is_gone(baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    gone = Library("/nonexistent/library.so", "f", baseline.arguments)
    measured = measure(runner, baseline, gone, data)
    assert measured.status == "run_error"
    assert "library.so" in measured.detail


def test_a_server_that_dies_is_started_again(baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    assert measure(runner, baseline, baseline, data).status == "ok"
    assert runner._server is not None
    os.kill(runner._server.child.pid, signal.SIGKILL)
    assert measure(runner, baseline, baseline, data).status == "ok"


def test_a_server_that_dies_again_and_again(
    build: Build, baseline: Library, runner: Runner, data: dict[str, Any]
) -> None:
    """As where the machine runs out of memory."""
    (candidate,) = build("for (;;) sleep(1000);")
    killed: set[int] = set()

    def kill() -> None:
        while len(killed) < 2:
            server = runner._server
            if server is not None and server.child.pid not in killed:
                killed.add(server.child.pid)
                os.kill(server.child.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(MeasureError, match="died twice"):
        measure(runner, baseline, candidate, data)
    killer.join()
    assert measure(runner, baseline, baseline, data).status == "ok"


SCRIPT = """
    import threading
    import numpy as np
    from gnnperf.measure import Argument, Compiler, Limits, Runner, Source

    compiler, runner = Compiler(), Runner(threads=2)
    text = 'extern "C" void f(double* x) { for (volatile int go = 1; go;) {} }'
    hang = compiler.build(Source(text, "f", (Argument("x"),)))
    data = {"x": np.zeros(10)}
    print(compiler.folder, flush=True)

    def tell():
        while runner._server is None:
            pass
        print(runner._server.child.pid, flush=True)

    threading.Thread(target=tell).start()
    runner.measure(None, hang, data, ["x"], limits=Limits(timeout_s=600))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_is_interrupted_leaves_nothing_behind(number: signal.Signals) -> None:
    shared_before = set(Path("/dev/shm").iterdir())
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert client.stdout is not None
    folder = Path(client.stdout.readline().strip())
    server = int(client.stdout.readline())
    assert wait_until(lambda: len(session(server)) == 2)  # the server and its hanging child
    client.send_signal(number)
    _, errors = client.communicate(timeout=30)
    assert client.returncode != 0
    if number == signal.SIGINT:
        assert errors.strip().endswith("KeyboardInterrupt")
        assert not folder.exists()
    assert wait_until(lambda: not session(server))
    assert set(Path("/dev/shm").iterdir()) <= shared_before


def session(leader: int) -> set[int]:
    """Living processes of a session."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(rest[3]) == leader and rest[0] != "Z":
            found.add(int(pid))
    return found


def wait_until(holds: Callable[[], bool], patience_s: float = 20.0) -> bool:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


LIMITED = """
    import resource
    import numpy as np
    from gnnperf.measure import Argument, Compiler, Limits, Runner, Source

    for kind, most in ((resource.RLIMIT_DATA, 4 << 30), (resource.RLIMIT_FSIZE, 1 << 30)):
        resource.setrlimit(kind, (most, most))
    source = Source('extern "C" void f(double* x) { x[0] = 2; }', "f", (Argument("x"),))
    with Compiler() as compiler, Runner(threads=2) as runner:
        limits = Limits(memory_bytes=64 << 30)
        print(runner.reference(compiler.build(source), {"x": np.ones(1)}, ["x"], limits=limits)["x"])
"""


def test_a_lower_limit_of_the_user_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[2.]\n", done.stderr
