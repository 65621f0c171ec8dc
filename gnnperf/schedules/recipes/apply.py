"""Apply a recipe to a whole unit: fuse its nests or keep them apart, and lower each band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import (
    access_counts,
    accesses,
    band,
    extent,
    initial_nest,
    mentions,
    rebuild,
    safe_parallel,
    touched,
    written,
)
from gnnperf.nests.borders import steps_without_borders, without_borders_or_rows
from gnnperf.nests.combine import combine
from gnnperf.nests.copied_slices import leading_copies
from gnnperf.nests.coverage import flow
from gnnperf.nests.fusion import alignment, fuse_outermost, share
from gnnperf.nests.ir import (
    Annotation,
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
    map_node,
    row_major,
    substitute_node,
    walk,
)  # fmt: skip
from gnnperf.nests.names import Names
from gnnperf.nests.overlap import Overlap, overlap
from gnnperf.nests.trip_counts import tile_trips
from gnnperf.schedules.recipes.column_strips import sinks, strips, waits
from gnnperf.schedules.recipes.initial_values import explicit_init, place_initial_values
from gnnperf.schedules.recipes.joined_loops import join_short_loops
from gnnperf.schedules.recipes.library_calls import library_calls
from gnnperf.schedules.recipes.lower import BandLowering
from gnnperf.schedules.recipes.masked_sums import unconditional
from gnnperf.schedules.recipes.names import unambiguous
from gnnperf.schedules.recipes.overwritten import without_overwritten
from gnnperf.schedules.recipes.recipe import Recipe
from gnnperf.schedules.recipes.roles import assign_roles
from gnnperf.schedules.recipes.skewed_rows import share_rows
from gnnperf.schedules.recipes.sums_in_place import sums_in_place
from gnnperf.schedules.recipes.threads import legal_threads, span_bytes
from gnnperf.schedules.recipes.time_tiles import tile_time
from gnnperf.schedules.recipes.triangular_blas import staircase
from gnnperf.schedules.recipes.vectors import lanes

CACHE_BYTES = 1 << 20
"""Of a core, which what nests hand on stays in."""

STRIP_VECTORS = 4
"""Width of a strip of columns where the recipe does not say."""

SIDE_BY_SIDE = 4
"""Likewise, of what goes on side by side because its steps wait for each other."""


@dataclass(frozen=True)
class LoweringUnit:
    """What the lowering of one unit shares. `streams`: bands that are no contraction take the streaming
    form of the recipe. `accesses`: how often the unit touches each buffer. `vectors`: of the machine."""

    recipe: Recipe
    buffers: dict[str, Buffer]
    names: Names
    streams: bool
    accesses: Counter[str]
    vectors: VectorUnit

    def own_locals(self, node: Node) -> frozenset[str]:
        """Local buffers that nothing outside of the node uses."""
        here = access_counts((node,))
        return frozenset(
            n for n, c in here.items() if self.buffers[n].scope == "local" and c == self.accesses[n]
        )


def apply(recipe: Recipe, nest: LoopNest, vectors: VectorUnit = AVX512) -> LoopNest:
    """The scheduled nest: annotated loops, local and packed buffers added, no `Statement.init` left but
    in calls of libraries. Vectors are as wide as the registers of `vectors`.

    Raises NotApplicable (with a reason) where the recipe does not fit the nest.
    """
    return apply_combined(recipe, combined(recipe.combine, nest), vectors)


def combined(how: str, nest: LoopNest) -> LoopNest:
    """What recipes that combine nests alike have in common: the nest as `apply_combined` takes it."""
    nest = combine(how, sums_in_place(nest))
    return join_short_loops(replace(nest, body=steps_without_borders(nest.body, nest.buffers)))


def apply_combined(recipe: Recipe, nest: LoopNest, vectors: VectorUnit) -> LoopNest:
    """`apply` for a nest that is `combined` as the recipe says."""
    nest = unambiguous(unconditional(tile_time(nest, recipe.time_tile)))
    buffers = dict(nest.buffers)
    streams = len(nest.body) > 1 and any(
        assign_roles(b, buffers).is_contraction for b in map(band, nest.body) if b.loops and b.is_perfect
    )
    unit = LoweringUnit(recipe, buffers, Names.of(nest), streams, access_counts(nest.body), vectors)
    copies = leading_copies(nest.body, buffers) if recipe.fuse else 0
    parallel = recipe.parallel != "none"
    if recipe.fuse and len(nest.body) - copies > 1 and all(map(_is_independent, nest.body)):
        before, nodes = nest.body[:copies], nest.body[copies:]
        scratch = {n for n, b in buffers.items() if b.transient and b.scope == "global"}
        scratch.difference_update(*map(touched, before))
        body = (
            *(part for node in before for part in _lower(node, unit, parallel)),
            *_fused(unit, nodes, scratch, parallel),
        )
    else:
        body = _in_order(without_borders_or_rows(nest.body, buffers), unit, parallel)
    used = {a.load.buffer for n in body for a in accesses(n)}
    kept = {k: b for k, b in buffers.items() if k in used}
    scheduled = LoopNest(nest.name, kept, body, nest.parameters)
    if recipe.library and not any(lp.annotation and lp.annotation.library for lp in scheduled.loops()):
        raise NotApplicable("no part of the nest is a BLAS routine")
    scheduled = legal_threads(scheduled)
    return share_rows(scheduled) if parallel else scheduled


def streaming(recipe: Recipe) -> Recipe:
    """What a recipe means for a band without reuse beside a contraction: its blocking does not apply,
    only how the unit is fused and run in parallel."""
    return Recipe(
        order="row",
        register_p=4,
        register_r=4,
        parallel="none" if recipe.parallel == "none" else "spatial",
        omp_schedule=recipe.omp_schedule,
        chunk=recipe.chunk,
        fuse=recipe.fuse,
    )


def _lower(node: Node, unit: LoweringUnit, parallel: bool) -> tuple[Node, ...]:
    if isinstance(node, Statement):
        return explicit_init(node)
    own = unit.own_locals(node)
    *initial, node = place_initial_values(node, own)
    if initial:
        plain = replace(unit, recipe=streaming(unit.recipe))
        before = tuple(part for n in initial for part in _lower(n, plain, parallel))
        return (*before, *_lower(node, unit, parallel))
    assert isinstance(node, Loop)
    if unit.recipe.library and (replaced := _library(node, unit, parallel)):
        return replaced
    if node.annotation is not None:  # points of a strip, side by side
        return (node,)
    if node.tile_level or _holds_points(node):  # of steps of time or of such points: no loop of a band
        return (_shared(node, unit, parallel),)
    nest, recipe = band(node), unit.recipe
    if nest.is_perfect:
        if unit.streams and not assign_roles(nest, unit.buffers, own).is_contraction:
            recipe = streaming(recipe)
        return BandLowering(nest, recipe, unit.buffers, own, parallel, unit.names, unit.vectors).lower()
    # Threads take the first loop that allows it; the bands inside are scheduled one by one.
    return _strips(node, unit, parallel) or (_shared(node, unit, parallel),)


def _holds_points(node: Loop) -> bool:
    """Is all that a loop runs the points of a strip, side by side?"""
    return any(lp.annotation is not None for lp in band(node).loops)


def _library(node: Loop, unit: LoweringUnit, parallel: bool) -> tuple[Node, ...]:
    """The node as calls of the recipe's library; () where it has no routine for it."""
    found = library_calls(node, unit.recipe, unit.buffers, parallel, unit.accesses)
    if found is None and (steps := staircase(node, unit.buffers)):
        uneven = replace(unit, recipe=replace(unit.recipe, omp_schedule="dynamic", chunk=1))
        initial = [initial_nest(s, band(node).loops) for s in band(node).statements if s.init is not None]
        found = initial, [_shared(steps, uneven, parallel)]
    if found is None:
        return ()
    initial, nodes = found
    plain = replace(unit, recipe=streaming(unit.recipe))
    return (*(part for n in initial for part in _lower(n, plain, parallel)), *nodes)


