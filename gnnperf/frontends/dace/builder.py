"""The program under construction: buffers, fresh names, guards, loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gnnperf.frontends.dace.dtypes import expression_dtype
from gnnperf.frontends.dace.views import View, ViewLayout, whole
from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Node, Op, Reduction, Statement, Symbol, loads
from gnnperf.nests.names import free_name

MAX_TURNS = 1 << 62
"""No while loop runs longer."""


@dataclass
class Builder:
    """Nodes are appended to the block that is open; see `block` and `loop`."""

    buffers: dict[str, Buffer]
    taken: set[str]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    guard: Expr | None = None
    _blocks: list[list[Node]] = field(default_factory=lambda: [[]])

    def fresh(self, name: str) -> str:
        """A name no buffer, iterator or parameter has yet."""
        found = free_name(name.lstrip("_") or "t", self.taken)
        self.taken.add(found)
        return found

    # ------------------------------------------------------------------ nodes

    @contextmanager
    def block(self) -> Iterator[list[Node]]:
        """Collect the nodes made inside the `with`."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    def add(self, *nodes: Node) -> None:
        self._blocks[-1].extend(nodes)

    def assign(self, target: Load, value: Expr, reduce: Reduction | None = None) -> None:
        self.add(Statement(target, value, reduce, guard=self.guard))

    def local(self, name: str, value: Expr) -> Load:
        """A new local scalar that holds `value`."""
        buffer = self.scalar(name, expression_dtype(value, self.buffers))
        self.assign(Load(buffer), value)
        return Load(buffer)

    def scalar(self, name: str, dtype: str) -> str:
        """Declare a local scalar; its final name."""
        name = self.fresh(name)
        self.buffers[name] = Buffer(name, dtype, (), (), transient=True, scope="local")
        return name

    def private(self, name: str, dtype: str, layout: ViewLayout) -> View:
        """Declare storage that belongs to the open block."""
        if layout.is_single:
            return whole(self.scalar(name, dtype), layout)
        name = self.fresh(name)
        self.buffers[name] = array_buffer(name, dtype, layout, transient=True, scope="local")
        return whole(name, layout)

    @contextmanager
    def guarded(self, condition: Expr) -> Iterator[None]:
        """Everything made inside happens only where `condition` holds."""
        outer = self.guard
        self.guard = condition if outer is None else Op("and", (outer, condition))
        try:
            yield
        finally:
            self.guard = outer

    def loop(
        self, name: str, start: Expr, stop: Expr, step: int, body: Callable[[Expr], None], independent: bool
    ) -> None:
        """A loop whose nodes `body(value of the iterator)` makes; trivial loops disappear."""
        start, stop = simplify(start), simplify(stop)
        span = constant(Op("sub", (stop, start)))
        if span is not None and span <= step:
            if span > 0:
                body(start)
            return
        iterator = self.fresh(name)
        low, high = (affine(e).reach(self.ranges) for e in (start, Op("sub", (stop, Const(1)))))
        if low is not None and high is not None:
            self.ranges[iterator] = (low[0], max(low[0], high[1]))
        guard = self.guard
        if guard is not None and any(map(loads, (start, stop))):
            # The bounds may only be read where the guard holds: elsewhere the loop is empty.
            if loads(start):
                start = Op("select", (guard, start, Const(0)))
                stop = Op("select", (guard, stop, Const(0)))
            else:
                stop = Op("select", (guard, stop, start))
            self.guard = None
        with self.block() as nodes:
            body(Symbol(iterator))
        self.guard = guard
        if nodes:
            self.add(Loop(iterator, start, stop, tuple(nodes), step, independent))

    def turns(self, condition: Expr, body: Callable[[], None]) -> None:
        """A loop whose nodes `body()` makes, for as long as the condition holds."""
        guard = self.guard
        if guard is not None:  # elsewhere, there is no first turn
            condition, self.guard = Op("and", (guard, condition)), None
        with self.block() as nodes:
            body()
        self.guard = guard
        turn = self.fresh("turn")
        self.add(Loop(turn, Const(0), Const(MAX_TURNS), tuple(nodes), independent=False, condition=condition))

    def loops(
        self, names: Sequence[str], sizes: Sequence[Expr], body: Callable[[tuple[Expr, ...]], None]
    ) -> None:
        """Independent loops over 0..size, the first outermost."""

        def nest(position: int, values: tuple[Expr, ...]) -> None:
            if position == len(sizes):
                body(values)
                return
            self.loop(
                names[position],
                Const(0),
                sizes[position],
                1,
                lambda v: nest(position + 1, (*values, v)),
                True,
            )

        nest(0, ())


def array_buffer(
    name: str, dtype: str, layout: ViewLayout, transient: bool, scope: Literal["global", "local"] = "global"
) -> Buffer:
    """A buffer with constant extents as integers."""

    def integers(values: tuple[Expr, ...]) -> tuple[int | Expr, ...]:
        found = [constant(v) for v in values]
        return tuple(v if c is None else c for v, c in zip(values, found, strict=True))

    shape = () if layout.is_single else integers(layout.shape)
    strides = () if layout.is_single else integers(layout.strides)
    return Buffer(name, dtype, shape, strides, transient, scope)
