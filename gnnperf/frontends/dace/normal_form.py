"""The SDFG every later step works on: simplified, without library nodes or symbolic sizes, and with
one item (map scope, tasklet, copy, nested SDFG) per state.

DaCe's LoopToMap is not used: loops stay loops, and which of them are parallel is decided on the
translated nests, where all accesses are in terms of the arrays they really touch.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import dace
import networkx as nx
import numpy as np
from dace.sdfg import nodes as dn
from dace.sdfg import utils as sdutil
from dace.transformation.dataflow import redundant_array
from dace.transformation.interstate import InlineMultistateSDFG, StateFusion
from dace.transformation.passes import scalar_to_symbol
from dace.transformation.passes.simplify import SimplifyPass

from gnnperf.errors import first_line
from gnnperf.frontends.dace.fourier import CALL
from gnnperf.frontends.dace.products import WHOLE
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.dace.repaired import Repairs, repaired
from gnnperf.frontends.dace.state_graph import subscript_names

MOST_CONSTANTS = 64
"""Elements of an array of numbers that a program has in its text."""


def bind(sdfg: Any, symbols: Mapping[str, int], expand: bool = True) -> None:
    """In place: structured regions lowered to states, symbols bound, library nodes expanded, if wanted: else
    those alone that DaCe knows nothing for.

    Libraries before anything is simplified: inlining changes the ranks of operands, and expansions
    check them.
    """
    with quiet_dace():
        for nested in list(sdfg.all_sdfgs_recursive()):
            sdutil.inline_conditional_blocks(nested)
            sdutil.inline_control_flow_regions(nested)
            _views_of_nothing(nested)
            _store_constants(nested)
            _rename_shadowing(nested)
        sdfg.using_experimental_blocks = False
        sdfg.reset_cfg_list()
        specialise(sdfg, symbols)
        expand_libraries(sdfg, () if expand else (WHOLE,))


def _views_of_nothing(sdfg: Any) -> None:
    """In place: views that look at no array become arrays. (`np.flip` of a slice gives its result the
    descriptor of its operand; DaCe then refuses the program.)"""
    views = {k: d for k, d in sdfg.arrays.items() if isinstance(d, dace.data.View)}
    for state in sdfg.states():
        for node in state.data_nodes():
            if node.data in views and sdutil.get_view_edge(state, node) is not None:
                del views[node.data]
    for name, descriptor in views.items():
        sdfg.arrays[name] = dace.data.Array(descriptor.dtype, descriptor.shape, transient=True)


def _store_constants(sdfg: Any) -> None:
    """In place: numbers that a program has as constants and reads as data (`sqrt(2.0)` in a function that it
    calls, `np.array([1.0, 2.0])`) are stored where they are read."""
    for name, (_, value) in list(sdfg.constants_prop.items()):
        values = np.atleast_1d(value)
        if name not in sdfg.arrays or values.size > MOST_CONSTANTS:
            continue
        for state in sdfg.states():
            for node in [n for n in state.data_nodes() if n.data == name]:
                before = state.in_edges(node)
                for at, number in np.ndenumerate(values):
                    store = state.add_tasklet(f"set_{name}", set(), {"out"}, f"out = {number.item()!r}")
                    for edge in before:  # of order alone
                        state.add_nedge(edge.src, store, dace.Memlet())
                    place = ", ".join(map(str, at))
                    state.add_edge(store, "out", node, None, dace.Memlet(data=name, subset=place))
                for edge in before:
                    state.remove_edge(edge)
        del sdfg.constants_prop[name]


def _rename_shadowing(sdfg: Any) -> None:
    """In place: other names for parameters of maps that counters of loops have, too (`for i in range(n)`,
    then `for i in dace.map[0:n]`). Inlining renames the counter, and with it what the map means by it."""
    counters = {name for e in sdfg.all_interstate_edges() for name in e.data.assignments}
    entries = [(n, s) for s in sdfg.states() for n in s.nodes() if isinstance(n, dn.MapEntry)]
    shadowing = [(n, s, at) for n, s in entries for at, name in enumerate(n.map.params) if name in counters]
    taken = _names(sdfg) if shadowing else set()
    for entry, state, at in shadowing:
        name = entry.map.params[at]
        entry.map.params[at] = new = dace.data.find_new_name(name, taken)
        state.scope_subgraph(entry).replace(name, new)
        taken.add(new)


def _names(sdfg: Any) -> set[str]:
    """All names that mean something somewhere in a program."""
    maps = (n.map for n, _ in sdfg.all_nodes_recursive() if isinstance(n, dn.MapEntry))
    return {
        *sdfg.arrays,
        *map(str, sdfg.used_symbols(all_symbols=True)),
        *(p for m in maps for p in m.params),
    }


def simplified(sdfg: Any, scalars_as_symbols: bool, expand: bool = True) -> tuple[Any, Sequence[str]]:
    """A copy after DaCe's simplification, after which library nodes are expanded, if wanted; and what could
    not be done to it: passes of DaCe that fail on the program are left out, and said.

    DaCe turns scalars into symbols on edges where it can; as results of a loop they are easier to follow as
    data.
    """
    left_out = set() if scalars_as_symbols else {"ScalarToSymbolPromotion"}
    failures: list[str] = []
    while True:
        program, passes = copy.deepcopy(sdfg), _Passes(left_out)
        with quiet_dace(), repaired(_REPAIRS):
            try:
                for _ in range(2):  # what was simplified may have become a library node that expands
                    passes.apply_pass(program, {})
                    if expand:
                        expand_libraries(program)
                return program, failures
            except Exception as error:  # DaCe's passes raise anything, and leave the program half done
                if passes.last in left_out:
                    raise
                left_out = {*left_out, passes.last}
                failures.append(
                    f"DaCe's pass {passes.last} fails on the kernel ({first_line(error)}): it is left out"
                )


class _Passes(SimplifyPass):  # type: ignore[misc]
    """That know which of them was begun last."""

    def __init__(self, left_out: Set[str]) -> None:
        super().__init__(skip=set(left_out))
        self._names = {type(one).__name__ for one in self.passes}
        self.last = ""

    def apply_subpass(self, sdfg: Any, one: Any, state: dict[str, Any]) -> Any:
        if type(one).__name__ in self._names:
            self.last = type(one).__name__
        return super().apply_subpass(sdfg, one, state)


def _keeping_sums(handle_connectors: Any) -> Any:
    """An element that is found through an index and added to: DaCe, which makes the index a part of the
    address, stores there in place of adding."""

    def handle_connectors_keeping_sums(
        state: Any, node: Any, elements: Mapping[str, tuple[str, Any]], kept: set[str], is_input: bool
    ) -> None:
        combined = {} if is_input else {e.src_conn: e.data.wcr for e in state.out_edges(node)}
        handle_connectors(state, node, elements, kept, is_input)
        for edge in [] if is_input else state.out_edges(node):
            if edge.src_conn in elements:
                edge.data.wcr = combined[elements[edge.src_conn][0]]

    return handle_connectors_keeping_sums


def _once_each(can_be_applied: Any) -> Any:
    """States that DaCe fuses in order: it lets an array that the first leaves meet one node of the second
    that writes to it, and, where another node of the second has that array too, uses what is gone."""

    def fuses(self: Any, graph: Any, expr_index: int, sdfg: Any, permissive: bool = False) -> bool:
        if not can_be_applied(self, graph, expr_index, sdfg, permissive):
            return False
        first, second = self.first_state, self.second_state
        left = [n for n in first.scope_children()[None] if isinstance(n, dn.AccessNode)]
        later: list[Any] = []
        for node in reversed(list(sdutil.dfs_topological_sort(second))):
            if not isinstance(node, dn.AccessNode) or not second.out_degree(node):
                continue
            if second.in_degree(node) and any(n.data == node.data for n in later):
                meet = [n for n in left if n.data == node.data]
                if any(self.memlets_intersect(first, [n], False, second, [node], True) for n in meet):
                    return False
            later.append(node)
        return _reads_come_first(first, second)

    return fuses


def _reads_come_first(first: Any, second: Any) -> bool:
    """Would whatever the second state stores wait for everything that reads it in the first one? It does
    where each store depends on what comes of each of these; DaCe is content with one."""
    stored = {n.data for n in second.data_nodes() if second.in_degree(n)}
    reads = [e for n in first.data_nodes() if n.data in stored for e in first.out_edges(n)]
    made = {e: {e.dst, *nx.descendants(first.nx, e.dst)} for e in reads}
    for store in (e for n in second.data_nodes() if reads for e in second.in_edges(n)):
        before = {store.src, *nx.ancestors(second.nx, store.src)}
        needed = {n.data for n in before if isinstance(n, dn.AccessNode) and not second.in_degree(n)}
        for read in (e for e in reads if e.src.data == store.dst.data):
            if not any(isinstance(n, dn.AccessNode) and n.data in needed for n in made[read]):
                return False
    return True


def _without_new_axes(original: Any) -> Any:
    """Which views are slices, each of whose axes is one of the array: not of `x[i, np.newaxis, :]`, where
    DaCe takes an axis for two."""

    def is_slice(array: Any, view: Any) -> bool:
        return bool(original(array, view)) and len({*map(array.strides.index, view.strides)}) == len(
            view.shape
        )

    return is_slice


def _read_as_a_whole(original: Any) -> Any:
    """Which arrays may go, in whose place the one is that they are copied to: of those that are copied as a
    whole. DaCe compares as many sizes as the part has, so it takes `t[:, 2]` for all of t."""

    def can_be_applied(
        transformation: Any, state: Any, index: int, sdfg: Any, permissive: bool = False
    ) -> bool:
        copied = transformation.in_array
        for edge in state.edges_between(copied, transformation.out_array):
            part = edge.data.get_src_subset(edge, state)
            if part is not None and part.num_elements() != math.prod(sdfg.arrays[copied.data].shape):
                return False
        return bool(original(transformation, state, index, sdfg, permissive))

    return can_be_applied


def _keeping_direction(original: Any) -> Any:
    """`x[:, 0] = x[:, -2]`, through an array that goes, is a copy within x. DaCe may keep which way the copy
    to that array was written, and copy from the part that is to be written."""

    def apply(transformation: Any, state: Any, sdfg: Any) -> Any:
        before = state.edges()
        made = original(transformation, state, sdfg)
        for edge in set(state.edges()).difference(before):
            ends = [end.data for end in (edge.src, edge.dst) if isinstance(end, dn.AccessNode)]
            if ends == [edge.data.data] * 2:
                edge.data._is_data_src = True
        return made

    return apply


_REPAIRS: Repairs = {
    (scalar_to_symbol, "_handle_connectors"): _keeping_sums,
    (StateFusion, "can_be_applied"): _once_each,
    (redundant_array, "_is_slice"): _without_new_axes,
    (redundant_array.RedundantArray, "can_be_applied"): _read_as_a_whole,
    (redundant_array.RedundantArray, "apply"): _keeping_direction,
    (redundant_array.RedundantSecondArray, "apply"): _keeping_direction,
}


def specialise(sdfg: Any, values: Mapping[str, int]) -> None:
    """Replace symbols by numbers, in nested SDFGs too."""
    bound = {k: str(v) for k, v in values.items() if k in sdfg.symbols or k in map(str, sdfg.free_symbols)}
    if bound:
        sdfg.replace_dict(bound)
        for name in bound:
            sdfg.symbols.pop(name, None)
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, dn.NestedSDFG):
                known = {
                    str(k): int(str(v))
                    for k, v in node.symbol_mapping.items()
                    if str(v).lstrip("-").isdigit()
                }
                assigned = {k for e in node.sdfg.all_interstate_edges() for k in e.data.assignments}
                known = {k: v for k, v in known.items() if k not in assigned}
                for name in known:
                    del node.symbol_mapping[name]
                specialise(node.sdfg, known)


def expand_libraries(sdfg: Any, names: Sequence[str] = ()) -> None:
    """Library nodes as plain maps; the ones without such an implementation stay. names: of implementations,
    all unless said."""
    for _ in range(10):
        pending = [(n, s) for n, s in sdfg.all_nodes_recursive() if isinstance(n, dn.LibraryNode)]
        expanded = [_expand(node, state, names) for node, state in pending]
        if not any(expanded):
            return


def _expand(node: Any, state: Any, names: Sequence[str]) -> bool:
    wanted = names or (CALL, WHOLE, "pure", node.default_implementation, *node.implementations)
    before = node.implementation
    for name in dict.fromkeys(w for w in wanted if w in node.implementations):
        node.implementation = name
        try:
            node.expand(state.sdfg, state)
        except Exception:  # an implementation says in any way it likes that it does not fit
            node.implementation = before
            continue
        return True
    return False


def linearise(sdfg: Any) -> None:
    """Give every item of every state (outside of map scopes) a state of its own, in the order in
    which DaCe's own code generator would run them, and inline what then can be inlined."""
    with quiet_dace():
        for _ in range(10):
            start = sdfg.start_state
            for state in list(sdfg.states()):
                first = _split_state(sdfg, state)
                start = first if start is state else start
            sdfg.start_block = sdfg.node_id(start)  # an index: removing states moves it
            sdfg.reset_cfg_list()
            if not sdfg.apply_transformations_repeated(InlineMultistateSDFG, validate=False):
                break
        for state in sdfg.states():
            for node in state.scope_children()[None]:
                if isinstance(node, dn.NestedSDFG):
                    linearise(node.sdfg)
        sdfg.reset_cfg_list()


