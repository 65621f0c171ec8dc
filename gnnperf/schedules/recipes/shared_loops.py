"""Emit loops that OpenMP threads share: schedules, private reductions, balanced rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnnperf.nests.analysis import accesses, is_data_dependent
from gnnperf.nests.ir import (
    Expr,
    Loop,
    Node,
    expressions_of,
    symbols,
    walk,
)  # fmt: skip
from gnnperf.schedules.recipes.accumulate import identity
from gnnperf.schedules.recipes.expressions import CTYPES, REDUCE, Scalar, ident, iterator_name
from gnnperf.schedules.recipes.threads import private_reductions

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.emit import Emitter

FEW = 64
"""Elements of a private copy on the stack: nothing else points there, compilers keep those in registers."""

BALANCED_ROWS = """\
const auto row_start = [=](int64_t {row}) -> int64_t {{ return {start}; }};
const auto row_stop = [=](int64_t {row}) -> int64_t {{ return {stop}; }};
const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
const int64_t mine = balanced_row(row_start, row_stop, {first}, {last}, thread, threads);
const int64_t next = balanced_row(row_start, row_stop, {first}, {last}, thread + 1, threads);
for (int64_t {row} = mine; {row} < next; ++{row}) {{"""


def share_loop(emitter: Emitter, loop: Loop, path: tuple[int, ...]) -> None:
    """A loop annotated "parallel" (checked by `legal_threads`)."""
    annotation = loop.annotation
    assert annotation is not None
    private = private_reductions(loop, emitter.buffers, emitter.access_counts)
    assert private is not None, "threads cannot share the loop: see legal_threads"
    rows = _row_bounds(loop) if annotation.omp_schedule == "balanced" else None
    kind = "static" if annotation.omp_schedule == "balanced" else annotation.omp_schedule
    chunk = f", {annotation.chunk}" if annotation.chunk else ""
    collapse = f" collapse({annotation.collapse})" if annotation.collapse > 1 else ""
    fence = stores_past_caches(loop.body)
    copies = _private_copies(emitter, loop)
    if not private and rows is None and not fence:
        emitter.line(f"#pragma omp parallel for schedule({kind}{chunk}){collapse}{copies}")
        _shared(emitter, loop, path)
        return
    emitter.line(f"#pragma omp parallel{copies}")
    with emitter.braces():
        for name, (reduction, count) in private.items():
            _declare_private(emitter, name, reduction, count)
        if rows is not None:
            _balanced(emitter, loop, rows, path)
        else:
            emitter.line(f"#pragma omp for schedule({kind}{chunk}){collapse} nowait")
            _shared(emitter, loop, path)
        if fence:
            emitter.line("stream_fence();")
        for name, (reduction, count) in private.items():
            own, total = f"{ident(name)}_own", f"{ident(name)}_shared"
            emitter.line("#pragma omp critical")
            combine = REDUCE[reduction].format(a=f"{total}[k]", b=f"{own}[k]")
            emitter.line(f"for (int64_t k = 0; k < {count}; ++k) {total}[k] = {combine};")


def stores_past_caches(body: tuple[Node, ...]) -> bool:
    loops = (n for n in walk(body) if isinstance(n, Loop))
    return any(lp.annotation is not None and lp.annotation.nontemporal for lp in loops)


def _private_copies(emitter: Emitter, loop: Loop) -> str:
    """Pointers to arguments, copied by every thread: where they are shared, they are read from memory
    again after every store."""
    arguments = set(emitter.nest.arguments)
    names = sorted({a.load.buffer for a in accesses(loop)} & arguments)
    return f" firstprivate({', '.join(map(ident, names))})" if names else ""


def _declare_private(emitter: Emitter, name: str, reduction: str, count: int) -> None:
    """Each thread reduces into its own copy; the copies are combined once per thread."""
    buffer, array = emitter.buffers[name], ident(name)
    ctype = CTYPES[buffer.dtype]
    start = Scalar(buffer.dtype, emitter.buffers, {}).text(identity(reduction, buffer.dtype))
    emitter.line(f"{ctype}* const {array}_shared = {array};")
    if count <= FEW:
        emitter.line(f"{ctype} {array}_own[{count}];")
    else:
        emitter.line(f"std::unique_ptr<{ctype}[]> {array}_copy(new {ctype}[{count}]);")
        emitter.line(f"{ctype}* const {array}_own = {array}_copy.get();")
    emitter.line(f"for (int64_t k = 0; k < {count}; ++k) {array}_own[k] = {start};")
    emitter.line(f"{ctype}* const {array} = {array}_own;")


def _shared(emitter: Emitter, loop: Loop, path: tuple[int, ...]) -> None:
    """The loop that threads share, and those collapsed into it; their body is a function."""
    assert loop.annotation is not None
    loops = [loop]
    while len(loops) < loop.annotation.collapse:
        (inner,) = loops[-1].body
        assert isinstance(inner, Loop)
        loops.append(inner)
        path = (*path, 0)
    for each in loops:
        emitter.line(emitter.header(each))
        emitter.depth += 1
    _outlined(emitter, loops[-1].body, path)
    for _ in loops:
        emitter.depth -= 1
        emitter.line("}")


def _outlined(emitter: Emitter, body: tuple[Node, ...], path: tuple[int, ...]) -> None:
    """Emit a block as a function of its own and call it. Inside an OpenMP region the compiler no
    longer knows that arrays do not overlap; as `__restrict__` arguments they do not again."""
    text = emitter.apart(body, path)
    arrays = sorted({a.load.buffer for n in body for a in accesses(n)} - emitter.storage.within(path))
    bound = {n.iterator for n in walk(body) if isinstance(n, Loop)}
    free = sorted({s for n in walk(body) for e in expressions_of(n) for s in symbols(e)} - bound)
    parameters = [f"int64_t {iterator_name(name)}" for name in free]
    for name in arrays:
        buffer = emitter.buffers[name]
        scalar = not buffer.shape and buffer.scope == "local"
        parameters.append(f"{CTYPES[buffer.dtype]}{'&' if scalar else '* __restrict__'} {ident(name)}")
    arguments = [*map(iterator_name, free), *map(ident, arrays)]
    function = f"{emitter.symbol}_part{len(emitter.parts)}"
    emitter.parts.append(f"static inline void {function}({', '.join(parameters)}) {{\n{text}}}\n")
    emitter.line(f"{function}({', '.join(arguments)});")


def _row_bounds(loop: Loop) -> tuple[Expr, Expr] | None:
    """Bounds of the data-dependent loop right inside, as functions of the shared iterator."""
    for node in walk(loop.body):
        if isinstance(node, Loop) and is_data_dependent(node):
            own = {loop.iterator}
            if loop.step != 1 or symbols(node.start) != own or symbols(node.stop) != own:
                return None
            return node.start, node.stop
    return None


def _balanced(emitter: Emitter, loop: Loop, rows: tuple[Expr, Expr], path: tuple[int, ...]) -> None:
    text = BALANCED_ROWS.format(
        row=iterator_name(loop.iterator),
        first=emitter.index(loop.start),
        last=emitter.index(loop.stop),
        start=emitter.index(rows[0]),
        stop=emitter.index(rows[1]),
    )
    for line in text.split("\n"):
        emitter.line(line)
    emitter.depth += 1
    _outlined(emitter, loop.body, path)
    emitter.depth -= 1
    emitter.line("}")
