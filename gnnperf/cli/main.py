"""`gnnperf VERB ...`: finds the verb, and is the one place where errors become lines and exit codes.

Exit codes: 0 done, 1 the work failed, 2 bad input, 130 interrupted, 141 the reader of our output left.
"""

from __future__ import annotations

import _thread
import errno
import gc
import math
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from gnnperf import __version__
from gnnperf.cli.lazy import LazyGroup
from gnnperf.errors import GnnperfError, InputError, Interrupted

VERBS = (
    "retrieve", "tune", "predict", "propose", "embed", "collect", "measure", "corpus", "train", "eval",
    "explore", "export", "store", "devices",
)  # fmt: skip
"""In the order of `gnnperf --help`."""


@click.group(
    cls=LazyGroup,
    package="gnnperf.cli",
    names=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="gnnperf", message="%(prog)s %(version)s")
def gnnperf() -> None:
    """Find tuned kernels like yours, transfer their schedules, measure, keep the winner.

    Every verb takes --json and then prints exactly one JSON document on standard output. Exit codes: 0 done,
    1 the work failed, 2 bad input. GNNPERF_TRACEBACK=1 shows where an error came from.
    """


def main(command: click.Group = gnnperf) -> NoReturn:
    """Entry point of the `gnnperf` command, and of others that fail in the same way."""
    if not sys.warnoptions:
        # Warnings of libraries are addressed to their callers, not to the person at the terminal.
        warnings.simplefilter("ignore")
    _open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        Interrupt().hear(signal.SIGINT)
    # What packages leave in memory stays: looked through less often, and not once more at the end, it costs
    # more than a second less of each run.
    gc.set_threshold(200_000, 10, 10)
    exit_code = run(sys.argv[1:], command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done
    gc.freeze()
    sys.exit(exit_code)


def _open_closed_streams() -> None:
    """A standard stream that the caller closed (`>&-`) goes nowhere. Left closed, its number would be given
    to the next file that is opened, and what is printed would end up in there."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, mode))


class Interrupt:
    """Ctrl-C, heard once in two seconds: those who press it twice do not interrupt the cleaning up.

    Where Python can raise nothing (in a destructor, say), it is heard right after."""

    def __init__(self) -> None:
        self.last = -math.inf

    def hear(self, number: signal.Signals) -> None:
        """Take a signal for Ctrl-C. Call it in the main thread."""
        main = threading.get_ident()

        def again() -> None:
            time.sleep(0.01)
            signal.pthread_kill(main, number)  # `interrupt_main` would not end a wait

        def unraisable(what: sys.UnraisableHookArgs) -> None:
            if isinstance(what.exc_value, KeyboardInterrupt):
                self.last = -math.inf
                # This hook can raise nothing, and may run where `threading` holds its locks.
                _thread.start_new_thread(again, ())
            else:
                sys.__unraisablehook__(what)

        signal.signal(number, self)
        sys.unraisablehook = unraisable

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self.last > 2.0:
            self.last = now
            raise KeyboardInterrupt


def run(args: Sequence[str], command: click.Group = gnnperf) -> int:
    """Run one command line; the exit code. Anything that goes wrong is one line on standard error."""
    try:
        _check_folder()
        # Not click's own main(): it would print an empty line of its own on Ctrl-C.
        with command.make_context(command.name, list(args)) as ctx:
            command.invoke(ctx)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as nothing:
        nothing.show()
        return nothing.exit_code
    except BrokenPipeError:
        # Whoever read our output has left: nothing to say, and the flush at exit must not say it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except (KeyboardInterrupt, click.Abort):
        return _fail(Interrupted("interrupted; nothing was reported"))
    except Exception as error:
        return _fail(error)


def _check_folder() -> None:
    """Libraries end the process with messages of their own where the current folder was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the current folder does not exist any more; change to another") from None


def _fail(error: Exception) -> int:
    if os.environ.get("GNNPERF_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exc()
    line, exit_code = _describe(error)
    click.echo(f"gnnperf: {' '.join(line.split())}", err=True)
    return exit_code


def _describe(error: Exception) -> tuple[str, int]:
    """What to tell the user, and the exit code."""
    if isinstance(error, GnnperfError):
        return str(error), error.exit_code
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "gnnperf"
        message = error.format_message()
        stop = "" if message.endswith((".", "?", "!")) else "."
        return f"{message}{stop} See '{command} --help'.", 2
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, OSError) and error.strerror:
        code = 2 if error.errno == errno.ENAMETOOLONG else 1  # a name that the user gave
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, code
    summary = f"{type(error).__name__}: {error}"
    return f"unexpected {summary} (GNNPERF_TRACEBACK=1 shows where; please report it)", 1