def _strips(loop: Loop, unit: LoweringUnit, parallel: bool) -> tuple[Node, ...]:
    """The loop in strips whose points are innermost; () where it is neither the contiguous one nor one whose
    iterations had better go on side by side."""
    own, recipe = unit.own_locals(loop), unit.recipe
    wide = recipe.vector in ("auto", "p")
    if wide and sinks(loop, unit.buffers, own):
        inside = (s for s in walk((loop,)) if isinstance(s, Statement))
        width = max(lanes(s, unit.buffers, unit.vectors) for s in inside)
        width *= recipe.register_p or STRIP_VECTORS
        loops = strips(loop, width, unit.buffers, own, unit.names)
    elif (width := recipe.register_q or SIDE_BY_SIDE * wide) > 1 and waits(loop, own):
        loops = strips(loop, width, unit.buffers, own, unit.names, Annotation("unrolled"))
    else:
        return ()
    apart = replace(unit.recipe, fuse=0)  # what is fused again along the points of a strip is no vector
    unit = replace(unit, recipe=apart, accesses=Counter({**access_counts(loops), **unit.accesses}))
    return tuple(_shared(lp, unit, parallel and extent(lp) != 1) for lp in loops)


def _shared(loop: Loop, unit: LoweringUnit, parallel: bool) -> Loop:
    here = parallel and safe_parallel(loop, unit.buffers) and extent(loop) != 1
    annotation = _threads(unit.recipe, here)
    inner = _in_order(loop.body, unit, parallel and not here)
    return replace(loop, body=inner, annotation=annotation)


