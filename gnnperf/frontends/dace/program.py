"""A whole SDFG as a tree of pieces: what translates, what is live where, and which runs of pieces are
straight-line code that units are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dace.sdfg import nodes as dn

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.control_flow import (
    Assign,
    Block,
    Branch,
    Element,
    For,
    Opaque,
    Sequence,
    states_of,
    sub_sequences,
)  # fmt: skip
from gnnperf.frontends.dace.coverage import Flow, flow
from gnnperf.frontends.dace.expressions import Names, from_ast
from gnnperf.frontends.dace.independence import mark_independent, place_private
from gnnperf.frontends.dace.tidy import tidy
from gnnperf.frontends.dace.translate import Translator, assigned_symbols
from gnnperf.nests.affine import evaluate
from gnnperf.nests.analysis import accesses
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Statement,
    Symbol,
    loads,
    map_expr,
    map_node,
    walk,
)

Nodes = tuple[Node, ...]

SMALL_ITERATION = 100_000
"""A sequential loop whose iteration runs fewer statement instances than this becomes part of a unit:
calling a tuned unit in every iteration would cost more than the iteration itself. Larger ones stay
loops of the kernel, and units are made of their bodies."""

UNKNOWN_TRIPS = 32
"""Assumed trip count of a loop whose bounds depend on data."""


@dataclass
class Piece:
    """One element of the control flow with its translation, or the reason why there is none."""

    element: Element
    nodes: Nodes | None = None
    reason: str | None = None
    inner: list[list[Piece]] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    live_after: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """A state without dataflow: it only joins others."""
        return self.nodes == () and isinstance(self.element, Block) and not self.element.state.nodes()


def build(translator: Translator, sequence: Sequence) -> list[Piece]:
    """Pieces of a sequence, live values included. Nothing is decided yet about which loops to absorb."""
    return [_piece(translator, element) for element in sequence]


def _piece(translator: Translator, element: Element) -> Piece:
    piece = Piece(element, inner=[build(translator, s) for s in sub_sequences(element)])
    if isinstance(element, (Block, For)):
        parameters = set(translator.parameters)
        try:
            piece.nodes = translator.item(element)
            piece.flow = flow(piece.nodes)
        except UnsupportedConstruct as reason:
            piece.reason = str(reason)
            translator.parameters = parameters
    elif isinstance(element, Opaque):
        piece.reason = element.reason
    return piece


# --------------------------------------------------------------------------- liveness


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
                case For():
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
                return (after - values.keys()) | self._only(n for v in values.values() for n in _names(v))
            case Block(state=state):
                return after | self._touched([state])
            case For(iterator=iterator, start=start):
                return (self._around_loop(piece, after) - {iterator}) | self._only(_names(start))
            case Branch(arms=arms):
                live = after | self._only(n for test, _ in arms for n in _names(test))
                for body in piece.inner:
                    live |= self.annotate(body, after)
                return live
            case Opaque(states=states):
                return after | self._touched(states)
        raise TypeError(piece.element)

    def _around_loop(self, piece: Piece, after: frozenset[str]) -> frozenset[str]:
        """What is live where the loop's condition is tested."""
        assert isinstance(piece.element, For)
        bounds = self._only(n for e in (piece.element.start, piece.element.stop) for n in _names(e))
        live = after | bounds
        while True:
            new = live | self.annotate(piece.inner[0], live)
            if new == live:
                return live
            live = new

    def _only(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(names) & self.names

    def _touched(self, states: list[Any]) -> frozenset[str]:
        names = {n.data for s in states for n in s.data_nodes()}
        names |= {f for s in states for e in self.sdfg.all_edges(s) for f in map(str, e.data.free_symbols)}
        names |= {f for s in states for f in map(str, s.free_symbols)}
        return self._only(names)


def _names(tree: ast.expr | str) -> Iterator[str]:
    parsed = ast.parse(tree, mode="eval") if isinstance(tree, str) else tree
    return (n.id for n in ast.walk(parsed) if isinstance(n, ast.Name))


# --------------------------------------------------------------------------- finishing a piece


class Finisher:
    """Turns a piece's first translation into the nodes that a unit is made of."""

    def __init__(self, translator: Translator, scalars: Mapping[str, float]) -> None:
        self.translator, self.scalars = translator, scalars

    def finish(self, piece: Piece) -> Nodes:
        """Temporaries that live only inside the piece become local, loops that may be parallel are
        marked. Raises UnsupportedConstruct where storage cannot be placed."""
        assert piece.nodes is not None
        buffers = self.translator.buffers
        nodes = self._localise(piece, piece.nodes)
        nodes = tidy(nodes, buffers)
        nodes = mark_independent(nodes, buffers, self.translator.ranges)
        place_private(nodes, buffers, self.translator.ranges)
        return nodes

    def _localise(self, piece: Piece, nodes: Nodes) -> Nodes:
        buffers = self.translator.buffers
        names: dict[str, str] = {}
        for name in {a.load.buffer for n in nodes for a in accesses(n)}:
            buffer = buffers[name]
            if not buffer.transient or buffer.scope == "local" or name not in self.translator.sdfg.arrays:
                continue
            if name in piece.live_after or name in piece.flow.exposed:
                continue
            names[name] = self.translator.fresh(name)
            buffers[names[name]] = replace(buffer, name=names[name], scope="local")

        def rename(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr.buffer in names:
                return Load(names[expr.buffer], expr.indices)
            return expr

        return tuple(map_node(n, rename) for n in nodes)

    def is_worth_absorbing(self, nodes: Nodes) -> bool:
        """May a whole sequential loop be one item of a unit? (Parallel loops always.)"""
        loops = [n for n in nodes if isinstance(n, Loop)]
        if any(lp.independent for lp in loops):
            return True
        return max((self.instances(lp.body) for lp in loops), default=0) < SMALL_ITERATION

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
        start, stop = self.value(loop.start, values), self.value(loop.stop, values)
        if start is None or stop is None:
            return UNKNOWN_TRIPS
        return max(0, -(-(stop - start) // loop.step))

    def middle(self, loop: For, values: Mapping[str, int]) -> int:
        """A representative value of the counter of one of the kernel's own loops."""
        names = Names(lambda n: Const(int({**self.scalars, **values}[n])), _no_element)
        try:
            ends = [evaluate(from_ast(e, names), values) for e in (loop.start, loop.stop)]
        except (KeyError, UnsupportedConstruct):
            return 0
        low, high = ((e or 0) for e in ends)
        return (low + high) // 2

    def value(self, expr: Expr, values: Mapping[str, int]) -> int | None:
        """An integer expression with the kernel's scalar inputs and the middle of loops filled in."""

        def known(e: Expr) -> Expr:
            if isinstance(e, Load) and not e.indices and e.buffer in self.scalars:
                return Const(int(self.scalars[e.buffer]))
            return e

        return evaluate(map_expr(expr, known), values)


def _no_element(name: str, indices: tuple[Expr, ...]) -> Expr:
    raise UnsupportedConstruct(f"an element of {name}")


# --------------------------------------------------------------------------- chains


@dataclass
class Chain:
    """Consecutive translated pieces with nothing but plain edges between them."""

    pieces: list[Piece]
    nodes: list[Nodes]
    live_after: frozenset[str]
    enclosing: list[For]
    """Sequential loops of the kernel around the chain, outermost first."""


@dataclass
class Skipped:
    """A part of the kernel that stays as DaCe compiles it."""

    label: str
    reason: str


def parts(finisher: Finisher, pieces: list[Piece], enclosing: list[For]) -> Iterator[Chain | Skipped | Any]:
    """What a program consists of, in program order: chains, parts that stay as they are, and nested
    SDFGs to look into."""
    run: list[tuple[Piece, Nodes]] = []

    def close() -> Iterator[Chain]:
        if any(nodes for _, nodes in run):
            yield Chain([p for p, _ in run], [n for _, n in run], run[-1][0].live_after, list(enclosing))
        run.clear()

    for piece in pieces:
        nodes = _absorbed(finisher, piece)
        if nodes is not None:
            run.append((piece, nodes))
            continue
        yield from close()
        nested = _nested(piece.element)
        if nested is not None:
            yield nested
        elif piece.reason is not None and isinstance(piece.element, (Block, Opaque)):
            yield Skipped(_label(piece.element), piece.reason)
        around = [*enclosing, piece.element] if isinstance(piece.element, For) else enclosing
        for body in piece.inner:
            yield from parts(finisher, body, around)
    yield from close()


def _nested(element: Element) -> Any | None:
    """The nested SDFG that a state consists of."""
    if isinstance(element, Block):
        found = [n for n in element.state.scope_children()[None] if isinstance(n, dn.NestedSDFG)]
        if len(found) == 1 and all(
            isinstance(n, (dn.NestedSDFG, dn.AccessNode)) for n in element.state.nodes()
        ):
            return found[0].sdfg
    return None


def _absorbed(finisher: Finisher, piece: Piece) -> Nodes | None:
    if piece.nodes is None:
        return None
    if isinstance(piece.element, For):
        set_inside = assigned_symbols([piece.element]) | _iterators(piece.element)
        if not set_inside.isdisjoint(piece.live_after):
            return None  # its counter, or another symbol, is read after the loop
    try:
        nodes = finisher.finish(piece)
    except UnsupportedConstruct as reason:
        piece.reason = str(reason)
        return None
    is_loop = isinstance(piece.element, For) or _nested(piece.element) is not None
    if is_loop and not finisher.is_worth_absorbing(nodes):
        return None
    return nodes


def _iterators(element: Element) -> set[str]:
    own = {element.iterator} if isinstance(element, For) else set()
    return own.union(*(_iterators(e) for body in sub_sequences(element) for e in body))


def _label(element: Element) -> str:
    states = states_of(element)
    labels = [n.label for s in states for n in s.nodes() if hasattr(n, "label") and not hasattr(n, "data")]
    return next(iter(labels), states[0].label if states else "control flow")


def parameter_names(nodes: Iterable[Node]) -> set[str]:
    """Free symbols: neither iterators of the nodes' own loops nor numbers."""
    bound: set[str] = set()
    used: set[str] = set()
    for top in nodes:
        for node in walk((top,)):
            if isinstance(node, Loop):
                bound.add(node.iterator)
                expressions: list[Expr | None] = [node.start, node.stop]
            else:
                expressions = [node.target, node.value, node.guard, node.init]
            for expr in expressions:
                if expr is not None:
                    used |= _symbol_names(expr)
    return used - bound


def _symbol_names(expr: Expr) -> set[str]:
    found = {expr.name} if isinstance(expr, Symbol) else set()
    children = getattr(expr, "args", None) or getattr(expr, "indices", ())
    return found.union(*(_symbol_names(c) for c in children)) if children else found


def reads_integers(nodes: Iterable[Node], buffers: Mapping[str, Buffer]) -> set[str]:
    """Buffers whose values decide how often loops run."""
    return {
        ld.buffer for n in nodes for lp in walk((n,)) if isinstance(lp, Loop)
        for b in (lp.start, lp.stop) for ld in loads(b) if buffers[ld.buffer].shape
    }  # fmt: skip
