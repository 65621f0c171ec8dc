"""Help that answers at once, and errors that are one line and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import gnnperf as package
from gnnperf import __version__
from gnnperf.cli import main as cli
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import GnnperfError, InputError, Interrupted, MeasureError

HEAVY = {"torch", "dace", "numpy", "lightning", "lancedb", "pyarrow", "pandas", "scipy", "networkx", "rich"}


@pytest.fixture
def add_verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """`add_verb(f)`: for this test, `gnnperf probe` runs `f`."""

    def add(callback: Callable[[], object]) -> None:
        module = types.ModuleType("gnnperf.cli.probe")
        module.probe = click.command("probe", cls=Verb)(callback)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gnnperf.cli.probe", module)
        monkeypatch.setattr(cli.gnnperf, "names", ("probe",))

    return add


def gnnperf(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gnnperf", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_help_lists_every_verb_with_a_line() -> None:
    result = gnnperf("--help")
    assert result.returncode == 0
    described = {line.split()[0] for line in result.stdout.splitlines() if len(line.split()) > 3}
    assert set(cli.VERBS) <= described


def test_help_of_every_verb_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom gnnperf.cli.main import VERBS, run\n"
        "assert run(['--help']) == 0\n"
        "for verb in VERBS: assert run([verb, '--help']) == 0, verb\n"
        "print('LOADED', *sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    help_text, _, loaded = result.stdout.rpartition("LOADED")
    assert help_text.count("Usage: gnnperf") == len(cli.VERBS) + 1
    assert not HEAVY & set(loaded.split())


@pytest.mark.parametrize("args", [[], ["store"]])
def test_no_command_shows_the_help(args: list[str]) -> None:
    result = gnnperf(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: gnnperf")
    assert "\nCommands:\n" in result.stderr


def test_version() -> None:
    assert gnnperf("--version").stdout == f"gnnperf {__version__}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nonsense"], "gnnperf: No such command 'nonsense'. See 'gnnperf --help'.\n"),
        (["--nonsense"], "gnnperf: No such option '--nonsense'. See 'gnnperf --help'.\n"),
        (
            ["devices", "list", "all"],
            "gnnperf: Got unexpected extra argument (all). See 'gnnperf devices list --help'.\n",
        ),
        (["embed"], "gnnperf: Missing argument 'KERNEL...'. See 'gnnperf embed --help'.\n"),
        (
            ["embed", "kernel.py:f", "--set", "N=1", "--set", "N=2"],
            "gnnperf: Invalid value for '--set': expected one value for N, got another: 'N=2'. "
            "See 'gnnperf embed --help'.\n",
        ),
        (
            ["embed", "kernel.py:f", "--set", "N=many"],
            "gnnperf: Invalid value for '--set': expected NAME=NUMBER, such as N=512, got 'N=many'. "
            "See 'gnnperf embed --help'.\n",
        ),
    ],
)
def test_usage_errors_are_one_line_and_exit_code_2(args: list[str], message: str) -> None:
    result = gnnperf(*args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (InputError("N has no value: pass --set N=512"), 2, "gnnperf: N has no value: pass --set N=512"),
        (GnnperfError("nothing\n  could be built"), 1, "gnnperf: nothing could be built"),
        (Interrupted("interrupted; 3 of 9 are kept"), 130, "gnnperf: interrupted; 3 of 9 are kept"),
        (KeyboardInterrupt(), 130, "gnnperf: interrupted; nothing was reported"),
        (OSError(28, "No space left on device", "/out"), 1, "gnnperf: /out: No space left on device"),
        (OSError(36, "File name too long", "x" * 300), 2, f"gnnperf: {'x' * 300}: File name too long"),
        (click.UsageError("No kernel."), 2, "gnnperf: No kernel. See 'gnnperf probe --help'."),
        (
            ZeroDivisionError("division by zero"),
            1,
            "gnnperf: unexpected ZeroDivisionError: division by zero "
            "(GNNPERF_TRACEBACK=1 shows where; please report it)",
        ),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    add_verb: Callable[[Callable[[], object]], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    exit_code: int,
    line: str,
) -> None:
    def fail() -> object:
        raise error

    add_verb(fail)
    assert cli.run(["probe"]) == exit_code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", line + "\n")


def test_traceback_is_shown_when_asked_for(
    add_verb: Callable[[Callable[[], object]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> object:
        raise InputError("expected a kernel")

    add_verb(fail)
    monkeypatch.setenv("GNNPERF_TRACEBACK", "1")
    assert cli.run(["probe"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.endswith("gnnperf: expected a kernel\n")


def test_a_broken_pipe_inside_the_work_is_an_error(
    add_verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> object:
        raise BrokenPipeError(32, "Broken pipe")

    add_verb(fail)
    assert cli.run(["probe"]) == MeasureError.exit_code
    assert capsys.readouterr().err == "gnnperf: lost the connection to a helper process: broken pipe\n"


VERB_IN_A_PROCESS = """
import sys, time, types, click
from gnnperf.cli import main
from gnnperf.cli.output import Report, Verb

@click.command(cls=Verb)
def probe():
    {body}

module = types.ModuleType("gnnperf.cli.probe")
module.probe = probe
sys.modules["gnnperf.cli.probe"] = module
main.gnnperf.names = ("probe",)
main.main()
"""


def test_ctrl_c_is_one_line() -> None:
    code = VERB_IN_A_PROCESS.format(body="print('ready', flush=True); time.sleep(600)")
    command = [sys.executable, "-c", code, "probe"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        output, error = process.communicate()
    assert (process.returncode, output, error) == (130, "", "gnnperf: interrupted; nothing was reported\n")


def test_a_reader_that_left_is_no_error() -> None:
    code = VERB_IN_A_PROCESS.format(body="return Report({'x': 'y' * 1_000_000}, '')")
    command = [sys.executable, "-c", code, "probe", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_what_is_printed_into_a_closed_stream_does_not_end_up_in_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    code = VERB_IN_A_PROCESS.format(
        body=f"sys.kept = open({str(kept)!r}, 'w'); print('progress'); return Report({{}}, 'the answer')"
    )
    closed = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, "-c", code, "probe"]
    assert subprocess.run(closed, check=False).returncode == 0
    assert kept.read_text() == ""


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = [sys.executable, "-m", "gnnperf", "devices", "list"]
    gone = ["sh", "-c", 'rmdir "$PWD" && exec "$0" "$@"', *command]
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    done = subprocess.run(gone, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gnnperf: the current folder does not exist any more; change to another\n"


def test_report_is_what_people_see(
    add_verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb(lambda: Report({"answer": 42}, "the answer is A[42]"))
    assert cli.run(["probe"]) == 0
    assert capsys.readouterr().out == "the answer is A[42]\n"
    assert cli.run(["probe", "--json"]) == 0
    assert capsys.readouterr().out == '{"answer": 42}\n'


def test_ctrl_c_where_python_can_raise_nothing_is_heard_right_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # put back afterwards
    before = signal.getsignal(signal.SIGALRM)

    class Gone:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGALRM)

    try:
        cli.Interrupt().hear(signal.SIGALRM)
        Gone()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(20)
        assert time.monotonic() - began < 10  # in the middle of the wait
    finally:
        signal.signal(signal.SIGALRM, before)
    assert capsys.readouterr().err == ""
