"""The loop-nest IR: what every frontend produces and every schedule transforms.

A `LoopNest` is a small program: buffers plus a body of loops and statements. There is one
expression language for subscripts, bounds and values, so an indirect access (`B[indices[k], f]`)
or a data-dependent bound (`range(indptr[i], indptr[i + 1])`) is an ordinary expression that
contains a `Load`. Everything is immutable; a transformation returns a new tree.

The same classes describe an unscheduled nest (what is embedded) and a scheduled one (what is
emitted): scheduling only adds loops, local buffers and `Loop.annotation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from operator import attrgetter, is_not
from typing import Any, Literal, TypeAlias

# --------------------------------------------------------------------------- expressions


class _HashedOnce:
    """Deep expressions are looked up often: each keeps its hash. It is no field, so it is not pickled."""

    __slots__ = ("_hash",)


def _hash_once(fields: Callable[[Any], Any]) -> Callable[[Any], int]:
    def kept(self: Any) -> int:
        found: int | None = getattr(self, "_hash", None)
        if found is None:
            found = hash(fields(self))
            object.__setattr__(self, "_hash", found)
        return found

    return kept


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A number. Those of different types are different: 1 is not 1.0."""

    value: int | float | bool | complex

    def __eq__(self, other: object) -> bool:
        return type(other) is Const and type(other.value) is type(self.value) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Symbol:
    """A loop iterator, or a parameter of the nest (an integer known only at run time)."""

    name: str


@dataclass(frozen=True, slots=True)
class Load(_HashedOnce):
    """The element of `buffer` at `indices` (one expression per array dimension, () for scalars)."""

    buffer: str
    indices: tuple[Expr, ...] = ()

    __hash__ = _hash_once(attrgetter("buffer", "indices"))


@dataclass(frozen=True, slots=True)
class Op(_HashedOnce):
    """`name` is one of OPERATIONS, or `cast:<dtype>`."""

    name: str
    args: tuple[Expr, ...]

    __hash__ = _hash_once(attrgetter("name", "args"))


Expr: TypeAlias = Const | Symbol | Load | Op


def equals_number(expr: Expr, value: int) -> bool:
    """Whether it is this number, of whatever type."""
    return isinstance(expr, Const) and expr.value == value


TRANSCENDENTAL = frozenset(
    "pow exp log expm1 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf".split()
)
"""Functions of `<cmath>` that take many operations."""

OPERATIONS = TRANSCENDENTAL.union(
    "add sub mul div floordiv mod neg min max abs sign sqrt floor ceil conj real imag".split(),
    "lt le gt ge eq ne and or not select bitand bitor bitxor shl shr".split(),
)
"""`div` is C++ `/`; `floordiv` rounds towards minus infinity; `select(c, a, b)` is `c ? a : b`."""

LAZY = frozenset(("select", "and", "or"))
"""Of these only the first operand is evaluated always."""

EXPRESSIONS_KEPT = 1 << 16
"""Of which a fact that was found once is remembered: schedules of one nest are made of the same ones."""

Reduction: TypeAlias = Literal["add", "mul", "min", "max"]

