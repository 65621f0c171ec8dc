"""Programs of loop nests: what recipes schedule, and what the C++ backend builds, verifies and measures.

`NestProgram` is one that a frontend has translated as a whole: it needs no more than its nests and their
inputs. Frontends that keep code of their own around the nests, as DaCe's does, offer the same members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gnnperf.frontends.base import Program, Skipped, Task
from gnnperf.frontends.native import native_function
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Runner, Source
from gnnperf.nests import LoopNest, Statement, nest_graph, normalise
from gnnperf.nests.affine import evaluate
from gnnperf.nests.analysis import longest_chain, quantised
from gnnperf.nests.coverage import Flow, flow
from gnnperf.nests.ir import walk
from gnnperf.nests.trip_counts import measured_trip_counts
from gnnperf.schedules.recipes import Recipe

if TYPE_CHECKING:
    from gnnperf.schedules.recipes import CppFunction

PLAIN_BASELINE: Mapping[str, str] = {"plain": "plain-c++"}
PLAIN = Recipe(vector="none", parallel="none", accumulate=False)
"""Loops as they stand, on one thread, vectorised by the compiler where it can."""


class Measurable(Protocol):
    """Code with its inputs: a nest or a whole program, unscheduled.

    data: a value for every argument. outputs: arrays that are written; inouts: those of them that are read
    before, or not wholly written; updated: those that are read before. reduction_length: terms of the
    longest sum behind an output; quantised: outputs that are integers made of real numbers. baselines: what a
    user may ask to beat, the optimised program first and the plain one last, and how reports call it.
    """

    @property
    def baselines(self) -> Mapping[str, str]: ...
    @property
    def name(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
    @property
    def outputs(self) -> Sequence[str]: ...
    @property
    def inouts(self) -> Sequence[str]: ...
    @property
    def updated(self) -> Sequence[str]: ...
    @property
    def reduction_length(self) -> int: ...
    @property
    def quantised(self) -> Collection[str]: ...

    def plain_source(self) -> Source:
        """The program as it stands: what results are verified against. Raises BuildError."""

    def optimised_sources(self) -> Mapping[str, Source]:
        """What the frontend's own optimiser makes of it, in one form or several, as reports call each; none
        where it has no optimiser. Raises BuildError."""


class NestTask(Task, Measurable, Protocol):
    """A loop nest in normal form, a task of a program. index: its place in the program."""

    @property
    def index(self) -> int: ...
    @property
    def nest(self) -> LoopNest: ...
    @property
    def trip_counts(self) -> Mapping[str, float]:
        """Measured means of loops whose bounds depend on data, by iterator."""

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """Optimised baselines that are recipes, which the whole program may be given, too: by the names that
        reports give them."""


class Tuned(Protocol):
    """A whole program with schedules of its tasks."""

    def source(self, name: str) -> Source:
        """Its code, ready for `measure.Compiler`. Raises BuildError."""

    def save(self, folder: Path) -> Sequence[str]:
        """Write it in the frontend's own form; the names of the files."""


