"""Normal form of a nest: variants of one kernel meet at one program (after "A Priori Loop Nest
Normalization", CGO'25): maximal fission, forward substitution, stride-minimising loop order.

Every step preserves what the nest computes for its non-transient outputs. The start state of every
schedule is the normal form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.nests.affine import affine, simplify
from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    extent,
    is_reduction,
    rebuild,
    stride,
    varies,
    written,
)  # fmt: skip
from gnnperf.nests.delinearise import delinearise
from gnnperf.nests.dtypes import as_stored
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
    loads,
    map_node,
    reads,
    subexpressions,
    substitute,
    substitute_node,
    walk,
)  # fmt: skip
from gnnperf.nests.ranges import separates


def normalise(nest: LoopNest) -> LoopNest:
    """The normal form: canonical subscripts, maximal fission, forward substitution of scratch arrays,
    reductions that own their initial value, stride-minimising loop order, no dead code."""
    body = tuple(canonical_subscripts(delinearise(canonical_subscripts(n))) for n in nest.body)
    body = tuple(part for node in body for part in fission(node, nest.buffers))
    body = forward_substitute(body, nest.buffers)
    body = merge_initialisations(body, nest.buffers)
    body = tuple(minimise_strides(n, nest.buffers) for n in body)
    used = {a.load.buffer for n in body for a in accesses(n)}
    return LoopNest(nest.name, {k: b for k, b in nest.buffers.items() if k in used}, body, nest.parameters)


# --------------------------------------------------------------------------- subscripts


def canonical_subscripts(node: Node) -> Node:
    """Bounds and subscripts in affine normal form, so that equal accesses are equal expressions."""

    def canonical(expr: Expr) -> Expr:
        return Load(expr.buffer, tuple(simplify(i) for i in expr.indices)) if isinstance(expr, Load) else expr

    node = map_node(node, canonical)
    if isinstance(node, Loop):
        return _unit_step(
            replace(
                node,
                start=simplify(node.start),
                stop=simplify(node.stop),
                body=tuple(canonical_subscripts(n) for n in node.body),
            )
        )
    return node


def _unit_step(loop: Loop) -> Loop:
    """A strided loop counts its iterations instead: the stride moves into the subscripts."""
    if loop.step == 1:
        return loop
    distance = Op("add", (Op("sub", (loop.stop, loop.start)), Const(loop.step - 1)))
    count = simplify(Op("floordiv", (distance, Const(loop.step))))
    value = Op("add", (loop.start, Op("mul", (Const(loop.step), Symbol(loop.iterator)))))
    body = tuple(canonical_subscripts(substitute_node(n, {loop.iterator: value})) for n in loop.body)
    return replace(loop, start=Const(0), stop=count, step=1, body=body)


# --------------------------------------------------------------------------- fission


def fission(node: Node, buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """Distribute independent loops over their body, keeping nodes that share a local together.

    Sound because iterations of an independent loop may run in any order: all iterations of the
    first part may precede all of the second. A sequential loop is left whole.
    """
    if not isinstance(node, Loop):
        return (node,)
    body = tuple(part for child in node.body for part in fission(child, buffers))
    if not node.independent or _conflict_across_iterations(node, body, buffers):
        return (replace(node, body=body),)
    groups: list[list[Node]] = []
    for child in body:
        shared = _locals(child, buffers)
        users = (
            i for i, g in enumerate(groups) if any(not shared.isdisjoint(_locals(n, buffers)) for n in g)
        )
        first = next(users, len(groups))  # from the first user of a shared local on, all stay together
        groups[first:] = [[*(n for g in groups[first:] for n in g), child]]
    return tuple(replace(node, body=tuple(group)) for group in groups)


def _locals(node: Node, buffers: Mapping[str, Buffer]) -> set[str]:
    return {a.load.buffer for a in accesses(node) if buffers[a.load.buffer].scope == "local"}


def _conflict_across_iterations(loop: Loop, body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> bool:
    """A global scratch buffer that every iteration reuses (its accesses do not vary with the
    iterator) would be overwritten before the second part reads it."""
    for name in {w for n in body for w in written(n)}:
        if buffers[name].scope == "global" and buffers[name].transient:
            users = [a for n in body for a in accesses(n) if a.load.buffer == name]
            if len(users) > 1 and not all(varies(a.load, loop.iterator) for a in users):
                return True
    return False


# --------------------------------------------------------------------------- forward substitution


MAX_OPERATIONS = 192
"""Operations of a statement beyond which recomputation is given up: code size and registers."""


def forward_substitute(
    body: tuple[Node, ...], buffers: Mapping[str, Buffer], *, recompute: bool = False
) -> tuple[Node, ...]:
    """Replace loads of a transient by the expression that produced it, where that adds no work; with
    `recompute`, also where it does.

    This undoes what NumPy-style code and fission introduce: one array temporary per operation.
    """
    nodes = list(body)
    position = 0
    while position < len(nodes):
        producer = _pointwise_producer(nodes[position], buffers)
        if producer is not None and _inline_everywhere(nodes, position, producer, buffers, recompute):
            del nodes[position]
            position = 0  # what fed only this producer may now be dead or used once
            continue
        position += 1
    return tuple(nodes)


def _pointwise_producer(node: Node, buffers: Mapping[str, Buffer]) -> tuple[Band, Statement] | None:
    nest = band(node)
    if len(nest.body) != 1 or not isinstance(nest.body[0], Statement):
        return None
    statement = nest.body[0]
    buffer = buffers[statement.target.buffer]
    if not buffer.transient or buffer.scope != "global" or statement.reduce or statement.guard is not None:
        return None
    if any(ld.buffer == statement.target.buffer for ld in loads(statement.value)):
        return None
    if any(loop.step != 1 or not loop.independent for loop in nest.loops):
        return None
    return (nest, statement) if _invert(nest, statement) is not None else None


def _invert(nest: Band, statement: Statement) -> dict[int, tuple[str, int]] | None:
    """dimension -> (iterator, offset) where the target subscript is iterator + offset, each used once."""
    result: dict[int, tuple[str, int]] = {}
    for dimension, index in enumerate(statement.target.indices):
        form = affine(index)
        if form.is_constant:
            continue
        if len(form.terms) != 1:
            return None
        (atom, coefficient), *_ = form.terms.items()
        if not isinstance(atom, Symbol) or coefficient != 1 or atom.name not in nest.iterators:
            return None
        result[dimension] = (atom.name, form.constant)
    names = [name for name, _ in result.values()]
    return result if sorted(names) == sorted(nest.iterators) else None


def _inline_everywhere(
    nodes: list[Node],
    position: int,
    producer: tuple[Band, Statement],
    buffers: Mapping[str, Buffer],
    recompute: bool,
) -> bool:
    nest, statement = producer
    name = statement.target.buffer
    inverse = _invert(nest, statement)
    assert inverse is not None
    users = [
        i for i, n in enumerate(nodes) if i != position and any(a.load.buffer == name for a in accesses(n))
    ]
    if not users:  # dead code
        return True
    if any(i < position or name in written(nodes[i]) for i in users):
        return False
    sources = {ld.buffer for ld in loads(statement.value)}
    if any(not sources.isdisjoint(written(nodes[i])) for i in range(position + 1, max(users))):
        return False
    is_copy = not any(isinstance(e, Op) for e in subexpressions(statement.value))
    if recompute:
        if not all(_may_recompute(nodes[i], name, statement) for i in users):
            return False
    elif not is_copy and not _adds_no_work(nodes, users, name, nest):
        return False
    for i in users:
        if not _safe_in_place(nodes[i], sources, statement, name, inverse):
            return False

    readers = {
        buffers[s.target.buffer].dtype
        for i in users
        for s in walk((nodes[i],))
        if isinstance(s, Statement) and any(ld.buffer == name for ld in reads(s))
    }
    stored = as_stored(statement.value, buffers[name].dtype, readers, buffers)

    def inline(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer == name:
            values = {it: Op("sub", (expr.indices[d], Const(off))) for d, (it, off) in inverse.items()}
            return substitute(stored, values)
        return expr

    for i in users:
        nodes[i] = canonical_subscripts(map_node(nodes[i], inline))
    return True


def _may_recompute(node: Node, name: str, producer: Statement) -> bool:
    """Pointwise consumers whose statements stay of a reasonable size."""
    user = band(node)
    if not user.is_perfect or any(s.reduce for s in user.statements):
        return False
    size = _operations(producer.value)
    for statement in user.statements:
        uses = sum(ld.buffer == name for ld in reads(statement))
        if uses and _operations(statement.value) + uses * size > MAX_OPERATIONS:
            return False
    return True


def _operations(expr: Expr) -> int:
    return sum(isinstance(e, Op) for e in subexpressions(expr))


def _adds_no_work(nodes: list[Node], users: list[int], name: str, nest: Band) -> bool:
    """One load in one statement that runs no more often than the producer does."""
    statements = [s for i in users for s in walk((nodes[i],)) if isinstance(s, Statement)]
    reading = [s for s in statements if any(ld.buffer == name for ld in reads(s))]
    if len(reading) != 1 or len({ld for ld in reads(reading[0]) if ld.buffer == name}) != 1:
        return False
    user = band(nodes[users[0]])
    produced, consumed = _trip_count(nest.loops), _trip_count(user.loops)
    if produced is None or consumed is None:
        return sum(1 for _ in user.loops) <= sum(1 for _ in nest.loops) and user.is_perfect
    return consumed <= produced and user.is_perfect


def _trip_count(loops: tuple[Loop, ...]) -> int | None:
    total = 1
    for loop in loops:
        size = extent(loop)
        if size is None:
            return None
        total *= size
    return total


def _safe_in_place(
    node: Node, sources: set[str], producer: Statement, name: str, inverse: dict[int, tuple[str, int]]
) -> bool:
    """The consumer may overwrite a buffer the producer reads only element by element: one statement,
    not a reduction, whose target is the very element that the substituted value reads."""
    if sources.isdisjoint(written(node)):
        return True
    statements = [s for s in walk((node,)) if isinstance(s, Statement)]
    users = [s for s in statements if any(ld.buffer == name for ld in reads(s))]
    writers = [s for s in statements if s.target.buffer in sources]
    if len(users) != 1 or users != writers or users[0].reduce is not None:
        return False
    target = users[0].target
    for use in {ld for ld in reads(users[0]) if ld.buffer == name}:
        values: dict[str, Expr] = {
            it: Op("sub", (use.indices[d], Const(off))) for d, (it, off) in inverse.items()
        }
        for load in loads(substitute(producer.value, values)):
            if load.buffer == target.buffer and tuple(map(simplify, load.indices)) != target.indices:
                return False
    return all(separates(target, lp) for lp in walk((node,)) if isinstance(lp, Loop))


# --------------------------------------------------------------------------- initial values of reductions


def merge_initialisations(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """`t[...] = c` over the whole target, followed by `t[...] (+)= v`, becomes one reduction that owns
    its initial value."""
    nodes = list(body)
    for i, node in enumerate(nodes):
        first = band(node)
        if len(first.body) != 1 or not isinstance(first.body[0], Statement):
            continue
        init = first.body[0]
        if init.reduce or init.guard is not None or any(True for _ in loads(init.value)):
            continue
        if any(isinstance(e, Symbol) for e in subexpressions(init.value)):
            continue
        for j in range(i + 1, len(nodes)):
            if init.target.buffer not in {a.load.buffer for a in accesses(nodes[j])}:
                continue
            merged = _with_initial_value(first, init, nodes[j], buffers)
            if merged is not None:
                nodes[j] = merged
                nodes[i] = Loop("merged", Const(0), Const(0), ())
            break
    return tuple(n for n in nodes if not (isinstance(n, Loop) and not n.body))


def _with_initial_value(
    first: Band, init: Statement, node: Node, buffers: Mapping[str, Buffer]
) -> Node | None:
    second = band(node)
    if len(second.body) != 1 or not isinstance(second.body[0], Statement):
        return None
    reduction = second.body[0]
    if reduction.reduce is None or reduction.init is not None or reduction.guard is not None:
        return None
    if any(ld.buffer == init.target.buffer for ld in reads(reduction)):
        return None
    if any(extent(loop) is None for loop in first.loops) or not all(lp.independent for lp in second.loops):
        return None
    spatial = tuple(lp for lp in second.loops if varies(reduction.target, lp.iterator))
    covered = _image(first.loops, init.target)
    if covered is None or covered != _image(spatial, reduction.target):
        return None
    # Where the reduction is empty its initial value is written all the same: see `Statement.init`.
    merged = replace(reduction, init=init.value)
    if len(spatial) == len(second.loops):  # nothing to reduce over: one term
        merged = Statement(reduction.target, Op(reduction.reduce, (init.value, reduction.value)))
    return rebuild(second.loops, (merged,))[0]


def _image(loops: tuple[Loop, ...], target: Load) -> tuple[object, ...] | None:
    """Per dimension (start, extent) of the elements a target covers; None where not a plain box."""
    ranges = {lp.iterator: lp for lp in loops}
    seen: set[str] = set()
    result: list[object] = []
    for index in target.indices:
        form = affine(index)
        if form.is_constant:
            result.append(form.constant)
            continue
        if len(form.terms) != 1:
            return None
        (atom, coefficient), *_ = form.terms.items()
        if not isinstance(atom, Symbol) or coefficient != 1:
            return None
        loop = ranges.get(atom.name)
        if loop is None:  # a parameter: equal parameters give equal boxes
            result.append((atom.name, form.constant))
            continue
        size, start = extent(loop), affine(loop.start)
        if size is None or not start.is_constant or loop.step != 1 or atom.name in seen:
            return None
        seen.add(atom.name)
        result.append((start.constant + form.constant, size) if size > 1 else start.constant + form.constant)
    return tuple(result)


# --------------------------------------------------------------------------- loop order


def minimise_strides(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """Order a band so that the smallest strides are innermost, as far as bounds and sequential
    loops allow. Ties are broken by structure, never by names."""
    nest = band(node)
    inner = tuple(minimise_strides(n, buffers) if isinstance(n, Loop) else n for n in nest.body)
    if len(nest.loops) < 2 or not nest.is_perfect:
        return rebuild(nest.loops, inner)[0]
    local = {k for k, b in buffers.items() if b.scope == "local"}
    found = [a for n in inner for a in accesses(n) if a.load.buffer not in local]

    def cost(loop: Loop) -> tuple[float, ...]:
        steps = [stride(a.load, loop.iterator, buffers) for a in found]
        far = sum(min(abs(s), 64) if s is not None else 64 for s in steps)
        size = extent(loop)
        reduction = is_reduction(loop, nest.statements, local)
        total = sum(abs(s) if s is not None else 1 << 20 for s in steps)
        return (-far, -total, float(reduction), -float(size if size is not None else 0))

    sequential = [i for i, lp in enumerate(nest.loops) if not lp.independent]
    movable_from = sequential[-1] + 1 if sequential else 0
    if sequential:  # keep order up to the last sequential loop; the rest may be permuted
        head, tail = list(nest.loops[:movable_from]), list(nest.loops[movable_from:])
    else:
        head, tail = [], list(nest.loops)
    ordered: list[Loop] = []
    remaining = sorted(tail, key=cost)
    names = {lp.iterator for lp in tail}
    while remaining:
        placed = {lp.iterator for lp in ordered}
        ready = next(lp for lp in remaining if bound_dependences(lp) & names <= placed)
        remaining.remove(ready)
        ordered.append(ready)
    return rebuild([*head, *ordered], inner)[0]