# --------------------------------------------------------------------------- program


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array or scalar. `strides` are in elements; `offset` is the element index of [0, ..., 0].

    scope: "global" lives in memory (an argument, or, when `transient`, scratch that nothing
    outside the nest reads); "local" lives in registers or on the stack inside the loop where it
    is first written; "shared" is a GPU's memory of one block of threads.
    """

    name: str
    dtype: str
    shape: tuple[int | Expr, ...]
    strides: tuple[int | Expr, ...]
    transient: bool = False
    scope: Literal["global", "shared", "local"] = "global"
    offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of an array without gaps."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


@dataclass(frozen=True, slots=True)
class Statement:
    """`target (reduce)= value`, executed where `guard` holds.

    With `reduce`, the target is combined with the value; when `init` is also given, the target
    holds `init` before the first combination (the reduction owns its initial value), otherwise it
    combines with what memory held before the nest.
    """

    target: Load
    value: Expr
    reduce: Reduction | None = None
    init: Expr | None = None
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a schedule says of one loop.

    kind: "parallel" (OpenMP threads), "vectorized" (explicit vectors of `vector_bytes`; constant extent),
    "simd" (left to the compiler's vectoriser), "unrolled" (constant extent: fully; otherwise by
    `factor`), "pipelined" (threads have the rows around the loop in turn, each `factor` iterations behind the
    one with the rows above). omp_schedule "balanced" gives every thread the same share of the inner
    data-dependent iterations. `prefetch`: fetch indirect loads that many iterations ahead. `nontemporal`:
    what a "vectorized" loop stores goes past the caches where nothing in the nest reads it. `library`:
    the loop and all it holds become one call of that library, on all threads where kind is "parallel".
    On a GPU: "block" and "thread", the loop runs along `binding` of the grid of blocks, or of a block;
    "virtual_thread", it is one of several threads that one thread stands for.
    `axis`: the loop, and those inside it, are what one tensor instruction computes along its axes; `steps`
    names the loops around it that walk from one tile of the instruction to the next along that axis.
    """

    kind: Literal[
        "parallel", "vectorized", "simd", "unrolled", "pipelined", "block", "thread", "virtual_thread", "none"
    ] = "none"
    omp_schedule: Literal["static", "dynamic", "guided", "balanced"] = "static"
    chunk: int = 0
    collapse: int = 1
    factor: int = 0
    prefetch: int = 0
    library: Literal["", "blas"] = ""
    nontemporal: bool = False
    vector_bytes: int = 64
    binding: Literal["none", "x", "y", "z"] = "none"
    axis: Literal["none", "m", "n", "k", "batch"] = "none"
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`for iterator in range(start, stop, step)`, `step > 0`, `stop` exclusive.

    `independent` is the frontend's promise that iterations may run in any order, apart from
    reductions (statements with `reduce` whose target does not vary with the iterator).
    `condition` makes it a while loop: it is evaluated ahead of every iteration, and the loop ends
    where it does not hold. Such a loop is not independent, and `band` does not look into it.
    `tile_level` is 0 for the loop over points and counts outwards for tile loops.
    `measured_trips`: mean trip count where the bounds depend on data and it was measured; no part of the
    program.
    """

    iterator: str
    start: Expr
    stop: Expr
    body: tuple[Node, ...]
    step: int = 1
    independent: bool = True
    annotation: Annotation | None = None
    tile_level: int = 0
    condition: Expr | None = None
    measured_trips: float | None = field(default=None, compare=False)


Node: TypeAlias = Loop | Statement


@dataclass(frozen=True)
class LoopNest:
    """One nest: the unit that is embedded and scheduled.

    `parameters`: run-time integers the nest reads (iterators of enclosing sequential loops),
    name -> representative value, used when the nest is measured alone and for its graph.
    Scalar floating-point inputs are rank-0 buffers.
    """

    name: str
    buffers: Mapping[str, Buffer]
    body: tuple[Node, ...]
    parameters: Mapping[str, int] = field(default_factory=dict)

    def loops(self) -> Iterator[Loop]:
        """Every loop, outermost first, in program order."""
        return (n for n in walk(self.body) if isinstance(n, Loop))

    @property
    def has_loops(self) -> bool:
        """Whether there is anything to schedule."""
        return any(isinstance(n, Loop) for n in self.body)

    def statements(self) -> Iterator[Statement]:
        return (n for n in walk(self.body) if isinstance(n, Statement))

    @property
    def inputs(self) -> list[str]:
        """Global buffers read before anything in the nest has written them, or read at all."""
        names = {load.buffer for s in self.statements() for load in reads(s)}
        names |= {ld.buffer for lp in self.loops() for e in expressions_of(lp) for ld in loads(e)}
        return sorted(n for n in names if self._is_argument(n))

    @property
    def outputs(self) -> list[str]:
        """Global, non-transient buffers that the nest writes."""
        return sorted({s.target.buffer for s in self.statements() if self._is_argument(s.target.buffer)})

    @property
    def arguments(self) -> list[str]:
        """Buffers the caller provides, sorted by name."""
        return sorted({*self.inputs, *self.outputs})

    def _is_argument(self, name: str) -> bool:
        buffer = self.buffers[name]
        return buffer.scope == "global" and not buffer.transient


# --------------------------------------------------------------------------- traversal


def walk(body: tuple[Node, ...]) -> Iterator[Node]:
    """Nodes in program order, parents before children."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)


def children(expr: Expr) -> tuple[Expr, ...]:
    if type(expr) is Op:
        return expr.args
    return expr.indices if type(expr) is Load else ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything below it, subscripts included."""
    pending = [expr]
    while pending:
        found = pending.pop()
        yield found
        pending += children(found)[::-1]


@lru_cache(EXPRESSIONS_KEPT)
def loads(expr: Expr) -> tuple[Load, ...]:
    """Those below the expression, those in their subscripts included."""
    return tuple([e for e in subexpressions(expr) if type(e) is Load])


@lru_cache(EXPRESSIONS_KEPT)
def symbols(expr: Expr) -> frozenset[str]:
    return frozenset([e.name for e in subexpressions(expr) if type(e) is Symbol])


def expressions_of(node: Node) -> Iterator[Expr]:
    """The expressions of a node itself, not of the nodes inside a loop."""
    if isinstance(node, Loop):
        yield from (node.start, node.stop)
        if node.condition is not None:
            yield node.condition
        return
    yield from (e for e in (node.target, node.value, node.init, node.guard) if e is not None)


@lru_cache(EXPRESSIONS_KEPT)
def reads(statement: Statement) -> tuple[Load, ...]:
    """Loads of a statement: in the value, the guard, the initial value and all subscripts."""
    parts = (statement.value, statement.guard, statement.init, *statement.target.indices)
    return tuple([load for expr in parts if expr is not None for load in loads(expr)])


def map_expr(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up: `f` sees each node after its children were mapped."""
    if isinstance(expr, Op):
        args = tuple([map_expr(a, f) for a in expr.args])
        return f(Op(expr.name, args) if any(map(is_not, args, expr.args)) else expr)
    if isinstance(expr, Load):
        indices = tuple([map_expr(i, f) for i in expr.indices])
        return f(Load(expr.buffer, indices) if any(map(is_not, indices, expr.indices)) else expr)
    return f(expr)


def map_node(node: Node, f: Callable[[Expr], Expr]) -> Node:
    """Apply `map_expr(., f)` to every expression of a node; a target stays a Load."""
    if isinstance(node, Loop):
        return replace(
            node,
            start=map_expr(node.start, f),
            stop=map_expr(node.stop, f),
            condition=None if node.condition is None else map_expr(node.condition, f),
            body=tuple(map_node(n, f) for n in node.body),
        )
    target = map_expr(node.target, f)
    assert isinstance(target, Load), "a store target must remain a Load"
    return Statement(
        target,
        map_expr(node.value, f),
        node.reduce,
        None if node.init is None else map_expr(node.init, f),
        None if node.guard is None else map_expr(node.guard, f),
    )


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace symbols by name."""
    return map_expr(expr, lambda e: values.get(e.name, e) if isinstance(e, Symbol) else e)


def substitute_node(node: Node, values: Mapping[str, Expr]) -> Node:
    return map_node(node, lambda e: values.get(e.name, e) if isinstance(e, Symbol) else e)
