"""The state machine of an SDFG as structured control flow: blocks, loops, branches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.state_graph import State, StateGraph, is_marked, isolate, python_expression


@dataclass
class StateBlock:
    """One state's dataflow."""

    state: State


@dataclass
class Assign:
    """Symbols assigned on an edge between two states; values are Python expressions."""

    values: dict[str, str]


@dataclass
class For:
    """`for iterator in range(start, stop, step)`; `stop` belongs to the range if `closed`."""

    iterator: str
    start: ast.expr
    stop: ast.expr
    closed: bool
    step: int
    body: Sequence
    states: list[State]


@dataclass
class While:
    """`while test`."""

    test: ast.expr
    body: Sequence
    states: list[State]


@dataclass
class Branch:
    """Exclusive arms: (condition, what runs where it holds)."""

    arms: list[tuple[ast.expr, Sequence]]
    states: list[State]


@dataclass
class Opaque:
    """Control flow without a translation (break, return, several exits); its parts may have one."""

    reason: str
    parts: list[Sequence]
    states: list[State]


Element: TypeAlias = StateBlock | Assign | For | While | Branch | Opaque
Sequence: TypeAlias = list[Element]


def control_flow(sdfg: Any) -> Sequence:
    """Structured view of the state machine.

    Empty states are inserted where needed, so that every loop and branch has an entry and an exit
    state of its own; what the program computes does not change.
    """
    isolate(sdfg)
    graph = StateGraph(sdfg)
    try:
        return _sequence(graph, sdfg.start_state, None)
    except UnsupportedConstruct as reason:
        members = set(sdfg.nodes())
        return [Opaque(str(reason), _straight_lines(graph, members), sdfg.nodes())]


def states_of(element: Element) -> list[State]:
    if isinstance(element, StateBlock):
        return [element.state]
    return [] if isinstance(element, Assign) else element.states


def sub_sequences(element: Element) -> Iterator[Sequence]:
    """The sequences directly inside an element."""
    if isinstance(element, For | While):
        yield element.body
    elif isinstance(element, Branch):
        yield from (body for _, body in element.arms)
    elif isinstance(element, Opaque):
        yield from element.parts


# --------------------------------------------------------------------------- structure


def _sequence(graph: StateGraph, state: State | None, end: State | None) -> Sequence:
    result: Sequence = []
    while state is not None and state is not end:
        edges = graph.sdfg.out_edges(state)
        following: State | None
        element: Element
        if len(edges) == 1 and is_marked(state, "before_loop") and edges[0].dst in graph.loops:
            elements, following = _loop(graph, state, edges[0].dst)
            result += elements
        elif state in graph.loops:
            element, following = _opaque(graph, state, "a loop with several entries")
            result.append(element)
        elif len(edges) > 1:
            element, following = _branch(graph, state)
            result.append(element)
        else:
            result.append(StateBlock(state))
            following = state if edges else None
        # `following` is the last state of the element: its only edge leads on.
        if following is None:
            return result
        edges = graph.sdfg.out_edges(following)
        if not edges:
            return result
        if len(edges) > 1 or not edges[0].data.is_unconditional():
            raise UnsupportedConstruct("a conditional edge without an alternative")
        if edges[0].data.assignments:
            result.append(Assign(dict(edges[0].data.assignments)))
        state = edges[0].dst
    return result


def _loop(graph: StateGraph, entry: State, header: State) -> tuple[Sequence, State | None]:
    sdfg, members = graph.sdfg, graph.loops[header]
    leaving = [e for m in members for e in sdfg.out_edges(m) if e.dst not in members]
    into = [e for e in sdfg.out_edges(header) if e.dst in members]
    latches = [e for e in sdfg.in_edges(header) if e.src in members]
    if (
        len(leaving) != 1 or leaving[0].src is not header or len(into) != 1 or len(latches) != 1
        or header.nodes() or not is_marked(leaving[0].dst, "after_loop")
    ):  # fmt: skip
        opaque, following = _opaque(graph, entry, "a loop that is left by break or return")
        return [opaque], following
    after = leaving[0].dst
    states = [entry, *(s for s in sdfg.nodes() if s in members), after]
    body = _sequence(graph, into[0].dst, header)
    if into[0].data.assignments:
        body.insert(0, Assign(dict(into[0].data.assignments)))
    start = dict(sdfg.edges_between(entry, header)[0].data.assignments)
    latch = latches[0].data.assignments
    counter = _counter(start, latch, into[0].data.condition)
    if counter is None:
        test = python_expression(into[0].data.condition.as_string)
        return [*([Assign(start)] if start else []), While(test, body, states)], after
    iterator, step, stop, closed = counter
    if isinstance(body[-1], Assign) and iterator in body[-1].values:  # the loop itself steps it
        body[-1].values.pop(iterator)
        if not body[-1].values:
            body.pop()
    first = python_expression(start.pop(iterator))
    others: Sequence = [Assign(start)] if start else []
    return [*others, For(iterator, first, stop, closed, step, body, states)], after


