"""Emit loops that OpenMP threads share: schedules, private reductions, balanced rows.

Loops that follow each other, or that a loop over time repeats, are one parallel region: to start a team costs
as much again as to wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from gnnperf.nests.analysis import accesses, is_data_dependent
from gnnperf.nests.blocks import Path
from gnnperf.nests.ir import (
    Annotation,
    Expr,
    Loop,
    Node,
    Statement,
    expressions_of,
    symbols,
    walk,
)  # fmt: skip
from gnnperf.schedules.recipes.accumulate import identity
from gnnperf.schedules.recipes.expressions import CTYPES, REDUCE, Scalar, ident, iterator_name
from gnnperf.schedules.recipes.threads import PrivateReductions, private_reductions, span_elements

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
    fence = stores_past_caches(loop.body)
    copies = private_copies(emitter, loop)
    if not private and rows is None and not fence:
        emitter.line(f"#pragma omp parallel for{_distribution(annotation)}{copies}")
        _shared(emitter, loop, path)
        return
    emitter.line(f"#pragma omp parallel{copies}")
    with emitter.braces():
        declare_private(emitter, private)
        if rows is not None:
            _balanced(emitter, loop, rows, path)
        else:
            emitter.line(f"#pragma omp for{_distribution(annotation)} nowait")
            _shared(emitter, loop, path)
        if fence:
            emitter.line("stream_fence();")
        combine_private(emitter, private)


def _distribution(annotation: Annotation) -> str:
    kind = "static" if annotation.omp_schedule == "balanced" else annotation.omp_schedule
    chunk = f", {annotation.chunk}" if annotation.chunk else ""
    collapse = f" collapse({annotation.collapse})" if annotation.collapse > 1 else ""
    return f" schedule({kind}{chunk}){collapse}"


# --------------------------------------------------------------------------- several loops


def of_one_team(emitter: Emitter, body: Sequence[Node]) -> int:
    """How many nodes, from the first on, one team of threads goes through; 0 where it would share one loop
    alone."""
    count = shared = 0
    for number, node in enumerate(body, 1):
        if (found := _shared_loops(emitter, node)) is None:
            break
        if found:
            count, shared = number, shared + found
    return count if shared > 1 else 0


def _shared_loops(emitter: Emitter, node: Node) -> int | None:
    """How many loops of a node threads share one after the other, more than one where it repeats them; 0: one
    thread does all of it. None: no part of a team's work."""
    if isinstance(node, Statement):
        return 0
    notes = [n.annotation for n in walk((node,)) if isinstance(n, Loop) and n.annotation is not None]
    if node.annotation is not None and node.annotation.kind == "parallel":
        plain = (
            node.independent and not node.annotation.library and node.annotation.omp_schedule != "balanced"
        )
        alone = not private_reductions(node, emitter.buffers, emitter.access_counts)
        return 1 if plain and alone and not stores_past_caches(node.body) else None
    if not any(note.kind == "parallel" or note.library for note in notes):
        return 0
    if node.annotation is not None or node.condition is not None or is_data_dependent(node):
        return None
    buffers = (emitter.buffers[a.load.buffer] for a in accesses(node))
    if any(b.transient and span_elements(b) is None for b in buffers):  # as long as the iteration says
        return None
    inner = [_shared_loops(emitter, child) for child in node.body]
    return None if None in inner else 2 * sum(found or 0 for found in inner)


def share_all(emitter: Emitter, body: Sequence[Node], paths: Sequence[Path]) -> None:
    """Nodes that are `of_one_team`."""
    for node, path in zip(body, paths, strict=True):
        _declare_inside(emitter, node, path)
    emitter.line(f"#pragma omp parallel{private_copies(emitter, *body)}")
    with emitter.braces():
        _in_team(emitter, body, paths)


