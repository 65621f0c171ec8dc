"""Operators of torch programs that the importer of relax lacks, makes slow or gets wrong, of what relax has.

What is not here either stays with PyTorch (`torch_kept`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.torch_kept import Converter
from gnnperf.frontends.tvm.torch_scatter import shape_of, the_relax

WHOLE = frozenset(
    "logaddexp count_nonzero heaviside im2col col2im upsample_linear1d upsample_bicubic2d "
    "upsample_trilinear3d".split()
)
"""Operators that are not taken apart: what PyTorch makes of them, relax does not import or compile."""


def converters(known: Mapping[str, Converter]) -> Mapping[str, Converter | None]:
    """By the names that relax's importer gives operators; None of those that it gets wrong. known: those that
    it has itself."""
    return {
        "amax.default": partial(_reduce, "max"),
        "amin.default": partial(_reduce, "min"),
        "prod.dim_int": partial(_reduce, "prod"),
        **{name: partial(_mean, known[name]) for name in ("mean.default", "mean.dim")},
        "max.dim": partial(_with_place, "max"),
        "min.dim": partial(_with_place, "min"),
        "argmax.default": partial(_place, "max"),
        "argmin.default": partial(_place, "min"),
        "mm.default": _product,
        "bmm.default": _product,
        "addmm.default": _product_and_sum,
        "convolution.default": partial(_of_float32, known["convolution.default"]),
        "var_mean.correction": _variance_and_mean,
        "elu.default": _elu,
        "native_group_norm.default": _group_norm,
        "native_layer_norm.default": partial(_layer_norm, known["native_layer_norm.default"]),
        "_native_batch_norm_legit.no_stats": partial(
            _instance_norm, known["_native_batch_norm_legit.no_stats"]
        ),
        "grid_sampler_2d.default": None,
        "index.Tensor": partial(_index, known["index.Tensor"]),
        "max_pool2d_with_indices.default": partial(_first_result, known["max_pool2d_with_indices.default"]),
    }


def _reduce(reduction: str, node: Any, importer: Any) -> Any:
    """(self, dim, keepdim=False)."""
    if node.kwargs.get("dtype") is not None:
        raise UnsupportedConstruct(f"{node.target} in another dtype")
    x, axes, keep = _given(node, importer, [], False)
    axes = [axes] if isinstance(axes, int) else [*axes] or None
    return importer.block_builder.emit(getattr(the_relax().op, reduction)(x, axes, keep))


def _mean(convert: Converter, node: Any, importer: Any) -> Any:
    """(self, dim=None, keepdim=False): as a sum, into which relax fuses what is added up. Of short floats it
    stays what the importer makes of it."""
    x, axes, keep = _given(node, importer, None, False)
    if node.kwargs.get("dtype") is not None or str(x.ty.dtype) not in ("float32", "float64"):
        return convert(node, importer)
    op, emit, shape = the_relax().op, importer.block_builder.emit, shape_of(x)
    axes = [*range(len(shape))] if not axes else [*axes]
    count = the_relax().const(math.prod(shape[axis] for axis in axes), str(x.ty.dtype))
    return emit(op.divide(emit(op.sum(x, axes, keep)), count))


def _place(reduction: str, node: Any, importer: Any) -> Any:
    """(self, dim=None, keepdim=False)."""
    x, axis, keep = _given(node, importer, None, False)
    if axis is None:
        if keep:
            raise UnsupportedConstruct(f"{node.target} of all dimensions, and keep them")
        x, axis = importer.block_builder.emit(the_relax().op.reshape(x, [math.prod(shape_of(x))])), 0
    return _best(reduction, importer, x, axis, keep)[1]


def _with_place(reduction: str, node: Any, importer: Any) -> Any:
    """(self, dim, keepdim=False) -> values, indices."""
    return _best(reduction, importer, *_given(node, importer, None, False))


def _best(reduction: str, importer: Any, x: Any, axis: int, keep: bool) -> tuple[Any, Any]:
    """The largest or smallest values along an axis, and the first places where they are: as two reductions of
    one value each, which have schedules."""
    relax, emit, shape = the_relax(), importer.block_builder.emit, shape_of(x)
    op, axis = relax.op, axis % len(shape)
    best = emit(getattr(op, reduction)(x, [axis], True))
    along = [extent if d == axis else 1 for d, extent in enumerate(shape)]
    places = relax.const(np.arange(shape[axis], dtype="int32").reshape(along))
    worse = (op.less if reduction == "max" else op.greater)(x, best)
    nowhere = relax.const(shape[axis] - 1, "int32")
    place = emit(op.min(emit(op.where(emit(worse), nowhere, places)), [axis], keep))
    value = best if keep else emit(op.squeeze(best, [axis]))
    return value, emit(op.astype(place, "int64"))


def _product(node: Any, importer: Any) -> Any:
    """(self, mat2): the importer takes all products for float32."""
    return _multiplied(importer, *importer.retrieve_args(node))


def _product_and_sum(node: Any, importer: Any) -> Any:
    """(self, mat1, mat2, *, beta=1, alpha=1)."""
    x, a, b = importer.retrieve_args(node)[:3]
    op, emit, const = (
        the_relax().op,
        importer.block_builder.emit,
        partial(the_relax().const, dtype=str(x.ty.dtype)),
    )
    product = _multiplied(importer, a, b)
    if (alpha := node.kwargs.get("alpha", 1)) != 1:
        product = emit(op.multiply(product, const(alpha)))
    if (beta := node.kwargs.get("beta", 1)) != 1:
        x = emit(op.multiply(x, const(beta)))
    return emit(op.add(x, product))


def _multiplied(importer: Any, a: Any, b: Any) -> Any:
    """Sums of short floats are those of float32."""
    op, emit, dtype = the_relax().op, importer.block_builder.emit, str(a.ty.dtype)
    if dtype not in ("float16", "bfloat16"):
        return emit(op.matmul(a, b, dtype))
    return emit(op.astype(emit(op.matmul(a, b, "float32")), dtype))


def _of_float32(convert: Converter, node: Any, importer: Any) -> Any:
    """What the importer takes all operands to be."""
    if str(importer.env[node.args[0]].ty.dtype) != "float32":
        raise UnsupportedConstruct(f"{node.target} of other types than float32")
    return convert(node, importer)


def _variance_and_mean(node: Any, importer: Any) -> Any:
    """(self, dim=None, *, correction=None, keepdim=False)."""
    (x, axes), op, emit = _given(node, importer, None), the_relax().op, importer.block_builder.emit
    keep, correction = node.kwargs.get("keepdim", False), node.kwargs.get("correction")
    axes = [*range(len(shape_of(x)))] if not axes else [*axes]
    count = math.prod(shape_of(x)[axis] for axis in axes)
    bessel = count / max(count - (1 if correction is None else correction), 0.0 if count else 1.0)
    factor = the_relax().const(bessel, str(x.ty.dtype))
    return emit(op.multiply(op.variance(x, axes, keep), factor)), emit(op.mean(x, axes, keep))


def _elu(node: Any, importer: Any) -> Any:
    """(self, alpha=1, scale=1, input_scale=1), of which the importer reads the first two alone."""
    x, alpha, scale, inner = _given(node, importer, 1.0, 1.0, 1.0)
    op, emit, const = (
        the_relax().op,
        importer.block_builder.emit,
        partial(the_relax().const, dtype=str(x.ty.dtype)),
    )
    negative = op.multiply(op.subtract(op.exp(op.multiply(x, const(inner))), const(1.0)), const(alpha))
    return emit(op.multiply(op.where(op.greater(x, const(0.0)), x, negative), const(scale)))


def _group_norm(node: Any, importer: Any) -> Any:
    """(input, weight, bias, N, C, HxW, group, eps), with weight and bias or without: the first result."""
    x, weight, bias, _, channels, _, groups, eps = importer.retrieve_args(node)
    relax, dtype = the_relax(), str(x.ty.dtype)
    if dtype not in _NORMED:
        shape = shape_of(x)
        parts = importer.block_builder.emit(
            relax.op.reshape(x, [shape[0], groups, channels // groups, *shape[2:]])
        )
        found = _normalised(importer, parts, [*range(2, len(shape) + 1)], eps)
        found = importer.block_builder.emit(relax.op.reshape(found, shape))
        return (_scaled(importer, found, weight, bias, [channels] + [1] * (len(shape) - 2), dtype),)
    weight = relax.const(np.ones(channels, dtype)) if weight is None else weight
    bias = relax.const(np.zeros(channels, dtype)) if bias is None else bias
    axes = [*range(2, len(shape_of(x)))]
    return (importer.block_builder.emit(relax.op.nn.group_norm(x, weight, bias, groups, 1, axes, eps)),)


_NORMED = ("float32", "float16")
"""What relax's own norms take."""


