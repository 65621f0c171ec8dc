"""Traces of TVM schedules as documents: what is stored, and replayed on the function it was made for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from gnnperf.documents import from_json
from gnnperf.errors import InputError, NotApplicable, first_line
from gnnperf.schedules.traces.allowed import check_shape, check_trace
from gnnperf.schedules.traces.roles import roles_of

TENSORIZE = "meta_schedule.auto_tensorize"
STRUCTURE = "meta_schedule.tiling_structure"
POSTPROCESSING = "EnterPostproc"
"""The instruction after which a trace records what post-processing did."""


@dataclass(frozen=True)
class TraceDocument:
    """A trace without its post-processing, in plain values.

    instructions: [kind, inputs, attributes, outputs] each, as TVM writes them. decisions: of instructions
    that sample, by position. blocks: role by name of the blocks that the trace may name. loops: kinds of
    the loops around the anchor (see `Roles`). cores: that the trace was made for; 0 where that is not known.
    """

    kind: ClassVar[str] = "trace"

    instructions: tuple[tuple[Any, ...], ...]
    decisions: Mapping[int, Any]
    blocks: Mapping[str, str]
    loops: str
    cores: int = 0

    def to_json(self) -> str:
        """One line; `from_json` restores an equal document."""
        fields = {
            "trace": [self.instructions, sorted(self.decisions.items())],
            "blocks": self.blocks,
            "loops": self.loops,
            "cores": self.cores,
        }
        return json.dumps(fields, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> TraceDocument:
        """Raises InputError where the text is not such a document, or the trace holds what is not allowed
        (see `allowed`): it may come from anywhere, and TVM would run it."""
        return _parsed(text)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in reports: what `to_json` writes, with its kind."""
        return {"kind": self.kind, **json.loads(self.to_json())}

    @property
    def key(self) -> str:
        """Equal documents have equal keys."""
        return self.to_json()

    def describe(self) -> str:
        """Tiles of the loops around the anchor and how far is unrolled, in a few words."""
        sketch = sketch_of(self)
        tiles = " ".join("x".join(map(str, t.factors)) for t in anchor_tiles(self))
        words = [sketch.structure or ("tiles" if tiles else "loops fused"), tiles]
        if sketch.factored:
            words.append("reduction split")
        if sketch.write_level is not None:
            words.append(f"written at level {sketch.write_level}")
        if steps := unrolled(self):
            words.append(f"unrolled up to {steps}")
        return " ".join(filter(None, words))

    def as_tvm(self) -> list[Any]:
        """What `tvm.s_tir.schedule.Trace.apply_json_to_schedule` takes."""
        return [[list(i) for i in self.instructions], [[k, v] for k, v in sorted(self.decisions.items())]]


@lru_cache(1 << 11)
def _parsed(text: str) -> TraceDocument:
    """What a store hands out was read before, to check it."""
    try:
        fields = from_json(text)
        instructions, decisions = fields["trace"]
        found = TraceDocument(
            tuple(tuple(i) for i in instructions),
            {int(k): v for k, v in decisions},
            dict(fields["blocks"]),
            fields["loops"],
            fields["cores"],
        )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(
            f"expected a trace as JSON (trace, blocks, loops, cores), got {text[:60]!r} "
            f"({type(error).__name__}: {first_line(error)})"
        ) from None
    check_trace(found.instructions, found.decisions)
    check_shape(found.blocks, found.loops, found.cores)
    return found


def trace_document(trace: Any, module: Any, target: Any = None) -> TraceDocument:
    """The document of a trace (or of a schedule) for the unscheduled module that it was made for.

    Post-processing is left out: it is redone wherever the trace is applied."""
    return document_of_json(getattr(trace, "trace", trace).as_json(remove_postproc=True), module, target)


def document_of_json(found: Sequence[Any], module: Any, target: Any = None) -> TraceDocument:
    """As `trace_document`, of a trace that TVM wrote as JSON (in MetaSchedule's tuning records, say)."""
    roles = roles_of(module["main"])
    instructions, decisions = plain(found)
    kinds = [i[0] for i in instructions]
    kept = kinds.index(POSTPROCESSING) if POSTPROCESSING in kinds else len(kinds)
    return TraceDocument(
        tuple(tuple(i) for i in instructions[:kept]),
        {int(k): v for k, v in decisions if int(k) < kept},
        dict(roles.blocks),
        roles.loops,
        cores_of(target),
    )