def _declare_inside(emitter: Emitter, node: Node, path: Path) -> None:
    """Declare, for all threads, what the loops around shared ones hold."""
    if isinstance(node, Loop) and node.annotation is None and _shared_loops(emitter, node):
        for name in emitter.storage.declared.get(path, ()):
            emitter.declare(name)
        for number, child in enumerate(node.body):
            _declare_inside(emitter, child, (*path, number))


def _in_team(emitter: Emitter, body: Sequence[Node], paths: Sequence[Path]) -> None:
    placed = zip(body, paths, strict=True)
    for alone, group in groupby(placed, lambda pair: _shared_loops(emitter, pair[0]) == 0):
        if alone:  # always the same thread, which has in its cache what it wrote last time
            emitter.line("#pragma omp master")
        with emitter.braces(alone):
            for node, path in group:
                if isinstance(node, Statement) or alone:
                    emitter.node(node, path)
                elif node.annotation is not None:
                    emitter.line(f"#pragma omp for{_distribution(node.annotation)}")
                    _shared(emitter, node, path)
                else:
                    emitter.line(emitter.header(node))
                    emitter.depth += 1
                    _in_team(emitter, node.body, [(*path, n) for n in range(len(node.body))])
                    emitter.depth -= 1
                    emitter.line("}")
        if alone:
            emitter.line("#pragma omp barrier")


# --------------------------------------------------------------------------- one loop


def stores_past_caches(body: tuple[Node, ...]) -> bool:
    loops = (n for n in walk(body) if isinstance(n, Loop))
    return any(lp.annotation is not None and lp.annotation.nontemporal for lp in loops)


def private_copies(emitter: Emitter, *nodes: Node) -> str:
    """Pointers to arguments, copied by every thread: where they are shared, they are read from memory
    again after every store."""
    arguments = set(emitter.nest.arguments)
    names = sorted({a.load.buffer for node in nodes for a in accesses(node)} & arguments)
    return f" firstprivate({', '.join(map(ident, names))})" if names else ""


def declare_private(emitter: Emitter, private: PrivateReductions) -> None:
    """Each thread reduces into its own copy."""
    for name, (reduction, count) in private.items():
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


def combine_private(emitter: Emitter, private: PrivateReductions) -> None:
    """The copies are combined once per thread."""
    for name, (reduction, count) in private.items():
        own, total = f"{ident(name)}_own", f"{ident(name)}_shared"
        emitter.line("#pragma omp critical")
        combine = REDUCE[reduction].format(a=f"{total}[k]", b=f"{own}[k]")
        emitter.line(f"for (int64_t k = 0; k < {count}; ++k) {total}[k] = {combine};")


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
    outlined(emitter, loops[-1].body, path)
    for _ in loops:
        emitter.depth -= 1
        emitter.line("}")


def outlined(emitter: Emitter, body: tuple[Node, ...], path: tuple[int, ...], stage: bool = False) -> None:
    """Emit a block as a function of its own and call it. Inside an OpenMP region the compiler no
    longer knows that arrays do not overlap; as `__restrict__` arguments they do not again.
    stage: of pipelined rows, is an argument too."""
    text = emitter.apart(body, path)
    arrays = sorted({a.load.buffer for n in body for a in accesses(n)} - emitter.storage.within(path))
    bound = {n.iterator for n in walk(body) if isinstance(n, Loop)}
    free = sorted({s for n in walk(body) for e in expressions_of(n) for s in symbols(e)} - bound)
    parameters = ["const Stage& stage"] * stage + [f"int64_t {iterator_name(name)}" for name in free]
    for name in arrays:
        buffer = emitter.buffers[name]
        scalar = not buffer.shape and buffer.scope == "local"
        parameters.append(f"{CTYPES[buffer.dtype]}{'&' if scalar else '* __restrict__'} {ident(name)}")
    arguments = [*["stage"] * stage, *map(iterator_name, free), *map(ident, arrays)]
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
    outlined(emitter, loop.body, path)
    emitter.depth -= 1
    emitter.line("}")
