"""C++ text of IR expressions: subscripts, scalars, and vectors of a given number of lanes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import affine, evaluate, from_affine, simplify
from gnnperf.nests.analysis import stride, varies
from gnnperf.nests.ir import (
    LAZY,
    TRANSCENDENTAL,
    Buffer,
    Const,
    Expr,
    Load,
    Op,
    Symbol,
    subexpressions,
    substitute,
)
from gnnperf.schedules.recipes.in_vain import is_harmless, is_truth
from gnnperf.schedules.recipes.vectors import COMPARISONS, compared

CTYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
    "int8": "int8_t", "uint64": "uint64_t", "uint32": "uint32_t", "uint16": "uint16_t", "uint8": "uint8_t",
    "bool": "bool", "complex128": "std::complex<double>", "complex64": "std::complex<float>",
}  # fmt: skip

REDUCE: Mapping[str, str] = {
    "add": "{a} + {b}",
    "mul": "{a} * {b}",
    "min": "gp_min({a}, {b})",
    "max": "gp_max({a}, {b})",
}

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&&", "or": "||", "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip
_EAGER = {"and": "&", "or": "|"}
_CALLS = {
    "min": "gp_min", "max": "gp_max", "floordiv": "gp_floordiv", "mod": "gp_mod", "sign": "gp_sign",
    "abs": "gp_abs", "conj": "gp_conj", "real": "gp_real", "imag": "gp_imag",
    **{f: f"std::{f}" for f in ("sqrt", "floor", "ceil", *TRANSCENDENTAL)}, "exp": "gp_exp",
    "popcount": "gp_popcount",
}  # fmt: skip
_SLOW = TRANSCENDENTAL | {"sqrt"}
MAX_HALVES = 9
"""Powers up to this many halves are written out."""
_LANEWISE = frozenset("sqrt exp log abs tanh sin cos".split())

_BASE, COMPLEX, _FUNCTIONS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("prelude.hpp", "complex.hpp", "functions.hpp")
)
PRELUDE = _BASE + COMPLEX + _FUNCTIONS
"""What emitted code includes and calls."""


def ident(name: str) -> str:
    """A C++ identifier for a buffer; the prefix keeps clear of keywords and of iterators."""
    return "b_" + _word(name)


def iterator_name(name: str) -> str:
    return "i_" + _word(name)


def _word(name: str) -> str:
    return re.sub(r"\W", lambda match: f"_{ord(match[0]):x}_", name)


def index_text(expr: Expr, buffers: Mapping[str, Buffer]) -> str:
    """Text of an integer expression (bounds, lengths)."""
    return Scalar("int64", buffers, {}).text(simplify(expr))


Chunk = tuple[int, int]
"""First element, and lanes, of a part of a loop that is vectorised."""


def chunks(size: int, width: int, overlap: bool = False) -> tuple[Chunk, ...]:
    """Full vectors, then narrower powers of two, then single elements; where the last may `overlap` the one
    before, and that makes fewer, a full one that ends with the last element."""
    found, start, lanes = list[Chunk](), 0, width
    while start < size:
        while lanes > size - start:
            lanes //= 2
        found.append((start, lanes))
        start += lanes
    if overlap and width <= size and size + width <= width * len(found):
        return (*((start, width) for start in range(0, size - width, width)), (size - width, width))
    return tuple(found)


def _halves(expr: Op) -> int:
    """Twice the exponent of a power that a root and a few products make; 0 where `expr` is none."""
    exponent = expr.args[-1] if expr.name == "pow" else None
    if not isinstance(exponent, Const) or isinstance(exponent.value, complex):
        return 0
    halves = 2 * exponent.value
    return int(halves) if halves == int(halves) and abs(halves) <= MAX_HALVES else 0


def repeated_calls(expr: Expr) -> list[Expr]:
    """What an expression computes more than once with functions that take long, the largest first: compilers
    do not always see that it is the same. Nothing, where parts of it may not be computed."""
    parts = [*subexpressions(expr)]
    if any(isinstance(e, Op) and e.name in LAZY for e in parts):
        return []
    counts = Counter(e for e in parts if isinstance(e, Op) and e.name in _SLOW)
    repeated = [e for e, count in counts.items() if count > 1]
    return sorted(repeated, key=lambda e: -len([*subexpressions(e)]))


Registers = Mapping[str, tuple[Chunk, ...]]


@dataclass(frozen=True)
class Scalar:
    """Scalar expressions in the arithmetic of `dtype`: a literal takes the type of the statement, as
    NumPy does with Python scalars, so that fp32 code stays fp32."""

    dtype: str
    buffers: Mapping[str, Buffer]
    registers: Registers

    def text(self, expr: Expr) -> str:
        if isinstance(expr, Const):
            return self.literal(expr.value)
        if isinstance(expr, Symbol):
            return iterator_name(expr.name)
        if isinstance(expr, Load):
            return self.element(expr)
        if expr.name.startswith("cast:"):
            dtype = expr.name.removeprefix("cast:")
            inner = replace(self, dtype=dtype) if dtype.startswith(("float", "complex")) else self
            return f"({CTYPES[dtype]})({inner.text(expr.args[0])})"
        args = [self.text(a) for a in expr.args]
        if expr.name in _EAGER and self._is_eager(*expr.args):
            return f"({args[0]} {_EAGER[expr.name]} {args[1]})"
        if expr.name in _INFIX and len(args) == 2:
            return f"({args[0]} {_INFIX[expr.name]} {args[1]})"
        if expr.name == "neg":
            return _negative(args[0])
        if expr.name == "not":
            return f"(!{args[0]})"
        if expr.name == "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if halves := _halves(expr):
            return f"gp_half_power<{halves}>({args[0]})"
        call = "gp_whole_pow" if expr.name == "pow" and self.dtype.startswith("int") else _CALLS[expr.name]
        return f"{call}({', '.join(args)})"

    def _is_eager(self, left: Expr, right: Expr) -> bool:
        """May both sides of a condition be computed? Loops without branches become vectors."""
        truths = is_truth(left, self.buffers) and is_truth(right, self.buffers)
        return truths and is_harmless(right, left)

    def literal(self, value: int | float | bool | complex) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, complex):
            ctype = CTYPES["complex64" if self.dtype == "complex64" else "complex128"]
            return f"{ctype}({self.literal(value.real)}, {self.literal(value.imag)})"
        if isinstance(value, int):
            if value == -(2**63):
                return "INT64_MIN"
            if abs(value) < 2**31:
                return str(value)
            return f"INT64_C({value})" if value < 2**63 else f"UINT64_C({value})"
        if value != value:
            return "NAN"
        if value in (float("inf"), float("-inf")):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        return f"{value!r}f" if self.dtype in ("float32", "complex64") else repr(value)

    def element(self, load: Load) -> str:
        if load.buffer in self.registers:
            return self.register(load)
        buffer = self.buffers[load.buffer]
        if not buffer.shape and buffer.scope == "local":
            return ident(load.buffer)
        return f"{ident(load.buffer)}[{self.address(load)}]"

    def address(self, load: Load) -> str:
        """Linear element index of a load."""
        buffer = self.buffers[load.buffer]
        total: Expr = Const(buffer.offset)
        for index, step in zip(load.indices, buffer.strides, strict=True):
            total = Op("add", (total, Op("mul", (Const(step) if isinstance(step, int) else step, index))))
        wide = self._widened(from_affine(affine(total)))
        return Scalar("int64", self.buffers, self.registers).text(wide)

    def _widened(self, expr: Expr) -> Expr:
        """Subscripts from arrays of other numbers, as large as addresses are. What is converted as a whole
        is computed in its own type first, and what is compared in that of its operands."""
        if isinstance(expr, Load):
            wide = self.buffers[expr.buffer].dtype == "int64"
            return expr if wide else Op("cast:int64", (expr,))
        if isinstance(expr, Op) and not (expr.name.startswith("cast:") or is_truth(expr, self.buffers)):
            return Op(expr.name, tuple(map(self._widened, expr.args)))
        return expr

    def register(self, load: Load) -> str:
        vectors = self.registers[load.buffer]
        cell = [evaluate(i, {}) for i in load.indices]
        if any(c is None for c in cell):
            raise NotApplicable(f"subscript of register array {load.buffer} is not constant")
        if not vectors:
            return "_".join([ident(load.buffer), *map(str, cell)])
        position = cell[-1]
        assert position is not None
        start, width = next((s, w) for s, w in vectors if s <= position < s + w)
        stem = "_".join([ident(load.buffer), *map(str, cell[:-1]), f"v{start}"])
        return f"{stem}[{position - start}]" if width > 1 else f"{stem}[0]"


@dataclass(frozen=True)
class Vector:
    """Expressions whose value differs from lane to lane of `iterator`, which starts at `base`."""

    dtype: str
    buffers: Mapping[str, Buffer]
    registers: Registers
    iterator: str
    base: Expr
    lanes: int
    lane_locals: frozenset[str]
    """Rank-0 locals declared inside the lane loop: vectors themselves."""

    REDUCE: ClassVar[Mapping[str, str]] = {
        "add": "{a} + {b}", "mul": "{a} * {b}", "min": "vec_min({a}, {b})", "max": "vec_max({a}, {b})",
    }  # fmt: skip

    @staticmethod
    def ctype(ctype: str, lanes: int) -> str:
        return f"vec<{ctype}, {lanes}>"

    @property
    def type(self) -> str:
        return self.ctype(CTYPES[self.dtype], self.lanes)

    def text(self, expr: Expr) -> str:
        """Always a vector of `lanes` elements."""
        if isinstance(expr, Load) and self.is_lane_local(expr):
            return ident(expr.buffer)
        if not self.differs(expr):
            return f"splat<{self.type}>(({CTYPES[self.dtype]})({self.uniform(expr)}))"
        if isinstance(expr, Load):
            return self.load(expr)
        assert isinstance(expr, Op)
        if expr.name == "select" and not self.differs(expr.args[0]):  # one choice for all lanes
            choice = self.uniform(expr.args[0])
            return f"({choice} ? {self.text(expr.args[1])} : {self.text(expr.args[2])})"
        if expr.name in COMPARISONS and (of := compared(expr, self.dtype, self.buffers)) != self.dtype:
            return replace(self, dtype=of).text(expr)
        args = [self.text(a) for a in expr.args]
        if expr.name in ("min", "max"):
            return self.REDUCE[expr.name].format(a=args[0], b=args[1])
        if expr.name in _INFIX and len(args) == 2:
            return f"({args[0]} {_INFIX[expr.name]} {args[1]})"
        if expr.name == "neg":
            return _negative(args[0])
        if expr.name == "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        lanewise = f"lanewise<{CTYPES[self.dtype]}, {self.lanes}>"
        if halves := _halves(expr):
            return f"{lanewise}({args[0]}, [](auto x) {{ return gp_half_power<{halves}>(x); }})"
        if expr.name in _LANEWISE:
            return f"{lanewise}({args[0]}, [](auto x) {{ return {_CALLS[expr.name]}(x); }})"
        return f"{lanewise}({args[0]}, {args[1]}, [](auto x, auto y) {{ return {_CALLS[expr.name]}(x, y); }})"

    def uniform(self, expr: Expr) -> str:
        """The scalar that all lanes share."""
        return self.scalar.text(substitute(expr, {self.iterator: self.base}))

    @property
    def scalar(self) -> Scalar:
        return Scalar(self.dtype, self.buffers, self.registers)

    def differs(self, expr: Expr) -> bool:
        """Does the value vary across lanes? A local scalar of the lane loop does."""
        if isinstance(expr, Load):
            return varies(expr, self.iterator) or self.is_lane_local(expr)
        return any(self.differs(a) for a in expr.args) if isinstance(expr, Op) else False

    def is_lane_local(self, load: Load) -> bool:
        return load.buffer in self.lane_locals

    def at_base(self, load: Load) -> Load:
        moved = substitute(load, {self.iterator: self.base})
        assert isinstance(moved, Load)
        return moved

    def load(self, load: Load) -> str:
        if load.buffer in self.registers:
            return self.register(load)
        step = stride(load, self.iterator, self.buffers)
        first = f"{ident(load.buffer)} + {self.scalar.address(self.at_base(load))}"
        if step == 1:
            return f"load<{self.lanes}>({first})"
        if step is not None:
            return f"gather<{self.lanes}>({first}, {step})"
        cells = (
            substitute(load, {self.iterator: Op("add", (self.base, Const(lane)))})
            for lane in range(self.lanes)
        )
        return f"{self.type}{{{', '.join(map(self.scalar.text, cells))}}}"

    def register(self, load: Load) -> str:
        cell = [evaluate(i, {}) for i in self.at_base(load).indices]
        if any(c is None for c in cell):
            raise NotApplicable(f"subscript of register array {load.buffer} is not constant")
        return "_".join([ident(load.buffer), *map(str, cell[:-1]), f"v{cell[-1]}"])

    def store(self, target: Load, value: str, past_caches: bool = False) -> str:
        if self.is_lane_local(target):
            return f"{ident(target.buffer)} = {value};"
        if target.buffer in self.registers:
            return f"{self.register(target)} = {value};"
        address = self.scalar.address(self.at_base(target))
        function = "stream" if past_caches else "store"
        return f"{function}({ident(target.buffer)} + {address}, ({self.type})({value}));"


def _negative(text: str) -> str:
    """Of a number that is negative itself, too: `--8` is something else in C++."""
    return f"(-({text}))" if text.startswith("-") else f"(-{text})"