def name_elements(sdfg: Any) -> None:
    """In place: what is decided between states reads the element of an array of one. (Programs name the
    array, which DaCe compares as a pointer unless the array has become a symbol.)"""
    for nested in sdfg.all_sdfgs_recursive():
        arrays = {name: d.shape for name, d in nested.arrays.items() if isinstance(d, dace.data.Array)}
        ranks = {name: len(shape) for name, shape in arrays.items() if all(size == 1 for size in shape)}
        for edge in nested.edges():
            subscript_names(edge.data, ranks)


def _split_state(sdfg: Any, state: Any) -> Any:
    """Returns the first of the states that replace `state`."""
    items = _items(sdfg, state)
    if len(items) <= 1:
        return state
    chain = []
    for number, edges_or_nodes in enumerate(items):
        new = sdfg.add_state(f"{state.label}_{number}", is_start_block=False)
        chain.append(new)
        _ItemCopy(sdfg, state, new).run(edges_or_nodes)
    for before, after in itertools.pairwise(chain):
        sdfg.add_edge(before, after, dace.InterstateEdge())
    for edge in sdfg.in_edges(state):
        sdfg.add_edge(edge.src if edge.src is not state else chain[-1], chain[0], edge.data)
    for edge in sdfg.out_edges(state):
        if edge.dst is not state:
            sdfg.add_edge(chain[-1], edge.dst, edge.data)
    sdfg.remove_node(state)
    return chain[0]


