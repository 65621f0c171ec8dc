"""An SDFG as a tree of pieces: elements of its control flow, each with its translation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.control_flow import (
    Assign,
    Branch,
    Element,
    For,
    Opaque,
    Sequence,
    StateBlock,
    While,
    sub_sequences,
)
from gnnperf.frontends.dace.state_graph import names_in, names_used
from gnnperf.frontends.dace.translate import DaceTranslator
from gnnperf.nests.coverage import Flow, flow
from gnnperf.nests.ir import Buffer, Loop, Node, expressions_of, loads, symbols, walk

Nodes = tuple[Node, ...]


@dataclass
class Piece:
    """One element of the control flow with its translation, or the reason why there is none."""

    element: Element
    nodes: Nodes | None = None
    reason: str | None = None
    inner: list[list[Piece]] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    live_after: frozenset[str] = frozenset()


def build(translator: DaceTranslator, sequence: Sequence) -> list[Piece]:
    """Pieces of a sequence, live values included. Nothing is decided yet about which loops to absorb."""
    return [_piece(translator, element) for element in sequence]


def _piece(translator: DaceTranslator, element: Element) -> Piece:
    piece = Piece(element, inner=[build(translator, s) for s in sub_sequences(element)])
    if isinstance(element, StateBlock | For | While):
        try:
            piece.nodes = translator.item(element)
            piece.flow = flow(piece.nodes)
        except UnsupportedConstruct as reason:
            piece.reason = str(reason)
    elif isinstance(element, Opaque):
        piece.reason = element.reason
    return piece


def iterators(element: Element) -> set[str]:
    """Counters of the loops in an element."""
    own = {element.iterator} if isinstance(element, For) else set()
    return own.union(*(iterators(e) for body in sub_sequences(element) for e in body))


def parameter_names(nodes: Iterable[Node]) -> set[str]:
    """Free symbols: neither iterators of the nodes' own loops nor numbers."""
    inner = [n for top in nodes for n in walk((top,))]
    bound = {n.iterator for n in inner if isinstance(n, Loop)}
    return {name for n in inner for e in expressions_of(n) for name in symbols(e)} - bound


def bounding_arrays(nodes: Iterable[Node], buffers: Mapping[str, Buffer]) -> set[str]:
    """Buffers whose values decide how often loops run."""
    return {
        ld.buffer for n in nodes for lp in walk((n,)) if isinstance(lp, Loop)
        for b in (lp.start, lp.stop) for ld in loads(b) if buffers[ld.buffer].shape
    }  # fmt: skip


class Liveness:
    """Arrays, and symbols, whose values are still needed after each piece."""

    def __init__(self, sdfg: Any, buffers: Mapping[str, Buffer]) -> None:
        self.sdfg, self.buffers = sdfg, buffers
        self.names = sdfg.arrays.keys() | set(sdfg.symbols)

    def annotate(self, pieces: list[Piece], after: frozenset[str]) -> frozenset[str]:
        """Set `live_after` of all pieces; returns what is live before the first."""
        for piece in reversed(pieces):
            piece.live_after = after
            before = self._before(piece, after)
            self._annotate_inner(piece, after)
            after = before
        return after

    def _annotate_inner(self, piece: Piece, after: frozenset[str]) -> None:
        for body in piece.inner:
            match piece.element:
                case For() | While():
                    self.annotate(body, self._around_loop(piece, after))
                case Opaque(states=states):
                    self.annotate(body, after | self._touched(states))
                case _:
                    self.annotate(body, after)

    def _before(self, piece: Piece, after: frozenset[str]) -> frozenset[str]:
        if piece.nodes is not None:
            killed = {
                n for n in piece.flow.boxes if n in self.buffers and piece.flow.defines(self.buffers[n])
            }
            if isinstance(piece.element, For):
                killed.add(piece.element.iterator)
            return self._only(piece.flow.exposed | parameter_names(piece.nodes)) | (after - killed)
        match piece.element:
            case Assign(values=values):
                return (after - values.keys()) | self._only(n for v in values.values() for n in names_in(v))
            case StateBlock(state=state):
                return after | self._touched([state])
            case For(iterator=iterator, start=start):
                return (self._around_loop(piece, after) - {iterator}) | self._only(names_in(start))
            case While():
                return self._around_loop(piece, after)
            case Branch(arms=arms):
                live = after | self._only(n for test, _ in arms for n in names_in(test))
                for body in piece.inner:
                    live |= self.annotate(body, after)
                return live
            case Opaque(states=states):
                return after | self._touched(states)
        raise TypeError(piece.element)

    def _around_loop(self, piece: Piece, after: frozenset[str]) -> frozenset[str]:
        """What is live where the loop's condition is tested."""
        loop = piece.element
        assert isinstance(loop, For | While)
        tests = (loop.start, loop.stop) if isinstance(loop, For) else (loop.test,)
        live = after | self._only(n for e in tests for n in names_in(e))
        while True:
            new = live | self.annotate(piece.inner[0], live)
            if new == live:
                return live
            live = new

    def _only(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(names) & self.names

    def _touched(self, states: list[Any]) -> frozenset[str]:
        return self._only(names_used(self.sdfg, states))
