"""A PyTorch model as the sequence of operators that it launches, through torch.export."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

from gnnperf.errors import InputError, first_line
from gnnperf.frontends.operators.linear_algebra import Convolution, FusedAttention, MatMul
from gnnperf.frontends.operators.operator import BINARY, Epilogue, Function, Operator
from gnnperf.frontends.operators.pointwise import Elementwise, Embedding
from gnnperf.frontends.operators.rows import LayerNorm, Pooling, Reduction, Softmax
from gnnperf.frontends.operators.spec import no_operator
from gnnperf.frontends.torch_modules import export_module
from gnnperf.frontends.user_files import load_attribute
from gnnperf.graph.vocabulary import PRECISIONS, check_precision, element_bytes

FREE = frozenset((
    *("dropout", "alpha_dropout", "feature_dropout", "lift_fresh_copy", "getitem", "_unsafe_view", "detach"),
    *("alias", "squeeze", "unsqueeze", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"),
))  # fmt: skip
"""Operators that launch nothing, beside views and those that take no tensor."""

QUANTISED = ("_scaled_mm", "_int_mm")
"""Products whose result is wider than what they multiply: units for matrices take the narrow operands."""

_LIKE: Mapping[str, str] = {
    "exp": "exp rsqrt reciprocal sin cos erf",
    "max": "max min maximum minimum fmax fmin clamp clamp_min clamp_max hardtanh relu6 leaky_relu prelu "
    "hardsigmoid hardswish threshold hardshrink softshrink",
    "add": "add where masked_fill eq ne lt gt le ge logical_not logical_and logical_or bitwise_not triu tril "
    "cumsum cumprod logcumsumexp",
    "mul": "mul square batch_norm _native_batch_norm_legit_no_training",
    "copy": "contiguous clone cat stack copy to _to_copy index_select gather roll flip pad constant_pad_nd "
    "repeat reshape flatten zeros_like ones_like full_like index select_scatter slice_scatter scatter "
    "pixel_shuffle pixel_unshuffle channel_shuffle im2col upsample_nearest1d upsample_nearest2d "
    "upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d",
    **{name: name for name in "sub div pow relu gelu silu sigmoid tanh sqrt neg abs log".split()},
}
_POINTWISE = {name: function for function, names in _LIKE.items() for name in names.split()}
"""Operator of PyTorch -> pointwise function that costs the same. Of others that PyTorch says are pointwise,
it is the exponential: most have one."""

_DTYPES: Mapping[str, str] = {
    **{stored: name for name, stored in PRECISIONS.items() if name != "tf32"},
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), "fp8"),
}
"""Dtype of PyTorch -> of operators."""


@dataclass(frozen=True)
class CapturedModel:
    """Operators in the order of their launches.

    unknown: operators of PyTorch that are not known, counted; in their place stands what they read and write.
    left_out: those of which not even that is known.
    """

    name: str
    operators: tuple[Operator, ...]
    unknown: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def fused(self) -> CapturedModel:
        """As a fusing compiler runs it: pointwise operators join the product, convolution, pooling or
        pointwise operator launched right before, when they go over the same elements."""
        kept: list[Operator] = []
        for operator in self.operators:
            joined = _join(kept[-1], operator) if kept else None
            if joined is None:
                kept.append(operator)
            else:
                kept[-1] = joined
        return replace(self, operators=tuple(kept))


def load_model(spec: str) -> CapturedModel:
    """Read `model.pt2`, or `file.py:function` that returns (module, example inputs). Runs code of the file.

    Raises InputError when there is no such model, when it cannot be exported, has sizes that vary, or
    computes in a dtype that is none of PRECISIONS.
    """
    import torch

    path, _, function = spec.partition(":")
    if not Path(path).is_file():
        named = "" if Path(path).suffix else f"; {no_operator(path)}"
        raise InputError(f"no file {path}; give model.pt2, or file.py:function{named}")
    if not path.endswith(".pt2"):
        return capture(export_module(*_made_by(Path(path), function), spec), spec)
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises anything
        raise InputError(f"{spec}: cannot be read: {first_line(error)}") from None
    return capture(program, spec)


def _made_by(path: Path, function: str) -> tuple[Any, Any]:
    if not function:
        raise InputError(f"expected file.py:function, got {path}")
    make = load_attribute(path, function, "kernel", FunctionType)
    try:
        result = make()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the function is the user's
        raise InputError(f"{path}:{function}: cannot be read: {first_line(error)}") from None
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(f"{path}:{function}: expected (module, example inputs), got {type(result).__name__}")
    return result


def capture(program: Any, name: str) -> CapturedModel:
    """The operators of a `torch.export.ExportedProgram`. Raises InputError as `load_model` does."""
    found = _Capture(name)
    found.graph(program.graph)
    return CapturedModel(name, tuple(found.operators), dict(found.unknown), dict(found.left_out))


class _Capture:
    """Collects what the nodes of a graph launch."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.operators: list[Operator] = []
        self.unknown: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def graph(self, graph: Any) -> None:
        for node in graph.nodes:
            if node.op == "call_function":
                self._call(_Call(node, self.model))

    def _call(self, call: _Call) -> None:
        if call.launches_nothing():
            return
        if (build := _BUILD.get(call.name)) is not None:
            self._add(build(call), call.dtype(of_result=call.name not in QUANTISED))
        elif call.is_reduction():
            self._add(_reduction(call), call.dtype(of_result=False))
        elif (function := call.pointwise()) is not None:
            elements: Any = math.prod(call.shape())
            tensors = 2 if function in BINARY and call.tensors() >= 2 else 1  # masks and indices are none
            found = [Elementwise(function, elements, tensors)] if elements else []
            self._add(found, call.dtype())
        elif (inner := call.made_of()) is not None:
            self.graph(inner)
        elif (moved := call.moved()) is not None:
            self.unknown[call.name] += 1
            self._add(*moved)
        else:
            self.left_out[call.name] += 1

    def _add(self, operators: Sequence[Operator], dtype: str) -> None:
        self.operators += [replace(one, dtype=dtype) for one in operators]