def _layer_norm(convert: Converter, node: Any, importer: Any) -> Any:
    """(input, normalized_shape, weight, bias, eps): the first result."""
    x, extents, weight, bias, eps = importer.retrieve_args(node)
    if (dtype := str(x.ty.dtype)) in _NORMED:
        return convert(node, importer)
    found = _normalised(importer, x, [*range(-len(extents), 0)], eps)
    return (_scaled(importer, found, weight, bias, extents, dtype),)


def _instance_norm(convert: Converter, node: Any, importer: Any) -> Any:
    """(input, weight, bias, training, momentum, eps): the first result."""
    x, weight, bias, *_, eps = importer.retrieve_args(node)
    if (dtype := str(x.ty.dtype)) in _NORMED:
        return convert(node, importer)
    shape = shape_of(x)
    found = _normalised(importer, x, [0, *range(2, len(shape))], eps)
    return (_scaled(importer, found, weight, bias, [shape[1]] + [1] * (len(shape) - 2), dtype),)


def _normalised(importer: Any, x: Any, axes: Sequence[int], eps: float) -> Any:
    """With mean 0 and variance 1 along axes. Of bfloat16 in float32, as PyTorch computes it."""
    relax, emit = the_relax(), importer.block_builder.emit
    op, dtype = relax.op, _wide(str(x.ty.dtype))
    x = emit(op.astype(x, dtype))
    centred = emit(op.subtract(x, emit(op.mean(x, axes, True))))
    variance = emit(op.mean(emit(op.multiply(centred, centred)), axes, True))
    return emit(op.divide(centred, emit(op.sqrt(emit(op.add(variance, relax.const(eps, dtype)))))))


