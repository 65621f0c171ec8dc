"""Emit a scheduled nest as one C++ function with a C interface.

Loops become loops with OpenMP pragmas; unrolled loops are written out; "vectorized" loops become
GCC vector-extension code, as wide as registers are; local arrays that only unrolled and vectorised
loops index become named registers, which is what makes register tiling reliable. Expressions are
emitted by `expressions.py`, loops that threads share by `shared_loops.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from gnnperf.errors import NotApplicable
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import access_counts, extent, stride, varies, write_only
from gnnperf.nests.blocks import Path
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    substitute_node,
    walk,
)  # fmt: skip
from gnnperf.schedules.recipes.counted_bits import count_bits
from gnnperf.schedules.recipes.expressions import (
    CTYPES,
    PRELUDE,
    REDUCE,
    Registers,
    Scalar,
    Vector,
    chunks,
    ident,
    index_text,
    iterator_name,
    repeated_calls,
)  # fmt: skip
from gnnperf.schedules.recipes.filtered import skip_misses
from gnnperf.schedules.recipes.library_calls import emit_call, prelude
from gnnperf.schedules.recipes.narrow_integers import narrow_integers
from gnnperf.schedules.recipes.pipelined_rows import emit_rows, emit_steps, pipeline_header
from gnnperf.schedules.recipes.prefetching import prefetched
from gnnperf.schedules.recipes.shared_loops import of_one_team, share_all, share_loop, stores_past_caches
from gnnperf.schedules.recipes.simd_loops import gather_simd_loops
from gnnperf.schedules.recipes.skewed_rows import skew_rows
from gnnperf.schedules.recipes.storage import Storage
from gnnperf.schedules.recipes.threads import span_elements

MAX_STACK_BYTES = 1 << 16
PAGE_BYTES = 1 << 12
BETWEEN_BYTES = 9 << 6
"""Scratch arrays begin so much further in their pages than the one before. At the same place in them, where
an allocator puts all large ones, a load of one would wait for a store to the other."""


@dataclass(frozen=True)
class CppFunction:
    """`extern "C" void symbol(T* buffers..., int64_t parameters...)`, self-contained C++17.

    buffers: names in argument order, scalars by pointer too; parameters: run-time integers.
    """

    symbol: str
    source: str
    buffers: tuple[str, ...]
    parameters: tuple[str, ...]


def emit(nest: LoopNest, symbol: str) -> CppFunction:
    """C++ of a nest that has no `Statement.init` left but in calls of libraries (see `apply`).

    Raises NotApplicable where a buffer has a type that C++ does not (float16), and where a library that
    the nest calls is not installed.
    """
    for buffer in nest.buffers.values():
        if buffer.dtype not in CTYPES:
            raise NotApplicable(f"buffer {buffer.name} is {buffer.dtype}, which has no C++ type")
    arguments = tuple(nest.arguments)
    parameters = tuple(sorted(nest.parameters))
    nest = narrow_integers(gather_simd_loops(count_bits(skip_misses(skew_rows(nest)))))
    emitter = Emitter(nest, symbol)
    emitter.block(nest.body, ())
    if stores_past_caches(nest.body):
        emitter.line("stream_fence();")
    signature = ", ".join(
        [f"{CTYPES[nest.buffers[b].dtype]}* __restrict__ {ident(b)}" for b in arguments]
        + [f"int64_t {iterator_name(p)}" for p in parameters]
    )
    parts, body = "".join(emitter.parts), "".join(emitter.lines)
    headers = f"{PRELUDE}\n{prelude(nest)}{pipeline_header(nest)}"
    text = f'{headers}{parts}extern "C" void {symbol}({signature}) {{\n{body}}}\n'
    return CppFunction(symbol, text, arguments, parameters)


@dataclass
class Emitter:
    """Text of one function. `parts`: functions that it calls; `lines`: its body so far. `arrays`: scratch on
    the heap so far."""

    nest: LoopNest
    symbol: str
    parts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    arrays: int = 0

    @cached_property
    def storage(self) -> Storage:
        return Storage.plan(self.nest)

    @cached_property
    def access_counts(self) -> Mapping[str, int]:
        return access_counts(self.nest.body)

    @cached_property
    def write_only(self) -> frozenset[str]:
        return write_only(self.nest)

    @cached_property
    def registers(self) -> Registers:
        """register buffer -> the vectors that its last dimension is; none where it is elements."""
        lanes, overlapping = self.storage.lanes, self.storage.overlapping
        return {
            name: chunks(_last(self.buffers[name]), lanes[name], name in overlapping) if name in lanes else ()
            for name in self.storage.registers
        }

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        return self.nest.buffers

    # ------------------------------------------------------------------ text

    def index(self, expr: Expr) -> str:
        return index_text(expr, self.buffers)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text + "\n")

    @contextmanager
    def braces(self, wanted: bool = True) -> Iterator[None]:
        if wanted:
            self.line("{")
            self.depth += 1
        yield
        if wanted:
            self.depth -= 1
            self.line("}")

    def apart(self, body: tuple[Node, ...], path: Path) -> str:
        """The text of a block, for a function of its own."""
        outer, depth = self.lines, self.depth
        self.lines, self.depth = [], 1
        self.block(body, path)
        text, self.lines, self.depth = "".join(self.lines), outer, depth
        return text

    # ------------------------------------------------------------------ blocks

    def block(self, body: tuple[Node, ...], path: Path) -> None:
        for name in self.storage.declared.get(path, ()):
            self.declare(name)
        number = 0
        while number < len(body):
            together = max(1, count := of_one_team(self, body[number:]))
            paths = [(*path, n) for n in range(number, number + together)]
            if count:
                share_all(self, body[number : number + count], paths)
            else:
                self.node(body[number], paths[0])
            number += together

    def node(self, node: Node, path: Path) -> None:
        if isinstance(node, Statement):
            self.statement(node)
            return
        kind = node.annotation.kind if node.annotation else "none"
        size = extent(node)
        if node.annotation and node.annotation.library:
            emit_call(self, node)
        elif kind == "vectorized" and size is not None:
            self.vectorized(node, size, path)
        elif kind == "unrolled" and size is not None and not (node.annotation and node.annotation.factor):
            self.unrolled(node, size, path)
        elif kind == "pipelined":
            emit_steps(self, node, path)
        elif kind == "parallel" and node.independent:
            share_loop(self, node, path)
        elif kind == "parallel":
            emit_rows(self, node, path)
        else:
            self.plain(node, path)

    def declare(self, name: str) -> None:
        buffer = self.buffers[name]
        ctype = CTYPES[buffer.dtype]
        if name in self.storage.registers:
            for text in self.register_names(name):
                self.line(text)
            return
        if not buffer.shape and buffer.scope == "local":
            self.line(f"{ctype} {ident(name)};")
            return
        count = span_elements(buffer)
        if count is None:
            length = self.index(_symbolic_elements(buffer))
            self.line(f"std::vector<{ctype}> {ident(name)}_storage({length} > 0 ? {length} : 1);")
            self.line(f"{ctype}* const {ident(name)} = {ident(name)}_storage.data();")
        elif count * ELEMENT_BYTES[buffer.dtype] <= MAX_STACK_BYTES:
            self.line(f"alignas(64) {ctype} {ident(name)}[{count}];")
        else:
            # Kept between calls: fresh pages would cost more than the nest on every call.
            storage, room = f"{ident(name)}_storage", count + 2 * PAGE_BYTES // ELEMENT_BYTES[buffer.dtype]
            self.line(f"static thread_local std::unique_ptr<{ctype}[]> {storage}(new {ctype}[{room}]);")
            self.arrays += 1
            place = self.arrays * BETWEEN_BYTES % PAGE_BYTES
            self.line(f"{ctype}* const {ident(name)} = in_page({storage}.get(), {place});")

    def register_names(self, name: str) -> Iterator[str]:
        buffer = self.buffers[name]
        ctype = CTYPES[buffer.dtype]
        vectors = self.registers[name]
        shape = [s for s in buffer.shape if isinstance(s, int)]
        for cell in product(*map(range, shape[:-1] if vectors else shape)):
            stem = "_".join([ident(name), *map(str, cell)])
            if not vectors:
                yield f"{ctype} {stem};"
            for start, width in vectors:
                yield f"{Vector.ctype(ctype, width)} {stem}_v{start};"

    # ------------------------------------------------------------------ loops

    def header(self, loop: Loop) -> str:
        name = iterator_name(loop.iterator)
        step = f"++{name}" if loop.step == 1 else f"{name} += {loop.step}"
        test = f"{name} < {self.index(loop.stop)}"
        if loop.condition is not None:
            test += f" && {self.scalar('int64').text(loop.condition)}"
        return f"for (int64_t {name} = {self.index(loop.start)}; {test}; {step}) {{"

    def plain(self, loop: Loop, path: Path) -> None:
        annotation = loop.annotation
        if annotation and annotation.kind == "simd" and self.simd_allowed(loop):
            self.line("#pragma omp simd" + self.simd_reductions(loop, self.storage.declared.get(path, ())))
        elif annotation and annotation.factor > 1:
            self.line(f"#pragma GCC unroll {annotation.factor}")
        self.line(self.header(loop))
        self.depth += 1
        if annotation and annotation.prefetch:
            for load, further in prefetched(loop, annotation.prefetch, self.buffers):
                self.line(f"__builtin_prefetch(&{self.scalar('int64').text(load)} + {further});")
        self.block(loop.body, path)
        self.depth -= 1
        self.line("}")

    def simd_allowed(self, loop: Loop) -> bool:
        """Lanes must not collide: every store moves with the iterator, or is a scalar reduction."""
        for node in loop.body:
            if isinstance(node, Loop):
                return False
            buffer = self.buffers[node.target.buffer]
            if varies(node.target, loop.iterator):
                if not stride(node.target, loop.iterator, self.buffers):  # none, or unknown
                    return False
            elif buffer.scope == "global" or (node.reduce is not None and buffer.shape):
                return False
        return True

    def simd_reductions(self, loop: Loop, own: Collection[str]) -> str:
        """own: variables of each iteration."""
        clauses = []
        for node in walk(loop.body):
            if not isinstance(node, Statement) or node.target.buffer in own:
                continue
            if node.reduce and not varies(node.target, loop.iterator):
                sign = {"add": "+", "mul": "*", "min": "min", "max": "max"}[node.reduce]
                clauses.append(f" reduction({sign}:{ident(node.target.buffer)})")
        return "".join(dict.fromkeys(clauses))

    def unrolled(self, loop: Loop, size: int, path: Path) -> None:
        for step in range(size):
            value = simplify(Op("add", (loop.start, Const(step * loop.step))))
            body = tuple(substitute_node(n, {loop.iterator: value}) for n in loop.body)
            with self.braces(bool(self.storage.declared.get(path))):
                self.block(body, path)

    def vectorized(self, loop: Loop, size: int, path: Path) -> None:
        statements = [n for n in loop.body if isinstance(n, Statement)]
        assert len(statements) == len(loop.body), "only statements run across lanes"
        own = self.storage.declared.get(path, ())
        assert loop.annotation is not None
        vector_bytes = loop.annotation.vector_bytes
        width = max(vector_bytes // ELEMENT_BYTES[self.buffers[s.target.buffer].dtype] for s in statements)
        for start, lanes in chunks(size, width, path in self.storage.overlapping):
            base = simplify(Op("add", (loop.start, Const(start))))
            with self.braces(bool(own)):
                for name in own:
                    if lanes == 1:
                        self.declare(name)
                    else:
                        self.line(f"{Vector.ctype(CTYPES[self.buffers[name].dtype], lanes)} {ident(name)};")
                for statement in statements:
                    if lanes == 1:
                        scalar = substitute_node(statement, {loop.iterator: base})
                        assert isinstance(scalar, Statement)
                        self.statement(scalar)
                    else:
                        past = loop.annotation.nontemporal
                        self.vector_statement(statement, loop.iterator, base, lanes, frozenset(own), past)

    # ------------------------------------------------------------------ statements

    def scalar(self, dtype: str) -> Scalar:
        return Scalar(dtype, self.buffers, self.registers)

    def statement(self, statement: Statement) -> None:
        dtype = self.buffers[statement.target.buffer].dtype
        scalar = self.scalar(dtype)
        target = scalar.text(statement.target)
        value = scalar.text(statement.value)
        shared: list[str] = []
        for call in repeated_calls(statement.value) if statement.guard is None else ():
            text, name = scalar.text(call), f"shared_{len(shared)}"
            if value.count(text) > 1:
                value = value.replace(text, name)
                shared.append(f"const auto {name} = {text};")
        if statement.reduce:
            value = REDUCE[statement.reduce].format(a=target, b=f"({CTYPES[dtype]})({value})")
        guard = "" if statement.guard is None else f"if ({self.scalar('int64').text(statement.guard)}) "
        with self.braces(bool(shared)):
            for line in shared:
                self.line(line)
            self.line(f"{guard}{target} = {value};")

    def vector_statement(
        self,
        statement: Statement,
        iterator: str,
        base: Expr,
        lanes: int,
        lane_locals: frozenset[str],
        past_caches: bool,
    ) -> None:
        dtype = self.buffers[statement.target.buffer].dtype
        vector = Vector(dtype, self.buffers, self.registers, iterator, base, lanes, lane_locals)
        value = vector.text(statement.value)
        if not varies(statement.target, iterator) and not vector.is_lane_local(statement.target):
            target = self.scalar(dtype).text(statement.target)
            assert statement.reduce is not None
            folded = f"fold_{statement.reduce}<{lanes}>({value})"
            self.line(f"{target} = {REDUCE[statement.reduce].format(a=target, b=folded)};")
            return
        if statement.reduce:
            value = Vector.REDUCE[statement.reduce].format(a=vector.text(statement.target), b=value)
        past_caches = past_caches and statement.target.buffer in self.write_only
        self.line(vector.store(statement.target, value, past_caches))


def _last(buffer: Buffer) -> int:
    return buffer.shape[-1] if buffer.shape and isinstance(buffer.shape[-1], int) else 0


def _symbolic_elements(buffer: Buffer) -> Expr:
    total: Expr = Const(1)
    for size in buffer.shape:
        total = Op("mul", (total, Const(size) if isinstance(size, int) else size))
    return total