class _Call:
    """One node: its operator of PyTorch, shapes of its arguments and result."""

    def __init__(self, node: Any, model: str) -> None:
        self.node, self.model = node, model
        target = node.target
        self.name = str(getattr(target, "_opname", getattr(target, "__name__", target))).rstrip("_")
        self._tags = {tag.name for tag in getattr(target, "tags", ())}

    def launches_nothing(self) -> bool:
        """Whether it is a view, or counts for nothing. What may be a view and is a copy here is none."""
        takes = any(_tensors(n) for n in self.node.all_input_nodes)
        if self.name in FREE or not takes or not _tensors(self.node):
            return True
        if not getattr(self.node.target, "is_view", False):
            return False
        before, after = _tensors(self.node.all_input_nodes[0])[0], _tensors(self.node)[0]
        match self.name:
            case "to":
                return bool(before.dtype == after.dtype)
            case "contiguous":
                return bool(before.stride() == after.stride())
            case "reshape" | "flatten":
                try:
                    return before.view(after.shape) is not None
                except (RuntimeError, ValueError):  # no view of it has this shape
                    return False
        return True

    def is_reduction(self) -> bool:
        return "reduction" in self._tags

    def pointwise(self) -> Function | None:
        """The function of one or two values that costs the same; None of what is not pointwise."""
        found: Any = _POINTWISE.get(self.name, "exp" if "pointwise" in self._tags else None)
        return found

    def made_of(self) -> Any:
        """The graph of the operators that PyTorch runs in place of a composite one, or of the part of a model
        that runs in another mode; None of an operator of its own."""
        parts = [n for n in self.node.all_input_nodes if n.op == "get_attr" and not _tensors(n)]
        if parts and self.name.startswith("wrap_with_"):
            return getattr(self.node.graph.owning_module, parts[0].target).graph
        return _decomposed(self.node)

    def moved(self) -> tuple[list[Operator], str] | None:
        """Reading its largest argument and writing its results, once, in a dtype of as many bytes."""
        results = [t for t in _tensors(self.node) if t.numel()]
        if not results:
            return None
        written = sum(t.numel() for t in results)
        read = max(t.numel() for n in self.node.all_input_nodes for t in _tensors(n))
        size = max(t.element_size() for t in results)
        wide = 2 if size > 8 else 1  # complex numbers of two doubles
        dtype = {1: "int8", 2: "fp16", 4: "fp32"}.get(size, "fp64")
        if read > written:
            return [Reduction("add", written * wide, -(-read // written))], dtype
        return [Elementwise("copy", written * wide)], dtype

    def argument(self, position: int, default: Any = None) -> Any:
        return self.node.args[position] if position < len(self.node.args) else default

    def shape(self, position: int | None = None) -> tuple[int, ...]:
        """Of an argument; of the result without a position."""
        tensors = _tensors(self.node if position is None else self.argument(position))
        shape = tuple(tensors[0].shape) if tensors else ()
        if not all(isinstance(extent, int) for extent in shape):
            raise InputError(f"{self.model}: {self.node.name} has sizes that vary; export it with fixed ones")
        return shape

    def dtype(self, of_result: bool = True) -> str:
        """Of the first argument, or of the result where that is stored in more bytes: a comparison costs what
        it reads. One of PRECISIONS."""
        values = [t for n in (self.node, *self.node.args[:1])[1 - of_result :] for t in _tensors(n)[:1]]
        texts = [str(v.dtype).removeprefix("torch.") for v in values]
        where = f"{self.model}: {self.node.name}"
        names = [check_precision(_DTYPES.get(text, text), where) for text in texts] or ["fp32"]
        return max(reversed(names), key=lambda name: element_bytes(PRECISIONS[name]))

    def tensors(self) -> int:
        """Arguments that are tensors as large as the result."""
        size = math.prod(self.shape())
        nodes = [i for i, a in enumerate(self.node.args) if hasattr(a, "meta")]
        return sum(math.prod(self.shape(i)) == size for i in nodes)


def _tensors(node: Any) -> list[Any]:
    """What a node of a graph holds, without data."""
    value = node.meta.get("val") if hasattr(node, "meta") else None
    return [v for v in (value if isinstance(value, tuple | list) else [value]) if hasattr(v, "dtype")]


def _decomposed(node: Any) -> Any:
    """The graph that PyTorch's own definition of a composite operator runs on such arguments; None where it
    has none, or one that this machinery sees as the operator itself (`upsample_nearest2d`)."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    if not node.target.has_kernel_for_dispatch_key(composite):
        return None
    nodes = node.all_input_nodes

    def run(*values: Any) -> Any:
        held = dict(zip(nodes, values, strict=True))
        arguments, named = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: held[n])
        return node.target(*arguments, **named)

    with torch.no_grad():
        graph = make_fx(run)(*(n.meta["val"] for n in nodes)).graph
    return None if any(inner.target == node.target for inner in graph.nodes) else graph


def _linear(call: _Call) -> list[Operator]:
    x, (n, k) = call.shape(0), call.shape(1)
    bias = call.argument(2) is not None
    return [MatMul(math.prod(x[:-1]), n, k, linear=True, epilogue=("bias",) if bias else ())]


def _addmm(call: _Call) -> list[Operator]:
    (m, k), (_, n) = call.shape(1), call.shape(2)
    return [MatMul(m, n, k, linear=True, epilogue=("bias",))]


def _matmul(call: _Call) -> list[Operator]:
    first, second = call.shape(0), call.shape(1)
    if len(first) < 2 or len(second) < 2:
        return [Reduction("add", max(1, math.prod(call.shape())), first[-1])]
    if len(second) == 2:
        return [MatMul(math.prod(first[:-1]), second[-1], first[-1])]
    batch = math.prod(call.shape()[:-2])
    if first[-2] == second[-1] == 1:  # products of vectors: both are read once
        return [Reduction("add", max(1, batch), 2 * first[-1])]
    return [MatMul(first[-2], second[-1], first[-1], batch=batch)]


def _added_product(call: _Call) -> list[Operator]:
    """baddbmm: batched products, and a tensor that is added to them."""
    (batch, m, k), n = call.shape(1), call.shape(2)[-1]
    return [MatMul(m, n, k, batch=batch, epilogue=("add",))]


def _vector_product(call: _Call) -> list[Operator]:
    """addmv, mv and dot: every row of a matrix is summed."""
    matrix = call.shape(1 if call.name == "addmv" else 0)
    return [Reduction("add", max(1, math.prod(matrix[:-1])), matrix[-1])]


def _attention(call: _Call) -> list[Operator]:
    """Its four steps, as the reference implementation runs them."""
    query, key, value = call.shape(0), call.shape(1), call.shape(2)
    batch, m, n, width = math.prod(query[:-2]), query[-2], key[-2], query[-1]
    steps = FusedAttention(batch, m, n, width).unfused()
    return [*steps[:-1], MatMul(m, value[-1], n, batch=batch)]


def _convolution(call: _Call) -> list[Operator]:
    """conv1d to conv3d, and `convolution`, which has an argument that turns it around."""
    if call.name == "convolution" and call.argument(6):
        return _transposed(call, call.argument(5), call.argument(8))
    x, w, y = _convolved(call)
    axes = len(w) - 2
    stride, dilation = _each(call.argument(3), axes), _each(call.argument(5), axes)
    padding: Any = call.argument(4, 0)
    if isinstance(padding, str):
        wide = padding == "same"
        padding = [wide * d * (k - 1) // 2 for d, k in zip(dilation, w[2:], strict=True)]
    one = Convolution(
        x[0], x[1], y[1], x[2:], w[2:], stride, _each(padding, axes), dilation, groups=x[1] // w[1]
    )
    return _with_bias(one, call, y)


def _convolved(call: _Call) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of pictures, kernels and results; of one picture, those of a batch of one."""
    x, w, y = call.shape(0), call.shape(1), call.shape()
    return (x, w, y) if len(x) == len(w) else ((1, *x), w, (1, *y))


def _turned(call: _Call) -> list[Operator]:
    """conv_transpose1d to conv_transpose3d."""
    return _transposed(call, call.argument(7), call.argument(6, 1))


def _transposed(call: _Call, dilation: Any, groups: int) -> list[Operator]:
    """A transposed convolution as the convolution that computes, at every place, all results between it and
    the next as so many channels (Shi et al., "Is the deconvolution layer the same as a convolutional
    layer?", 2016)."""
    x, w, y = _convolved(call)
    axes = len(w) - 2
    steps, dilation = _each(call.argument(3), axes), _each(dilation, axes)
    kernel = tuple(math.ceil(taps / step) for taps, step in zip(w[2:], steps, strict=True))
    places = [math.ceil(extent / step) for extent, step in zip(y[2:], steps, strict=True)]
    padding = tuple(
        max(0, math.ceil((there + d * (taps - 1) - own) / 2))
        for there, d, taps, own in zip(places, dilation, kernel, x[2:], strict=True)
    )
    channels = y[1] * math.prod(steps)
    one = Convolution(x[0], x[1], channels, x[2:], kernel, (1,) * axes, padding, dilation, groups=groups)
    return _with_bias(one, call, y)


def _with_bias(convolution: Operator, call: _Call, y: Sequence[int]) -> list[Operator]:
    """The bias of a convolution is a launch of its own."""
    return [convolution, *([Elementwise("add", math.prod(y))] if call.argument(2) is not None else [])]


def _each(value: Any, axes: int) -> tuple[int, ...]:
    """One number for each axis, where one may stand for all, and none for ones."""
    value = value if isinstance(value, list | tuple) else [1 if value is None else value]
    return tuple(value) if len(value) == axes else (value[0] if value else 1,) * axes


def _recurrent(call: _Call) -> list[Operator]:
    """LSTM, GRU and plain recurrent layers as libraries of GPUs run them: of each layer and direction one
    product for the inputs of all steps, then a product and a pointwise kernel for every step."""
    x, first = call.shape(0), call.argument(8, False)
    x = x if len(x) == 3 else (1, *x) if first else (x[0], 1, x[1])
    batch, steps = (x[0], x[1]) if first else (x[1], x[0])
    matrices = [tuple(t.shape) for n in call.argument(2) for t in _tensors(n) if t.ndim == 2]
    layers = int(call.argument(4)) * (2 if call.argument(7) else 1)
    each, operators = len(matrices) // layers, list[Operator]()
    for (gates, width), *hidden in zip(*[iter(matrices)] * each, strict=True):
        operators.append(MatMul(steps * batch, gates, width, linear=True))
        step: list[Operator] = [MatMul(batch, n, k, linear=True) for n, k in hidden]
        operators += [*step, Elementwise("sigmoid", batch * gates)] * steps
    return operators


def _rows(call: _Call) -> list[Operator]:
    shape, axis = call.shape(0), call.argument(1, -1)
    return [Softmax(max(1, math.prod(shape) // shape[axis]), shape[axis])]


def _norm(call: _Call) -> list[Operator]:
    shape = call.shape(0)
    columns = math.prod(call.argument(1, shape[-1:]))
    return [LayerNorm(math.prod(shape) // columns, columns)]


def _reduction(call: _Call) -> list[Operator]:
    before, after = math.prod(call.shape(0)), max(1, math.prod(call.shape()))
    return [Reduction("add", after, max(1, before // after))]


def _embedding(call: _Call) -> list[Operator]:
    table, y = call.shape(0), call.shape()
    return [Embedding(math.prod(y[:-1]), table[1], table[0])]


def _bags(call: _Call) -> list[Operator]:
    """Rows that are gathered and summed by bags: fewer results than rows are written, which counts little."""
    table, indices = call.shape(0), call.shape(1)
    return [Embedding(math.prod(indices), table[1], table[0])]


def _pooling(call: _Call) -> list[Operator]:
    """max_pool1d to max_pool3d, and of averages."""
    x, y, axes = call.shape(0), call.shape(), _pooled_axes(call)
    kernel = _each(call.argument(1), axes)
    stride = _each(call.argument(2) or kernel, axes)
    return [Pooling("max", math.prod(x[:-axes]), y[-axes:], kernel, stride)]


def _pooled_axes(call: _Call) -> int:
    """How many, by the name: `max_pool2d_with_indices` has two."""
    return int(call.name.rpartition("pool")[2][0])


def _adaptive(call: _Call) -> list[Operator]:
    x, y, axes = call.shape(0), call.shape(), _pooled_axes(call)
    kernel = tuple(max(1, before // after) for before, after in zip(x[-axes:], y[-axes:], strict=True))
    return [Pooling("add", math.prod(x[:-axes]), y[-axes:], kernel, kernel)]


def _grouped_norm(call: _Call) -> list[Operator]:
    shape = call.shape(0)
    groups = call.argument(1) if call.name == "group_norm" else shape[1]
    rows = shape[0] * groups
    return [LayerNorm(rows, math.prod(shape) // rows)]


_BUILD: Mapping[str, Callable[[_Call], list[Operator]]] = {
    "linear": _linear,
    "addmm": _addmm,
    **dict.fromkeys(("mm", "bmm", "matmul", "_scaled_mm", "_int_mm"), _matmul),
    "baddbmm": _added_product,
    **dict.fromkeys(("addmv", "mv", "dot", "vdot"), _vector_product),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _turned),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _rows),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"), _norm),
    **dict.fromkeys(("group_norm", "instance_norm"), _grouped_norm),
    "nll_loss_forward": _reduction,
    "embedding": _embedding,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bags),
    **dict.fromkeys((f"{kind}_pool{axes}d" for kind in ("max", "avg") for axes in (1, 2, 3)), _pooling),
    **dict.fromkeys((f"max_pool{axes}d_with_indices" for axes in (2, 3)), _pooling),
    **dict.fromkeys(
        (f"adaptive_{kind}_pool{axes}d" for kind in ("max", "avg") for axes in (1, 2, 3)), _adaptive
    ),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}


def _results(operator: Operator) -> int:
    if isinstance(operator, MatMul):
        return operator.batch * operator.m * operator.n
    if isinstance(operator, Convolution):
        return operator.batch * operator.out_channels * math.prod(operator.out_size)
    if isinstance(operator, Pooling):
        return operator.planes * math.prod(operator.out_size)
    return operator.elements if isinstance(operator, Elementwise) else 0


def _join(before: Operator, after: Operator) -> Operator | None:
    if not isinstance(after, Elementwise) or after.epilogue or after.elements != _results(before):
        return None
    if after.dtype != before.dtype:
        return None
    if not isinstance(before, MatMul | Convolution | Pooling | Elementwise):
        return None
    step: Any = "add" if after.tensors == 2 else after.function
    if step not in get_args(Epilogue):
        step = "scale"  # any function of one value: what counts is the memory that is not touched again
    return replace(before, epilogue=(*before.epilogue, step))
