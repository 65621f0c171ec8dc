"""Operators of torch programs that write where indices say, or add up bags of rows.

The importer of relax lacks them, or what it makes of them is wrong (its `index_put` adds to one element from
several threads at once).

Several indices may name one element, so what they name is written in their order; the rest is parallel, and
its innermost part vectors. Nothing is left to schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.torch_indices import from_start
from gnnperf.frontends.tvm.torch_kept import Converter

_LANES = 32
"""Neighbouring elements that one thread takes together, at most."""


def converters() -> Mapping[str, Converter]:
    """By the names that relax's importer gives operators."""
    return {
        "index_put.default": _index_put,
        "scatter_add.default": partial(_scatter, reduction="add"),
        "scatter_reduce.two": _scatter_reduce,
        "_embedding_bag.default": _embedding_bag,
        "_embedding_bag_forward_only.default": _embedding_bag,
    }


def _index_put(node: Any, importer: Any) -> Any:
    """aten::index_put(self, indices, values, accumulate=False), of indexed dimensions side by side."""
    array, indices, values, *rest = importer.retrieve_args(node)
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    first, last = given[0][0], given[-1][0]
    if len(given) != last - first + 1 or any(str(index.ty.dtype) == "bool" for _, index in given):
        raise UnsupportedConstruct("index_put with a mask, or with indexed dimensions apart")
    op, emit, shape = the_relax().op, importer.block_builder.emit, shape_of(array)
    together = list(np.broadcast_shapes(*(shape_of(index) for _, index in given)))
    flat, count = None, math.prod(shape[first : last + 1])
    for axis, index in given:  # one index into all of these dimensions
        counted = from_start(importer.block_builder, op.broadcast_to(index, together), shape[axis])
        size = the_relax().const(shape[axis], str(index.ty.dtype))
        flat = counted if flat is None else emit(op.add(op.multiply(flat, size), counted))
    outer, inner = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    values = emit(op.broadcast_to(values, [*shape[:first], *together, *shape[last + 1 :]]))
    made = _written(
        importer,
        (array, [outer, count, inner]),
        (flat, [math.prod(together)]),
        (values, [outer, math.prod(together), inner]),
        "add" if (rest[0] if rest else node.kwargs.get("accumulate", False)) else "update",
    )
    return emit(op.reshape(made, shape))


def _scatter(node: Any, importer: Any, reduction: str) -> Any:
    """aten::scatter_add(self, dim, index, src), and other reductions."""
    array, axis, index, source = importer.retrieve_args(node)[:4]
    op, emit, shape, places = the_relax().op, importer.block_builder.emit, shape_of(array), shape_of(index)
    axis = int(axis) % len(shape)
    if any(n != m for d, (n, m) in enumerate(zip(shape, places, strict=True)) if d != axis):
        raise UnsupportedConstruct(f"{node.target} with fewer indices than elements in another dimension")
    if shape_of(source) != places:
        source = emit(op.strided_slice(source, [axis], [0], [places[axis]]))
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    whole = [outer, places[axis], inner]
    flat = from_start(importer.block_builder, index, shape[axis])
    made = _written(importer, (array, [outer, shape[axis], inner]), (flat, whole), (source, whole), reduction)
    return emit(op.reshape(made, shape))


def _scatter_reduce(node: Any, importer: Any) -> Any:
    """aten::scatter_reduce(self, dim, index, src, reduce, include_self=True)."""
    reduction = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}.get(node.args[4])
    if reduction is None or not node.kwargs.get("include_self", True):
        raise UnsupportedConstruct("scatter_reduce by the mean, or without what was there before")
    return _scatter(node, importer, reduction)


Shaped = tuple[Any, list[int]]
"""An array, and the shape to see it in."""


