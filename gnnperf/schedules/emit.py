"""Emit a scheduled nest as one C++ function with a C interface.

Loops become loops with OpenMP pragmas; unrolled loops are written out; "vectorized" loops become
GCC vector-extension code, 64 bytes wide; local arrays that only unrolled and vectorised loops index
become named registers, which is what makes register tiling reliable. Expressions are emitted by
`expressions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gnnperf.nests.affine import evaluate, simplify
from gnnperf.nests.analysis import DTYPE_BYTES, accesses, extent, stride, varies
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    expressions_of,
    loads,
    reads,
    substitute,
    substitute_node,
    symbols,
    walk,
)  # fmt: skip
from gnnperf.schedules.accumulate import identity
from gnnperf.schedules.expressions import (
    CTYPES,
    PRELUDE,
    REDUCE,
    Scalar,
    Vector,
    chunks,
    ident,
    index_text,
    iterator_name,
)  # fmt: skip
from gnnperf.schedules.threads import access_counts, private_reductions, span_elements
from gnnperf.schedules.vectors import VECTOR_BYTES

MAX_STACK_BYTES = 1 << 16
CACHE_LINE_BYTES = 64


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
    """C++ of a nest that has no `Statement.init` left (see `apply`)."""
    arguments = tuple(nest.arguments)
    parameters = tuple(sorted(nest.parameters))
    emitter = _Emitter(nest, symbol)
    body = emitter.program()
    signature = ", ".join(
        [f"{CTYPES[nest.buffers[b].dtype]}* __restrict__ {ident(b)}" for b in arguments]
        + [f"int64_t {iterator_name(p)}" for p in parameters]
    )
    parts = "".join(emitter.parts)
    text = f'{PRELUDE}\n{parts}extern "C" void {symbol}({signature}) {{\n{body}}}\n'
    return CppFunction(symbol, text, arguments, parameters)


@dataclass
class _Emitter:
    nest: LoopNest
    symbol: str
    parts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    counter: int = 0
    in_parallel: bool = False

    def __post_init__(self) -> None:
        self.buffers: dict[str, Buffer] = dict(self.nest.buffers)
        self.registers = _register_buffers(self.nest)
        self.declare_at = _declaration_points(self.nest)
        self.vector_lanes = _vector_dimensions(self.nest, self.registers)
        self.access_counts = access_counts(self.nest.body)

    def program(self) -> str:
        self.block(self.nest.body, ())
        return "".join(self.lines)

    # ------------------------------------------------------------------ blocks

    def index(self, expr: Expr) -> str:
        return index_text(expr, self.buffers)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text + "\n")

    def block(self, body: tuple[Node, ...], path: tuple[int, ...]) -> None:
        for name in self.declare_at.get(path, ()):
            self.declare(name)
        for number, node in enumerate(body):
            self.node(node, (*path, number))

    def node(self, node: Node, path: tuple[int, ...]) -> None:
        if isinstance(node, Statement):
            self.statement(node)
            return
        kind = node.annotation.kind if node.annotation else "none"
        size = extent(node)
        if kind == "vectorized" and size is not None:
            self.vectorized(node, size, path)
        elif kind == "unrolled" and size is not None and not (node.annotation and node.annotation.factor):
            self.unrolled(node, size, path)
        elif kind == "parallel":
            self.parallel(node, path)
        else:
            self.plain(node, path)

    def declare(self, name: str) -> None:
        buffer = self.buffers[name]
        ctype = CTYPES[buffer.dtype]
        if name in self.registers:
            for text in self.register_names(name):
                self.line(text)
            return
        if not buffer.shape:
            self.line(f"{ctype} {ident(name)};")
            return
        count = span_elements(buffer)
        if count is None:
            length = self.index(_symbolic_elements(buffer))
            self.line(f"std::vector<{ctype}> {ident(name)}_storage({length} > 0 ? {length} : 1);")
            self.line(f"{ctype}* const {ident(name)} = {ident(name)}_storage.data();")
        elif count * DTYPE_BYTES[buffer.dtype] <= MAX_STACK_BYTES:
            self.line(f"alignas(64) {ctype} {ident(name)}[{count}];")
        else:
            # Kept between calls: fresh pages would cost more than the nest on every call.
            self.line(
                f"static thread_local std::unique_ptr<{ctype}[]> {ident(name)}_storage(new {ctype}[{count}]);"
            )
            self.line(f"{ctype}* const {ident(name)} = {ident(name)}_storage.get();")

    def register_names(self, name: str) -> Iterator[str]:
        buffer = self.buffers[name]
        ctype = CTYPES[buffer.dtype]
        lanes = self.vector_lanes.get(name)
        shape = [s for s in buffer.shape if isinstance(s, int)]
        for cell in _cells(shape if lanes is None else shape[:-1]):
            stem = "_".join([ident(name), *map(str, cell)])
            if lanes is None:
                yield f"{ctype} {stem};"
            else:
                for start, width in chunks(shape[-1], VECTOR_BYTES // DTYPE_BYTES[buffer.dtype]):
                    yield f"{Vector.ctype(ctype, width)} {stem}_v{start};"

    # ------------------------------------------------------------------ loops

    def header(self, loop: Loop) -> str:
        name = iterator_name(loop.iterator)
        step = f"++{name}" if loop.step == 1 else f"{name} += {loop.step}"
        return f"for (int64_t {name} = {self.index(loop.start)}; {name} < {self.index(loop.stop)}; {step}) {{"

    def plain(self, loop: Loop, path: tuple[int, ...]) -> None:
        annotation = loop.annotation
        if annotation and annotation.kind == "simd" and self.simd_allowed(loop):
            self.line("#pragma omp simd" + self.simd_reductions(loop))
        elif annotation and annotation.factor > 1:
            self.line(f"#pragma GCC unroll {annotation.factor}")
        self.line(self.header(loop))
        self.depth += 1
        if annotation and annotation.prefetch:
            self.prefetch(loop, annotation.prefetch)
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

    def simd_reductions(self, loop: Loop) -> str:
        clauses = []
        for node in walk(loop.body):
            if isinstance(node, Statement) and node.reduce and not varies(node.target, loop.iterator):
                sign = {"add": "+", "mul": "*", "min": "min", "max": "max"}[node.reduce]
                clauses.append(f" reduction({sign}:{ident(node.target.buffer)})")
        return "".join(dict.fromkeys(clauses))

    def unrolled(self, loop: Loop, size: int, path: tuple[int, ...]) -> None:
        for step in range(size):
            value = simplify(Op("add", (loop.start, Const(step * loop.step))))
            body = tuple(substitute_node(n, {loop.iterator: value}) for n in loop.body)
            self.braced(body, path)

    def braced(self, body: tuple[Node, ...], path: tuple[int, ...]) -> None:
        scoped = bool(self.declare_at.get(path))
        if scoped:
            self.line("{")
            self.depth += 1
        self.block(body, path)
        if scoped:
            self.depth -= 1
            self.line("}")

    def vectorized(self, loop: Loop, size: int, path: tuple[int, ...]) -> None:
        width = max(
            VECTOR_BYTES // DTYPE_BYTES[self.buffers[s.target.buffer].dtype]
            for s in loop.body
            if isinstance(s, Statement)
        )
        for start, lanes in chunks(size, width):
            base = simplify(Op("add", (loop.start, Const(start))))
            self.line("{")
            self.depth += 1
            for name in self.declare_at.get(path, ()):
                buffer = self.buffers[name]
                ctype = CTYPES[buffer.dtype]
                self.line(f"{ctype if lanes == 1 else Vector.ctype(ctype, lanes)} {ident(name)};")
            for node in loop.body:
                assert isinstance(node, Statement), "only statements run across lanes"
                if lanes == 1:
                    scalar = substitute_node(node, {loop.iterator: base})
                    assert isinstance(scalar, Statement)
                    self.statement(scalar)
                else:
                    self.vector_statement(
                        node, loop.iterator, base, lanes, frozenset(self.declare_at.get(path, ()))
                    )
            self.depth -= 1
            self.line("}")

    def parallel(self, loop: Loop, path: tuple[int, ...]) -> None:
        annotation = loop.annotation
        assert annotation is not None
        private = private_reductions(loop, self.nest.buffers, self.access_counts)
        assert private is not None, "threads cannot share the loop: see legal_threads"
        chunk = f", {annotation.chunk}" if annotation.chunk else ""
        collapse = f" collapse({annotation.collapse})" if annotation.collapse > 1 else ""
        balanced = annotation.omp_schedule == "balanced" and self.balance_bounds(loop)
        kind = "static" if annotation.omp_schedule == "balanced" else annotation.omp_schedule
        if not private and not balanced:
            self.line(f"#pragma omp parallel for schedule({kind}{chunk}){collapse}")
            self.loop_in_parallel(loop, path)
            return
        self.line("#pragma omp parallel")
        self.line("{")
        self.depth += 1
        for name, (reduction, count) in private.items():
            self.declare_private(name, reduction, count)
        if balanced:
            self.balanced(loop, path)
        else:
            self.line(f"#pragma omp for schedule({kind}{chunk}){collapse} nowait")
            self.loop_in_parallel(loop, path)
        for name, (reduction, count) in private.items():
            own, total = f"{ident(name)}_own", f"{ident(name)}_shared"
            self.line("#pragma omp critical")
            combine = REDUCE[reduction].format(a=f"{total}[k]", b=f"{own}[k]")
            self.line(f"for (int64_t k = 0; k < {count}; ++k) {total}[k] = {combine};")
        self.depth -= 1
        self.line("}")

    def declare_private(self, name: str, reduction: str, count: int) -> None:
        """Each thread reduces into its own copy; the copies are combined once per thread."""
        buffer = self.buffers[name]
        ctype = CTYPES[buffer.dtype]
        start = Scalar(buffer.dtype, self.buffers, {}).text(identity(reduction, buffer.dtype))
        self.line(
            f"{ctype}* const {ident(name)}_shared = {ident(name)};"
        )
        self.line(f"std::unique_ptr<{ctype}[]> {ident(name)}_copy(new {ctype}[{count}]);")
        self.line(f"{ctype}* const {ident(name)}_own = {ident(name)}_copy.get();")
        self.line(f"for (int64_t k = 0; k < {count}; ++k) {ident(name)}_own[k] = {start};")
        self.line(f"{ctype}* const {ident(name)} = {ident(name)}_own;")

    def loop_in_parallel(self, loop: Loop, path: tuple[int, ...]) -> None:
        """The loop that threads share, and those collapsed into it; their body is a function."""
        assert loop.annotation is not None
        loops = [loop]
        while len(loops) < loop.annotation.collapse:
            (inner,) = loops[-1].body
            assert isinstance(inner, Loop)
            loops.append(inner)
            path = (*path, 0)
        for each in loops:
            self.line(self.header(each))
            self.depth += 1
        self.outlined(loops[-1].body, path)
        for _ in loops:
            self.depth -= 1
            self.line("}")

    def outlined(self, body: tuple[Node, ...], path: tuple[int, ...]) -> None:
        """Emit a block as a function of its own and call it. Inside an OpenMP region the compiler no
        longer knows that arrays do not overlap; as `__restrict__` arguments they do not again."""
        outer, depth = self.lines, self.depth
        self.lines, self.depth = [], 1
        self.block(body, path)
        text, self.lines, self.depth = "".join(self.lines), outer, depth
        inside = {n for p, names in self.declare_at.items() if p[: len(path)] == path for n in names}
        arrays = sorted({a.load.buffer for n in body for a in accesses(n)} - inside)
        bound = {n.iterator for n in walk(body) if isinstance(n, Loop)}
        used = {s for n in walk(body) for e in expressions_of(n) for s in symbols(e)}
        parameters, arguments = [], []
        for name in arrays:
            buffer = self.buffers[name]
            scalar = not buffer.shape and buffer.scope == "local"
            parameters.append(f"{CTYPES[buffer.dtype]}{'&' if scalar else '* __restrict__'} {ident(name)}")
            arguments.append(ident(name))
        for name in sorted(used - bound):
            parameters.append(f"int64_t {iterator_name(name)}")
            arguments.append(iterator_name(name))
        function = f"{self.symbol}_part{len(self.parts)}"
        self.parts.append(f"static inline void {function}({', '.join(parameters)}) {{\n{text}}}\n")
        self.line(f"{function}({', '.join(arguments)});")

    # ------------------------------------------------------------------ balanced rows

    def balance_bounds(self, loop: Loop) -> tuple[Expr, Expr] | None:
        """Bounds of the data-dependent loop right inside, as functions of the parallel iterator."""
        for node in walk(loop.body):
            if isinstance(node, Loop) and any(True for b in (node.start, node.stop) for _ in loads(b)):
                own = {loop.iterator}
                if loop.step != 1 or symbols(node.start) != own or symbols(node.stop) != own:
                    return None
                return node.start, node.stop
        return None

    def balanced(self, loop: Loop, path: tuple[int, ...]) -> None:
        """Split rows so that every thread gets the same share of the inner iterations: a binary search
        in the row starts. Where these do not ascend, the shares are uneven, but still a partition."""
        bounds = self.balance_bounds(loop)
        assert bounds is not None
        name = iterator_name(loop.iterator)
        self.line(f"auto row_start = [&](int64_t {name}) -> int64_t {{ return {self.index(bounds[0])}; }};")
        self.line(f"const int64_t first = {self.index(loop.start)}, last = {self.index(loop.stop)};")
        final = substitute(bounds[1], {loop.iterator: Op("sub", (loop.stop, Const(1)))})
        self.line(
            f"const int64_t work = last > first ? {self.index(final)} - row_start(first) + last - first : 0;"
        )
        self.line("auto search = [&](int64_t t, int64_t n) -> int64_t {")
        self.line("  int64_t lo = first, hi = last;")
        self.line("  while (lo < hi) { const int64_t mid = lo + (hi - lo) / 2;")
        self.line(
            "    if (row_start(mid) - row_start(first) + mid - first < t * work / n) lo = mid + 1; else hi = mid; }"
        )
        self.line("  return lo; };")
        self.line("auto boundary = [&](int64_t t, int64_t n) -> int64_t {")
        self.line("  if (t >= n) return last;")
        self.line("  int64_t row = first;")
        self.line("  for (int64_t u = 1; u <= t; ++u) { const int64_t at = search(u, n); row = at > row ? at : row; }")
        self.line("  return row; };")
        self.line("const int64_t mine = boundary(omp_get_thread_num(), omp_get_num_threads());")
        self.line("const int64_t next = boundary(omp_get_thread_num() + 1, omp_get_num_threads());")
        self.line(f"for (int64_t {name} = mine; {name} < next; ++{name}) {{")
        self.depth += 1
        self.outlined(loop.body, path)
        self.depth -= 1
        self.line("}")

    def prefetch(self, loop: Loop, distance: int) -> None:
        """Fetch what indirect loads will touch `distance` iterations ahead, line by line."""
        seen: set[Expr] = set()
        inner = {lp.iterator: lp for lp in walk(loop.body) if isinstance(lp, Loop)}
        for node in walk(loop.body):
            if not isinstance(node, Statement):
                continue
            for load in loads(node.value):
                nested = [ld for i in load.indices for ld in loads(i)]
                if not nested or not varies(load, loop.iterator):
                    continue
                ahead = self.ahead(load, nested, loop.iterator, distance, inner)
                if ahead in seen:
                    continue
                seen.add(ahead)
                buffer = self.buffers[load.buffer]
                lines = min(8, max(1, self.contiguous_bytes(load, inner) // CACHE_LINE_BYTES))
                step = CACHE_LINE_BYTES // DTYPE_BYTES[buffer.dtype]
                text = Scalar(buffer.dtype, self.buffers, {}).text(ahead)
                for number in range(lines):
                    self.line(f"__builtin_prefetch(&{text} + {number * step});")

    def ahead(
        self, load: Load, nested: list[Load], iterator: str, distance: int, inner: Mapping[str, Loop]
    ) -> Load:
        shape = self.buffers[nested[0].buffer].shape
        last = Op("sub", (shape[0] if not isinstance(shape[0], int) else Const(shape[0]), Const(1)))
        later = Op("min", (Op("add", (Symbol(iterator), Const(distance))), last))
        values: dict[str, Expr] = {iterator: later}
        for name, lp in inner.items():
            values[name] = substitute(lp.start, values)
        moved = substitute(load, values)
        assert isinstance(moved, Load)
        return moved

    def contiguous_bytes(self, load: Load, inner: Mapping[str, Loop]) -> int:
        size = 1
        for name, lp in inner.items():
            if varies(load, name):
                size *= extent(lp) or 1
        return size * DTYPE_BYTES[self.buffers[load.buffer].dtype]

    # ------------------------------------------------------------------ statements

    def statement(self, statement: Statement) -> None:
        dtype = self.buffers[statement.target.buffer].dtype
        scalar = Scalar(dtype, self.buffers, self.registers_lanes())
        target = scalar.text(statement.target)
        value = scalar.text(statement.value)
        if statement.reduce:
            value = REDUCE[statement.reduce].format(a=target, b=f"({CTYPES[dtype]})({value})")
        text = f"{target} = {value};"
        if statement.guard is not None:
            text = (
                f"if ({Scalar('int64', self.buffers, self.registers_lanes()).text(statement.guard)}) {text}"
            )
        self.line(text)

    def registers_lanes(self) -> Mapping[str, tuple[int | None, int]]:
        """register buffer -> (lanes of its vectors or None, length of the vectorised dimension)."""
        return {name: (self.vector_lanes.get(name), _last(self.buffers[name])) for name in self.registers}

    def vector_statement(
        self, statement: Statement, iterator: str, base: Expr, lanes: int, lane_locals: frozenset[str]
    ) -> None:
        dtype = self.buffers[statement.target.buffer].dtype
        vector = Vector(dtype, self.buffers, self.registers_lanes(), iterator, base, lanes, lane_locals)
        value = vector.text(statement.value)
        if not varies(statement.target, iterator) and not vector.is_lane_local(statement.target):
            scalar = Scalar(dtype, self.buffers, self.registers_lanes())
            target = scalar.text(statement.target)
            assert statement.reduce is not None
            folded = f"fold_{statement.reduce}<{lanes}>({value})"
            self.line(f"{target} = {REDUCE[statement.reduce].format(a=target, b=folded)};")
            return
        old = vector.text(statement.target)
        if statement.reduce:
            value = Vector.REDUCE[statement.reduce].format(a=old, b=value)
        self.line(vector.store(statement.target, value))


# --------------------------------------------------------------------------- planning


def _cells(shape: list[int]) -> Iterator[tuple[int, ...]]:
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in _cells(shape[1:]):
            yield (first, *rest)


def _last(buffer: Buffer) -> int:
    return buffer.shape[-1] if buffer.shape and isinstance(buffer.shape[-1], int) else 0


def _symbolic_elements(buffer: Buffer) -> Expr:
    total: Expr = Const(1)
    for size in buffer.shape:
        total = Op("mul", (total, Const(size) if isinstance(size, int) else size))
    return total


def _contexts(
    body: tuple[Node, ...], path: tuple[int, ...], around: tuple[Loop, ...]
) -> Iterator[tuple[Statement | Loop, tuple[int, ...], tuple[Loop, ...]]]:
    for number, node in enumerate(body):
        yield node, path, around
        if isinstance(node, Loop):
            yield from _contexts(node.body, (*path, number), (*around, node))


def _register_buffers(nest: LoopNest) -> frozenset[str]:
    """Local arrays all of whose subscripts are constant once unrolled loops are written out."""
    names = {k for k, b in nest.buffers.items() if b.scope == "local" and b.shape}
    for node, _, around in _contexts(nest.body, (), ()):
        if not isinstance(node, Statement):
            continue
        values: dict[str, Expr] = {}
        for loop in around:
            kind = loop.annotation.kind if loop.annotation else "none"
            written_out = kind in ("vectorized", "unrolled") and not (
                loop.annotation and loop.annotation.factor
            )
            if written_out and extent(loop) is not None:
                values[loop.iterator] = substitute(loop.start, values)
        for load in (node.target, *loads(node.value)):
            if load.buffer in names and any(
                evaluate(substitute(simplify(i), values), {}) is None for i in load.indices
            ):
                names.discard(load.buffer)
    return frozenset(names)


def _vector_dimensions(nest: LoopNest, registers: frozenset[str]) -> dict[str, int]:
    """Register buffers whose last dimension runs across vector lanes -> lanes of a full vector."""
    found: dict[str, int] = {}
    for node, _, around in _contexts(nest.body, (), ()):
        if not isinstance(node, Statement):
            continue
        vector = next(
            (lp.iterator for lp in around if lp.annotation and lp.annotation.kind == "vectorized"), None
        )
        for load in (node.target, *loads(node.value)):
            if load.buffer in registers and vector is not None and varies(load, vector):
                found[load.buffer] = VECTOR_BYTES // DTYPE_BYTES[nest.buffers[load.buffer].dtype]
    return found


def _declaration_points(nest: LoopNest) -> dict[tuple[int, ...], list[str]]:
    """Path of the innermost block that contains every access of a scratch buffer -> its names. Scratch
    memory that is read before it is written carries values from one iteration of a sequential loop to
    the next: it is declared outside of that loop."""
    lowest: dict[str, tuple[int, ...]] = {}
    for node, path, around in _contexts(nest.body, (), ()):
        if isinstance(node, Statement):
            used = {a.load.buffer for a in accesses(node)}
            defined = _defines(node)
        else:
            used = {ld.buffer for b in (node.start, node.stop) for ld in loads(b)}
            defined = None
        for name in used:
            buffer = nest.buffers[name]
            if buffer.scope == "local":
                lowest[name] = _common(lowest.get(name, path), path)
            elif buffer.transient:
                at = path
                if name not in lowest and name != defined:
                    at = path[: next((d for d, lp in enumerate(around) if not lp.independent), len(path))]
                lowest[name] = _common(lowest.get(name, at), at)
    points: dict[tuple[int, ...], list[str]] = {}
    for name, path in sorted(lowest.items()):
        points.setdefault(path, []).append(name)
    return points


def _defines(statement: Statement) -> str | None:
    """The buffer that the statement writes without reading it."""
    if statement.reduce or statement.guard is not None:
        return None
    name = statement.target.buffer
    return None if any(ld.buffer == name for ld in reads(statement)) else name


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    size = 0
    while size < min(len(a), len(b)) and a[size] == b[size]:
        size += 1
    return a[:size]