def _items(sdfg: Any, state: Any) -> list[list[Any]]:
    """Per item: its top-level code nodes (joined where one feeds the next without an access node),
    or the one edge that is a copy."""
    position = {n: i for i, n in enumerate(sdutil.dfs_topological_sort(state, state.source_nodes()))}
    group: dict[Any, list[Any]] = {}
    found: list[tuple[int, int, list[Any]]] = []
    for node in sorted(state.scope_children()[None], key=lambda n: position[n]):
        if isinstance(node, dn.ExitNode):
            continue
        if isinstance(node, dn.AccessNode):  # DaCe copies out of a node when it comes to that node
            for number, edge in enumerate(state.out_edges(node)):
                if isinstance(edge.dst, dn.AccessNode) and not is_view_edge(sdfg, state, edge):
                    if not edge.data.is_empty():
                        found.append((position[node], number, [edge]))
            continue
        feeders = [
            e.src for e in state.in_edges(node) if isinstance(e.src, dn.CodeNode) and not e.data.is_empty()
        ]
        feeders = [state.entry_node(f) if isinstance(f, dn.ExitNode) else f for f in feeders]
        if feeders:
            members = group[feeders[0]]
            members.append(node)
            group[node] = members
        else:
            group[node] = [node]
            found.append((position[node], 0, group[node]))
    return [members for _, _, members in sorted(found, key=lambda f: f[:2])]


