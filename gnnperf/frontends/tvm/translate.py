"""TIR functions as loop-nest programs: the same translation for scheduled and for unscheduled ones.

Every block's iterators are replaced by what they are bound to, so that a nest's accesses are in terms of
the loops around them; loops of one iteration disappear, as they do when TVM lowers the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.expressions import Expressions, dtype_of
from gnnperf.nests import Buffer, Const, Expr, Loop, Node, Op, Statement, Symbol
from gnnperf.nests.analysis import conjunction
from gnnperf.nests.ir import Reduction, loads, reads, row_major, symbols, walk
from gnnperf.nests.names import free_name
from gnnperf.schedules.traces.roles import REDUCED

ORDERED, OPAQUE = 3, 4
"""Further kinds of block iterators, as in TVM's IterVar."""

_COMBINES = frozenset(("add", "mul", "min", "max"))
_TRUE = Const(True)


@dataclass(frozen=True)
class TirProgram:
    """A function as nodes of the IR. parameters: names of the buffers it is called with, in order."""

    buffers: dict[str, Buffer]
    body: tuple[Node, ...]
    parameters: tuple[str, ...]


def translate(function: Any) -> TirProgram:
    """The program of a PrimFunc with constant shapes.

    Raises UnsupportedConstruct, which says what the IR cannot express and in which block.
    """
    translator = TirTranslator()
    parameters = tuple(translator.declare(p, transient=False) for p in function.params)
    return TirProgram(translator.buffers, tuple(translator.visit(function.body)), parameters)


