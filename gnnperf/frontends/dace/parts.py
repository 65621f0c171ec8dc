"""What a program consists of: runs of pieces that units are made of, and parts that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dace.sdfg import nodes as dn

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.base import Skipped
from gnnperf.frontends.dace.control_flow import Assign, Element, For, Opaque, StateBlock, While, states_of
from gnnperf.frontends.dace.finish import Finisher
from gnnperf.frontends.dace.pieces import Nodes, Piece, iterators
from gnnperf.frontends.dace.translate import assigned_symbols


@dataclass
class Chain:
    """Consecutive translated pieces with nothing but plain edges between them."""

    pieces: list[Piece]
    nodes: list[Nodes]
    live_after: frozenset[str]
    enclosing: list[Element]
    """Loops of the kernel around the chain (and control flow that may be one), outermost first."""
    assigned: dict[str, str] = field(default_factory=dict)
    """Symbols set before the chain, with the expressions they were set to last."""


def parts(
    finisher: Finisher,
    pieces: list[Piece],
    enclosing: list[Element],
    assigned: dict[str, str] | None = None,
) -> Iterator[Chain | Skipped | Any]:
    """What a program consists of, in program order: chains, parts that stay as they are, and nested
    SDFGs to look into."""
    run: list[tuple[Piece, Nodes]] = []
    known = dict(assigned or {})

    def close() -> Iterator[Chain]:
        if any(nodes for _, nodes in run):
            yield Chain(
                [p for p, _ in run], [n for _, n in run], run[-1][0].live_after, list(enclosing), dict(known)
            )
        run.clear()

    for piece in pieces:
        nodes = _absorbed(finisher, piece)
        if nodes is not None:
            run.append((piece, nodes))
            continue
        yield from close()
        if isinstance(piece.element, Assign):
            known.update(piece.element.values)
        nested = _nested(piece.element)
        if nested is not None:
            yield nested
        elif piece.reason is not None and isinstance(piece.element, (StateBlock, Opaque)):
            yield Skipped(_label(piece.element), piece.reason)
        is_loop = isinstance(piece.element, For | While | Opaque)
        around = [*enclosing, piece.element] if is_loop else enclosing
        for body in piece.inner:
            yield from parts(finisher, body, around, known)
    yield from close()


def _nested(element: Element) -> Any | None:
    """The nested SDFG that a state consists of."""
    if isinstance(element, StateBlock):
        found = [n for n in element.state.scope_children()[None] if isinstance(n, dn.NestedSDFG)]
        if len(found) == 1 and all(
            isinstance(n, (dn.NestedSDFG, dn.AccessNode)) for n in element.state.nodes()
        ):
            return found[0].sdfg
    return None


def _absorbed(finisher: Finisher, piece: Piece) -> Nodes | None:
    if piece.nodes is None:
        return None
    if isinstance(piece.element, For | While):
        set_inside = assigned_symbols([piece.element]) | iterators(piece.element)
        if not set_inside.isdisjoint(piece.live_after):
            return None  # its counter, or another symbol, is read after the loop
    try:
        nodes = finisher.finish(piece)
    except UnsupportedConstruct as reason:
        piece.reason = str(reason)
        return None
    is_loop = isinstance(piece.element, For | While) or _nested(piece.element) is not None
    if is_loop and not finisher.is_worth_absorbing(nodes):
        return None
    return nodes


def _label(element: Element) -> str:
    states = states_of(element)
    labels = [n.label for s in states for n in s.nodes() if hasattr(n, "label") and not hasattr(n, "data")]
    return next(iter(labels), states[0].label if states else "control flow")
