"""Traces made to fit another function, before their tiles are decided: with blocks renamed by role, or as
the target's own sketch with the trace's decisions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.schedules.traces.document import (
    Sketch,
    TraceDocument,
    anchor_tiles,
    converted,
    places,
    sketch_of,
    trace_document,
)
from gnnperf.schedules.traces.roles import BlockRoles

CHOICE = "SampleCategorical"
POINTWISE = "pointwise"
"""How the roles of elementwise blocks begin."""
INLINES = {"ComputeInline", "ReverseComputeInline"}

# --------------------------------------------------------------------------- the same structure


def same_structure(document: TraceDocument, roles: BlockRoles) -> bool:
    """Blocks of the same roles, and an anchor in the same kinds of loops."""
    return sorted(document.blocks.values()) == sorted(roles.blocks.values()) and document.loops == roles.loops


def _renamed(document: TraceDocument, roles: BlockRoles) -> TraceDocument:
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


def inlined(document: TraceDocument, roles: BlockRoles) -> TraceDocument:
    """The trace for a function that has more or fewer elementwise blocks around the same others: what it does
    with a block that is not there is left out, which must be to inline it; one that it does not know is
    inlined first. Raises NotApplicable."""
    lacking = {name: role for name, role in document.blocks.items() if role not in roles.names}
    extra = [n for n, role in roles.blocks.items() if role not in document.blocks.values()]
    differing = {*lacking.values(), *(roles.blocks[name] for name in extra)}
    if document.loops != roles.loops or not all(role.startswith(POINTWISE) for role in differing):
        raise NotApplicable("the functions differ in more than elementwise blocks")
    first: list[tuple[Any, ...]] = []
    for number, name in enumerate(extra):
        first.append(("GetSBlock", [], [name, "main"], [f"extra{number}"]))
        first.append(("ComputeInline", [f"extra{number}"], [], []))
    return _preceded(_renamed(_without(document, lacking), roles), first)


def _without(document: TraceDocument, blocks: Collection[str]) -> TraceDocument:
    """The trace without blocks that it only inlines. Raises NotApplicable where it does more with one."""
    gone: set[Any] = set()
    positions: list[int] = []
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if kind == "GetSBlock" and attributes[0] in blocks:
            gone |= set(outputs)
        elif not any(isinstance(i, str) and i in gone for i in inputs):
            positions.append(position)
        elif kind not in INLINES:
            raise NotApplicable(f"the trace does more than to inline an elementwise block: {kind}")
    return replace(
        document,
        instructions=tuple(document.instructions[p] for p in positions),
        decisions={n: document.decisions[p] for n, p in enumerate(positions) if p in document.decisions},
        blocks={name: role for name, role in document.blocks.items() if name not in blocks},
    )


def collapsed(document: TraceDocument, context: Any, roles: BlockRoles) -> TraceDocument:
    """The trace for a function whose blocks have more spatial loops outside (a batch of one, heads): these
    become one loop first, of every block that has them, and elementwise blocks are as `inlined` says. Raises
    NotApplicable."""
    (before, inside), (mine, others) = _outside(document.loops), _outside(roles.loops)
    count = mine - before + 1
    if inside != others or not before or count < 2:
        raise NotApplicable(
            f"loops {roles.loops} do not become {document.loops} by collapsing the outer ones"
        )
    from tvm.s_tir import Schedule

    known = inlined(replace(document, loops=roles.loops), roles)
    schedule = Schedule(context.mod)
    first: list[tuple[Any, ...]] = []
    for number, name in enumerate(roles.blocks):
        loops = () if name == "root" else schedule.get_loops(schedule.get_sblock(name))
        if len(loops) >= mine:
            block, names = f"whole{number}", [f"outer{number}_{n}" for n in range(len(loops))]
            first.append(("GetSBlock", [], [name, "main"], [block]))
            first.append(("GetLoops", [block], [], names))
            first.append(("Fuse", names[:count], [1], [f"collapsed{number}"]))
    return _preceded(known, first)


def _outside(loops: str) -> tuple[int, str]:
    """How many of the loops are spatial ones outside of all others, and the others."""
    inside = loops.lstrip("S")
    return len(loops) - len(inside), inside


def _preceded(document: TraceDocument, first: Sequence[tuple[Any, ...]]) -> TraceDocument:
    """The trace after other instructions, which sample nothing."""
    return replace(
        document,
        instructions=(*first, *document.instructions),
        decisions={len(first) + position: value for position, value in document.decisions.items()},
    )


def tensorized(document: TraceDocument, context: Any, roles: BlockRoles) -> list[TraceDocument]:
    """The target's sketch with a tensor instruction that the trace, made for other types, could not use."""
    rules = map(str, context.space_generator.sch_rules or ())
    if sketch_of(document).instruction is not None or not any(
        "Intrin" in r or "TensorCore" in r for r in rules
    ):
        return []
    try:
        first = regenerated(document, context, roles)[0]
    except NotApplicable:
        return []
    return [first] if sketch_of(first).instruction is not None else []


# --------------------------------------------------------------------------- another structure


def regenerated(document: TraceDocument, context: Any, roles: BlockRoles) -> list[TraceDocument]:
    """The target's own sketch that is most like the trace, with its decisions; before it, where the trace
    uses no tensor instruction but the target's rules know one, the most alike that does."""
    wanted = sketch_of(document)
    if wanted.structure is None:
        raise NotApplicable(
            f"blocks {sorted(document.blocks.values())} with loops {document.loops} differ from "
            f"{sorted(roles.blocks.values())} with {roles.loops}, and the trace has no tiles to take over"
        )
    designs, sketches = _designs(context)
    alike = [i for i, s in enumerate(sketches) if s.structure == wanted.structure]
    if not alike:
        raise NotApplicable(f"the target has no sketch of the structure {wanted.structure}")
    alike.sort(key=lambda i: _difference(sketches[i], wanted))
    instructed = [i for i in alike if sketches[i].instruction is not None]
    chosen = dict.fromkeys([*instructed[:1], alike[0]] if wanted.instruction is None else alike[:1])
    return [_with_decisions(designs[i], document) for i in chosen]


@lru_cache(4)
def _designs(context: Any) -> tuple[list[TraceDocument], list[Sketch]]:
    """Of the module of a `TuneContext`: many traces are compared with them."""
    designs = [trace_document(d, context.mod) for d in context.generate_design_space()]
    return designs, [sketch_of(d) for d in designs]


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
    for mine, theirs in zip(places(design, CHOICE), places(source, CHOICE), strict=False):
        wanted[mine] = source.decisions[theirs]
    return replace(design, decisions=wanted)
