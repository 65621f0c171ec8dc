"""A tunable kernel, described as data: loops, buffers, and what each parameter does to the schedule."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from gnnperf.documents import from_yaml, text_of
from gnnperf.errors import InputError, first_line
from gnnperf.frontends.gpu_kernels.expressions import FUNCTIONS, Expression
from gnnperf.frontends.gpu_kernels.statements import access, parse_statement
from gnnperf.graph.vocabulary import element_bytes
from gnnperf.nests import Statement
from gnnperf.nests.ir import loads

KERNELS = Path(__file__).parent / "kernels"
"""Descriptions that come with gnnperf."""

DOUBLES = ("float64", "complex128")
BINDINGS = tuple(f"{level}.{axis}" for level in ("block", "thread") for axis in "xyz")
REQUIRED = "name parameters buffers loops compute"
OF_LAUNCH = "stage registers blocks_per_core launches"
OPTIONAL = f"sizes constraints {OF_LAUNCH} then"
ONE, ZERO = Expression.parse(1, "1"), Expression.parse(0, "0")


@dataclass(frozen=True, slots=True)
class BufferDescription:
    """shape: one expression per dimension, the last contiguous. read_only: true where loads may go through
    a path for data that the kernel does not write (texture, constant memory).

    Of a buffer that subscripts of others read: below: its elements are drawn evenly from 0 to below that;
    data: they are these, one dimension per dimension of the buffer.
    """

    dtype: str
    shape: tuple[Expression, ...]
    read_only: Expression = ZERO
    below: Expression | None = None
    data: Int64[np.ndarray, " *n"] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LoopDescription:
    """A loop over part of an axis, outermost first in `Description.loops`.

    step: how far the axis moves from one iteration to the next; None: as far as the loops further inside
    over the same axis reach together. bind: one of BINDINGS, or "" for a loop of every thread. unroll,
    vector: true where it is. ordered: its iterations depend on one another.
    """

    name: str
    axis: str
    extent: Expression
    step: Expression | None = None
    bind: str = ""
    unroll: Expression = ZERO
    vector: Expression = ZERO
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class StageDescription:
    """A copy of what a block reads of a buffer, in shared memory.

    inside: the loop of a thread in each iteration of which it is filled; "": once, ahead of all of them.
    when: true where there is one. threads: the block's shape while it copies, innermost dimension first.
    vector: elements per load. pad: elements added to a row. copies: of the tile (2: double buffering).
    """

    buffer: str
    inside: str
    when: Expression
    threads: tuple[Expression, ...]
    vector: Expression
    pad: Expression
    copies: Expression


@dataclass(frozen=True, slots=True)
class StatementDescription:
    """when: true in the configurations that run it."""

    statement: Statement
    when: Expression = ONE


@dataclass(frozen=True, slots=True)
class Description:
    """What `read_description` reads; see its files under `kernels/` for how one is written.

    parameters: values of each tuning parameter; the first is the one that a configuration without it has.
    registers: buffers of which every thread keeps its elements in registers until it is done.
    blocks_per_core: how many blocks the compiler has to leave registers for; 0: not said.
    launches: how often the host launches this, one after another.
    then: what it launches after that: of the same sizes, parameters and buffers, without constraints.
    """

    name: str
    sizes: Mapping[str, int]
    parameters: Mapping[str, tuple[int, ...]]
    constraints: tuple[Expression, ...]
    buffers: Mapping[str, BufferDescription]
    loops: tuple[LoopDescription, ...]
    stages: tuple[StageDescription, ...]
    registers: frozenset[str]
    compute: tuple[StatementDescription, ...]
    blocks_per_core: Expression = ZERO
    launches: Expression = ONE
    then: tuple[Description, ...] = ()

    @property
    def dtype(self) -> str:
        """Of its arithmetic: float64 where a result is one, whatever else is stored, else float32."""
        targets = (s.statement.target.buffer for one in (self, *self.then) for s in one.compute)
        return "float64" if any(self.buffers[name].dtype in DOUBLES for name in targets) else "float32"

    @property
    def used(self) -> frozenset[str]:
        """Parameters and sizes that something other than a constraint reads."""
        read = [self.blocks_per_core, self.launches, *(s.when for s in self.compute)]
        for buffer in self.buffers.values():
            read += [*buffer.shape, buffer.read_only, *([] if buffer.below is None else [buffer.below])]
        for loop in self.loops:
            read += [loop.extent, loop.unroll, loop.vector, *([] if loop.step is None else [loop.step])]
        for stage in self.stages:
            read += [stage.when, *stage.threads, stage.vector, stage.pad, stage.copies]
        later = (description.used for description in self.then)
        return frozenset[str]().union(*(expression.names for expression in read), *later)


def list_descriptions() -> list[str]:
    """Names of the kernels that gnnperf knows."""
    return sorted(path.stem for path in KERNELS.glob("*.yaml"))


def find_description(kernel: str) -> Description:
    """By the name of a known kernel, or from a YAML file. Raises InputError."""
    known = list_descriptions()
    if kernel in known:
        return read_description(KERNELS / f"{kernel}.yaml")
    if not isinstance(kernel, str | Path) or not Path(kernel).is_file():
        raise InputError(
            f"expected one of {', '.join(known)}, or a YAML file that describes a kernel, got {kernel!r}"
        )
    return read_description(Path(kernel))


def read_description(path: Path) -> Description:
    """Read and check a YAML description. Raises InputError."""
    try:
        values = from_yaml(text_of(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    except ValueError as error:
        raise InputError(f"{path}: expected YAML: {error}") from None
    return _Reader(str(path)).description(values)


class _Reader:
    """Builds a description; messages begin with where in the file something is."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def description(self, values: Any) -> Description:
        top = self.fields(values, "", REQUIRED, OPTIONAL)
        sizes = {
            name: self.integer(v, f"sizes.{name}")
            for name, v in self.mapping(top.get("sizes"), "sizes").items()
        }
        parameters = {
            name: self.choices(v, f"parameters.{name}")
            for name, v in self.mapping(top["parameters"], "parameters").items()
        }
        if both := sorted(set(sizes) & set(parameters)):
            raise InputError(
                f"{self.origin}: {both[0]!r} is a size and a parameter; name one of them otherwise"
            )
        if functions := sorted({*sizes, *parameters} & set(FUNCTIONS)):
            raise InputError(f"{self.origin}: {functions[0]!r} is a function; choose another name")
        if not top["parameters"]:
            raise InputError(f"{self.origin}: parameters: expected at least one entry")
        known = {*sizes, *parameters}
        buffers = {
            name: self.buffer(v, f"buffers.{name}", known)
            for name, v in self.mapping(top["buffers"], "buffers").items()
        }
        common = Description(str(top["name"]), sizes, parameters, (), buffers, (), (), frozenset(), ())
        first = self.launch(top, "", common, known)
        then = [
            self.launch(
                self.fields(v, f"then[{i}]", "loops compute", OF_LAUNCH), f"then[{i}].", common, known
            )
            for i, v in enumerate(self.items(top.get("then"), "then"))
        ]
        constraints = (
            self.expression(v, f"constraints[{i}]", known)
            for i, v in enumerate(self.items(top.get("constraints"), "constraints"))
        )
        return replace(first, constraints=tuple(constraints), then=tuple(then))

    def launch(self, given: Mapping[str, Any], at: str, common: Description, known: set[str]) -> Description:
        """What is launched at once. at: prefix of its place in the file; common: what all launches share."""
        for what in ("loops", "compute"):
            if not given[what]:
                raise InputError(f"{self.origin}: {at}{what}: expected at least one entry")
        buffers, seen = common.buffers, Counter[str]()
        loops = tuple(
            self.loop(v, f"{at}loops[{i}]", known, seen)
            for i, v in enumerate(self.items(given["loops"], f"{at}loops"))
        )
        if not any(loop.bind.startswith("thread") for loop in loops):
            raise InputError(f"{self.origin}: {at}loops: expected at least one with bind: thread.x")
        bound = Counter(f"{loop.axis} with bind: {loop.bind}" for loop in loops if loop.bind)
        if several := [words for words, count in bound.items() if count > 1]:
            raise InputError(f"{self.origin}: {at}loops: expected one over {several[0]}, got several")
        inner = {loop.name for loop in loops if not loop.bind}
        result = replace(
            common,
            loops=loops,
            stages=tuple(
                self.stage(v, f"{at}stage[{i}]", known, buffers, inner)
                for i, v in enumerate(self.items(given.get("stage"), f"{at}stage"))
            ),
            registers=frozenset(
                self.one_of(v, buffers, f"{at}registers[{i}]")
                for i, v in enumerate(self.items(given.get("registers"), f"{at}registers"))
            ),
            compute=tuple(
                self.statement(v, f"{at}compute[{i}]", known, buffers, seen)
                for i, v in enumerate(self.items(given["compute"], f"{at}compute"))
            ),
            blocks_per_core=self.expression(given.get("blocks_per_core", 0), f"{at}blocks_per_core", known),
            launches=self.expression(given.get("launches", 1), f"{at}launches", known),
        )
        read = [load for each in result.compute for load in loads(each.statement.value)]
        staged = {stage.buffer for stage in result.stages}
        if unread := sorted(staged - {load.buffer for load in read}):
            raise InputError(f"{self.origin}: {at}stage: expected buffers that are read, got {unread[0]}")
        for load in read:
            if load.buffer in staged and access(load, self.origin).indirect:
                raise InputError(
                    f"{self.origin}: {at}stage: expected buffers that are read at sums of axes, got "
                    f"{load.buffer}, whose tile nobody knows"
                )
        return result

    def buffer(self, values: Any, where: str, known: set[str]) -> BufferDescription:
        given = self.fields(values, where, "dtype shape", "read_only values")
        try:
            element_bytes(str(given["dtype"]))
        except InputError as error:
            raise InputError(f"{self.origin}: {where}: {error}") from None
        shape, elements = self.items(given["shape"], f"{where}.shape"), given.get("values")
        data = self.data(elements, f"{where}.values", len(shape)) if str(elements).endswith(".npy") else None
        drawn = elements is not None and data is None
        return BufferDescription(
            str(given["dtype"]),
            tuple(self.expression(v, f"{where}.shape", known) for v in shape),
            self.expression(given.get("read_only", 0), f"{where}.read_only", known),
            self.expression(elements, f"{where}.values", known) if drawn else None,
            data,
        )

    def data(self, name: Any, where: str, rank: int) -> Int64[np.ndarray, " *n"]:
        """Of a file beside the description."""
        path = Path(self.origin).parent / str(name)
        if path.name != name or not path.is_file():
            raise InputError(f"{self.origin}: {where}: expected a file beside the description, got {name!r}")
        try:
            with path.open("rb") as file:  # what np.load opens itself stays open where it is damaged
                found = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
            raise InputError(f"{self.origin}: {where}: cannot read {path}: {first_line(error)}") from None
        if not isinstance(found, np.ndarray):
            raise InputError(f"{self.origin}: {where}: expected one array, got an archive")
        if found.dtype.kind not in "iu" or found.ndim != rank or not found.size:
            raise InputError(
                f"{self.origin}: {where}: expected integers in {rank} dimensions, got {found.dtype} in "
                f"{found.ndim}"
            )
        return found.astype(np.int64)

    def loop(self, values: Any, where: str, known: set[str], seen: Counter[str]) -> LoopDescription:
        given = self.fields(values, where, "axis extent", "step bind unroll vector ordered")
        axis, bind = str(given["axis"]), str(given.get("bind", ""))
        if not axis.isidentifier() or axis in known:
            raise InputError(
                f"{self.origin}: {where}.axis: expected a name that no parameter has, got {axis!r}"
            )
        if bind:
            self.one_of(bind, BINDINGS, f"{where}.bind")
        step = given.get("step")
        # Loops that a thread runs are counted by axis: k0 is the outermost of them over k.
        name = f"{axis}_{bind.replace('.', '_')}" if bind else f"{axis}{seen[axis]}"
        seen[axis] += not bind
        return LoopDescription(
            name,
            axis,
            self.expression(given["extent"], f"{where}.extent", known),
            None if step is None else self.expression(step, f"{where}.step", known),
            bind,
            self.expression(given.get("unroll", 0), f"{where}.unroll", known),
            self.expression(given.get("vector", 0), f"{where}.vector", known),
            bool(given.get("ordered", False)),
        )

    def stage(
        self, values: Any, where: str, known: set[str], buffers: Iterable[str], loops: set[str]
    ) -> StageDescription:
        given = self.fields(values, where, "buffer threads", "inside when vector pad copies")
        inside = str(given.get("inside", ""))
        if inside:
            self.one_of(inside, loops, f"{where}.inside")
        found = {
            key: self.expression(given.get(key, default), f"{where}.{key}", known)
            for key, default in (("when", 1), ("vector", 1), ("pad", 0), ("copies", 1))
        }
        threads = self.items(given["threads"], f"{where}.threads")
        if not threads:
            raise InputError(f"{self.origin}: {where}.threads: expected at least one entry")
        return StageDescription(
            self.one_of(given["buffer"], buffers, f"{where}.buffer"),
            inside,
            threads=tuple(self.expression(v, f"{where}.threads", known) for v in threads),
            **found,
        )

    def statement(
        self,
        values: Any,
        where: str,
        known: set[str],
        buffers: Mapping[str, BufferDescription],
        axes: Iterable[str],
    ) -> StatementDescription:
        given = self.fields(values, where, "do", "when") if isinstance(values, Mapping) else {"do": values}
        ranks = {name: len(buffer.shape) for name, buffer in buffers.items()}
        found = parse_statement(given["do"], ranks, axes, f"{self.origin}: {where}")
        for load in loads(found.value):
            for inner in access(load, f"{self.origin}: {where}").indirect.values():
                if buffers[inner.buffer].below is None and buffers[inner.buffer].data is None:
                    raise InputError(
                        f"{self.origin}: {where}: {load.buffer} is read where {inner.buffer} says; give "
                        f"buffers.{inner.buffer} values: a number that they are below, or file.npy with them"
                    )
        return StatementDescription(
            found,
            self.expression(given.get("when", 1), f"{where}.when", known),
        )

    # ------------------------------------------------------------------ values

    def expression(self, value: Any, where: str, known: set[str]) -> Expression:
        found = Expression.parse(value, f"{self.origin}: {where}")
        if unknown := sorted(found.names - known):
            raise InputError(f"{self.origin}: {where}: {unknown[0]!r} is neither a parameter nor a size")
        return found

    def fields(self, values: Any, where: str, required: str, optional: str) -> Mapping[str, Any]:
        given, needed = self.mapping(values, where or "the file"), required.split()
        at = f"{self.origin}: {where}" if where else self.origin
        if missing := [name for name in needed if name not in given]:
            raise InputError(f"{at}: {missing[0]!r} is missing")
        if unknown := [str(name) for name in given if name not in {*needed, *optional.split()}]:
            raise InputError(
                f"{at}: unknown field {unknown[0]!r}; known: {', '.join((*needed, *optional.split()))}"
            )
        return given

    def mapping(self, values: Any, where: str) -> Mapping[str, Any]:
        if not isinstance(values or {}, Mapping):
            raise InputError(f"{self.origin}: {where}: expected names with values, got {values!r}")
        return {str(k): v for k, v in (values or {}).items()}

    def items(self, values: Any, where: str) -> list[Any]:
        if not isinstance(values or [], list):
            raise InputError(f"{self.origin}: {where}: expected a list, got {values!r}")
        return values or []

    def choices(self, values: Any, where: str) -> tuple[int, ...]:
        found = tuple(self.integer(v, where) for v in self.items(values, where))
        if not found or len(set(found)) != len(found):
            raise InputError(f"{self.origin}: {where}: expected different integers, got {values!r}")
        return found

    def integer(self, value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
            raise InputError(f"{self.origin}: {where}: expected an integer of at least 0, got {value!r}")
        return value

    def one_of(self, value: Any, known: Iterable[str], where: str) -> str:
        if value not in (names := list(known)):
            raise InputError(
                f"{self.origin}: {where}: expected one of {', '.join(sorted(names))}, got {value!r}"
            )
        return str(value)