def _is_independent(node: Node) -> bool:
    return not isinstance(node, Loop) or node.independent


def _in_order(body: tuple[Node, ...], unit: LoweringUnit, parallel: bool) -> tuple[Node, ...]:
    """One node after the other; as far as the recipe fuses, those together that share an outermost loop."""
    lowered: list[Node] = []
    body = body if unit.recipe.fuse else without_overwritten(body, unit.buffers)
    for run in _runs(body, unit):
        if len(run) > 1:
            lowered += _fused(unit, run, _scratch_of(run, unit), parallel)
        else:
            lowered += _lower(run[0], unit, parallel)
    return tuple(lowered)


def _threads(recipe: Recipe, wanted: bool) -> Annotation | None:
    """Of a loop whose iterations threads share as the recipe says, if they are wanted."""
    if not wanted:
        return None
    return Annotation("parallel", omp_schedule=recipe.omp_schedule, chunk=recipe.chunk)


def _runs(body: tuple[Node, ...], unit: LoweringUnit) -> list[tuple[Node, ...]]:
    """The nodes inside a loop, those together that the recipe fuses."""
    runs: list[tuple[Node, ...]] = []
    for node in body:
        if runs and unit.recipe.fuse and fuse_outermost(LoopNest("", unit.buffers, (*runs[-1], node))):
            runs[-1] = (*runs[-1], node)
        else:
            runs.append((node,))
    return runs


def _scratch_of(nodes: tuple[Node, ...], unit: LoweringUnit) -> set[str]:
    """Scratch arrays that nothing but these nodes touches, and that they write before they read."""
    here, exposed = access_counts(nodes), flow(nodes).exposed
    return {
        n for n, count in here.items() if unit.buffers[n].transient and unit.buffers[n].scope == "global"
        and count == unit.accesses[n] and n not in exposed
    }  # fmt: skip