def _written(importer: Any, array: Shaped, index: Shaped, values: Shaped, reduction: str) -> Any:
    """[outer, n, inner] of `array`, into which values [outer, m, inner] were reduced at places index [m], or
    [outer, m, inner], in the order of m. Places that are not in the array are left out."""
    op, emit = the_relax().op, importer.block_builder.emit
    (_, (outer, extent, inner)), (_, whole), (_, (_, count, _)) = array, index, values
    lanes = _lanes(inner)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        from tvm.script.ir_builder import IRBuilder
        from tvm.script.ir_builder import tirx as T

        old, places, new, out = (T.buffer_proxy(buffer) for buffer in (*ins, *outs))
        reduce = _reductions()[reduction]
        with IRBuilder() as ib:
            with T.parallel(0, outer * (inner // lanes)) as both:
                a, first = both // (inner // lanes), both % (inner // lanes) * lanes
                with T.serial(0, extent) as i, T.vectorized(0, lanes) as lane:
                    out[a, i, first + lane] = old[a, i, first + lane]
                with T.serial(0, count) as e:
                    if len(whole) == 1:  # one place for all of a row
                        place = places[e]
                        inside = T.If(T.And(place >= 0, place < extent))
                        with inside, T.Then(), T.vectorized(0, lanes) as lane:
                            at = a, place, first + lane
                            out[at] = reduce(out[at], new[a, e, first + lane])
                    else:
                        with T.serial(0, lanes) as lane:
                            place = places[a, e, first + lane]
                            with T.If(T.And(place >= 0, place < extent)), T.Then():
                                at = a, place, first + lane
                                out[at] = reduce(out[at], new[a, e, first + lane])
            return ib.get()

    def made(*tensors: Any) -> Any:
        shape, dtype = (outer, extent, inner), str(tensors[0].dtype)
        return import_tvm().te.extern([shape], [*tensors], body, name="scatter", dtype=dtype)

    given = [emit(op.reshape(value, shape)) for value, shape in (array, index, values)]
    return importer.block_builder.emit_te(made, *given, primfunc_name_hint="scatter")


def _embedding_bag(node: Any, importer: Any) -> Any:
    """aten::_embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=-1): the first of its results alone."""
    weight, words, offsets, *others = importer.retrieve_args(node)
    given = dict(enumerate(others, start=3))
    op, emit, const = the_relax().op, importer.block_builder.emit, the_relax().const
    mode, padding, kind = ("sum", "mean", "max")[given.get(4, 0)], given.get(8, -1), str(words.ty.dtype)
    (_, width), (count,), (bags,) = shape_of(weight), shape_of(words), shape_of(offsets)
    begun = _written(  # at every word, the bags that begin there
        importer,
        (op.zeros([count], kind), [1, count, 1]),
        (op.astype(offsets, kind), [bags]),
        (op.ones([bags], kind), [1, bags, 1]),
        "add",
    )
    bag = emit(op.subtract(op.cumsum(op.reshape(begun, [count]), 0), const(1, kind)))
    if padding >= 0:
        bag = emit(op.where(op.equal(words, const(padding, kind)), const(-1, kind), bag))
    bags -= bool(given.get(7, False))
    found = emit(op.take(weight, words, 0))
    if given.get(6) is not None:
        found = emit(op.multiply(found, op.reshape(given[6], [count, 1])))
    dtype = str(weight.ty.dtype)
    start = const(-math.inf if mode == "max" else 0, dtype)
    added = _written(
        importer,
        (op.broadcast_to(start, [bags, width]), [1, bags, width]),
        (bag, [count]),
        (found, [1, count, width]),
        "max" if mode == "max" else "add",
    )
    result = emit(op.reshape(added, [bags, width]))
    if mode == "max":  # of no words it is zero
        result = emit(op.where(op.equal(result, start), const(0, dtype), result))
    if mode == "mean":
        ones = (op.ones([count], dtype), [1, count, 1])
        sizes = _written(importer, (op.zeros([bags], dtype), [1, bags, 1]), (bag, [count]), ones, "add")
        result = emit(op.divide(result, op.maximum(op.reshape(sizes, [bags, 1]), const(1, dtype))))
    return (result,)


def _lanes(inner: int) -> int:
    return max(n for n in range(1, min(inner, _LANES) + 1) if inner % n == 0)


def _reductions() -> Mapping[str, Callable[[Any, Any], Any]]:
    tirx = import_tvm().tirx
    return {
        "update": lambda _, new: new,
        "add": lambda old, new: old + new,
        "mul": lambda old, new: old * new,
        "max": tirx.max,
        "min": tirx.min,
    }


def shape_of(array: Any) -> list[int]:
    """Of an expression of relax, which must be constant."""
    return [int(extent) for extent in array.ty.shape]


def the_relax() -> Any:
    """The module, imported when it is needed."""
    return import_tvm().relax
