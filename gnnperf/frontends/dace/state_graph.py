"""The state machine of an SDFG as a graph: loops, dominators, and room for structure.

`StateGraph` holds the facts; `isolate` inserts empty states, so that every counted loop and every branch
has an entry and an exit state of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dace
import networkx as nx

from gnnperf.errors import UnsupportedConstruct

State: TypeAlias = Any  # dace.SDFGState, which has no type information
Edge: TypeAlias = Any


def isolate(sdfg: Any) -> None:
    """Give loops and branches an entry and an exit of their own. The program stays the same."""
    _isolate_loops(sdfg)
    _isolate_branches(sdfg)


def end_in_states(sdfg: Any) -> None:
    """Give loops that go back under a condition a state to end in, as where the last thing in a `while` is a
    `for`, which ends with the condition of that. DaCe's code runs such a loop once."""
    if any(not isinstance(block, dace.SDFGState) for block in sdfg.nodes()):
        return
    for header, members in StateGraph(sdfg).loops.items():
        for edge in sdfg.in_edges(header):
            if edge.src in members and edge.src is not header and not edge.data.is_unconditional():
                _insert_state(sdfg, edge, "end", set(edge.data.assignments))


def python_expression(text: str) -> ast.expr:
    """What a text in an SDFG says, as the condition or an assigned value of an edge between states."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UnsupportedConstruct(f"the expression `{text}`") from error


def names_in(tree: ast.expr | str) -> set[str]:
    """Names that an expression mentions."""
    parsed = python_expression(tree) if isinstance(tree, str) else tree
    return {n.id for n in ast.walk(parsed) if isinstance(n, ast.Name)}


def names_used(sdfg: Any, states: list[State]) -> set[str]:
    """Arrays and symbols that states, and the edges at them, mention in any way."""
    names = {n.data for s in states for n in s.data_nodes()}
    for state in states:
        for edge in sdfg.all_edges(state):
            names |= {str(f) for f in edge.data.free_symbols}
        for node in state.nodes():
            names |= {str(f) for f in node.free_symbols}
        for edge in state.edges():
            names |= {str(f) for f in edge.data.free_symbols}
    return names


class _Subscripts(ast.NodeTransformer):
    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.slice = self.visit(node.slice)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.ranks:
            return node
        return python_expression(f"{node.id}[{', '.join('0' * self.ranks[node.id])}]")


def subscript_names(edge: Any, ranks: Mapping[str, int]) -> None:
    """In place: read `name` as `name[0]` on an edge, for arrays of one element with so many dimensions."""
    if edge.free_symbols & ranks.keys():
        subscripts = _Subscripts(ranks)
        edge.assignments = {
            k: ast.unparse(subscripts.visit(python_expression(str(v)))) for k, v in edge.assignments.items()
        }
        condition = subscripts.visit(python_expression(edge.condition.as_string))
        edge.condition = dace.properties.CodeBlock(ast.unparse(condition))


@dataclass
class StateGraph:
    """Loops and post-dominators of a state machine."""

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
        without = nx.restricted_view(self.digraph, [] if last is None else [last], [])
        return {first, *nx.descendants(without, first)}


def _dominates(dominator: dict[State, State], above: State, node: State) -> bool:
    while node is not above:
        if dominator[node] is node:
            return False
        node = dominator[node]
    return True


def _natural_loop(digraph: Any, header: State, latch: State) -> set[State]:
    if latch is header:
        return {header}
    return {header, latch, *nx.ancestors(nx.restricted_view(digraph, [header], []), latch)}


def _isolate_loops(sdfg: Any) -> None:
    loops = StateGraph(sdfg).loops

    def insert(edge: Edge, label: str, late: set[str]) -> None:
        state = _insert_state(sdfg, edge, label, late)
        for members in loops.values():  # the way into or out of a loop is part of the loops around it
            if edge.src in members and edge.dst in members:
                members.add(state)

    for header, members in loops.items():
        entering = [e for e in sdfg.in_edges(header) if e.src not in members]
        if len(entering) == 1 and not is_marked(entering[0].src, "before_loop"):
            stepped = {k for e in sdfg.in_edges(header) if e.src in members for k in e.data.assignments}
            insert(entering[0], "before_loop", stepped)
        leaving = [e for e in sdfg.out_edges(header) if e.dst not in members]
        if len(leaving) == 1 and not is_marked(leaving[0].dst, "after_loop"):
            insert(leaving[0], "after_loop", set(leaving[0].data.assignments))


def _isolate_branches(sdfg: Any) -> None:
    loops = StateGraph(sdfg).loops
    for state in sdfg.nodes():
        if sdfg.out_degree(state) > 1 and state not in loops and state.nodes():
            chooser = sdfg.add_state("choose", is_start_block=False)
            for edge in sdfg.out_edges(state):
                sdfg.remove_edge(edge)
                sdfg.add_edge(chooser, edge.dst, edge.data)
            sdfg.add_edge(state, chooser, dace.InterstateEdge())
    choosers = [s for s in sdfg.nodes() if sdfg.out_degree(s) > 1 and s not in StateGraph(sdfg).loops]
    for state in choosers:
        graph = StateGraph(sdfg)
        join = graph.post_dominator.get(state)
        if join is None or is_marked(join, "joined"):
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


def is_marked(state: State, label: str) -> bool:
    """Is this an empty state that `isolate` made?"""
    return state.label.startswith(label) and not state.nodes()


def _insert_state(sdfg: Any, edge: Edge, label: str, late: set[str]) -> State:
    """src -> new -> dst; what is new. The condition stays on the first edge; the assignments of the symbols
    `late` move to the second one, all of them if they depend on the others."""
    assignments = dict(edge.data.assignments)
    early = {k: v for k, v in assignments.items() if k not in late}
    if any(names_in(v) & early.keys() for k, v in assignments.items() if k in late):
        early = {}
    state = sdfg.add_state(label, is_start_block=False)
    sdfg.remove_edge(edge)
    first = dace.InterstateEdge(condition=edge.data.condition, assignments=early)
    second = dace.InterstateEdge(assignments={k: v for k, v in assignments.items() if k not in early})
    sdfg.add_edge(edge.src, state, first)
    sdfg.add_edge(state, edge.dst, second)
    return state
