"""Apply a recipe to a whole unit: fuse its nests or keep them apart, and lower each band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import accesses, band, bound_dependences, extent, safe_parallel
from gnnperf.nests.fusion import alignment, fuse_outermost
from gnnperf.nests.ir import (
    Annotation, Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol, map_node, substitute_node,
)  # fmt: skip
from gnnperf.schedules.lower import BandLowering
from gnnperf.schedules.recipe import Recipe


def apply(recipe: Recipe, nest: LoopNest) -> LoopNest:
    """The scheduled nest: annotated loops, local and packed buffers added, no `Statement.init` left.

    Raises NotApplicable (with a reason) where the recipe does not fit the nest.
    """
    buffers = dict(nest.buffers)
    names = count()
    parallel = recipe.parallel != "none"
    if recipe.fuse and len(nest.body) > 1:
        body = _fused(recipe, nest, buffers, names)
    else:
        body = tuple(part for node in nest.body for part in _lower(node, recipe, buffers, parallel, names))
    body = tuple(_collapsed(n, buffers) for n in body)
    used = {a.load.buffer for n in body for a in accesses(n)}
    return LoopNest(nest.name, {k: b for k, b in buffers.items() if k in used}, body, nest.parameters)


def _lower(
    node: Node, recipe: Recipe, buffers: dict[str, Buffer], parallel: bool, names: count[int]
) -> tuple[Node, ...]:
    if isinstance(node, Statement):
        return _explicit_init(node)
    nest = band(node)
    if nest.is_perfect:
        return BandLowering(nest, recipe, buffers, parallel, names).lower()
    # Imperfect: threads take the first loop that allows it; the bands inside are scheduled one by one.
    return (_imperfect(node, recipe, buffers, parallel, names),)


def _imperfect(
    loop: Loop, recipe: Recipe, buffers: dict[str, Buffer], parallel: bool, names: count[int]
) -> Loop:
    here = parallel and safe_parallel(loop, buffers) and extent(loop) != 1
    annotation = None
    if here:
        annotation = Annotation("parallel", omp_schedule=recipe.omp_schedule, chunk=recipe.chunk)
    inner: list[Node] = []
    for child in loop.body:
        inner.extend(_lower(child, recipe, buffers, parallel and not here, names))
    return replace(loop, body=tuple(inner), annotation=annotation)


def _explicit_init(statement: Statement) -> tuple[Node, ...]:
    if statement.init is None:
        return (statement,)
    return (Statement(statement.target, statement.init), replace(statement, init=None))


def _fused(recipe: Recipe, nest: LoopNest, buffers: dict[str, Buffer], names: count[int]) -> tuple[Node, ...]:
    """All nests of the unit inside one loop over tiles of their shared outermost iterator."""
    fused = fuse_outermost(nest)
    if fused is None:
        raise NotApplicable("the nests of the unit do not share an outermost loop")
    (shared,) = fused.body
    assert isinstance(shared, Loop)
    tile = f"{shared.iterator}_f"
    size = extent(shared)
    width = min(recipe.fuse, size) if size is not None else recipe.fuse
    exact = size is not None and size % width == 0
    end: Expr = Op("add", (Symbol(tile), Const(width)))
    stop = simplify(end if exact else Op("min", (end, shared.stop)))
    inner: list[Node] = []
    for child in shared.body:
        if width == 1:
            nodes: tuple[Node, ...] = (substitute_node(child, {shared.iterator: Symbol(tile)}),)
        else:
            nodes = (replace(shared, start=Symbol(tile), stop=stop, body=(child,)),)
        inner.extend(nodes)
    inner = [_contract(n, shared.iterator, tile, width, fused, buffers) for n in inner]
    _shrink(shared.iterator, tile, width, fused, buffers)
    lowered: list[Node] = []
    for node in inner:
        lowered.extend(_lower(node, recipe, buffers, False, names))
    parallel = recipe.parallel != "none" and safe_parallel(shared, buffers)
    annotation = Annotation("parallel", omp_schedule=recipe.omp_schedule, chunk=recipe.chunk) if parallel else None
    return (Loop(tile, shared.start, shared.stop, tuple(lowered), width, True, annotation, 2),)


def _contracted_dimensions(iterator: str, nest: LoopNest) -> dict[str, tuple[int, int]]:
    """Transient buffer -> (dimension, offset) that is exactly the shared iterator in every access."""
    found: dict[str, tuple[int, int]] = {}
    for name, buffer in nest.buffers.items():
        if not buffer.transient or buffer.scope != "global":
            continue
        keys = {alignment(a.load, iterator) for n in nest.body for a in accesses(n) if a.load.buffer == name}
        if len(keys) == 1 and (key := keys.pop()) is not None:
            found[name] = key
    return found


def _contract(
    node: Node, iterator: str, tile: str, width: int, nest: LoopNest, buffers: dict[str, Buffer]
) -> Node:
    """Scratch arrays keep only the rows of the current tile, so they stay in cache."""
    dimensions = _contracted_dimensions(iterator, nest)

    def shrink(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.buffer not in dimensions:
            return expr
        dimension, offset = dimensions[expr.buffer]
        indices = list(expr.indices)
        moved = Op("sub", (indices[dimension], Op("add", (Symbol(tile), Const(offset)))))
        indices[dimension] = simplify(moved)
        return Load(expr.buffer, tuple(indices))

    return map_node(node, shrink)


def _shrink(iterator: str, tile: str, width: int, nest: LoopNest, buffers: dict[str, Buffer]) -> None:
    for name, (dimension, _) in _contracted_dimensions(iterator, nest).items():
        old = buffers[name]
        shape = [*old.shape[:dimension], width, *old.shape[dimension + 1 :]]
        strides: list[int | Expr] = []
        step: int | Expr = 1
        for size in reversed(shape):
            strides.insert(0, step)
            if not isinstance(size, int) or not isinstance(step, int):
                raise NotApplicable("a scratch array has no constant shape")
            step *= size
        buffers[name] = replace(old, shape=tuple(shape), strides=tuple(strides), offset=0)


def _collapsed(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """Limit `collapse` to the perfectly nested rectangular loops that are really there."""
    if not isinstance(node, Loop):
        return node
    if node.annotation is None or node.annotation.kind != "parallel":
        return replace(node, body=tuple(_collapsed(n, buffers) for n in node.body))
    depth = 1
    inner = node
    outer = {node.iterator}
    while depth < node.annotation.collapse and len(inner.body) == 1 and isinstance(inner.body[0], Loop):
        child = inner.body[0]
        if child.annotation is not None or not safe_parallel(child, buffers) or outer & bound_dependences(child):
            break
        outer.add(child.iterator)
        inner, depth = child, depth + 1
    return replace(node, annotation=replace(node.annotation, collapse=depth))