def _fused(
    unit: LoweringUnit, nodes: tuple[Node, ...], scratch: set[str], parallel: bool
) -> tuple[Node, ...]:
    """Nests inside one loop over tiles of their shared outermost iterator. `scratch`: arrays that live
    for one iteration of what is around the nests."""
    recipe, buffers = unit.recipe, unit.buffers
    rows = overlap(nodes, buffers, scratch)
    if rows is not None and rows.has_margins:
        return _overlapping_tiles(unit, rows, parallel)
    fused = fuse_outermost(LoopNest("", buffers, nodes))
    if fused is None:
        raise NotApplicable("the nests of the unit do not share an outermost loop")
    *peeled, shared = fused.body
    assert isinstance(shared, Loop)
    if peeled:
        buffers.update(fused.buffers)
        recounted = unit.accesses + access_counts(fused.body) - access_counts(nodes)
        unit = replace(unit, accesses=recounted)
        apart = replace(unit, recipe=streaming(recipe))
        before = tuple(part for node in peeled for part in _lower(node, apart, False))
        return (*before, *_shared_tiles(unit, shared, scratch.difference(*map(touched, peeled)), parallel))
    return _shared_tiles(unit, shared, scratch, parallel)


def _shared_tiles(unit: LoweringUnit, shared: Loop, scratch: set[str], parallel: bool) -> tuple[Node, ...]:
    """What nests share, as a loop over tiles of it. Where a tile would be all heads or batches of products,
    or, of other nests, an iteration touches more than a core's cache holds (an image whose channels are
    normalised), each is by itself, and the nests share the next loop in it."""
    recipe, buffers = unit.recipe, unit.buffers
    shared = replace(shared, body=without_overwritten(shared.body, buffers))
    if strip := _strips(shared, unit, parallel):
        return strip
    tile = f"{shared.iterator}_f"
    size = extent(shared)
    one_by_one = (
        size is not None and size > 1 and _is_batch(shared, buffers)
        and (size <= recipe.fuse if unit.streams else _touched_bytes(shared, buffers) > size * CACHE_BYTES)
        and fuse_outermost(LoopNest("", buffers, _iteration(shared, tile))) is not None
    )  # fmt: skip
    width = 1 if one_by_one else recipe.fuse if size is None else min(recipe.fuse, max(1, size))
    exact = size is not None and size % width == 0
    end: Expr = Op("add", (Symbol(tile), Const(width)))
    stop = simplify(end if exact else Op("min", (end, shared.stop)))
    tiles, points = tile_trips(shared.measured_trips, width)
    inner: list[Node] = (
        [*_iteration(shared, tile)]
        if width == 1
        else [
            replace(shared, start=Symbol(tile), stop=stop, body=children, measured_trips=points)
            for children in _in_one_iteration(shared.body, buffers)
        ]
    )
    dimensions = _contracted_dimensions(shared, scratch)
    inner = [_contract(n, tile, dimensions) for n in inner]
    _shrink(dimensions, width, buffers)
    here = parallel and safe_parallel(shared, buffers)
    if one_by_one:
        lowered = _fused(unit, tuple(inner), scratch, parallel and not here)
    else:
        lowered = tuple(part for node in inner for part in _lower(node, unit, False))
    annotation = _threads(recipe, here)
    level = 2 if width > 1 else 0
    loop = Loop(
        tile, shared.start, shared.stop, lowered, width, True, annotation, level, measured_trips=tiles
    )
    return (loop,)


def _iteration(loop: Loop, name: str) -> tuple[Node, ...]:
    """What the loop does in one iteration, which is called `name`."""
    return tuple(substitute_node(child, {loop.iterator: Symbol(name)}) for child in loop.body)


def _touched_bytes(loop: Loop, buffers: Mapping[str, Buffer]) -> int:
    """Of arrays of which the iterations touch different parts."""
    names = {a.load.buffer for a in accesses(loop) if mentions(a.load, loop.iterator)}
    return sum(span_bytes(buffers[name]) for name in names)