def _scaled(importer: Any, x: Any, weight: Any, bias: Any, shape: Sequence[int], dtype: str) -> Any:
    """x times weights plus biases, where there are any, of this shape; in a dtype."""
    op, emit = the_relax().op, importer.block_builder.emit
    for what, given in ((op.multiply, weight), (op.add, bias)):
        if given is not None:
            x = emit(what(x, emit(op.reshape(emit(op.astype(given, _wide(dtype))), [*shape]))))
    return emit(op.astype(x, dtype))


def _wide(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _first_result(convert: Converter, node: Any, importer: Any) -> Any:
    """What the importer makes of an operator of which it knows the first result alone."""
    if any(user.target is not operator.getitem or user.args[1] for user in node.users):
        raise UnsupportedConstruct(f"{node.target}, of which more than the first result is used")
    return convert(node, importer)


def _index(convert: Converter, node: Any, importer: Any) -> Any:
    """What the importer makes of (self, indices): it takes several as indices of the first dimensions."""
    given = [index is not None for index in node.args[1]]
    if sum(given) > 1 and not all(given[: sum(given)]):
        raise UnsupportedConstruct("several indices after a dimension without one")
    return convert(node, importer)


def _given(node: Any, importer: Any, *defaults: Any) -> Sequence[Any]:
    """The first argument, and others by their place or name; defaults of those that are not given, or that
    this overload does not have."""
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    others = zip_longest(names[1 : len(defaults) + 1], defaults)
    return importer.env[node.args[0]], *(given.get(name, default) for name, default in others)
