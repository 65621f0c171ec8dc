"""Transfer of a trace to another shape or another operator.

The same blocks and loops with other extents: the trace is applied with blocks renamed by role and every tile
decided anew; elementwise blocks that the other function has besides are inlined. Another operator: the sketch
of its own design space that is most like the trace (the same tiling structure, results written at the same
level) takes over the decisions, loop by loop from the inside. Where there is no such sketch, and the other
function has more loops outside (a batch, heads), these become one.
Post-processing is redone in either case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.schedules.traces.document import (
    TraceDocument,
    cores_of,
    does_not_fit,
    places,
    program_key,
    replay,
)
from gnnperf.schedules.traces.factors import Factors, distance, nearest, with_remainder
from gnnperf.schedules.traces.roles import BlockRoles, roles_of
from gnnperf.schedules.traces.skeletons import (
    collapsed,
    inlined,
    regenerated,
    same_structure,
    tensorized,
)

TILE = "SamplePerfectTile"
CHOICES = 4
"""Factorisations of each loop that are looked at."""
FAR = 0.5
"""Distance (see `factors`) of the nearest factorisation beyond which tiles with a remainder are proposed."""


@dataclass(frozen=True)
class TraceProposal:
    """schedule: a `tvm.s_tir.Schedule` of the target's module, post-processed; document: its trace. policy:
    how its tiles were decided: "nearest", "near" (one loop's tiles are the next best) or "remainder" (the
    last tile is partial).
    """

    schedule: Any
    document: TraceDocument
    policy: str


def transfer(document: TraceDocument, context: Any, proposals: int = 4) -> list[TraceProposal]:
    """Schedules of a `TuneContext`'s module after a trace of another one, the most faithful first.

    At least one and at most `proposals`, all of them different. Raises NotApplicable, which says where the
    structures differ.
    """
    roles = roles_of(context.mod["main"])
    alike = same_structure(document, roles)
    try:
        first = tensorized(document, context, roles) if alike else []
        return _proposals([*first, inlined(document, roles)], context, roles, proposals)
    except NotApplicable as error:
        refused = error
    try:
        return _proposals(regenerated(document, context, roles), context, roles, proposals)
    except NotApplicable as error:
        refused = refused if alike else error  # they differ in more than elementwise blocks
    try:
        return _proposals([collapsed(document, context, roles)], context, roles, proposals)
    except NotApplicable:
        raise refused from None


def other_tiles(document: TraceDocument, context: Any, count: int) -> list[TraceDocument]:
    """A trace of a `TuneContext`'s module with the tiles of one loop changed, the least change first. Some of
    them may not fit. Raises NotApplicable where the trace itself does not."""
    _, *others = itertools.islice(_variants(_with_cores(document, context), context), 1 + count)
    return [decided for _, decided in others]


def _proposals(
    skeletons: Sequence[TraceDocument], context: Any, roles: BlockRoles, count: int
) -> list[TraceProposal]:
    found: list[TraceProposal] = []
    seen: set[int] = set()
    reason = NotApplicable("the trace has no variant that fits")
    of_target: dict[str, Any] = {
        "blocks": dict(roles.blocks), "loops": roles.loops, "cores": cores_of(context.target)
    }  # fmt: skip
    try:
        for policy, decided in _in_turn(skeletons, context):
            try:
                schedule = replay(decided, context)
            except NotApplicable as error:
                reason = error
                continue
            key = program_key(schedule.mod)
            if key not in seen:
                seen.add(key)
                found.append(TraceProposal(schedule, replace(decided, **of_target), policy))
            if len(found) == count:
                break
    except NotApplicable as error:
        reason = error
    if not found:
        raise reason
    return found


def _in_turn(skeletons: Sequence[TraceDocument], context: Any) -> Iterator[tuple[str, TraceDocument]]:
    """Variants of every skeleton in turn. Raises NotApplicable where all refuse, once the others are done."""
    going = [_variants(_with_cores(s, context), context) for s in skeletons]
    refused: NotApplicable | None = None
    while going:
        for variants in list(going):
            try:
                yield next(variants)
            except StopIteration:
                going.remove(variants)
            except NotApplicable as error:
                going.remove(variants)
                refused = error
    if refused is not None:
        raise refused


# --------------------------------------------------------------------------- decisions


def _with_cores(document: TraceDocument, context: Any) -> TraceDocument:
    """Parallel iterations asked for in proportion to the target's cores."""
    cores = cores_of(context.target)

    def instruction(found: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, inputs, attributes, outputs = found
        if kind == "Annotate" and attributes == ["meta_schedule.parallel"] and isinstance(inputs[1], int):
            inputs = [inputs[0], max(1, inputs[1] * cores // document.cores)]
        return (kind, inputs, attributes, outputs)

    if cores == document.cores or not cores or not document.cores:
        return document
    return replace(document, cores=cores, instructions=tuple(map(instruction, document.instructions)))


def _variants(document: TraceDocument, context: Any) -> Iterator[tuple[str, TraceDocument]]:
    """The trace with tiles for the extents it meets, the most faithful first."""
    extents = _extents(document, context)
    choices: dict[int, tuple[Factors, ...]] = {}
    for position, extent in extents.items():
        innermost = int(document.instructions[position][2][1])
        choices[position] = nearest(extent, _old(document, position), innermost, CHOICES)
        if not choices[position]:
            raise NotApplicable(f"no factorisation of {extent} ends in at most {innermost}")
    best = {p: found[0] for p, found in choices.items()}
    yield "nearest", _decided(document, best)
    # TVM does not initialise the lanes of a factored reduction that a partial last tile leaves out.
    factored = any(kind == "RFactor" for kind, *_ in document.instructions)
    partial = {} if factored else dict(_remainders(document, extents, best))
    if partial:
        yield "remainder", _split_unevenly(_decided(document, best), partial)
    others = sorted(
        (distance(f, _old(document, p)) - distance(found[0], _old(document, p)), p, f)
        for p, found in choices.items()
        for f in found[1:]
    )
    for _, position, chosen in others:
        yield "near", _decided(document, {**best, position: chosen})


def _old(document: TraceDocument, position: int) -> Factors:
    return tuple(int(f) for f in document.decisions[position])


def _remainders(
    document: TraceDocument, extents: Mapping[int, int], best: Mapping[int, Factors]
) -> Iterator[tuple[int, Factors]]:
    for position, extent in extents.items():
        old = _old(document, position)
        partial = with_remainder(extent, old)
        if partial is not None and distance(best[position], old) > FAR:
            yield position, partial


def _decided(document: TraceDocument, tiles: Mapping[int, Sequence[int]]) -> TraceDocument:
    return replace(document, decisions={**document.decisions, **{p: list(t) for p, t in tiles.items()}})


def _split_unevenly(document: TraceDocument, tiles: Mapping[int, Factors]) -> TraceDocument:
    """Samples of perfect tiles replaced by constant factors in the splits that use them."""
    values: dict[str, Any] = {}
    for position, factors in tiles.items():
        values |= zip(document.instructions[position][3], [None, *factors[1:]], strict=True)
    instructions: list[tuple[Any, ...]] = []
    decisions: dict[int, Any] = {}
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if position in tiles:
            continue
        if position in document.decisions:
            decisions[len(instructions)] = document.decisions[position]
        given = [values.get(i, i) if isinstance(i, str) else i for i in inputs]
        instructions.append((kind, given, attributes, outputs))
    return replace(document, instructions=tuple(instructions), decisions=decisions)


def _extents(document: TraceDocument, context: Any) -> dict[int, int]:
    """Extent of the loop that every sampled tile divides in the target: TVM samples perfect tiles, whose
    product it is, where nothing is decided."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    positions = places(document, TILE)
    free = {k: v for k, v in document.decisions.items() if k not in positions}
    schedule = Schedule(context.mod, seed=1)
    try:
        Trace.apply_json_to_schedule(replace(document, decisions=free).as_tvm(), schedule)
    except Exception as error:  # TVM raises anything
        raise does_not_fit(error) from None
    trace = schedule.trace
    instructions = list(trace.insts)
    return {p: math.prod(int(factor) for factor in trace.get_decision(instructions[p])) for p in positions}
