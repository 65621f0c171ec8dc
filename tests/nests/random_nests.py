"""Hypothesis strategies for nests, and the ways of rewriting them that must or must not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from nests.examples import accumulate, add, array, assign, expr, load, loop, mul, op

from gnnperf.nests.ir import Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol, map_node

SIDE = 24  # every array dimension: larger than any subscript


@st.composite
def subscripts(draw: st.DrawFn, iterators: list[str], rank: int) -> tuple[Expr, ...]:
    """Each moves with one or two loops."""
    result: list[Expr] = []
    for _ in range(rank):
        terms = draw(st.lists(st.sampled_from(iterators), min_size=1, max_size=2, unique=True))
        index = add(*(mul(draw(st.integers(1, 2)), t) for t in terms), draw(st.integers(0, 3)))
        result.append(index)
    return tuple(result)


@st.composite
def values(draw: st.DrawFn, iterators: list[str]) -> Expr:
    """One to four loads of in1, in2, in3 (ranks 1, 2, 3) combined by arithmetic."""
    count = draw(st.integers(1, 4))
    ranks = [draw(st.integers(1, 3)) for _ in range(count)]
    result: Expr = op("neg", 1.0)
    for rank in ranks:
        element = Load(f"in{rank}", draw(subscripts(iterators, rank)))
        result = op(draw(st.sampled_from(["add", "mul", "sub", "div"])), result, element)
    return result


@st.composite
def random_nests(draw: st.DrawFn, parameters: bool = False) -> LoopNest:
    """One to three independent statements under a shared nest, or one nest each; up to four deep."""
    depth = draw(st.integers(1, 4))
    iterators = [f"i{d}" for d in range(depth)]
    extents: list[Expr] = [expr(draw(st.integers(2, 4))) for _ in iterators]
    if parameters:
        extents[-1] = Symbol("size")
    statements: list[Node] = []
    buffers = [array(f"in{rank}", *[SIDE] * rank) for rank in (1, 2, 3)]
    for number in range(draw(st.integers(1, 3))):
        moved = draw(st.lists(st.sampled_from(iterators), min_size=1, unique=True))
        target, value = load(f"out{number}", *moved), draw(values(iterators))
        statements.append(assign(target, value) if len(moved) == depth else accumulate(target, value))
        buffers.append(array(f"out{number}", *[SIDE] * len(moved)))

    def wrapped(*body: Node) -> Loop:
        for iterator, extent in reversed(list(zip(iterators, extents, strict=True))):
            body = (loop(iterator, extent, *body),)
        (outer,) = body
        assert isinstance(outer, Loop)
        return outer

    fused = draw(st.booleans())
    bodies = (wrapped(*statements),) if fused else tuple(wrapped(s) for s in statements)
    return LoopNest("random", {b.name: b for b in buffers}, bodies, {"size": 3} if parameters else {})


def renamed(nest: LoopNest, name: Callable[[str], str]) -> LoopNest:
    """Buffers, iterators and parameters under other names."""

    def in_expression(e: Expr) -> Expr:
        if isinstance(e, Symbol):
            return Symbol(name(e.name))
        return Load(name(e.buffer), e.indices) if isinstance(e, Load) else e

    def in_node(node: Node) -> Node:
        node = map_node(node, in_expression)
        if isinstance(node, Loop):
            # map_node has rewritten the expressions of the whole subtree; iterators are left.
            return _rename_iterators(node, name)
        return node

    return LoopNest(
        name(nest.name),
        {name(b.name): replace(b, name=name(b.name)) for b in nest.buffers.values()},
        tuple(map(in_node, nest.body)),
        {name(p): value for p, value in nest.parameters.items()},
    )


def _rename_iterators(node: Node, name: Callable[[str], str]) -> Node:
    if isinstance(node, Statement):
        return node
    body = tuple(_rename_iterators(n, name) for n in node.body)
    return replace(node, iterator=name(node.iterator), body=body)


def map_loops(nest: LoopNest, change: Callable[[Loop], Loop]) -> LoopNest:
    """Every loop changed, innermost first."""

    def in_node(node: Node) -> Node:
        if isinstance(node, Statement):
            return node
        return change(replace(node, body=tuple(map(in_node, node.body))))

    return replace(nest, body=tuple(map(in_node, nest.body)))


def reordered(nest: LoopNest, permutation: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> LoopNest:
    """Siblings in another order, everywhere."""
    inner = map_loops(nest, lambda lp: replace(lp, body=permutation(lp.body)))
    return replace(inner, body=permutation(inner.body))


def with_operation(nest: LoopNest, old: str, new: str) -> LoopNest:
    """Every operation `old` replaced."""
    swap: Callable[[Expr], Expr] = lambda e: Op(new, e.args) if isinstance(e, Op) and e.name == old else e  # noqa: E731
    return replace(nest, body=tuple(map_node(n, swap) for n in nest.body))