def replay(document: TraceDocument, context: Any) -> Any:
    """The trace applied to the module of a `TuneContext`, as it is, then the context's post-processing.
    Raises NotApplicable."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    schedule = Schedule(context.mod, seed=1)
    try:
        Trace.apply_json_to_schedule(document.as_tvm(), schedule)
    except Exception as error:  # TVM raises anything
        raise does_not_fit(error) from None
    schedule.enter_postproc()
    for postproc in context.space_generator.postprocs:
        try:
            accepted = postproc.apply(schedule)
        except Exception as error:  # TVM raises anything
            raise NotApplicable(f"post-processing fails: {first_line(error)}") from None
        if not accepted:
            raise NotApplicable(f"post-processing refuses the schedule: {str(postproc).partition('(')[0]}")
    wanted = sum(i[0] == "Annotate" and i[2] == [TENSORIZE] for i in document.instructions)
    if sum(i.kind.name == "Tensorize" for i in schedule.trace.insts) < wanted:
        raise NotApplicable("the trace does not fit: its tensor instruction computes something else")
    return schedule


def places(document: TraceDocument, kind: str) -> list[int]:
    """Positions of the instructions of a kind."""
    return [i for i, x in enumerate(document.instructions) if x[0] == kind]


def does_not_fit(error: Exception) -> NotApplicable:
    """What is raised where TVM refuses an instruction of a trace."""
    text = str(error)
    if "old_outputs.size()" in text:  # GetLoops, GetConsumers and their like
        return NotApplicable(
            "the trace does not fit: it expects another number of loops or neighbouring blocks"
        )
    return NotApplicable(f"the trace does not fit: {first_line(error)}")


def cores_of(target: Any) -> int:
    """Cores that a target says to schedule for; 0 where it says nothing."""
    return int(target.attrs.get("num-cores", 0)) if target is not None else 0


def plain(value: Any) -> Any:
    """TVM's arrays, strings and numbers as plain values, ready for JSON."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    return value.value


def program_key(program: Any) -> int:
    """TVM's structural hash, 64 bits: the same for IRModules, or functions, that are the same program."""
    import tvm_ffi

    return int(tvm_ffi.structural_hash(program))


# --------------------------------------------------------------------------------------------------
# the shape of a trace: how its anchor is tiled and where its results are written


@dataclass(frozen=True)
class Sketch:
    """structure: levels of tiles, such as SSRSRS; None where the anchor is not tiled. write_level: tile
    level (0 outermost) at which results are written out; None where they are written in place. factored:
    the reduction is split into independent ones. instruction: that the innermost tiles become, if any."""

    structure: str | None
    write_level: int | None
    factored: bool
    instruction: str | None = None


@dataclass(frozen=True)
class Tile:
    """The tiles of one loop around the anchor. position: of the sampling instruction. kind: S or R.
    covered: iterations inside of the tiles that one tensor instruction covers."""

    position: int
    kind: str
    factors: tuple[int, ...]
    covered: int = 1

    @property
    def extent(self) -> int:
        """Iterations that the tiles divide."""
        return math.prod(self.factors)


def sketch_of(document: TraceDocument) -> Sketch:
    """The sketch that a trace follows."""
    structure: str | None = None
    written: int | None = None
    factored = False
    instruction: str | None = None
    levels: dict[str, int] = {}
    for kind, inputs, attributes, outputs in document.instructions:
        if kind == "Annotate" and attributes == [STRUCTURE]:
            structure = str(inputs[1]).strip('"')
        elif kind == "Annotate" and attributes == [TENSORIZE]:
            instruction = str(inputs[1]).strip('"')
        elif kind == "Split":
            levels |= {name: level for level, name in enumerate(outputs)}
        elif kind == "ReverseComputeAt":
            written = levels.get(inputs[1], written)
        elif kind == "RFactor":
            factored = True
    return Sketch(structure, written, factored, instruction)


def anchor_tiles(document: TraceDocument) -> list[Tile]:
    """Tiles of the loops around the anchor, outermost loop first."""
    anchor = next(name for name, role in document.blocks.items() if role == "anchor")
    blocks: set[Any] = set()
    loops: dict[Any, int] = {}
    covered = [1] * len(document.loops)
    found: list[Tile] = []
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if (kind == "GetSBlock" and attributes[0] == anchor) or (kind == "Blockize" and inputs[0] in loops):
            blocks.add(outputs[0])
        elif kind == "GetLoops" and inputs[0] in blocks and len(outputs) == len(document.loops):
            loops |= {name: index for index, name in enumerate(outputs)}
        elif kind == "Split" and inputs[0] in loops and isinstance(inputs[-1], int):
            covered[loops[inputs[0]]] *= inputs[-1]
            loops |= dict.fromkeys(outputs, loops[inputs[0]])
        elif kind == "SamplePerfectTile" and inputs[0] in loops:
            index = loops[inputs[0]]
            factors = tuple(int(f) for f in document.decisions[position])
            found.append(Tile(position, document.loops[index], factors, covered[index]))
    return found


def converted(tile: Tile, covered: int) -> tuple[int, ...]:
    """Factors of a tile where an instruction covers `covered` of the innermost iterations instead."""
    factors = [*tile.factors[:-1], tile.factors[-1] * tile.covered]
    for level in reversed(range(len(factors))):
        taken = min(factors[level], covered)
        factors[level] = max(1, factors[level] // taken)
        covered = max(1, covered // taken)
    return tuple(factors)


def unrolled(document: TraceDocument) -> int:
    """How far loops are unrolled, in steps."""
    values: dict[str, int] = {}
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if kind == "SampleCategorical" and position in document.decisions:
            values[outputs[0]] = int(attributes[0][document.decisions[position]])
        elif kind == "Annotate" and attributes[0].startswith("meta_schedule.unroll"):
            return values.get(inputs[1], 0) if isinstance(inputs[1], str) else int(inputs[1])
    return 0
