"""Injecting faults one by one, in a process that may die of them."""

from __future__ import annotations

import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gnnperf.errors import LONGEST_LINE, GnnperfError, MeasureError, last_line
from gnnperf.measure.supervisor import Child, Failed, Report, in_succession

FIGURES = ("faults", "lost_records", "wrong_accepted", "executions", "hangs", "unexpected", "leftovers")
LIMIT_S, FIRST_S = 60.0, 300.0
"""Of one fault, and until the first."""
MEMORY_BYTES = 6 << 30
"""Of data, for the process that injects: beyond it, whatever was asked for exhausts the machine."""

T = TypeVar("T")


class Place(NamedTuple):
    """material: a folder for what all faults of a process start from. canary: a file that code of strangers
    makes, if it is ever run."""

    material: Path
    canary: Path

    @property
    def code(self) -> str:
        """Python that leaves a trace."""
        return f"__import__('pathlib').Path({str(self.canary)!r}).touch()"


Injector = Callable[[random.Random, Path], str]
"""(chance, empty folder) -> what came of a fault, in a word. Raises Found."""
Prepare = Callable[[Place], Injector]


class Found(Exception):
    """A fault did harm. figure: which of FIGURES it counts in."""

    def __init__(self, figure: str, detail: str) -> None:
        super().__init__(figure, detail)
        self.figure, self.detail = figure, detail


def expect(condition: object, figure: str, detail: str) -> None:
    """Raises Found unless the condition holds."""
    if not condition:
        raise Found(figure, detail)


def attempt(action: Callable[[], T]) -> tuple[T | None, str]:
    """(result, "") of an action, or (None, the line) that it was refused with. Raises Found where it fails in
    another way."""
    try:
        return action(), ""
    except GnnperfError as error:
        return None, checked_line(str(error))
    except (Found, KeyboardInterrupt):
        raise
    except BaseException as error:  # panics of native libraries are no Exceptions
        raise Found("unexpected", last_line(error)) from error


def checked_line(line: str) -> str:
    """A message for people. Raises Found where it is no clear line."""
    clear = line.isprintable() and 0 < len(line) <= LONGEST_LINE
    expect(clear and "Traceback" not in line, "unexpected", f"says {line[:200]!r}")
    return line


def inject(module: str, function: str, seed: str, numbers: Sequence[int]) -> dict[str, Any]:
    """Inject the faults with these numbers, each with a chance of its own, in processes that go on until one
    dies of a fault. Returns counts by FIGURES, outcomes by word, and what went wrong under "failures"."""
    importlib.import_module("gnnperf.nn.message_passing")  # once, not in each process that is forked
    folder = Path(tempfile.mkdtemp(prefix="gnnperf-faults-"))
    counts, outcomes, failures = Counter[str](faults=len(numbers)), Counter[str](), []
    try:
        start = partial(_start, module, function, seed, folder)
        for number, outcome in in_succession(numbers, start, FIRST_S):
            figure = outcome.get("figure")
            if "status" in outcome:  # the process died of it
                figure = "hangs" if outcome["status"] == "timeout" else "unexpected"
            if figure:
                counts[figure] += 1
                failures.append(f"{seed} {number}: {figure}: {outcome['detail']}")
            outcomes[outcome.get("word", "failed")] += 1
    except Failed as failed:
        raise MeasureError(f"{function}: no fault was injected: {failed}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**{name: counts[name] for name in FIGURES}, "outcomes": dict(outcomes), "failures": failures}


def _start(module: str, function: str, seed: str, folder: Path, numbers: Sequence[int]) -> Child:
    return Child.forked(partial(_work, module, function, seed, folder, numbers))


def _work(
    module: str, function: str, seed: str, folder: Path, numbers: Sequence[int], report: Report
) -> None:
    """In a process of its own: all faults, and a look at what each leaves behind."""
    own = Path(tempfile.mkdtemp(dir=folder))
    place = Place(own / "material", own / "canary")
    work, temporary, home = own / "work", own / "tmp", own / "home"
    for made in (place.material, temporary, home):
        made.mkdir()
    os.environ |= {"TMPDIR": str(temporary), "HOME": str(home), "GNNPERF_CACHE": str(own / "cache")}
    tempfile.tempdir = None  # read anew
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.RLIM_INFINITY))
    os.chdir(home)
    prepare: Prepare = getattr(importlib.import_module(module), function)
    injector = prepare(place)
    started, mine = _watch(), {*children()}
    for number in numbers:
        work.mkdir()
        left = {*temporary.iterdir()}
        report(begin=number, limit_s=LIMIT_S)
        started.clear()
        try:
            outcome: dict[str, Any] = {"word": injector(random.Random(f"{seed} {number}"), work)}
            _look_around(place, started, [*{*temporary.iterdir()} - left, *{*children()} - mine])
        except Found as found:
            outcome = {"figure": found.figure, "detail": found.detail}
        except BaseException as error:
            outcome = {"figure": "unexpected", "detail": f"in the campaign: {last_line(error)}"}
        place.canary.unlink(missing_ok=True)
        shutil.rmtree(work)
        report(end=number, outcome=outcome)


def _look_around(place: Place, started: list[str], left: Sequence[object]) -> None:
    expect(not place.canary.exists(), "executions", "code of a stranger ran")
    expect(not started, "executions", f"started {started[:1]}")
    expect(not left, "leftovers", f"left {left[:1]} behind")


_allowed = 0


@contextmanager
def may_start_processes() -> Iterator[None]:
    """What is inside starts processes of its own accord."""
    global _allowed
    _allowed += 1
    try:
        yield
    finally:
        _allowed -= 1


def _watch() -> list[str]:
    """Where processes that Python starts from now on, and connections to others, are noted."""
    noted: list[str] = []
    watched = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "subprocess.Popen",
               "socket.connect", "pickle.find_class")  # fmt: skip

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in watched and not _allowed:
            noted.append(f"{event} {arguments!r:.100}")

    sys.addaudithook(note)
    return noted


def children() -> list[int]:
    """Processes that this one started and that live, or were not waited for."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def partials(folder: Path) -> list[Path]:
    """Files that a writer makes on its way and removes."""
    names = (".partial", ".tmp", ".new", ".old")
    return [p for p in folder.rglob("*") if p.name.endswith(names) and "_versions" not in p.parts]


def differing(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Names under which something else is found than expected, or what nobody expects."""
    return [name for name in found if name not in expected or found[name] != expected[name]]