class TirTranslator:
    """Goes through the statements of one function."""

    def __init__(self) -> None:
        self.expression = Expressions()
        self.buffers: dict[str, Buffer] = {}
        self.iterators: set[str] = set()
        self.ordered: set[str] = set()
        self.guards: list[Expr] = []
        self.blocks: list[str] = []

    # ------------------------------------------------------------------ buffers

    def declare(self, buffer: Any, transient: bool = True) -> str:
        """A buffer of the function; its name in the nest, which no other has."""
        if not hasattr(buffer, "shape") or not hasattr(buffer, "scope"):
            raise UnsupportedConstruct(f"the scalar argument {buffer.name}")
        name = free_name(buffer.name, self.buffers)
        shape = tuple(_size(s, buffer.name) for s in buffer.shape)
        strides = tuple(_size(s, buffer.name) for s in buffer.strides) or row_major(shape)
        self.buffers[name] = Buffer(name, dtype_of(buffer), shape, strides, transient, _scope(buffer.scope()))
        self.expression.names[buffer.__chandle__()] = name
        return name

    # ------------------------------------------------------------------ statements

    def visit(self, statement: Any) -> list[Node]:
        """The nodes of a statement."""
        kind = type(statement).__name__
        visitor = getattr(self, f"visit_{kind}", None)
        if visitor is None:
            raise self.unsupported(f"a statement of the kind {kind}")
        return cast("list[Node]", visitor(statement))

    def unsupported(self, what: str) -> UnsupportedConstruct:
        where = f"block {self.blocks[-1]}: " if self.blocks else ""
        return UnsupportedConstruct(f"{where}{what}")

    def visit_For(self, loop: Any) -> list[Node]:
        variable = loop.loop_var
        start, extent = self.expression(loop.min), self.expression(loop.extent)
        if extent == Const(1):
            self.expression.values[variable.__chandle__()] = start
            return self.visit(loop.body)
        name = free_name(variable.name, self.iterators)
        self.iterators.add(name)
        self.expression.values[variable.__chandle__()] = Symbol(name)
        stop = extent if start == Const(0) else Op("add", (start, extent))
        body = tuple(self.visit(loop.body))
        return [Loop(name, start, stop, body, independent=name not in self.ordered)]

    def visit_SeqStmt(self, sequence: Any) -> list[Node]:
        return [node for s in sequence.seq for node in self.visit(s)]

    def visit_IfThenElse(self, branch: Any) -> list[Node]:
        condition = self.expression(branch.condition)
        nodes = self.guarded([condition], branch.then_case)
        if branch.else_case is not None:
            nodes += self.guarded([Op("not", (condition,))], branch.else_case)
        return nodes

    def guarded(self, conditions: Sequence[Expr], statement: Any) -> list[Node]:
        self.guards += conditions
        nodes = self.visit(statement)
        del self.guards[len(self.guards) - len(conditions) :]
        return nodes

    def visit_Evaluate(self, evaluation: Any) -> list[Node]:
        """A number where no statement is: nothing."""
        if type(evaluation.value).__name__ == "IntImm":
            return []
        raise self.unsupported("a statement of the kind Evaluate")

    def visit_Bind(self, binding: Any) -> list[Node]:
        """A let: the value takes the place of the name."""
        self.expression.values[binding.var.__chandle__()] = self.expression(binding.value)
        return []

    def visit_SBlockRealize(self, realize: Any) -> list[Node]:
        block = realize.block
        self.blocks.append(str(block.name_hint))
        reduced: list[tuple[Expr, Expr]] = []
        for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
            bound = self.expression(value)
            self.expression.values[iterator.var.__chandle__()] = bound
            kind = int(iterator.iter_type)
            if kind == REDUCED:
                reduced.append((bound, self.expression(iterator.dom.min)))
            elif kind in (ORDERED, OPAQUE):
                self.ordered |= symbols(bound)
        for buffer in block.alloc_buffers:
            self.declare(buffer)
        condition = self.expression(realize.predicate)
        self.guards += [] if condition == _TRUE else [condition]
        nodes = self.block(block, reduced)
        if condition != _TRUE:
            self.guards.pop()
        self.blocks.pop()
        return nodes

    def block(self, block: Any, reduced: Sequence[tuple[Expr, Expr]]) -> list[Node]:
        """The body of a block, with the initial values of its reduction. reduced: what it reduces over, and
        where that begins."""
        if block.match_buffers:
            raise self.unsupported("a tensor instruction")
        body = self.visit(block.body)
        if reduced and self.needs_order(body):
            # Such as a reduction of several values at once, for which the IR has no word: statements.
            self.ordered |= {name for bound, _ in reduced for name in symbols(bound)}
            first = [Op("eq", both) for both in reduced if both[0] != both[1]]
            return [*(self.guarded(first, block.init) if block.init is not None else ()), *body]
        return body if block.init is None else self.initialised(body, self.visit(block.init))

    def needs_order(self, body: Sequence[Node]) -> bool:
        """Whether statements read what they store but as sums, products, minima and maxima do."""
        statements = [n for n in walk(tuple(body)) if isinstance(n, Statement)]
        read = [{ld.buffer for ld in reads(statement)} for statement in statements]
        stored = [statement.target.buffer for statement in statements]
        if any(read[n] & set(stored[:n]) for n in range(len(read))):  # TVM computes all, then stores
            raise self.unsupported("a reduction of several values that need one another")
        return any(found & set(stored) for found in read)

    def initialised(self, body: list[Node], initial: list[Node]) -> list[Node]:
        """Reductions that own their initial values."""
        updates = [n for n in body if isinstance(n, Statement) and n.reduce is not None]
        first = {n.target: n.value for n in initial if isinstance(n, Statement)}
        if len(updates) < len(body) or any(u.target not in first for u in updates):
            raise self.unsupported("a reduction that is no sum, product, minimum or maximum")
        return [replace(u, init=first[u.target]) for u in updates]

    def visit_BufferStore(self, store: Any) -> list[Node]:
        target = self.expression.load(store.buffer, store.indices)
        value = self.expression(store.value)
        return [as_reduction(Statement(target, value, guard=conjunction(self.guards)))]


def as_reduction(statement: Statement) -> Statement:
    """`x = x + e` is `x += e` where `e` does not read `x`."""
    value, target = statement.value, statement.target
    if not isinstance(value, Op) or value.name not in _COMBINES:
        return statement
    left, right = value.args
    for same, rest in ((left, right), (right, left)):
        if same == target and not any(ld.buffer == target.buffer for ld in loads(rest)):
            return replace(statement, value=rest, reduce=cast(Reduction, value.name))
    return statement


def _size(value: Any, buffer: str) -> int:
    if isinstance(value, int):
        return value
    if type(value).__name__ == "IntImm":
        return int(value.value)
    raise UnsupportedConstruct(
        f"the array {buffer}, whose shape is not constant ({value}): bind its sizes to numbers, by "
        f"specialize({{{buffer}: tirx.decl_buffer(...)}}) of a PrimFunc or relax.transform.BindSymbolicVars "
        "of relax programs; export torch models without dynamic shapes"
    )


def _scope(scope: str) -> Any:
    """Where a buffer lives, in the words of the graph: fragments of tensor cores are registers too."""
    if scope in ("", "global") or scope.startswith("global."):
        return "global"
    return "shared" if scope.startswith("shared") else "local"
