"""Which transient arrays and symbols are still needed after each piece of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gnnperf.frontends.dace.control_flow import Assign, Branch, For, Opaque, StateBlock, While
from gnnperf.frontends.dace.pieces import Piece, parameter_names
from gnnperf.frontends.dace.state_graph import names_in, names_used
from gnnperf.nests.ir import Buffer


class Liveness:
    """Transient arrays, and symbols, whose values are still needed after each piece."""

    def __init__(self, sdfg: Any, buffers: Mapping[str, Buffer]) -> None:
        self.sdfg, self.buffers = sdfg, buffers
        self.names = {name for name, d in sdfg.arrays.items() if d.transient} | set(sdfg.symbols)

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
