"""What the verbs print: one report on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.page import page_option
from gnnperf.documents import replacing, to_json
from gnnperf.errors import GnnperfError, Interrupted, MeasureError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LOG_EVERY_S = 30.0
"""Time between two lines of progress where standard error is not a terminal."""


@dataclass(frozen=True)
class Report:
    """What a verb found.

    document: printed by `--json`, as strict JSON (see `to_json`).
    view: the same for people: a rich renderable (a table, a text, a `rich.console.Group` of them).
    failure: what went wrong afterwards, raised when the report has been printed.
    page: makes the same as HTML; called for `--report` when the report has been printed.
    """

    document: Mapping[str, Any]
    view: RenderableType
    failure: GnnperfError | None = None
    page: Callable[[], str] | None = None


class Verb(click.Command):
    """A command whose callback returns a `Report`. Adds `--json` and prints the report, and nothing else.

    While the callback runs, standard output is standard error, also for C libraries and child processes:
    what DaCe, a compiler or a progress bar print cannot get into the document. With `page=True` there is
    `--report FILE.html` too, and the reports have a page.

    Example:
        @click.command(cls=Verb)
        @click.argument("kernel")
        def embed(kernel: str) -> Report: ...
    """

    def __init__(self, *args: Any, page: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if page:
            self.params.append(page_option())
        text = "Print one JSON document on standard output."
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=text))

    def invoke(self, ctx: click.Context) -> None:
        as_json, page_path = ctx.params.pop("as_json"), ctx.params.pop("page_path", None)
        try:
            with stdout_to_stderr():
                report = super().invoke(ctx)
        except BrokenPipeError as error:
            # `main` takes a broken pipe for a reader of our output that left; this is not one.
            raise MeasureError("lost the connection to a helper process: broken pipe") from error
        write(report, as_json=as_json)
        failure = report.failure
        if page_path is not None:
            # Last of all: whatever becomes of the page, the result has been told.
            page_failure = _write_page(report, page_path)
            failure = failure or page_failure
        if failure is not None:
            raise failure


def _write_page(report: Report, path: Path) -> GnnperfError | None:
    """Write the page of a report, and say so; what went wrong."""
    assert report.page is not None
    sys.stdout.flush()
    try:
        with stdout_to_stderr(), replacing(path) as partial:
            partial.write_bytes(report.page().encode())
    except OSError as error:
        return GnnperfError(f"--report: cannot write {path}: {error.strerror}; make room, or choose another")
    click.echo(f"gnnperf: wrote {path}", err=True)
    return None


def write(report: Report, *, as_json: bool) -> None:
    """Print the report on standard output."""
    if as_json:
        click.echo(to_json(report.document))
    else:
        from rich.text import Text

        # Text is what goes into a file: the terminal breaks its lines, if need be.
        _console(stderr=False).print(report.view, soft_wrap=isinstance(report.view, Text))


@contextlib.contextmanager
def going_on(kept: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C ends the work, and says what is kept of it. Raises Interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {kept()}; run the same command to go on") from None


@contextlib.contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """A progress bar with an estimate on standard error; in a log file, a line now and then.

    Yields `advance(steps=1, doing="")`, where `doing` says what comes next.
    """
    if not sys.stderr.isatty():
        yield _progress_lines(description, total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)

        def advance(steps: int = 1, doing: str = "") -> None:
            bar.update(task, advance=steps, description=f"{description} {doing}".rstrip())

        yield advance


def _progress_lines(description: str, total: int) -> Callable[..., None]:
    started = last = time.monotonic()
    done = 0

    def advance(steps: int = 1, doing: str = "") -> None:
        nonlocal done, last
        done += steps
        now = time.monotonic()
        if done and now - last >= LOG_EVERY_S:
            last = now
            left = timedelta(seconds=round((now - started) * (total - done) / done))
            click.echo(f"{description} {doing}".rstrip() + f": {done} of {total}, {left} left", err=True)

    return advance


def _console(*, stderr: bool) -> Console:
    """A console that prints what it is given: no markup or emoji codes, so `A[i]` stays `A[i]`."""
    from rich.console import Console

    # A pipe has no width; rich would assume 80 columns and cut tables that a file has room for, and take a
    # COLUMNS of 0 at its word.
    width = None if stderr else shutil.get_terminal_size((120, 24)).columns
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything written to standard output to standard error, at the level of the file descriptor."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C code has printed but not flushed belongs to the work
        os.dup2(saved, 1)
        os.close(saved)


def human_time(seconds: float) -> str:
    """In the unit that suits it: "1.2 s", "3.4 ms", "56 µs"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
