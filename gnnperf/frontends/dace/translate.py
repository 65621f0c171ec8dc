"""One item of an SDFG (a state with one map scope, tasklet, copy or nested SDFG, or a whole loop)
as IR nodes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import dace
import sympy
from dace.sdfg import nodes as dn
from dace.sdfg import utils as sdutil

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.builder import Builder, array_buffer
from gnnperf.frontends.dace.control_flow import (
    Assign,
    Branch,
    Element,
    For,
    Opaque,
    Sequence,
    StateBlock,
    While,
    control_flow,
    sub_sequences,
)  # fmt: skip
from gnnperf.frontends.dace.copies import copies_of
from gnnperf.frontends.dace.dtypes import dtype_name, expression_dtype
from gnnperf.frontends.dace.expressions import from_ast, parse_expression
from gnnperf.frontends.dace.normal_form import is_view_edge
from gnnperf.frontends.dace.scope import Scope
from gnnperf.frontends.dace.tasklets import Connector, TaskletTranslator, connector
from gnnperf.frontends.dace.tidy import tidy
from gnnperf.frontends.dace.views import View, ViewLayout, everything, linear, narrow, whole
from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.coverage import flow
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Node, Op, Statement, Symbol, loads


class DaceTranslator:
    """Translates items of one SDFG; the items share buffers and a supply of unique names.

    `buffers` holds the SDFG's own arrays under their own names (transients included) and whatever
    the items need besides.
    """

    def __init__(self, sdfg: Any) -> None:
        self.sdfg = sdfg
        self.buffers: dict[str, Buffer] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.taken = {*sdfg.arrays, *map(str, sdfg.symbols), *map(str, sdfg.free_symbols)}
        self.in_scopes_only = _private_arrays(sdfg)
        self.flat = _flat_arrays(sdfg)

    def item(self, element: Element) -> tuple[Node, ...]:
        """Nodes of one element of the SDFG's control flow. Raises UnsupportedConstruct."""
        builder = Builder(self.buffers, self.taken, self.ranges)
        scope = Scope(self.sdfg, self._declare(builder), self._parameter)
        translator = _ItemTranslator(builder)
        with builder.block() as nodes:
            assigned = {n: translator.symbol_storage(scope, n) for n in sorted(assigned_symbols([element]))}
            translator.elements(scope, [element])
        body = tidy(tuple(nodes), self.buffers)
        needed = flow(body).exposed
        carried = [(n, load) for n, load in assigned.items() if load.buffer in needed]
        return (*(Statement(load, self._parameter(n)) for n, load in carried), *body)

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        return Builder(self.buffers, self.taken).fresh(name)

    def _parameter(self, name: str) -> Expr:
        if name not in self.sdfg.symbols and name not in self.sdfg.free_symbols:
            raise UnsupportedConstruct(f"the name {name}")
        return Symbol(name)

    def _declare(self, builder: Builder) -> Any:
        def declare(scope: Scope, name: str) -> View:
            descriptor = scope.sdfg.arrays[name]
            layout, dtype = scope.layout(descriptor), dtype_name(descriptor.dtype)
            if name in self.in_scopes_only:
                return builder.private(name, dtype, layout)
            if name in self.flat:
                row = ViewLayout((scope.integer(sympy.powsimp(descriptor.total_size)),), (Const(1),))
                self.buffers[name] = array_buffer(name, dtype, row, transient=True)
                return View(name, layout, lambda indices: (linear(indices, layout.strides),))
            self.buffers[name] = array_buffer(name, dtype, layout, bool(descriptor.transient))
            return whole(name, layout)

        return declare