def is_view_edge(sdfg: Any, state: Any, edge: Any) -> bool:
    """Whether an edge says what a view looks at, and copies nothing."""
    return any(
        isinstance(end, dn.AccessNode)
        and isinstance(end.desc(sdfg), dace.data.View)
        and sdutil.get_view_edge(state, end) is edge
        for end in (edge.src, edge.dst)
    )


class _ItemCopy:
    """Moves one item from a state into a new one, with access nodes of its own."""

    def __init__(self, sdfg: Any, old: Any, new: Any) -> None:
        self.sdfg, self.old, self.new = sdfg, old, new
        self.access: dict[Any, Any] = {}

    def run(self, members: list[Any]) -> None:
        if not isinstance(members[0], dn.Node):
            (edge,) = members
            self._connect(edge, self._access(edge.src), self._access(edge.dst))
            return
        inside: list[Any] = []
        for node in members:
            if isinstance(node, dn.EntryNode):
                inside += [*self.old.scope_subgraph(node, include_entry=True, include_exit=True).nodes()]
            else:
                inside.append(node)
        for node in inside:
            self.new.add_node(node)
            if isinstance(node, dn.NestedSDFG):
                node.sdfg.parent = self.new
        contained = set(inside)
        for node in inside:
            for edge in self.old.in_edges(node):
                if edge.src in contained:
                    self._connect(edge, edge.src, node)
                elif isinstance(edge.src, dn.AccessNode) and not edge.data.is_empty():
                    self._connect(edge, self._access(edge.src), node)
            for edge in self.old.out_edges(node):
                if (
                    edge.dst not in contained
                    and isinstance(edge.dst, dn.AccessNode)
                    and not edge.data.is_empty()
                ):
                    self._connect(edge, node, self._access(edge.dst))

    def _connect(self, edge: Any, source: Any, target: Any) -> None:
        self.new.add_edge(source, edge.src_conn, target, edge.dst_conn, copy.deepcopy(edge.data))

    def _access(self, node: Any) -> Any:
        """This item's copy of an access node; a view brings along what it views."""
        if node not in self.access:
            self.access[node] = copy.deepcopy(node)
            self.new.add_node(self.access[node])
            if isinstance(node.desc(self.sdfg), dace.data.View):
                edge = sdutil.get_view_edge(self.old, node)
                if edge is not None:
                    ends = (edge.src, edge.dst)
                    if all(isinstance(e, dn.AccessNode) for e in ends):
                        self._connect(edge, *(self._access(e) for e in ends))
        return self.access[node]
