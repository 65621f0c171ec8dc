"""The shape of a trace: how its anchor is tiled and where its results are written, without any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gnnperf.schedules.traces.document import TENSORIZE, TraceDocument

STRUCTURE = "meta_schedule.tiling_structure"


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
        total = 1
        for factor in self.factors:
            total *= factor
        return total


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
