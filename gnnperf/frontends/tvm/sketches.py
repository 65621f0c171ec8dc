"""The shape of a trace: how its anchor is tiled and where its results are written, without any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gnnperf.frontends.tvm.traces import TraceDocument

STRUCTURE = "meta_schedule.tiling_structure"


@dataclass(frozen=True)
class Sketch:
    """structure: levels of tiles, such as SSRSRS; None where the anchor is not tiled. write_level: tile
    level (0 outermost) at which results are written out; None where they are written in place. factored:
    the reduction is split into independent ones."""

    structure: str | None
    write_level: int | None
    factored: bool


@dataclass(frozen=True)
class Tile:
    """The tiles of one loop around the anchor. position: of the sampling instruction. kind: S or R."""

    position: int
    kind: str
    factors: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Iterations of the loop."""
        total = 1
        for factor in self.factors:
            total *= factor
        return total


def sketch_of(document: TraceDocument) -> Sketch:
    """The sketch that a trace follows."""
    structure: str | None = None
    written: int | None = None
    factored = False
    levels: dict[str, int] = {}
    for kind, inputs, attributes, outputs in document.instructions:
        if kind == "Annotate" and attributes == [STRUCTURE]:
            structure = str(inputs[1]).strip('"')
        elif kind == "Split":
            levels |= {name: level for level, name in enumerate(outputs)}
        elif kind == "ReverseComputeAt":
            written = levels.get(inputs[1], written)
        elif kind == "RFactor":
            factored = True
    return Sketch(structure, written, factored)


def anchor_tiles(document: TraceDocument) -> list[Tile]:
    """Tiles of the loops around the anchor, outermost loop first."""
    anchor = next(name for name, role in document.blocks.items() if role == "anchor")
    blocks: set[Any] = set()
    loops: dict[Any, str] = {}
    found: list[Tile] = []
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if kind == "GetSBlock" and attributes[0] == anchor:
            blocks.add(outputs[0])
        elif kind == "GetLoops" and inputs[0] in blocks and not loops:
            loops = dict(zip(outputs, document.loops, strict=False))
        elif kind == "SamplePerfectTile" and inputs[0] in loops:
            factors = tuple(int(f) for f in document.decisions[position])
            found.append(Tile(position, loops[inputs[0]], factors))
    return found
