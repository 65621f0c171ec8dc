"""Normal form of a nest: variants of one kernel meet at one program (after "A Priori Loop Nest
Normalization", CGO'25): maximal fission, forward substitution, stride-minimising loop order.

Every step preserves what the nest computes for its non-transient outputs. The start state of every
schedule is the normal form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

from gnnperf.nests.analysis import (
    Band,
    accesses,
    apart,
    band,
    bound_dependences,
    extent,
    is_reduction,
    rebuild,
    stride,
    varies,
)  # fmt: skip
from gnnperf.nests.borders import without_border_bounds
from gnnperf.nests.contraction import contract
from gnnperf.nests.coverage import written_box
from gnnperf.nests.delinearise import delinearise
from gnnperf.nests.fission import fission
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.interchange import independent_outside
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    equals_number,
    loads,
    reads,
    subexpressions,
    walk,
)  # fmt: skip
from gnnperf.nests.peeled import with_peeled
from gnnperf.nests.scratch_sums import settled_sums
from gnnperf.nests.short_sums import write_out_sums
from gnnperf.nests.subscripts import canonical_subscripts


def normalise(nest: LoopNest) -> LoopNest:
    """The normal form: canonical subscripts, no peeled iterations, sums of products where they are stored,
    maximal fission, forward substitution of scratch arrays, independent loops outside of sequential ones,
    reductions that own their initial value, stride-minimising loop order, no scratch array for one element,
    no dead code."""
    body = tuple(canonical_subscripts(delinearise(canonical_subscripts(n))) for n in nest.body)
    body, buffers = settled_sums(with_peeled(body, nest.buffers), nest.buffers)
    body = tuple(part for node in body for part in fission(node, buffers))
    if any(isinstance(n, Loop) and extent(n) is None for n in walk(body)):
        whole = merge_initialisations(body, buffers)
        parts, buffers = without_border_bounds(whole, buffers)
        body = body if parts == whole else parts
    written = tuple(write_out_sums(n, buffers) for n in body)
    body = body if written == body else merge_initialisations(written, buffers)
    body = forward_substitute(body, buffers)
    body = tuple(independent_outside(n, buffers) for n in body)
    body = merge_initialisations(body, buffers)
    body, buffers = contract(tuple(minimise_strides(n, buffers) for n in body), buffers)
    used = {a.load.buffer for n in body for a in accesses(n)}
    return LoopNest(nest.name, {k: b for k, b in buffers.items() if k in used}, body, nest.parameters)


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
        if init.reduce or init.guard is not None or any(map(loads, (init.value, *init.target.indices))):
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
    covered = written_box(init.target, first.loops)
    if covered is None or covered != written_box(reduction.target, spatial):
        return None
    if not apart(reduction.target, spatial):
        return None
    # Where the reduction is empty its initial value is written all the same: see `Statement.init`.
    merged = replace(reduction, init=init.value)
    if len(spatial) == len(second.loops):  # nothing to reduce over: one term
        is_nothing = reduction.reduce == "add" and equals_number(init.value, 0)
        value = reduction.value if is_nothing else Op(reduction.reduce, (init.value, reduction.value))
        merged = Statement(reduction.target, value)
    return rebuild(second.loops, (merged,))[0]


# --------------------------------------------------------------------------- loop order


def minimise_strides(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """Order a band so that the smallest strides are innermost, as far as bounds and sequential loops
    (which nothing passes) allow. Ties are broken by structure, never by names."""
    if not isinstance(node, Loop):
        return node
    nest = band(node)
    if not nest.loops:  # a while loop
        return replace(node, body=tuple(minimise_strides(n, buffers) for n in node.body))
    inner = tuple(minimise_strides(n, buffers) for n in nest.body)
    if len(nest.loops) < 2 or not nest.is_perfect:
        return rebuild(nest.loops, inner)[0]
    local = {k for k, b in buffers.items() if b.scope == "local"}
    found = [a for n in inner for a in accesses(n) if a.load.buffer not in local or a.load.indices]

    def cost(loop: Loop) -> tuple[float, ...]:
        steps = [stride(a.load, loop.iterator, buffers) for a in found]
        far = sum(min(abs(s), 64) if s is not None else 64 for s in steps)
        size = extent(loop)
        reduction = is_reduction(loop, nest.statements, local)
        total = sum(abs(s) if s is not None else 1 << 20 for s in steps)
        return (-far, -total, float(reduction), -float(size if size is not None else 0))

    ordered: list[Loop] = []
    for is_free, group in itertools.groupby(nest.loops, key=lambda lp: lp.independent):
        run = list(group)
        ordered += _sorted(run, cost) if is_free else run
    return rebuild(ordered, inner)[0]


def _sorted(loops: list[Loop], cost: Callable[[Loop], tuple[float, ...]]) -> list[Loop]:
    """By cost, but no loop outside of those that its bounds depend on."""
    ordered: list[Loop] = []
    remaining = sorted(loops, key=cost)
    names = {lp.iterator for lp in loops}
    while remaining:
        placed = {lp.iterator for lp in ordered}
        ready = next(lp for lp in remaining if bound_dependences(lp) & names <= placed)
        remaining.remove(ready)
        ordered.append(ready)
    return ordered
