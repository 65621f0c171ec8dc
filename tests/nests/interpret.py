"""A reference interpreter of the loop-nest IR: what the meaning of a nest is, one element at a time.

Memory is what the emitted code gets: one flat array per buffer, addressed through strides and offset.
Every access is checked against the shape of its buffer. Scratch memory starts as garbage.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gnnperf.nests.analysis import varies
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Statement, Symbol
from gnnperf.nests.ranges import separates

Memory: TypeAlias = dict[str, np.ndarray]
Value: TypeAlias = Callable[[dict[str, int]], Any]


def interpret(nest: LoopNest, memory: Mapping[str, np.ndarray], backwards: bool = False) -> Memory:
    """Memory of the arguments after the nest has run. `backwards` runs independent loops from their
    last iteration to their first: where that changes the result, they are not independent."""
    state = {name: array.copy() for name, array in memory.items()}
    for name, buffer in nest.buffers.items():
        if name not in state:
            state[name] = _garbage(buffer)
    interpreter = _Interpreter(nest, state, backwards)
    interpreter.block(nest.body)(dict(nest.parameters))
    return {name: state[name] for name in memory}


def random_memory(nest: LoopNest, rng: np.random.Generator) -> Memory:
    """Arguments with values that are far from overflow and from division by zero."""
    memory: Memory = {}
    for name, buffer in nest.buffers.items():
        if buffer.transient or buffer.scope == "local":
            continue
        size = span(buffer)
        if buffer.dtype.startswith("complex"):
            memory[name] = (rng.uniform(0.5, 1.5, size) + 1j * rng.uniform(-1, 1, size)).astype(buffer.dtype)
        elif buffer.dtype.startswith("float"):
            memory[name] = rng.uniform(0.5, 1.5, size).astype(buffer.dtype)
        else:
            memory[name] = rng.integers(1, 4, size).astype(buffer.dtype)
    return memory


def span(buffer: Buffer) -> int:
    """Elements of the memory that a buffer of constant shape lives in."""
    shape, strides = _integers(buffer.shape), _integers(buffer.strides)
    if 0 in shape:
        return buffer.offset + 1
    return buffer.offset + 1 + sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))


def _integers(values: Sequence[Any]) -> list[int]:
    assert all(isinstance(v, int) for v in values), "constant shapes only"
    return [int(v) for v in values]


def _garbage(buffer: Buffer) -> np.ndarray:
    inexact = buffer.dtype.startswith(("float", "complex"))
    return np.full(span(buffer), math.nan if inexact else 101, buffer.dtype)


class _Interpreter:
    def __init__(self, nest: LoopNest, memory: Memory, backwards: bool) -> None:
        self.nest, self.memory, self.backwards = nest, memory, backwards
        self.started: set[int] = set()
        """Reductions (by id of their statement) whose initial value is written by a loop around."""

    # ------------------------------------------------------------------ control

    def block(self, body: tuple[Node, ...]) -> Callable[[dict[str, int]], None]:
        steps = [self.loop(n) if isinstance(n, Loop) else self.statement(n) for n in body]

        def run(env: dict[str, int]) -> None:
            for step in steps:
                step(env)

        return run

    def loop(self, loop: Loop) -> Callable[[dict[str, int]], None]:
        start, stop = self.value(loop.start), self.value(loop.stop)
        initialise, body = self.initial_values(loop), self.block(loop.body)
        goes_on = None if loop.condition is None else self.value(loop.condition)

        def run(env: dict[str, int]) -> None:
            initialise(env)
            values = range(int(start(env)), int(stop(env)), loop.step)
            for value in reversed(values) if self.backwards and loop.independent else values:
                env[loop.iterator] = value
                if goes_on is not None and not goes_on(env):
                    break
                body(env)
            env.pop(loop.iterator, None)

        return run

    def initial_values(self, loop: Loop) -> Callable[[dict[str, int]], None]:
        """Reductions that own their initial value hold it before their first term, and without one. They
        start where the outermost loop begins whose iterations meet in one element; the elements are
        those of the loops that the target moves with."""
        nodes: list[Node] = []

        def visit(inner: Node, around: tuple[Loop, ...]) -> None:
            if isinstance(inner, Loop):
                for child in inner.body:
                    visit(child, (*around, inner))
            elif (
                inner.init is not None and id(inner) not in self.started and not separates(inner.target, loop)
            ):
                self.started.add(id(inner))
                body: Node = Statement(inner.target, inner.init)
                for lp in reversed(around):
                    if varies(inner.target, lp.iterator):
                        body = Loop(lp.iterator, lp.start, lp.stop, (body,), lp.step)
                nodes.append(body)

        visit(loop, ())
        return self.block(tuple(nodes))

    def statement(self, statement: Statement) -> Callable[[dict[str, int]], None]:
        buffer = self.nest.buffers[statement.target.buffer]
        array, dtype = self.memory[buffer.name], np.dtype(buffer.dtype)
        address, value = self.address(statement.target), self.value(statement.value)
        guard = None if statement.guard is None else self.value(statement.guard)
        combine = None if statement.reduce is None else _COMBINE[statement.reduce]
        single = statement.init is not None and id(statement) not in self.started
        if single:  # no loop reduces: one term
            assert statement.init is not None
            start = self.value(statement.init)

        def run(env: dict[str, int]) -> None:
            if guard is not None and not guard(env):
                return
            at, new = address(env), value(env)
            if combine is not None:
                old = _converted(start(env), dtype) if single else array[at].item()
                new = combine(old, _converted(new, dtype))
            array[at] = _converted(new, dtype)

        return run

    # ------------------------------------------------------------------ expressions

    def address(self, load: Load) -> Callable[[dict[str, int]], int]:
        buffer = self.nest.buffers[load.buffer]
        indices = [self.value(i) for i in load.indices]
        shape, strides = _integers(buffer.shape), _integers(buffer.strides)
        assert len(indices) == len(shape), f"{load.buffer} has {len(shape)} dimensions"

        def address(env: dict[str, int]) -> int:
            at = buffer.offset
            for index, size, stride in zip(indices, shape, strides, strict=True):
                position = index(env)
                assert 0 <= position < size, f"{load} is outside of {shape}: {env}"
                at += position * stride
            return at

        return address

    def value(self, expr: Expr) -> Value:
        if isinstance(expr, Const):
            constant = expr.value
            return lambda env: constant
        if isinstance(expr, Symbol):
            return operator.itemgetter(expr.name)
        if isinstance(expr, Load):
            array, address = self.memory[expr.buffer], self.address(expr)
            return lambda env: array[address(env)].item()
        args = [self.value(a) for a in expr.args]
        if expr.name.startswith("cast:"):
            dtype = np.dtype(expr.name.removeprefix("cast:"))
            return lambda env: _converted(args[0](env), dtype)
        if expr.name == "select":
            return lambda env: args[1](env) if args[0](env) else args[2](env)
        if expr.name in ("and", "or"):
            needed = expr.name == "and"
            return lambda env: bool(args[1](env)) if bool(args[0](env)) == needed else not needed
        operation = _OPERATIONS[expr.name]
        return lambda env: operation(*(a(env) for a in args))


def _converted(value: Any, dtype: np.dtype) -> Any:
    """As C++ converts: towards zero, integers modulo their size."""
    if dtype.kind in "fc":
        return dtype.type(value).item()
    if dtype.kind == "b":
        return bool(value)
    bits, whole = 8 * dtype.itemsize, int(value) % (1 << (8 * dtype.itemsize))
    return whole - (1 << bits) if dtype.kind == "i" and whole >> (bits - 1) else whole


def _divide(a: Any, b: Any) -> Any:
    """C++ `/`: integers towards zero."""
    if any(isinstance(x, float | complex) for x in (a, b)):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _of_any_number(name: str) -> Callable[[Any], Any]:
    return lambda a: getattr(cmath if isinstance(a, complex) else math, name)(a)


_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "mul": operator.mul, "min": min, "max": max,
}  # fmt: skip

_OPERATIONS: Mapping[str, Callable[..., Any]] = _COMBINE | {
    "sub": operator.sub, "div": _divide, "floordiv": operator.floordiv, "mod": operator.mod,
    "neg": operator.neg, "pow": operator.pow, "abs": abs, "floor": math.floor, "ceil": math.ceil,
    **{f: _of_any_number(f) for f in "sqrt exp log tanh sinh cosh sin cos tan asin acos atan".split()},
    **{f: getattr(math, f) for f in "expm1 log1p asinh acosh atanh erf".split()},
    "atan2": math.atan2, "conj": np.conj, "real": lambda a: a.real, "imag": lambda a: a.imag,
    "sign": lambda a: (a > 0) - (a < 0), "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "not": operator.not_, "bitand": operator.and_,
    "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
}  # fmt: skip
