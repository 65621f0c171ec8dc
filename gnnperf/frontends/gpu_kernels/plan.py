"""A description applied to configurations: extents, steps, tiles, for one or for thousands at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels.description import (
    Description,
    LoopDescription,
    StageDescription,
    find_description,
    list_descriptions,
)
from gnnperf.frontends.gpu_kernels.statements import ElementAccess, access
from gnnperf.nests import Statement
from gnnperf.nests.ir import loads

Integers = Int64[np.ndarray, " n"]
Numbers = Float64[np.ndarray, " n"]

ROUNDS = 10
"""How often configurations are drawn from a space that is too large to go through."""


@dataclass(frozen=True)
class PlannedLoop:
    """extent, step: per configuration. about: what the description says of it."""

    about: LoopDescription
    extent: Integers
    step: Integers
    unrolled: Bool[np.ndarray, " n"]
    vectorized: Bool[np.ndarray, " n"]

    @property
    def level(self) -> str:
        """ "block", "thread", or "" for a loop of every thread."""
        return self.about.bind.partition(".")[0]

    @property
    def flat(self) -> Bool[np.ndarray, " n"]:
        """Where its iterations are code of their own, or lanes of one instruction."""
        return self.unrolled | self.vectorized


@dataclass(frozen=True)
class PlannedStage:
    """tile: elements per dimension of the buffer, without padding. active: configurations that have it."""

    about: StageDescription
    active: Bool[np.ndarray, " n"]
    tile: tuple[Integers, ...]
    pad: Integers
    copies: Integers
    vector: Integers
    threads: tuple[Integers, ...]

    @property
    def elements(self) -> Numbers:
        """Of a tile."""
        return np.prod([side.astype(float) for side in self.tile], axis=0)


@dataclass(frozen=True)
class Plan:
    """n configurations of a kernel, or of one of its launches.

    values: of sizes and parameters. loops: outermost first. statements: with where they run. rules: what has
    to hold, and where it does. repeats: how often it is launched. then: what is launched after it.
    """

    description: Description
    values: Mapping[str, Integers]
    loops: tuple[PlannedLoop, ...]
    statements: tuple[tuple[Statement, Bool[np.ndarray, " n"]], ...]
    rules: tuple[tuple[str, Bool[np.ndarray, " n"]], ...]
    repeats: Integers
    then: tuple[Plan, ...] = ()

    @property
    def count(self) -> int:
        return len(self.repeats)

    @cached_property
    def valid(self) -> Bool[np.ndarray, " n"]:
        """Configurations that break no rule."""
        return np.all([holds for _, holds in self.rules], axis=0)

    def require_valid(self, where: str) -> None:
        """Raises InputError, which begins with `where`, where the first configuration breaks a rule."""
        if broken := [rule for rule, holds in self.rules if not holds[0]]:
            raise InputError(
                f"{where}: expected a configuration in which {broken[0]}; see the kernel's constraints"
            )

    @property
    def launches(self) -> tuple[Plan, ...]:
        """All that the host launches, in order."""
        return (self, *self.then)

    @cached_property
    def shapes(self) -> Mapping[str, tuple[Integers, ...]]:
        """Elements per dimension, by buffer."""
        return {
            name: tuple(e(self.values, f"buffers.{name}.shape") for e in buffer.shape)
            for name, buffer in self.description.buffers.items()
        }

    @cached_property
    def reads(self) -> tuple[tuple[ElementAccess, Bool[np.ndarray, " n"]], ...]:
        """Different loads, and where they are made."""
        found: dict[str, tuple[ElementAccess, Any]] = {}
        for statement, active in self.statements:
            for load in loads(statement.value):
                one = access(load, self.description.name)
                before = found.get(repr(one))
                found[repr(one)] = (one, active if before is None else active | before[1])
        return tuple(found.values())

    @cached_property
    def writes(self) -> tuple[ElementAccess, ...]:
        different = {repr(s.target): access(s.target, self.description.name) for s, _ in self.statements}
        return tuple(different.values())

    @cached_property
    def stages(self) -> tuple[PlannedStage, ...]:
        return tuple(self._stage(about) for about in self.description.stages)

    @cached_property
    def identities(self) -> list[bytes]:
        """Equal for configurations that are one program: they differ in nothing that a loop, a stage, a
        buffer or a statement of theirs makes use of, as in how threads copy into shared memory where nothing
        is staged. What a parameter does that only constraints read is not known: it counts as a difference.
        """
        columns = [values for name, values in self.values.items() if name not in self.description.used]
        for launch in self.launches:
            runs = launch.repeats > 0
            columns += [np.where(runs, column, 0) for column in (launch.repeats, *launch._columns())]
        rows = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
        return [row.tobytes() for row in rows]

    def _columns(self) -> list[Integers]:
        """Columns that differ where this launch does."""
        description, columns = self.description, list[Integers]()
        for loop in self.loops:
            several = loop.extent > 1
            columns += [loop.extent, np.where(several, loop.step, 0)]
            columns += [several & loop.unrolled, several & loop.vectorized]
        for stage in self.stages:
            of = (*stage.tile, stage.pad, stage.copies, stage.vector, *stage.threads)
            columns += [stage.active, *(np.where(stage.active, values, 0) for values in of)]
        columns += [active for _, active in self.statements]
        for name, buffer in description.buffers.items():
            columns += [*self.shapes[name], buffer.read_only(self.values, name) != 0]
        return [*columns, description.blocks_per_core(self.values, "blocks_per_core")]

    def level(self, name: str) -> tuple[PlannedLoop, ...]:
        """Loops of one `PlannedLoop.level`."""
        return tuple(loop for loop in self.loops if loop.level == name)

    def iterations(self, loops: Iterable[PlannedLoop]) -> Numbers:
        """Of these loops together."""
        return math.prod((loop.extent for loop in loops), start=np.ones(self.count))

    def flat(self, loops: Iterable[PlannedLoop]) -> Numbers:
        """Iterations of those of these loops that are flat."""
        return math.prod((np.where(loop.flat, loop.extent, 1) for loop in loops), start=np.ones(self.count))

    def inside(self, stage: StageDescription) -> tuple[PlannedLoop, ...]:
        """Loops that move within a tile that is staged: of threads, and those further inside."""
        names = [loop.about.name for loop in self.loops]
        after = names.index(stage.inside) if stage.inside else -1
        return tuple(
            loop
            for i, loop in enumerate(self.loops)
            if loop.level == "thread" or (loop.level == "" and i > after)
        )

    def reach(self, axis: str, loops: Sequence[PlannedLoop]) -> Integers:
        """Values of an axis that these loops span, the first and the last included."""
        span = np.ones(self.count, dtype=np.int64)
        for loop in loops:
            if loop.about.axis == axis:
                span = span + loop.step * (loop.extent - 1)
        return span

    def moves(self, access: ElementAccess, loop: PlannedLoop) -> bool:
        """Whether another element is meant in each iteration."""
        return any(c.get(loop.about.axis) for c in access.coefficients) or any(
            self.moves(inner, loop) for inner in access.indirect.values()
        )

    def spread(self, inner: ElementAccess, loops: Sequence[PlannedLoop]) -> Integers:
        """How many values an element of a buffer of indices may have in the course of these loops."""
        about, one = self.description.buffers[inner.buffer], np.ones(self.count, dtype=np.int64)
        if not any(self.moves(inner, loop) for loop in loops):
            return one
        if about.data is not None:
            return one * (int(about.data.max()) - int(about.data.min()) + 1)
        assert about.below is not None
        return np.maximum(about.below(self.values, f"buffers.{inner.buffer}.values"), 1)

    def box(self, buffer: str, loops: Sequence[PlannedLoop]) -> tuple[Integers, ...]:
        """Elements per dimension of what the loops read of a buffer, by all loads together."""
        mine = [a for a, _ in self.reads if a.buffer == buffer]
        sides = []
        for d, shape in enumerate(self.shapes[buffer]):
            side = np.ones(self.count, dtype=np.int64)
            for axis in sorted({axis for a in mine for axis in a.coefficients[d]}):
                largest = max(abs(a.coefficients[d].get(axis, 0)) for a in mine)
                inner = next((a.indirect[axis] for a in mine if axis in a.indirect), None)
                reach = self.reach(axis, loops) if inner is None else self.spread(inner, loops)
                side = side + largest * (reach - 1)
            offsets = [a.offsets[d] for a in mine] or [0]
            sides.append(np.minimum(side + max(offsets) - min(offsets), shape))
        return tuple(sides)

    def _stage(self, about: StageDescription) -> PlannedStage:
        where = f"stage of {about.buffer}"
        return PlannedStage(
            about,
            about.when(self.values, where) != 0,
            self.box(about.buffer, self.inside(about)),
            about.pad(self.values, where),
            about.copies(self.values, where),
            np.maximum(about.vector(self.values, where), 1),
            tuple(np.maximum(e(self.values, where), 1) for e in about.threads),
        )


def plan(
    description: Description,
    configurations: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, float] | None = None,
) -> Plan:
    """Apply a description to configurations.

    Args:
        description: of the kernel.
        configurations: values by parameter; a parameter left out has its first value. They may also give
            sizes, as recorded configurations do.
        sizes: problem size, beside what the description says.

    Raises:
        InputError: a name that the kernel does not have, a value that is no integer of at least 0, or a
            bound that cannot be computed.
    """
    return _plan(description, _values(description, configurations, sizes or {}))


def _plan(description: Description, values: Mapping[str, Integers]) -> Plan:
    repeats = np.maximum(description.launches(values, f"{description.name}: launches"), 0)
    then = tuple(_plan(later, values) for later in description.then)
    launched = np.sum([launch.repeats for launch in then], axis=0) + repeats > 0
    rules = [("something is launched", launched)]
    for rule in description.constraints:
        rules.append((rule.text, rule(values, f"{description.name}: constraints") != 0))
    loops: list[PlannedLoop] = []
    span: dict[str, Integers] = {}
    for about in reversed(description.loops):
        where = f"{description.name}: loop {about.name}"
        extent = about.extent(values, where)
        rules.append((f"{about.extent.text} is at least 1", (extent >= 1) | (repeats == 0)))
        extent = np.maximum(extent, 1)
        step = span.get(about.axis, np.ones_like(extent)) if about.step is None else about.step(values, where)
        span[about.axis] = np.maximum(span.get(about.axis, np.ones_like(extent)), step * extent)
        loops.append(
            PlannedLoop(
                about, extent, step, about.unroll(values, where) != 0, about.vector(values, where) != 0
            )
        )
    for stage in description.stages:
        where = f"{description.name}: stage of {stage.buffer}"
        absent = (stage.when(values, where) == 0) | (repeats == 0)
        for least in (stage.vector, *stage.threads):
            rules.append((f"{least.text} is at least 1", absent | (least(values, where) >= 1)))
    statements = tuple((s.statement, s.when(values, "compute") != 0) for s in description.compute)
    for launch in then:
        rules += [(rule, holds | (launch.repeats == 0)) for rule, holds in launch.rules]
    return Plan(description, values, tuple(reversed(loops)), statements, tuple(rules), repeats, then)


def _values(
    description: Description, configurations: Sequence[Mapping[str, Any]], sizes: Mapping[str, float]
) -> dict[str, Integers]:
    name = description.name
    known = {*description.parameters, *description.sizes}
    if wrong := sorted(set(sizes) - set(description.sizes)):
        raise InputError(f"{name}: unknown size {wrong[0]!r}; known: {', '.join(description.sizes)}")
    named = set().union(*configurations)
    if wrong := sorted(named - known):
        raise InputError(
            f"{name}: unknown parameter {wrong[0]!r}; known: {', '.join(description.parameters)}"
        )
    first = {p: values[0] for p, values in description.parameters.items()}
    given = {**first, **description.sizes, **sizes}
    try:
        table = {
            key: integers(_column(configurations, key, default, key in named))
            for key, default in given.items()
        }
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name}: expected parameters and sizes that are integers of at least 0, {error}"
        ) from None
    return table


def _column(
    configurations: Sequence[Mapping[str, Any]], key: str, default: Any, named: bool
) -> Sequence[Any]:
    if not named:
        return [default] * len(configurations)
    try:
        return list(map(itemgetter(key), configurations))
    except KeyError:
        return [c.get(key, default) for c in configurations]


def integers(values: Sequence[Any]) -> Integers:
    """Values of a parameter or size. ValueError for anything but integers of at least 0."""
    found = np.array(values)
    if found.dtype.kind not in "biuf" or found.ndim != 1:
        raise ValueError(f"got {next((v for v in values if not isinstance(v, int | float)), values[0])!r}")
    found = np.where(found == found, found, 0)  # a missing value of a table
    if (wrong := (found < 0) | (found != np.floor(found)) | (np.abs(found) > np.iinfo(np.int64).max)).any():
        raise ValueError(f"got {values[int(wrong.argmax())]!r}")
    return found.astype(np.int64)


def configurations_of(
    description: Description,
    sizes: Mapping[str, float] | None = None,
    limit: int = 20_000,
    seed: int = 0,
) -> list[dict[str, int]]:
    """The search space: combinations of parameter values that the constraints allow, all of them where
    there are at most `limit` combinations, otherwise up to `limit` of them, drawn at random.

    sizes: problem size, beside what the description says. Raises InputError where none is found.
    """
    problem = _values(description, [{}], sizes or {})
    choices = list(description.parameters.values())
    count = math.prod(map(len, choices))
    if count <= limit:
        drawn: list[tuple[int, ...]] = list(itertools.product(*choices))
        found = _allowed(description, problem, drawn)
    else:
        chance, found, seen = np.random.default_rng(seed), [], set[tuple[int, ...]]()
        for _ in range(ROUNDS):
            columns = [chance.choice(values, limit) for values in choices]
            drawn = list(dict.fromkeys(zip(*(c.tolist() for c in columns), strict=True)))
            fresh = [values for values in drawn if values not in seen]
            seen.update(fresh)
            found += _allowed(description, problem, fresh)
            if len(found) >= limit:
                break
    if not found:
        said = "no configuration is left"
        if count > limit:
            said = f"none of {len(seen):,} configurations drawn out of {count:,} is left; give fewer values"
        raise InputError(f"{description.name}: constraints: {said}")
    return found[:limit]


def _allowed(
    description: Description, problem: Mapping[str, Integers], drawn: Sequence[tuple[int, ...]]
) -> list[dict[str, int]]:
    """problem: has the sizes, of one configuration. What a constraint rules out need make no sense in those
    after it, nor in what else the description says."""
    names, left = list(description.parameters), np.arange(len(drawn))
    columns = np.array(drawn, dtype=np.int64).reshape(-1, len(names)).T

    def values() -> dict[str, Integers]:
        chosen = dict(zip(names, columns[:, left], strict=True))
        return chosen | {name: np.full(len(left), problem[name]) for name in description.sizes}

    for rule in description.constraints:
        left = left[rule(values(), f"{description.name}: constraints") != 0]
    if len(left):
        left = left[_plan(description, values()).valid]
    return [dict(zip(names, drawn[i], strict=True)) for i in left]


def is_tunable(text: str) -> bool:
    """Whether a text means a tunable kernel: the name of one, or a YAML file."""
    name = text.partition(":")[0]
    return name in list_descriptions() or Path(name).suffix in (".yaml", ".yml")


def parse_configuration(text: str) -> tuple[Description, dict[str, int]]:
    """A kernel and what of its parameters and sizes is given: "gemm:MWG=64,NWG=32,M=1024", "mine.yaml".

    A parameter that is left out has its first value. Raises InputError: no such kernel, parameter or size,
    or a configuration that is not valid at these sizes.
    """
    name, _, written = text.partition(":")
    description, given = find_description(name), dict[str, int]()
    for part in filter(None, written.split(",")):
        key, _, value = part.partition("=")
        if not value.isdecimal():
            raise InputError(f"{text}: expected parameters and sizes as NAME=64,OTHER=2, got {part!r}")
        if key.strip() in given:
            raise InputError(f"{text}: expected each parameter once, got {key.strip()} twice")
        given[key.strip()] = int(value)
    plan(description, [given]).require_valid(text)
    return description, given