def _private_arrays(sdfg: Any) -> set[str]:
    """Transients that exist only inside one map scope: every iteration has its own."""
    homes: dict[str, set[Any]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            entry = state.entry_node(node)
            homes.setdefault(node.data, set()).add(None if entry is None else _outermost(state, entry))
    read_on_edges = {s for e in sdfg.all_interstate_edges() for s in e.data.free_symbols}
    return {
        name
        for name, entries in homes.items()
        if sdfg.arrays[name].transient
        and None not in entries
        and len(entries) == 1
        and name not in read_on_edges
    }


def _flat_arrays(sdfg: Any) -> set[str]:
    """Transients whose extents loops decide, and that views look at in other shapes: there are no subscripts
    that all of them share."""
    found = set()
    for state in sdfg.states():
        for edge in state.edges():
            if is_view_edge(sdfg, state, edge):
                ends = [(node.data, node.desc(sdfg)) for node in (edge.src, edge.dst)]
                ranks = {len(descriptor.shape) for _, descriptor in ends}
                found |= {n for n, d in ends if len(ranks) > 1 and d.transient and _is_decided_by_loops(d)}
    return {name for name in found if not isinstance(sdfg.arrays[name], dace.data.View)}


def _is_decided_by_loops(descriptor: Any) -> bool:
    return any(getattr(size, "free_symbols", ()) for size in descriptor.shape[1:])


def _outermost(state: Any, entry: Any) -> Any:
    while (outer := state.entry_node(entry)) is not None:
        entry = outer
    return entry


class _ItemTranslator:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    # ------------------------------------------------------------------ control flow

    def elements(self, scope: Scope, sequence: Sequence) -> None:
        for element in sequence:
            match element:
                case StateBlock(state=state):
                    self.dataflow(scope, state, None)
                case Assign(values=values):
                    self._assign_symbols(scope, values)
                case For():
                    self._for(scope, element)
                case While(test=test, body=body):
                    self._while(scope, test, body)
                case Branch(arms=arms):
                    self._branch(scope, arms)
                case Opaque(reason=reason):
                    raise UnsupportedConstruct(reason)

    def _assign_symbols(self, scope: Scope, values: Mapping[str, str]) -> None:
        expressions = {k: parse_expression(v, scope.names) for k, v in values.items()}
        if len(expressions) > 1:  # all values are computed before any symbol changes
            expressions = {k: self.builder.local(k, e) if loads(e) else e for k, e in expressions.items()}
        for name, value in expressions.items():
            target = scope.symbols.get(name)
            if not isinstance(target, Load) or target.buffer not in scope.symbol_buffers:
                target = self.symbol_storage(scope, name, value)
            self.builder.assign(target, value)

    def symbol_storage(self, scope: Scope, name: str, value: Expr = Const(0)) -> Load:  # noqa: B008
        """A local scalar for a symbol that edges assign; its type is declared, or that of `value`."""
        declared = scope.sdfg.symbols.get(name)
        dtype = expression_dtype(value, self.builder.buffers) if declared is None else dtype_name(declared)
        buffer = self.builder.scalar(name, dtype)
        scope.symbol_buffers.add(buffer)
        scope.symbols[name] = Load(buffer)
        return Load(buffer)

    def _for(self, scope: Scope, loop: For) -> None:
        start = simplify(from_ast(loop.start, scope.names))
        stop = simplify(from_ast(loop.stop, scope.names))
        saved = scope.symbols.get(loop.iterator)

        def body(value: Expr) -> None:
            scope.symbols[loop.iterator] = value
            self.elements(scope, loop.body)

        if loop.step > 0:
            end = Op("add", (stop, Const(1))) if loop.closed else stop
            self.builder.loop(loop.iterator, start, end, loop.step, body, independent=False)
        else:
            if loads(start):
                start = self.builder.local("start", start)
            down = -loop.step
            span = Op("sub", (start, stop))
            trips = Op("add", (span, Const(down if loop.closed else down - 1)))
            count = trips if down == 1 else Op("floordiv", (trips, Const(down)))

            def backwards(k: Expr) -> None:
                body(simplify(Op("sub", (start, Op("mul", (k, Const(down)))))))

            self.builder.loop(loop.iterator, Const(0), count, 1, backwards, independent=False)
        scope.symbols.pop(loop.iterator, None)
        if saved is not None:
            scope.symbols[loop.iterator] = saved

    def _while(self, scope: Scope, test: ast.expr, body: Sequence) -> None:
        """Symbols that the body assigns have storage (see `symbol_storage`), which the test reads anew."""
        self.builder.turns(from_ast(test, scope.names), lambda: self.elements(scope, body))

    def _branch(self, scope: Scope, arms: list[tuple[Any, Sequence]]) -> None:
        conditions = [from_ast(test, scope.names) for test, _ in arms]
        held = self._hold(conditions)
        for condition, (_, body) in zip(held, arms, strict=True):
            with self.builder.guarded(condition):
                self.elements(scope, body)

    def _hold(self, conditions: list[Expr]) -> list[Expr]:
        """Conditions as local booleans (the arms may change what they were computed from)."""
        held: list[Expr] = []
        for i, condition in enumerate(conditions):
            same = next((j for j in range(i) if condition == Op("not", (conditions[j],))), None)
            if same is not None:
                held.append(Op("not", (held[same],)))
            elif i == 0 and len(conditions) == 2 and conditions[0] == Op("not", (conditions[1],)):
                positive = self.builder.local("condition", conditions[1])
                return [Op("not", (positive,)), positive]
            else:
                held.append(self.builder.local("condition", condition))
        return held

    # ------------------------------------------------------------------ dataflow

    def dataflow(self, scope: Scope, state: Any, entry: Any) -> None:
        """Everything directly inside one scope of a state (None: the state itself)."""
        children = state.scope_children()[entry]
        self._bind_views(scope, state, children)
        for (
            node
        ) in children:  # an array belongs to the scope of its access node, not to where it is first used
            if isinstance(node, dn.AccessNode):
                scope.view(node.data)
        order = {n: i for i, n in enumerate(sdutil.dfs_topological_sort(state, state.source_nodes()))}
        wires: dict[tuple[Any, str], Expr] = {}
        for node in sorted(children, key=lambda n: order[n]):
            match node:
                case dn.AccessNode():
                    copies_of(self.builder, scope, state, node)
                case dn.Tasklet():
                    self._tasklet(scope, state, node, wires)
                case dn.MapEntry():
                    self._map(scope, state, node)
                case dn.NestedSDFG():
                    self._nested(scope, state, node)
                case dn.MapExit():
                    pass
                case dn.LibraryNode():
                    raise UnsupportedConstruct(f"the library call {node.label}")
                case _:
                    raise UnsupportedConstruct(f"a node of kind {type(node).__name__}")

    def _bind_views(self, scope: Scope, state: Any, nodes: list[Any]) -> None:
        arrays = scope.sdfg.arrays
        pending = [
            n for n in nodes if isinstance(n, dn.AccessNode) and isinstance(arrays[n.data], dace.data.View)
        ]
        while pending:
            left = []
            for node in pending:
                edge = sdutil.get_view_edge(state, node)
                if edge is None:
                    raise UnsupportedConstruct(f"the ambiguous view {node.data}")
                path = state.memlet_path(edge)
                viewed = path[0].src if edge.dst is node else path[-1].dst
                if any(v.data == viewed.data for v in pending):
                    left.append(node)
                    continue
                inner = scope.layout(arrays[node.data])
                if edge.data.data == viewed.data:
                    subset = edge.data.subset
                else:
                    subset = edge.data.other_subset
                outer = scope.view(viewed.data)
                start = everything(outer.layout) if subset is None else scope.subset(subset)
                scope.views[node.data] = narrow(outer, start, inner, self.builder.ranges)
            if len(left) == len(pending):
                raise UnsupportedConstruct("views of each other")
            pending = left

    def _map(self, scope: Scope, state: Any, entry: Any) -> None:
        for edge in state.in_edges(entry):
            name = edge.dst_conn
            if name and not name.startswith("IN_"):
                value = connector(scope, edge.data).element()
                scope.symbols[name] = self.builder.local(name, value)
        ranges = list(zip(entry.map.params, entry.map.range.ranges, strict=True))
        saved = dict(scope.symbols)

        def nest(position: int) -> None:
            if position == len(ranges):
                self.dataflow(scope, state, entry)
                return
            name, (begin, end, step) = ranges[position]
            stride = constant(scope.integer(step))
            if stride is None or stride <= 0:
                raise UnsupportedConstruct(f"a map with step {step}")
            stop = simplify(Op("add", (scope.integer(end), Const(1))))

            def body(value: Expr) -> None:
                scope.symbols[name] = value
                nest(position + 1)

            self.builder.loop(name, scope.integer(begin), stop, stride, body, independent=True)

        outer_views = dict(scope.views)
        nest(0)
        scope.symbols, scope.views = saved, outer_views

    def _tasklet(self, scope: Scope, state: Any, node: Any, wires: dict[tuple[Any, str], Expr]) -> None:
        inputs: dict[str, Connector | Expr] = {}
        outputs: dict[str, Connector] = {}
        for edge in state.in_edges(node):
            if edge.dst_conn is None:
                continue
            if isinstance(edge.src, dn.CodeNode):
                inputs[edge.dst_conn] = wires[edge.src, edge.src_conn]
            else:
                inputs[edge.dst_conn] = connector(scope, edge.data)
        direct: list[Any] = []
        for edge in state.out_edges(node):
            if edge.src_conn is None:
                continue
            if isinstance(edge.dst, dn.CodeNode):
                direct.append(edge)
            elif edge.src_conn in outputs:
                raise UnsupportedConstruct("a tasklet output with several destinations")
            else:
                if edge.data.data in scope.accumulating and edge.data.wcr is None:
                    raise UnsupportedConstruct("a plain store into an array that is combined outside")
                outputs[edge.src_conn] = connector(scope, edge.data)
        untyped: list[str] = []
        for edge in direct:
            dtype = node.out_connectors[edge.src_conn]
            if dtype is None or dtype.type is None:
                untyped.append(edge.src_conn)  # of the type of what is assigned
                continue
            wire = self.builder.scalar(edge.src_conn, dtype_name(dtype))
            view = whole(wire, ViewLayout((Const(1),), (Const(1),)))
            outputs[edge.src_conn] = Connector(view, everything(view.layout), [True])
            wires[node, edge.src_conn] = Load(wire)
        translator = TaskletTranslator(self.builder, scope, inputs, outputs, node.out_connectors)
        translator.run(node)
        wires.update({(node, name): translator.locals[name] for name in untyped})

    def _nested(self, scope: Scope, state: Any, node: Any) -> None:
        inner = Scope(node.sdfg, self._declare_inner, _no_symbol)
        for name, value in node.symbol_mapping.items():
            inner.symbols[str(name)] = parse_expression(str(value), scope.names)
        combined = {e.src_conn for e in state.out_edges(node) if e.data.wcr is not None}
        inner.accumulating = {c for c in combined if c}
        for name, edge in _connections(state, node).items():
            if edge.data.data is None:
                raise UnsupportedConstruct("a nested program wired to a tasklet")
            layout = inner.layout(node.sdfg.arrays[name])
            outer = scope.view(edge.data.data)
            inner.views[name] = narrow(outer, scope.subset(edge.data.subset), layout, self.builder.ranges)
        sequence = control_flow(node.sdfg)
        for name in assigned_symbols(sequence) & inner.symbols.keys():
            value = inner.symbols[name]
            self.builder.assign(self.symbol_storage(inner, name, value), value)
        self.elements(inner, sequence)

    def _declare_inner(self, scope: Scope, name: str) -> View:
        descriptor = scope.sdfg.arrays[name]
        if not descriptor.transient:
            raise UnsupportedConstruct(f"the unconnected array {name} of a nested program")
        return self.builder.private(name, dtype_name(descriptor.dtype), scope.layout(descriptor))


def _no_symbol(name: str) -> Expr:
    raise UnsupportedConstruct(f"the symbol {name} of a nested program has no value")


def _connections(state: Any, node: Any) -> dict[str, Any]:
    """Array of the nested SDFG -> the edge that says where it points; inputs win, as in DaCe."""
    found = {e.src_conn: e for e in state.out_edges(node) if e.src_conn}
    found.update({e.dst_conn: e for e in state.in_edges(node) if e.dst_conn})
    return found


def assigned_symbols(sequence: Sequence) -> set[str]:
    """Symbols that edges inside a sequence set, loop counters excepted."""
    names: set[str] = set()
    for element in sequence:
        if isinstance(element, Assign):
            names |= element.values.keys()
        for inner in sub_sequences(element):
            names |= assigned_symbols(inner)
    return names
