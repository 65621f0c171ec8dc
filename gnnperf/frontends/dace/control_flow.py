"""The state machine of an SDFG as structured control flow: blocks, loops, branches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dace
import networkx as nx

from gnnperf.errors import UnsupportedConstruct

State: TypeAlias = Any  # dace.SDFGState, which has no type information
Edge: TypeAlias = Any


@dataclass
class Block:
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
class Branch:
    """Exclusive arms: (condition, what runs where it holds)."""

    arms: list[tuple[ast.expr, Sequence]]
    states: list[State]


@dataclass
class Opaque:
    """Control flow without a translation (while, break, several exits); its parts may have one."""

    reason: str
    parts: list[Sequence]
    states: list[State]


Element: TypeAlias = Block | Assign | For | Branch | Opaque
Sequence: TypeAlias = list[Element]


def control_flow(sdfg: Any) -> Sequence:
    """Structured view of the state machine.

    Empty states are inserted where needed, so that every loop and branch has an entry and an exit
    state of its own; what the program computes does not change.
    """
    _isolate_loops(sdfg)
    _isolate_branches(sdfg)
    graph = _Graph(sdfg)
    try:
        return _sequence(graph, sdfg.start_state, None)
    except UnsupportedConstruct as reason:
        members = set(sdfg.nodes())
        return [Opaque(str(reason), _straight_lines(graph, members), sdfg.nodes())]


def states_of(element: Element) -> list[State]:
    if isinstance(element, Block):
        return [element.state]
    return [] if isinstance(element, Assign) else element.states


def sub_sequences(element: Element) -> Iterator[Sequence]:
    """The sequences directly inside an element."""
    if isinstance(element, For):
        yield element.body
    elif isinstance(element, Branch):
        yield from (body for _, body in element.arms)
    elif isinstance(element, Opaque):
        yield from element.parts


# --------------------------------------------------------------------------- graph facts


@dataclass
class _Graph:
    sdfg: Any
    digraph: Any = field(init=False)
    loops: dict[State, set[State]] = field(default_factory=dict)
    """header -> states of its natural loop, header included"""
    post_dominator: dict[State, State | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.digraph = nx.DiGraph()
        self.digraph.add_nodes_from(self.sdfg.nodes())
        self.digraph.add_edges_from((e.src, e.dst) for e in self.sdfg.edges())
        dominator = nx.immediate_dominators(self.digraph, self.sdfg.start_state)
        for edge in self.sdfg.edges():
            if edge.src in dominator and _dominates(dominator, edge.dst, edge.src):
                members = _natural_loop(self.digraph, edge.dst, edge.src)
                self.loops.setdefault(edge.dst, set()).update(members)
        backwards = self.digraph.reverse()
        ends = [n for n in self.digraph if self.digraph.out_degree(n) == 0]
        backwards.add_edges_from(("end", end) for end in ends)
        if ends:
            found = nx.immediate_dominators(backwards, "end")
            self.post_dominator = {k: None if v == "end" else v for k, v in found.items()}

    def before(self, first: State, last: State | None) -> set[State]:
        """States reachable from `first`, itself included, without passing through `last`."""
        if first is last:
            return set()
        seen, pending = {first}, [first]
        while pending:
            for successor in self.digraph.successors(pending.pop()):
                if successor is not last and successor not in seen:
                    seen.add(successor)
                    pending.append(successor)
        return seen


def _dominates(dominator: dict[State, State], above: State, node: State) -> bool:
    while node is not above:
        if dominator[node] is node:
            return False
        node = dominator[node]
    return True


def _natural_loop(digraph: Any, header: State, latch: State) -> set[State]:
    members, pending = {header, latch}, [latch]
    while pending:
        node = pending.pop()
        if node is header:
            continue
        new = [p for p in digraph.predecessors(node) if p not in members]
        members.update(new)
        pending.extend(new)
    return members


# --------------------------------------------------------------------------- one entry, one exit


def _isolate_loops(sdfg: Any) -> None:
    for header, members in _Graph(sdfg).loops.items():
        entering = [e for e in sdfg.in_edges(header) if e.src not in members]
        if len(entering) == 1 and not _is_marked(entering[0].src, "before_loop"):
            stepped = {k for e in sdfg.in_edges(header) if e.src in members for k in e.data.assignments}
            _insert_state(sdfg, entering[0], "before_loop", stepped)
        leaving = [e for e in sdfg.out_edges(header) if e.dst not in members]
        if len(leaving) == 1 and not _is_marked(leaving[0].dst, "after_loop"):
            _insert_state(sdfg, leaving[0], "after_loop", set(leaving[0].data.assignments))


def _isolate_branches(sdfg: Any) -> None:
    loops = _Graph(sdfg).loops
    for state in sdfg.nodes():
        if sdfg.out_degree(state) > 1 and state not in loops and state.nodes():
            chooser = sdfg.add_state("choose", is_start_block=False)
            for edge in sdfg.out_edges(state):
                sdfg.remove_edge(edge)
                sdfg.add_edge(chooser, edge.dst, edge.data)
            sdfg.add_edge(state, chooser, dace.InterstateEdge())
    choosers = [s for s in sdfg.nodes() if sdfg.out_degree(s) > 1 and s not in _Graph(sdfg).loops]
    for state in choosers:
        graph = _Graph(sdfg)
        join = graph.post_dominator.get(state)
        if join is None or _is_marked(join, "joined"):
            continue
        arms = graph.before(state, join)
        if join in arms or any(e.dst is join for a in arms for e in sdfg.out_edges(a) if a in graph.loops):
            continue
        incoming = [e for e in sdfg.in_edges(join) if e.src in arms]
        joined = sdfg.add_state("joined", is_start_block=False)
        for edge in incoming:
            sdfg.remove_edge(edge)
            sdfg.add_edge(edge.src, joined, edge.data)
        sdfg.add_edge(joined, join, dace.InterstateEdge())


def _is_marked(state: State, label: str) -> bool:
    return state.label.startswith(label) and not state.nodes()


def _insert_state(sdfg: Any, edge: Edge, label: str, late: set[str]) -> None:
    """src -> new -> dst. The condition stays on the first edge; the assignments of the symbols `late`
    move to the second one, all of them if they depend on the others."""
    assignments = dict(edge.data.assignments)
    early = {k: v for k, v in assignments.items() if k not in late}
    if any(ast_names(v) & early.keys() for k, v in assignments.items() if k in late):
        early = {}
    state = sdfg.add_state(label, is_start_block=False)
    sdfg.remove_edge(edge)
    first = dace.InterstateEdge(condition=edge.data.condition, assignments=early)
    second = dace.InterstateEdge(assignments={k: v for k, v in assignments.items() if k not in early})
    sdfg.add_edge(edge.src, state, first)
    sdfg.add_edge(state, edge.dst, second)


def ast_names(text: str) -> set[str]:
    """Names that a Python expression mentions."""
    return {n.id for n in ast.walk(_python(text)) if isinstance(n, ast.Name)}


# --------------------------------------------------------------------------- structure


def _sequence(graph: _Graph, state: State | None, end: State | None) -> Sequence:
    result: Sequence = []
    while state is not None and state is not end:
        edges = graph.sdfg.out_edges(state)
        following: State | None
        element: Element
        if len(edges) == 1 and _is_marked(state, "before_loop") and edges[0].dst in graph.loops:
            elements, following = _loop(graph, state, edges[0].dst)
            result += elements
        elif state in graph.loops:
            element, following = _opaque(graph, state, "a loop with several entries")
            result.append(element)
        elif len(edges) > 1:
            element, following = _branch(graph, state)
            result.append(element)
        else:
            result.append(Block(state))
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


def _loop(graph: _Graph, entry: State, header: State) -> tuple[Sequence, State | None]:
    sdfg, members = graph.sdfg, graph.loops[header]
    leaving = [e for m in members for e in sdfg.out_edges(m) if e.dst not in members]
    into = [e for e in sdfg.out_edges(header) if e.dst in members]
    latches = [e for e in sdfg.in_edges(header) if e.src in members]
    if (
        len(leaving) != 1 or leaving[0].src is not header or len(into) != 1 or len(latches) != 1
        or header.nodes() or not _is_marked(leaving[0].dst, "after_loop")
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
    try:
        iterator, step = _increment(start, latch)
        stop, closed = _bound(into[0].data.condition, iterator, step)
    except UnsupportedConstruct as reason:
        return [Opaque(str(reason), [body], states)], after
    if isinstance(body[-1], Assign) and iterator in body[-1].values:  # the loop itself steps it
        body[-1].values.pop(iterator)
        if not body[-1].values:
            body.pop()
    first = _python(start.pop(iterator))
    others: Sequence = [Assign(start)] if start else []
    return [*others, For(iterator, first, stop, closed, step, body, states)], after


def _increment(start: dict[str, str], latch: dict[str, str]) -> tuple[str, int]:
    """The variable that is initialised before the loop and stepped by a constant."""
    for name in start.keys() & latch.keys():
        step: int | None = None
        match _python(latch[name]):
            case ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=right) if left == name:
                step = _integer(right)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Name(id=right)) if right == name:
                step = _integer(left)
            case ast.BinOp(left=ast.Name(id=left), op=ast.Sub(), right=right) if left == name:
                value = _integer(right)
                step = None if value is None else -value
        if step:
            return name, step
    raise UnsupportedConstruct("a while loop, or a loop without a constant step")


def _integer(tree: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(tree)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


_MIRRORED: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def _bound(condition: Any, iterator: str, step: int) -> tuple[ast.expr, bool]:
    tree = _python(condition.as_string)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        left, op, right = tree.left, type(tree.ops[0]), tree.comparators[0]
        if isinstance(right, ast.Name) and right.id == iterator:
            left, op, right = right, _MIRRORED.get(op, op), left
        wanted = (ast.Lt, ast.LtE) if step > 0 else (ast.Gt, ast.GtE)
        if isinstance(left, ast.Name) and left.id == iterator and op in wanted:
            return right, op in (ast.LtE, ast.GtE)
    raise UnsupportedConstruct(f"the loop condition `{ast.unparse(tree)}`")


def _python(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UnsupportedConstruct(f"the condition `{text}`") from error


def _branch(graph: _Graph, state: State) -> tuple[Element, State | None]:
    join = graph.post_dominator.get(state)
    if join is None or not _is_marked(join, "joined"):
        return _opaque(graph, state, "a branch whose arms do not meet again")
    arms: list[tuple[ast.expr, Sequence]] = []
    for edge in graph.sdfg.out_edges(state):
        body: Sequence = [Assign(dict(edge.data.assignments))] if edge.data.assignments else []
        body += _sequence(graph, edge.dst, join)
        arms.append((_python(edge.data.condition.as_string), body))
    members = graph.before(state, join)
    return Branch(
        arms, [state, *(s for s in graph.sdfg.nodes() if s in members and s is not state), join]
    ), join


def _opaque(graph: _Graph, state: State, reason: str) -> tuple[Opaque, State | None]:
    """Everything from `state` up to the first state that must follow and cannot come back."""
    join = graph.post_dominator.get(state)
    while join is not None and state in graph.before(join, None):
        join = graph.post_dominator.get(join)
    members = graph.before(state, join)
    parts = _straight_lines(graph, members)
    if join is not None and len(graph.sdfg.out_edges(join)) <= 1 and join not in graph.loops:
        parts.append([Block(join)])
        members.add(join)
        return Opaque(reason, parts, list(members)), join
    if join is not None:
        raise UnsupportedConstruct(reason)
    return Opaque(reason, parts, list(members)), None


def _straight_lines(graph: _Graph, members: set[State]) -> list[Sequence]:
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
                run.append(Block(current))
                current = follower(current)
            runs.append(run)
    return runs
