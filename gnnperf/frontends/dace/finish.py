"""From a piece's first translation to the nodes that a unit is made of."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.carry import carry_in_scalars
from gnnperf.frontends.dace.control_flow import For
from gnnperf.frontends.dace.expressions import SymbolNames, from_ast
from gnnperf.frontends.dace.independence import mark_independent, place_private
from gnnperf.frontends.dace.literals import narrow_literals
from gnnperf.frontends.dace.pieces import Nodes, Piece
from gnnperf.frontends.dace.rolling_rows import roll_rows
from gnnperf.frontends.dace.tidy import tidy
from gnnperf.frontends.dace.translate import DaceTranslator
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import evaluate
from gnnperf.nests.analysis import accesses, rename_buffers, written
from gnnperf.nests.combine import from_copy_to_copy
from gnnperf.nests.guards import absorb_guards
from gnnperf.nests.interchange import independent_outside
from gnnperf.nests.ir import Const, Expr, Load, Loop, LoopNest, Node, Statement, map_expr, walk
from gnnperf.nests.tables import tabulate
from gnnperf.schedules.recipes.factorisation import match_factorisation
from gnnperf.schedules.recipes.time_tiles import is_time_loop

SMALL_ITERATION = 100_000
"""A sequential loop whose iteration runs fewer statement instances than this becomes part of a unit:
calling a tuned unit in every iteration would cost more than the iteration itself."""

CACHED_BYTES = 4 << 20
"""So does one whose arrays stay in the cores' caches: which core has which part, and so how fast a nest
runs, depends on the nests before it. Other loops stay loops of the kernel, and units are made of their
bodies."""

LONGEST_LOOP = 1e9
"""Statement instances of a whole loop beyond which measuring it takes too long."""

UNKNOWN_TRIPS = 32
"""Assumed trip count of a while loop, or of one whose bounds depend on data."""


class Finisher:
    """Turns a piece's first translation into the nodes that a unit is made of."""

    def __init__(self, translator: DaceTranslator, scalars: Mapping[str, float]) -> None:
        self.translator, self.scalars = translator, scalars

    def finish(self, piece: Piece) -> Nodes:
        """Temporaries that live only inside the piece become local, loops that may be parallel are
        marked. Raises UnsupportedConstruct where storage cannot be placed."""
        buffers = self.translator.buffers
        own = self._begun_before(piece)
        nodes = self._tidied(piece, own)
        if stuck := {n for n, local in own.items() if any(local in written(lp) for lp in _loops(nodes))}:
            nodes = self._tidied(piece, {n: local for n, local in own.items() if n not in stuck})
        nodes = narrow_literals(nodes, buffers)
        tabulated = tabulate(nodes, buffers, self.translator.fresh)
        nodes = nodes if tabulated == nodes else tidy(tabulated, buffers)
        nodes = roll_rows(nodes, buffers, piece.live_after, self.translator.fresh)
        nodes = mark_independent(nodes, buffers, self.translator.ranges)
        nodes = carry_in_scalars(nodes, buffers, self.translator.fresh)
        place_private(nodes, buffers, self.translator.ranges)
        return nodes

    def _tidied(self, piece: Piece, begun: Mapping[str, str]) -> Nodes:
        """begun: local names of scalars that have a value before the piece, and none after it."""
        buffers = self.translator.buffers
        first = [Statement(Load(local), Load(name)) for name, local in begun.items()]
        nodes = tidy((*first, *self._localise(piece, begun)), buffers)
        narrowed = absorb_guards(nodes)
        return nodes if narrowed == nodes else tidy(narrowed, buffers)

    def _begun_before(self, piece: Piece) -> dict[str, str]:
        """Scalars that a loop changes and nothing reads after the piece, as a counter of the program's own;
        with local names."""
        assert piece.nodes is not None
        buffers = self.translator.buffers
        changed = {name for loop in _loops(piece.nodes) for name in written(loop)}
        return {
            name: self._local(name)
            for name in sorted((changed & piece.flow.exposed) - piece.live_after)
            if buffers[name].transient and buffers[name].scope == "global" and not buffers[name].shape
        }

    def _localise(self, piece: Piece, begun: Mapping[str, str]) -> Nodes:
        assert piece.nodes is not None
        buffers, nodes = self.translator.buffers, piece.nodes
        names = dict(begun)
        for name in {a.load.buffer for n in nodes for a in accesses(n)}:
            buffer = buffers[name]
            if not buffer.transient or buffer.scope == "local" or name not in self.translator.sdfg.arrays:
                continue
            if name in piece.live_after or name in piece.flow.exposed:
                continue
            names[name] = self._local(name)
        return tuple(rename_buffers(n, names) for n in nodes)

    def _local(self, name: str) -> str:
        """A local buffer like another: its name."""
        local, buffers = self.translator.fresh(name), self.translator.buffers
        buffers[local] = replace(buffers[name], name=local, scope="local")
        return local

    def is_worth_absorbing(self, nodes: Nodes) -> bool:
        """May a whole sequential loop be one item of a unit? (Parallel loops always, factorisations, of which
        a library does the whole, and loops over time, whose steps are tiled together, or go from copy to
        copy.)"""
        buffers = self.translator.buffers
        nodes = tuple(independent_outside(n, buffers) for n in nodes)
        loops = [n for n in nodes if isinstance(n, Loop)]
        if any(lp.independent or match_factorisation(lp, buffers) for lp in loops):
            return True
        if max((self.instances(lp.body) for lp in loops), default=0) < SMALL_ITERATION:
            return True
        if self.instances(loops) > LONGEST_LOOP:
            return False
        return (
            self._touched_bytes(loops) <= CACHED_BYTES
            or any(is_time_loop(lp, buffers) for lp in loops)
            or from_copy_to_copy(LoopNest("steps", buffers, nodes)) is not None
        )

    def _touched_bytes(self, nodes: Iterable[Node]) -> int:
        """Size of the arrays that nodes touch."""
        total = 0
        for name in {a.load.buffer for n in nodes for a in accesses(n)}:
            buffer = self.translator.buffers[name]
            shape = (s if isinstance(s, int) else self.value(s, {}) or 1 for s in buffer.shape)
            total += math.prod(shape) * ELEMENT_BYTES[buffer.dtype]
        return total

    def instances(self, nodes: Iterable[Node], values: Mapping[str, int] | None = None) -> float:
        """Estimated number of statement executions."""
        values = values or {}
        total = 0.0
        for node in nodes:
            if isinstance(node, Statement):
                total += 1
                continue
            start, stop = self.value(node.start, values), self.value(node.stop, values)
            middle = (start or 0) if stop is None else ((start or 0) + stop) // 2
            total += self.trips(node, values) * self.instances(node.body, {**values, node.iterator: middle})
        return total

    def trips(self, loop: Loop, values: Mapping[str, int]) -> int:
        """Estimated trip count of a loop."""
        if loop.condition is not None:
            return UNKNOWN_TRIPS
        start, stop = self.value(loop.start, values), self.value(loop.stop, values)
        if start is None or stop is None:
            return UNKNOWN_TRIPS
        return max(0, -(-(stop - start) // loop.step))

    def middle(self, loop: For, values: Mapping[str, int]) -> int:
        """A representative value of the counter of one of the kernel's own loops."""
        low, high = (self.constant(e, values) or 0 for e in (loop.start, loop.stop))
        return (low + high) // 2

    def constant(self, tree: ast.expr, values: Mapping[str, int]) -> int | None:
        """An integer expression of the control flow, if the kernel's scalar inputs and `values` tell."""
        known = {**self.scalars, **values}
        try:
            return evaluate(from_ast(tree, SymbolNames(lambda n: Const(int(known[n])), _no_element)), values)
        except (KeyError, UnsupportedConstruct):
            return None

    def value(self, expr: Expr, values: Mapping[str, int]) -> int | None:
        """An integer expression with the kernel's scalar inputs and the middle of loops filled in."""

        def known(e: Expr) -> Expr:
            if isinstance(e, Load) and not e.indices and e.buffer in self.scalars:
                return Const(int(self.scalars[e.buffer]))
            return e

        return evaluate(map_expr(expr, known), values)


def _no_element(name: str, indices: tuple[Expr, ...]) -> Expr:
    raise UnsupportedConstruct(f"an element of {name}")


def _loops(nodes: Iterable[Node]) -> Iterator[Loop]:
    return (n for n in walk(tuple(nodes)) if isinstance(n, Loop))
