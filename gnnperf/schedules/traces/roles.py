"""What the blocks of a function are for: the words in which traces name blocks of functions never seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REDUCED = 2
"""Kind of the block iterators that a reduction runs over, as in TVM's IterVar."""


@dataclass(frozen=True)
class BlockRoles:
    """blocks: role by name of block, in program order. loops: "S" or "R" for each loop around the anchor,
    the block that does most of the work."""

    blocks: Mapping[str, str]
    loops: str

    @property
    def names(self) -> Mapping[str, str]:
        """Name by role."""
        return {role: name for name, role in self.blocks.items()}


@dataclass(frozen=True)
class _Block:
    name: str
    kind: str
    loops: str
    iterations: int


def roles_of(function: Any) -> BlockRoles:
    """Roles of the blocks of a PrimFunc that is not scheduled.

    "anchor" is the largest reduction (or, without one, the last block); the others are "padding",
    "pointwise" or "reduction" blocks before or after it, numbered by their distance from it; "output" is
    the last block, where that is not the anchor.
    """
    blocks = _blocks(function)
    reductions = [b for b in blocks if b.kind == "reduction"]
    anchor = max(reductions, key=lambda b: b.iterations) if reductions else blocks[-1]
    place = blocks.index(anchor)
    found: dict[str, str] = {"root": "root"}
    for side, members in (("before", blocks[:place][::-1]), ("after", blocks[place + 1 :])):
        counts: dict[str, int] = {}
        for block in members:
            number = counts[block.kind] = counts.get(block.kind, 0) + 1
            found[block.name] = f"{block.kind} {side} {number}"
    if anchor is not blocks[-1]:
        found[blocks[-1].name] = "output"
    found[anchor.name] = "anchor"
    return BlockRoles(found, anchor.loops)


def _blocks(function: Any) -> list[_Block]:
    import tvm_ffi
    from tvm.s_tir.stmt import SBlock

    found: list[_Block] = []

    def visit(block: Any) -> None:
        if len(block.iter_vars):
            loops = "".join("R" if int(v.iter_type) == REDUCED else "S" for v in block.iter_vars)
            iterations = math.prod(int(getattr(v.dom.extent, "value", 1)) for v in block.iter_vars)
            found.append(_Block(str(block.name_hint), _kind(block, loops), loops, iterations))

    tvm_ffi.structural_walk(function.body, [(SBlock, visit)], order="pre")
    return found


def _kind(block: Any, loops: str) -> str:
    if "R" in loops:
        return "reduction"
    value: Any = getattr(block.body, "value", None)
    chooses = type(value).__name__ == "Select" or (
        type(value).__name__ == "Call" and str(getattr(value.op, "name", "")).endswith("if_then_else")
    )
    return "padding" if chooses else "pointwise"