def _counter(
    start: dict[str, str], latch: dict[str, str], condition: Any
) -> tuple[str, int, ast.expr, bool] | None:
    """The variable that counts a loop's iterations, its step, the bound, and whether that belongs to the
    range: it is initialised before the loop, stepped by a constant, and compared with the bound."""
    for name, step in _stepped(start, latch):
        bound = _bound(condition, name, step)
        if bound is not None:
            return name, step, *bound
    return None


def _stepped(start: dict[str, str], latch: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Variables that are initialised before a loop and stepped by a constant, with their steps."""
    for name in start.keys() & latch.keys():
        step: int | None = None
        match python_expression(latch[name]):
            case ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=right) if left == name:
                step = _integer(right)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Name(id=right)) if right == name:
                step = _integer(left)
            case ast.BinOp(left=ast.Name(id=left), op=ast.Sub(), right=right) if left == name:
                value = _integer(right)
                step = None if value is None else -value
        if step:
            yield name, step


def _integer(tree: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(tree)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


_MIRRORED: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def _bound(condition: Any, iterator: str, step: int) -> tuple[ast.expr, bool] | None:
    tree = python_expression(condition.as_string)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        left, op, right = tree.left, type(tree.ops[0]), tree.comparators[0]
        if isinstance(right, ast.Name) and right.id == iterator:
            left, op, right = right, _MIRRORED.get(op, op), left
        wanted = (ast.Lt, ast.LtE) if step > 0 else (ast.Gt, ast.GtE)
        if isinstance(left, ast.Name) and left.id == iterator and op in wanted:
            return right, op in (ast.LtE, ast.GtE)
    return None


def _branch(graph: StateGraph, state: State) -> tuple[Element, State | None]:
    join = graph.post_dominator.get(state)
    if join is None or not is_marked(join, "joined"):
        return _opaque(graph, state, "a branch whose arms do not meet again")
    arms: list[tuple[ast.expr, Sequence]] = []
    for edge in graph.sdfg.out_edges(state):
        body: Sequence = [Assign(dict(edge.data.assignments))] if edge.data.assignments else []
        body += _sequence(graph, edge.dst, join)
        arms.append((python_expression(edge.data.condition.as_string), body))
    members = graph.before(state, join)
    return Branch(
        arms, [state, *(s for s in graph.sdfg.nodes() if s in members and s is not state), join]
    ), join


def _opaque(graph: StateGraph, state: State, reason: str) -> tuple[Opaque, State | None]:
    """Everything from `state` up to the first state that must follow and cannot come back."""
    join = graph.post_dominator.get(state)
    while join is not None and state in graph.before(join, None):
        join = graph.post_dominator.get(join)
    members = graph.before(state, join)
    parts = _straight_lines(graph, members)
    if join is not None and len(graph.sdfg.out_edges(join)) <= 1 and join not in graph.loops:
        parts.append([StateBlock(join)])
        members.add(join)
        return Opaque(reason, parts, list(members)), join
    if join is not None:
        raise UnsupportedConstruct(reason)
    return Opaque(reason, parts, list(members)), None


def _straight_lines(graph: StateGraph, members: set[State]) -> list[Sequence]:
    """Maximal runs of states joined by plain edges, each a sequence of blocks."""

    def follower(state: State) -> State | None:
        edges = graph.sdfg.out_edges(state)
        if len(edges) != 1 or not edges[0].data.is_unconditional() or edges[0].data.assignments:
            return None
        target = edges[0].dst
        return target if target in members and graph.sdfg.in_degree(target) == 1 else None

    ordered = [s for s in graph.sdfg.nodes() if s in members]
    followers = {follower(s) for s in ordered}
    runs: list[Sequence] = []
    for first in ordered:
        if first not in followers:
            run: Sequence = []
            current: State | None = first
            while current is not None:
                run.append(StateBlock(current))
                current = follower(current)
            runs.append(run)
    return runs
