"""What TVM unrolls because of `pragma_auto_unroll_max_step`, found as its pass UnrollLoop finds it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gnnperf.nests import Annotation, Const, Loop, Node

MAX_DEPTH = 8
"""Loops that are unrolled inside one another, at most (UnrollLoop's default)."""


@dataclass(frozen=True)
class _Count:
    """steps: statements after unrolling; unrolled, kept: loops inside one another of either kind."""

    steps: int
    unrolled: int = 0
    kept: int = 0


def auto_unrolled(body: tuple[Node, ...], max_steps: int) -> tuple[Node, ...]:
    """The nodes with the serial loops annotated that come to at most `max_steps` statements when unrolled
    and have no loop inside that is not."""
    return _block(body, max_steps)[0]


def _block(body: tuple[Node, ...], max_steps: int) -> tuple[tuple[Node, ...], _Count]:
    nodes, counts = zip(*(_node(n, max_steps) for n in body), strict=True) if body else ((), ())
    total = _Count(
        sum(c.steps for c in counts),
        max((c.unrolled for c in counts), default=0),
        max((c.kept for c in counts), default=0),
    )
    return nodes, total


def _node(node: Node, max_steps: int) -> tuple[Node, _Count]:
    if not isinstance(node, Loop):
        return node, _Count(1)
    note = node.annotation
    if note is not None and note.axis != "none":
        return node, _Count(1)  # one instruction
    body, inside = _block(node.body, max_steps)
    kind = note.kind if note else "none"
    if kind in ("vectorized", "thread", "block"):  # no longer loops when loops are unrolled
        return replace(node, body=body), inside
    extent = int(node.stop.value.real) if isinstance(node.stop, Const) else 0
    steps = inside.steps * extent
    fits = extent > 0 and not inside.kept and inside.unrolled <= MAX_DEPTH and steps <= max_steps
    if kind == "unrolled" or (kind == "none" and fits):
        node = replace(node, body=body, annotation=Annotation("unrolled"))
        return node, _Count(steps, inside.unrolled + 1, inside.kept)
    return replace(node, body=body), _Count(inside.steps, inside.unrolled, inside.kept + 1)
