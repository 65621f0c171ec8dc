"""A reference interpreter of the loop-nest IR: plain Python loops, nothing clever."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnperf.nests import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol
from gnnperf.nests.analysis import varies
from gnnperf.nests.ir import walk

_OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "min": min, "max": max, "pow": lambda a, b: a**b, "sqrt": np.sqrt, "exp": np.exp, "log": np.log,
    "expm1": np.expm1, "log1p": np.log1p,
    "abs": abs, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil,
    "sign": np.sign, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "not": lambda a: not a, "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "conj": np.conj, "real": np.real,
    "imag": np.imag, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": math.erf,
}  # fmt: skip
_COMBINE = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}


def _promoted(number: Any) -> Any:
    """C++ computes with small integers as int."""
    return np.int32(number) if number.dtype in (np.int8, np.int16, np.uint8, np.uint16) else number


class Interpreter:
    """Runs a nest on `arrays` (by buffer name; scalars as rank-0 or one-element arrays), in place.

    `reverse` runs independent loops backwards: a wrong promise of independence shows.
    """

    def __init__(self, nest: LoopNest, arrays: Mapping[str, Any], reverse: bool = False) -> None:
        self.nest, self.reverse = nest, reverse
        self.symbols: dict[str, int] = dict(nest.parameters)
        self.memory: dict[str, Any] = {}
        self.reducing: set[int] = set()
        """Statements (by id) inside their outermost reduction loop: their targets are initialised."""
        for name, buffer in nest.buffers.items():
            if name in arrays:
                self.memory[name] = np.asarray(arrays[name]).reshape(self._shape(buffer))
            elif buffer.transient and all(isinstance(s, int) for s in buffer.shape):
                self.memory[name] = self._fresh(buffer)

    def run(self) -> None:
        for node in self.nest.body:
            self._node(node)

    def _shape(self, buffer: Buffer) -> tuple[int, ...]:
        return tuple(s if isinstance(s, int) else int(self.value(s)) for s in buffer.shape)

    def _fresh(self, buffer: Buffer) -> Any:
        dtype = np.dtype(buffer.dtype)
        return np.full(self._shape(buffer), np.nan if dtype.kind in "fc" else 77, dtype)

    def _node(self, node: Node) -> None:
        if isinstance(node, Loop):
            entered = self._initialise(node)
            steps = range(int(self.value(node.start)), int(self.value(node.stop)), node.step)
            for value in reversed(steps) if self.reverse and node.independent else steps:
                self.symbols[node.iterator] = value
                if node.condition is not None and not self.value(node.condition):
                    break
                for inner in node.body:
                    self._node(inner)
            self.symbols.pop(node.iterator, None)
            self.reducing -= entered
            return
        self._statement(node)

    def _initialise(self, loop: Loop) -> set[int]:
        """A reduction that owns its initial value sets all of its targets when its outermost
        reduction loop begins, also when that loop then turns out to be empty."""
        entered = set()
        for statement in (n for n in walk((loop,)) if isinstance(n, Statement) and n.init is not None):
            if id(statement) not in self.reducing and not varies(statement.target, loop.iterator):
                self._initialise_targets(statement, loop.body)
                entered.add(id(statement))
        self.reducing |= entered
        return entered

    def _initialise_targets(self, statement: Statement, block: tuple[Node, ...]) -> None:
        for node in block:
            if node is statement:
                array = self._memory(statement.target.buffer)
                array[self._index(statement.target, array)] = self.value(statement.init)
            elif isinstance(node, Loop) and any(n is statement for n in walk(node.body)):
                if not varies(statement.target, node.iterator):
                    self._initialise_targets(statement, node.body)
                    continue
                for value in range(int(self.value(node.start)), int(self.value(node.stop)), node.step):
                    self.symbols[node.iterator] = value
                    self._initialise_targets(statement, node.body)
                self.symbols.pop(node.iterator, None)

    def _memory(self, name: str) -> Any:
        if name not in self.memory:
            self.memory[name] = self._fresh(self.nest.buffers[name])
        return self.memory[name]

    def _statement(self, node: Statement) -> None:
        if node.guard is not None and not self.value(node.guard):
            return
        value = self.value(node.value)
        array = self._memory(node.target.buffer)
        index = self._index(node.target, array)
        if node.reduce is not None:
            if node.init is not None and id(node) not in self.reducing:
                array[index] = self.value(node.init)
            value = _COMBINE[node.reduce](array[index], value)
        array[index] = value

    def _index(self, load: Load, array: Any) -> tuple[int, ...]:
        index = tuple(int(self.value(i)) for i in load.indices)
        assert len(index) == array.ndim, f"{load} on rank {array.ndim}"
        assert all(0 <= i < s for i, s in zip(index, array.shape, strict=True)), (
            f"{load} at {index} of {array.shape}"
        )
        return index

    def value(self, expr: Expr) -> Any:
        if isinstance(expr, Const):
            return expr.value
        if isinstance(expr, Symbol):
            return self.symbols[expr.name]
        if isinstance(expr, Load):
            array = self.memory[expr.buffer]
            return _promoted(array[self._index(expr, array)])
        return self._operation(expr)

    def _operation(self, expr: Op) -> Any:
        if expr.name == "select":
            return self.value(expr.args[1] if self.value(expr.args[0]) else expr.args[2])
        if expr.name == "and":
            return bool(self.value(expr.args[0])) and bool(self.value(expr.args[1]))
        if expr.name == "or":
            return bool(self.value(expr.args[0])) or bool(self.value(expr.args[1]))
        args = [self.value(a) for a in expr.args]
        if expr.name.startswith("cast:"):
            return _promoted(np.asarray(args[0]).astype(expr.name.removeprefix("cast:"))[()])
        if expr.name == "div":
            if all(np.asarray(a).dtype.kind in "iub" for a in args):
                return math.trunc(args[0] / args[1])
            return args[0] / args[1]
        if any(isinstance(a, np.uint64) for a in args):  # NumPy makes real numbers of them and literals
            args = [np.uint64(a) if type(a) is int and a >= 0 else a for a in args]
        return _OPERATIONS[expr.name](*args)
