"""Transfer of a trace to another shape or another operator.

The same blocks and loops with other extents: the trace is applied with blocks renamed by role and every tile
decided anew. Another operator: the sketch of its own design space that is most like the trace (the same
tiling structure, results written at the same level) takes over the decisions, loop by loop from the inside.
Post-processing is redone in either case.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm.factors import Factors, distance, nearest, with_remainder
from gnnperf.frontends.tvm.roles import Roles, roles_of
from gnnperf.frontends.tvm.sketches import Sketch, anchor_tiles, converted, sketch_of
from gnnperf.frontends.tvm.traces import (
    TraceDocument,
    cores_of,
    does_not_fit,
    replay,
    trace_document,
)

TILE, CHOICE = "SamplePerfectTile", "SampleCategorical"
CHOICES = 4
"""Factorisations of each loop that are looked at."""
FAR = 0.5
"""Distance (see `factors`) of the nearest factorisation beyond which tiles with a remainder are proposed."""


@dataclass(frozen=True)
class Proposal:
    """schedule: a `tvm.s_tir.Schedule` of the target's module, post-processed. policy: how its tiles were
    decided: "nearest", "near" (one loop's tiles are the next best) or "remainder" (the last tile is partial).
    """

    schedule: Any
    policy: str


def transfer(document: TraceDocument, context: Any, proposals: int = 4) -> list[Proposal]:
    """Schedules of a `TuneContext`'s module after a trace of another one, the most faithful first.

    At least one and at most `proposals`, all of them different. Raises NotApplicable, which says where the
    structures differ.
    """
    roles = roles_of(context.mod["main"])
    refused: NotApplicable | None = None
    if _same_structure(document, roles):
        try:
            skeletons = [*_tensorized(document, context, roles), _renamed(document, roles)]
            return _proposals(skeletons, context, proposals)
        except NotApplicable as error:
            refused = error
    try:
        return _proposals(_regenerated(document, context, roles), context, proposals)
    except NotApplicable as error:
        raise refused or error from None


def _proposals(skeletons: Sequence[TraceDocument], context: Any, count: int) -> list[Proposal]:
    """Of every skeleton in turn."""
    found: list[Proposal] = []
    seen: set[int] = set()
    reason = NotApplicable("the trace has no variant that fits")
    variants = [_variants(_with_cores(s, context), context) for s in skeletons]
    for policy, decided in _in_turn(variants):
        if len(found) == count:
            break
        try:
            schedule = replay(decided, context)
        except NotApplicable as error:
            reason = error
            continue
        key = _hash(schedule.mod)
        if key not in seen:
            seen.add(key)
            found.append(Proposal(schedule, policy))
    if not found:
        raise reason
    return found


def _in_turn(variants: Sequence[Iterator[tuple[str, TraceDocument]]]) -> Iterator[tuple[str, TraceDocument]]:
    for several in itertools.zip_longest(*variants):
        yield from (one for one in several if one is not None)


# --------------------------------------------------------------------------- the same structure


def _same_structure(document: TraceDocument, roles: Roles) -> bool:
    return sorted(document.blocks.values()) == sorted(roles.blocks.values()) and document.loops == roles.loops


def _renamed(document: TraceDocument, roles: Roles) -> TraceDocument:
    """Blocks named as in the target; those that the schedule itself makes are named after their origin."""
    names = {old: roles.names[role] for old, role in document.blocks.items()}

    def rename(name: str) -> str:
        origin = max((o for o in names if name == o or name.startswith(f"{o}_")), key=len, default=None)
        return name if origin is None else names[origin] + name[len(origin) :]

    def instruction(found: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, inputs, attributes, outputs = found
        if kind == "GetSBlock":
            attributes = [rename(attributes[0]), *attributes[1:]]
        return (kind, inputs, attributes, outputs)

    return replace(document, instructions=tuple(map(instruction, document.instructions)))


def _tensorized(document: TraceDocument, context: Any, roles: Roles) -> list[TraceDocument]:
    """The target's sketch with a tensor instruction that the trace, made for other types, could not use."""
    rules = map(str, context.space_generator.sch_rules or ())
    if sketch_of(document).instruction is not None or not any(
        "Intrin" in r or "TensorCore" in r for r in rules
    ):
        return []
    try:
        first = _regenerated(document, context, roles)[0]
    except NotApplicable:
        return []
    return [first] if sketch_of(first).instruction is not None else []


# --------------------------------------------------------------------------- another structure


def _regenerated(document: TraceDocument, context: Any, roles: Roles) -> list[TraceDocument]:
    """The target's own sketch that is most like the trace, with its decisions; before it, where the trace
    uses no tensor instruction but the target's rules know one, the most alike that does."""
    wanted = sketch_of(document)
    if wanted.structure is None:
        raise NotApplicable(
            f"blocks {sorted(document.blocks.values())} with loops {document.loops} differ from "
            f"{sorted(roles.blocks.values())} with {roles.loops}, and the trace has no tiles to take over"
        )
    designs = [trace_document(d, context.mod) for d in context.generate_design_space()]
    sketches = [sketch_of(d) for d in designs]
    alike = [i for i, s in enumerate(sketches) if s.structure == wanted.structure]
    if not alike:
        raise NotApplicable(f"the target has no sketch of the structure {wanted.structure}")
    alike.sort(key=lambda i: _difference(sketches[i], wanted))
    tensorized = [i for i in alike if sketches[i].instruction is not None]
    chosen = dict.fromkeys([*tensorized[:1], alike[0]] if wanted.instruction is None else alike[:1])
    return [_with_decisions(designs[i], document) for i in chosen]


def _difference(one: Sketch, two: Sketch) -> tuple[bool, bool, bool, int]:
    levels = [-1 if s.write_level is None else s.write_level for s in (one, two)]
    return (
        one.instruction != two.instruction,
        one.factored != two.factored,
        (levels[0] < 0) != (levels[1] < 0),
        abs(levels[0] - levels[1]),
    )


def _with_decisions(design: TraceDocument, source: TraceDocument) -> TraceDocument:
    """Tiles of matching loops, innermost first; loops without a match are not tiled. What else is sampled
    is taken over in order."""
    tiles = anchor_tiles(source)
    wanted: dict[int, Any] = dict(design.decisions)
    for kind in "SR":
        own = [t for t in anchor_tiles(design) if t.kind == kind][::-1]
        given = [t for t in tiles if t.kind == kind][::-1]
        for one, other in itertools.zip_longest(own, given):
            if one is None:
                break
            count = len(design.decisions[one.position])
            fits = other is not None and len(other.factors) == count
            untiled = [one.extent, *[1] * (count - 1)]
            wanted[one.position] = list(converted(other, one.covered)) if fits else untiled
    for mine, theirs in zip(_places(design, CHOICE), _places(source, CHOICE), strict=False):
        wanted[mine] = source.decisions[theirs]
    return replace(design, decisions=wanted, cores=1)


def _places(document: TraceDocument, kind: str) -> list[int]:
    return [i for i, x in enumerate(document.instructions) if x[0] == kind]


# --------------------------------------------------------------------------- decisions


def _with_cores(document: TraceDocument, context: Any) -> TraceDocument:
    """Parallel iterations asked for in proportion to the target's cores."""
    cores = cores_of(context.target)

    def instruction(found: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, inputs, attributes, outputs = found
        if kind == "Annotate" and attributes == ["meta_schedule.parallel"] and isinstance(inputs[1], int):
            inputs = [inputs[0], max(1, inputs[1] * cores // document.cores)]
        return (kind, inputs, attributes, outputs)

    if cores == document.cores or document.cores == 1:
        return document
    return replace(document, cores=cores, instructions=tuple(map(instruction, document.instructions)))


def _variants(document: TraceDocument, context: Any) -> Iterator[tuple[str, TraceDocument]]:
    """The trace with tiles for the extents it meets, the most faithful first."""
    extents = _extents(document, context)
    choices: dict[int, tuple[Factors, ...]] = {}
    for position, extent in extents.items():
        old = tuple(int(f) for f in document.decisions[position])
        innermost = int(document.instructions[position][2][1])
        choices[position] = nearest(extent, old, innermost, CHOICES)
        if not choices[position]:
            raise NotApplicable(f"no factorisation of {extent} ends in at most {innermost}")
    best = {p: found[0] for p, found in choices.items()}
    yield "nearest", _decided(document, best)
    partial = dict(_remainders(document, extents, best))
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
    """Extent of the loop that every sampled tile divides in the target."""
    from tvm.s_tir import Schedule
    from tvm.s_tir.schedule import Trace

    positions = _places(document, TILE)
    free = {k: v for k, v in document.decisions.items() if k not in positions}
    first = Schedule(context.mod, seed=1)
    found: list[int] = []
    try:
        Trace.apply_json_to_schedule(replace(document, decisions=free).as_tvm(), first)
        second = Schedule(context.mod, seed=1)

        def note(instruction: Any, inputs: Any, attributes: Any, decision: Any) -> Any:
            if instruction.kind.name == TILE:
                found.append(int(second.get(inputs[0]).extent))
            return decision

        first.trace.apply_to_schedule(second, remove_postproc=True, decision_provider=note)
    except Exception as error:  # TVM raises anything
        raise does_not_fit(error) from None
    return dict(zip(positions, found, strict=True))


def _hash(module: Any) -> int:
    import tvm_ffi

    return int(tvm_ffi.structural_hash(module))
