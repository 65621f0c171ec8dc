"""Traces of TVM schedules as documents: what is stored, and replayed on the function it was made for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnnperf.errors import InputError, NotApplicable, first_line
from gnnperf.schedules.traces.roles import roles_of

TENSORIZE = "meta_schedule.auto_tensorize"
POSTPROCESSING = "EnterPostproc"
"""The instruction after which a trace records what post-processing did."""


@dataclass(frozen=True)
class TraceDocument:
    """A trace without its post-processing, in plain values.

    instructions: [kind, inputs, attributes, outputs] each, as TVM writes them. decisions: of instructions
    that sample, by position. blocks: role by name of the blocks that the trace may name. loops: kinds of
    the loops around the anchor (see `Roles`). cores: that the trace was made for; 0 where that is not known.
    """

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
        """Raises InputError where the text is not such a document."""
        try:
            fields = json.loads(text)
            instructions, decisions = fields["trace"]
            return TraceDocument(
                tuple(tuple(i) for i in instructions),
                {int(k): v for k, v in decisions},
                dict(fields["blocks"]),
                str(fields["loops"]),
                int(fields["cores"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"expected a trace as JSON (trace, blocks, loops, cores), got {text[:60]!r} "
                f"({type(error).__name__}: {first_line(error)})"
            ) from None

    def as_tvm(self) -> list[Any]:
        """What `tvm.s_tir.schedule.Trace.apply_json_to_schedule` takes."""
        return [[list(i) for i in self.instructions], [[k, v] for k, v in sorted(self.decisions.items())]]


def trace_document(trace: Any, module: Any, target: Any = None) -> TraceDocument:
    """The document of a trace (or of a schedule) for the unscheduled module that it was made for.

    Post-processing is left out: it is redone wherever the trace is applied."""
    roles = roles_of(module["main"])
    trace = getattr(trace, "trace", trace)
    instructions, decisions = plain(trace.as_json(remove_postproc=True))
    return TraceDocument(
        tuple(tuple(i) for i in instructions),
        {int(k): v for k, v in decisions},
        dict(roles.blocks),
        roles.loops,
        cores_of(target),
    )


def document_of_json(found: Sequence[Any], module: Any, target: Any = None) -> TraceDocument:
    """The document of a trace that TVM wrote as JSON (in MetaSchedule's tuning records, for instance)."""
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