class TunableProgram(Program, Protocol):
    """A program of nests that recipes can be put into.

    baselines: as of a `Measurable`. whole: all of it. function: file and name of the Python function that it
    was made from, where Python can run that. sizes: values of its symbols. same: arguments that are
    another argument of the whole, and have no value of their own.
    """

    @property
    def tasks(self) -> Sequence[NestTask]: ...
    @property
    def baselines(self) -> Mapping[str, str]: ...
    @property
    def whole(self) -> Measurable: ...
    @property
    def function(self) -> tuple[Path, str] | None: ...
    @property
    def in_python(self) -> Callable[[Mapping[str, Any]], Mapping[str, Any]] | None:
        """Computes the outputs from a value of every argument as Python understands the program, once, in a
        process of its own; None where the program is no Python function."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def same(self) -> Mapping[str, str]: ...

    def capture(self, compiler: Compiler, runner: Runner, for_graphs: bool = False) -> None:
        """Fill the inputs of all tasks, or only of those whose graphs need them. Raises GnnperfError."""

    def other_inputs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Values for every argument of the whole that results may be verified on as well, and in words what
        these are like; none where all were given."""

    def nearby_inputs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The same, near what was given, for results about which that says nothing."""

    def tuned(self, functions: Mapping[int, CppFunction]) -> Iterator[Tuned]:
        """The program with functions in place of some tasks, by their index, the best form first; the next
        is for where one does not work. Raises GnnperfError."""

    def kept(self, baseline: str) -> Tuned:
        """The program behind a baseline."""

    def is_all(self, task: NestTask) -> bool:
        """Is there nothing in the program besides the task, run once? Then what is known of the whole is
        known of the task."""


@dataclass(frozen=True)
class PlainNest:
    """A nest that is compiled as it stands, with its inputs: the task of a `NestProgram`."""

    nest: LoopNest
    data: Mapping[str, Any]
    index: ClassVar[int] = 0
    calls: ClassVar[int] = 1
    baselines: ClassVar[Mapping[str, str]] = PLAIN_BASELINE
    recipes: ClassVar[Mapping[str, Recipe]] = MappingProxyType({})

    @property
    def name(self) -> str:
        return self.nest.name

    @property
    def objection(self) -> str | None:
        return None if self.nest.has_loops else "it has no loop"

    @property
    def trip_counts(self) -> Mapping[str, float]:
        return measured_trip_counts(self.nest, self.data)

    @cached_property
    def graph(self) -> ProgramGraph:
        return nest_graph(self.nest, self.trip_counts)

    @cached_property
    def outputs(self) -> Sequence[str]:
        stored = {s.target.buffer for s in walk(self.nest.body) if isinstance(s, Statement)}
        return sorted(name for name in stored if not self.nest.buffers[name].transient)

    @cached_property
    def inouts(self) -> Sequence[str]:
        whole, buffers = self._flow, self.nest.buffers
        return [n for n in self.outputs if n in whole.exposed or not whole.defines(buffers[n])]

    @cached_property
    def updated(self) -> Sequence[str]:
        return [n for n in self.outputs if n in self._flow.exposed]

    @cached_property
    def _flow(self) -> Flow:
        return flow(self.nest.body)

    @cached_property
    def reduction_length(self) -> int:
        known = self.nest.parameters
        return longest_chain(self.nest.body, lambda expr, values: evaluate(expr, {**known, **values}))

    @cached_property
    def quantised(self) -> Collection[str]:
        return quantised([self.nest])

    def plain_source(self) -> Source:
        return Source.of(native_function(PLAIN, self.nest, f"{self.name}_plain"))

    def optimised_sources(self) -> Mapping[str, Source]:
        return {}


@dataclass
class NestProgram:
    """A program that is nothing but a loop nest, of one or several statements, with its inputs.

    data: an array for every buffer that is not transient, a number for every parameter.

    Example:
        NestProgram("contraction", "einsum", nest, {"a": a, "b": b, "out": out})
    """

    name: str
    frontend: str
    nest: LoopNest
    data: Mapping[str, Any]
    skipped: Sequence[Skipped] = ()
    notes: Sequence[str] = ()
    schedule_kind: ClassVar[str] = "recipe"
    baselines: ClassVar[Mapping[str, str]] = PLAIN_BASELINE
    function: ClassVar[tuple[Path, str] | None] = None
    in_python: ClassVar[None] = None
    sizes: ClassVar[Mapping[str, int]] = MappingProxyType({})
    same: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @cached_property
    def whole(self) -> PlainNest:
        """The nest in normal form, the only task."""
        return PlainNest(replace(normalise(self.nest), name=self.name), self.data)

    @property
    def tasks(self) -> Sequence[PlainNest]:
        return [self.whole]

    def capture(self, compiler: Compiler, runner: Runner, for_graphs: bool = False) -> None:
        """It has its inputs."""

    def other_inputs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return iter(())

    nearby_inputs = other_inputs

    def tuned(self, functions: Mapping[int, CppFunction]) -> Iterator[Tuned]:
        (function,) = functions.values()
        yield _Function(function)

    def is_all(self, task: NestTask) -> bool:
        return True

    def kept(self, baseline: str) -> Tuned:
        return _Function(native_function(PLAIN, self.whole.nest, f"{self.name}_plain"))


@dataclass(frozen=True)
class _Function:
    """A program that is one C++ function."""

    function: CppFunction

    def source(self, name: str) -> Source:
        text = self.function.source.replace(f" {self.function.symbol}(", f" {name}(")
        return Source.of(replace(self.function, symbol=name, source=text))

    def save(self, folder: Path) -> Sequence[str]:
        (folder / "kernel.cpp").write_text(self.function.source, encoding="utf-8")
        return ("kernel.cpp",)
