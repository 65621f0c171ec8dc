"""What every frontend hands on: programs and their tasks; and which frontend a kernel belongs to.

A frontend is a package with an entry point in the group `gnnperf.frontends`: an object, or a class without
arguments, that is a `Frontend`. Those that come with gnnperf are found in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from gnnperf.errors import GnnperfError, InputError, first_line
from gnnperf.graph import ProgramGraph

GROUP = "gnnperf.frontends"


@dataclass(frozen=True)
class Skipped:
    """A part of a program that stays as its frontend compiles it, and why."""

    part: str
    reason: str


class Task(Protocol):
    """What is embedded, scheduled and measured: a loop nest, a TVM function.

    calls: how often one run of the program runs it; None where that was not counted. objection: why no
    schedule can be tried on it; None where one can.
    """

    @property
    def name(self) -> str: ...
    @property
    def calls(self) -> int | None: ...
    @property
    def objection(self) -> str | None: ...
    @property
    def graph(self) -> ProgramGraph:
        """Raises UnsupportedConstruct where the IR lacks what the task does."""


class Program(Protocol):
    """A kernel as its frontend sees it.

    schedule_kind: of the schedules that its tasks take: "recipe", "trace", "configuration"; "" where they
    take none. frontend: the name that records of its tasks carry. skipped: parts that are no tasks. notes:
    what else is to be said of how it was read.
    """

    @property
    def name(self) -> str: ...
    @property
    def frontend(self) -> str: ...
    @property
    def schedule_kind(self) -> str: ...
    @property
    def tasks(self) -> Sequence[Task]: ...
    @property
    def skipped(self) -> Sequence[Skipped]: ...
    @property
    def notes(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Given:
    """What a user gives beside a kernel.

    sizes: numbers by name: symbols, scalar arguments, parameters of a function that makes the kernel.
    inputs: arrays and scalars by name, a function that makes them as `file.py:function`, or, of a torch
    module, its example inputs in order; None: they are generated. seed: of what is generated. weights:
    whether a TVM function's weights are "constant" or "varying", see `Session.retrieve`.
    """

    sizes: Mapping[str, float] = field(default_factory=dict)
    inputs: Mapping[str, Any] | Sequence[Any] | str | None = None
    seed: int | None = None
    weights: str | None = None

    def refuse(self, kernel: str, *names: str) -> None:
        """InputError where one of these was given and means nothing for such a kernel."""
        for name in names:
            value = getattr(self, name)
            if len(value) if isinstance(value, Mapping) else value is not None:
                raise InputError(f"--{name}: {kernel} takes none: expected no such option; leave it out")


class Frontend(Protocol):
    """Makes programs of what users name or hold."""

    def claims(self, kernel: Any) -> bool:
        """Is a kernel this frontend's? Asked of all frontends: must be fast, and import nothing slow."""

    def load(self, kernel: Any, given: Given) -> Program:
        """The program of a kernel: a text as on the command line, or an object. Raises InputError."""


def load_program(kernel: Any, given: Given) -> Program:
    """The program that the first frontend makes of a kernel that it claims. Raises InputError."""
    return find_frontend(kernel).load(kernel, given)


def find_frontend(kernel: Any) -> Frontend:
    """The frontend that claims a kernel. Raises InputError where none does."""
    for frontend in frontends().values():
        if frontend.claims(kernel):
            return frontend
    known = ", ".join(frontends())
    wanted = f"a path.py:name or a program that a frontend takes ({known})"
    raise InputError(f"kernel: expected {wanted}, got {kernel_type(kernel)}; see `gnnperf.Session`")


@cache
def frontends() -> Mapping[str, Frontend]:
    """Those that are installed, by name, in the order in which they are asked: gnnperf's own last, and DaCe's
    last of all, which takes every function of a Python file that nobody else claims."""
    found = entry_points(group=GROUP)
    order = sorted(found, key=lambda e: (e.value.startswith("gnnperf."), e.name == "dace", e.name))
    return {entry.name: _loaded(entry) for entry in order}


def _loaded(entry: EntryPoint) -> Frontend:
    try:
        found = entry.load()
        return found() if isinstance(found, type) else found
    except Exception as error:  # it may be anybody's
        raise GnnperfError(
            f"the frontend {entry.name!r} cannot be loaded ({entry.value}: {first_line(error)}); "
            "mend or uninstall its package"
        ) from error


def kernel_type(kernel: Any) -> str:
    """Of an object, for people."""
    return f"{type(kernel).__module__}.{type(kernel).__qualname__}"


def is_of(kernel: Any, *packages: str) -> bool:
    """Does an object's class, or one that it is derived from, come from one of these packages?"""
    return any(parent.__module__.partition(".")[0] in packages for parent in type(kernel).__mro__)