def _is_batch(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Has all that is summed up other operands in each iteration? Nothing is reused from one to the next."""
    sums = (s for s in walk(loop.body) if isinstance(s, Statement) and s.reduce)
    return all(
        mentions(a.load, loop.iterator) for s in sums for a in accesses(s) if buffers[a.load.buffer].shape
    )


def _overlapping_tiles(unit: LoweringUnit, rows: Overlap, parallel: bool) -> tuple[Node, ...]:
    """Nests that share rows with margins, as a loop over tiles of them."""
    recipe, buffers = unit.recipe, unit.buffers
    width = min(recipe.fuse, rows.stop - rows.start)
    tile = unit.names.fresh(f"{rows.parts[0].loop.iterator}_f")
    last = range(rows.start, rows.stop, width)[-1]
    inner: list[Node] = []
    for number, part in enumerate(rows.parts):
        low, high = part.span.low - part.shift, width + part.span.high - part.shift
        start, stop = (simplify(Op("add", (Symbol(tile), Const(by)))) for by in (low, high))
        if rows.start + low < part.start:
            start = Op("max", (start, Const(part.start)))
        if last + high > part.stop:
            stop = Op("min", (stop, Const(part.stop)))
        body = rebuild([lp for lp in band(part.node).loops if lp is not part.loop], band(part.node).body)
        loop = share(
            replace(part.loop, start=start, stop=stop, body=body),
            part.loop.iterator,
            f"{tile}{number}",
            number,
        )
        assert isinstance(loop, Loop)
        if extent(loop) == 1:
            inner.extend(substitute_node(n, {loop.iterator: start}) for n in loop.body)
        else:
            inner.append(loop)
    dimensions = {name: (held.dimension, held.span.low) for name, held in rows.scratch.items()}
    inner = [_contract(node, tile, dimensions) for node in inner]
    for name, held in rows.scratch.items():
        _shrink({name: dimensions[name]}, width + held.span.high - held.span.low, buffers)
    lowered = tuple(part for node in inner for part in _lower(node, unit, False))
    annotation = _threads(recipe, parallel)
    level = 2 if width > 1 else 0
    return (Loop(tile, Const(rows.start), Const(rows.stop), lowered, width, True, annotation, level),)


def _in_one_iteration(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> list[tuple[Node, ...]]:
    """The nodes of a body, those together that pass each other what lives for one iteration."""
    passed = {name for node in body for name in written(node) if buffers[name].scope == "local"}
    groups: list[tuple[tuple[Node, ...], set[str]]] = []
    for node in body:
        names = passed & touched(node)
        first = next((n for n, (_, known) in enumerate(groups) if names & known), len(groups))
        joined = (*(earlier for nodes, _ in groups[first:] for earlier in nodes), node)
        groups[first:] = [(joined, names.union(*(known for _, known in groups[first:])))]
    return [nodes for nodes, _ in groups]


def _contracted_dimensions(shared: Loop, scratch: set[str]) -> dict[str, tuple[int, int]]:
    """Scratch array -> (dimension, offset) that is exactly the shared iterator in every access."""
    found: dict[str, tuple[int, int]] = {}
    for name in scratch:
        touching = [a.load for a in accesses(shared) if a.load.buffer == name]
        keys = {alignment(load, shared.iterator) for load in touching}
        if len(keys) == 1 and (key := keys.pop()) is not None:
            found[name] = key
    return found


def _contract(node: Node, tile: str, dimensions: Mapping[str, tuple[int, int]]) -> Node:
    """Scratch arrays keep only the rows of the current tile, so they stay in cache."""

    def shrink(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.buffer not in dimensions:
            return expr
        dimension, offset = dimensions[expr.buffer]
        indices = list(expr.indices)
        moved = Op("sub", (indices[dimension], Op("add", (Symbol(tile), Const(offset)))))
        indices[dimension] = simplify(moved)
        return Load(expr.buffer, tuple(indices))

    return map_node(node, shrink)


def _shrink(dimensions: Mapping[str, tuple[int, int]], width: int, buffers: dict[str, Buffer]) -> None:
    for name, (dimension, _) in dimensions.items():
        old = buffers[name]
        shape = [
            s for s in (*old.shape[:dimension], width, *old.shape[dimension + 1 :]) if isinstance(s, int)
        ]
        if len(shape) < len(old.shape):
            raise NotApplicable("a scratch array has no constant shape")
        buffers[name] = replace(old, shape=tuple(shape), strides=row_major(shape), offset=0)
