"""A PyTorch model as the sequence of operators that it launches, through torch.export."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from gnnperf.errors import InputError
from gnnperf.frontends.operators.linear_algebra import Convolution, FusedAttention, MatMul
from gnnperf.frontends.operators.operator import Epilogue, Operator
from gnnperf.frontends.operators.pointwise import Elementwise, Embedding
from gnnperf.frontends.operators.rows import LayerNorm, Pooling, Reduction, Softmax
from gnnperf.graph.vocabulary import PRECISIONS, check_precision, element_bytes

FREE = frozenset(
    (
        *"view reshape _unsafe_view permute transpose t expand slice select unsqueeze squeeze detach".split(),
        *"dropout getitem flatten unflatten alias split chunk unbind arange full zeros ones movedim".split(),
        *"scalar_tensor lift_fresh_copy _assert_tensor_metadata sym_size size identity numpy_T".split(),
    )
)
"""Operators that launch nothing, or nothing that counts."""

_LIKE: Mapping[str, str] = {
    "exp": "exp rsqrt reciprocal sin cos erf",
    "max": "maximum minimum clamp hardtanh relu6 leaky_relu",
    "add": "add where masked_fill eq ne lt gt le ge logical_not triu tril",
    "mul": "mul batch_norm _native_batch_norm_legit_no_training",
    "copy": "contiguous clone cat stack copy to _to_copy index_select gather roll pad constant_pad_nd repeat",
    **{name: name for name in "sub div pow relu gelu silu sigmoid tanh sqrt neg abs log".split()},
}
_POINTWISE = {name: function for function, names in _LIKE.items() for name in names.split()}
"""Operator of PyTorch -> pointwise function that costs the same."""

_DTYPES: Mapping[str, str] = {
    **{stored: name for name, stored in PRECISIONS.items() if name != "tf32"},
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), "fp8"),
}
"""Dtype of PyTorch -> of operators."""


@dataclass(frozen=True)
class CapturedModel:
    """Operators in the order of their launches. left_out: those of PyTorch that are not known, counted."""

    name: str
    operators: tuple[Operator, ...]
    left_out: Mapping[str, int]

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
        raise InputError(f"no file {path}; give model.pt2, or file.py:function")
    try:
        if path.endswith(".pt2"):
            program = torch.export.load(path)
        else:
            module, inputs = _call(Path(path), function)
            program = torch.export.export(module.eval(), tuple(inputs))
    except InputError:
        raise
    except Exception as error:  # torch.export raises whatever the model's code does
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{spec}: cannot be exported: {reason}") from None
    return capture(program, spec)


def _call(path: Path, function: str) -> tuple[Any, Any]:
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None or not function:
        raise InputError(f"expected file.py:function, got {path}{':' + function if function else ''}")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    if not callable(made := getattr(module, function, None)):
        raise InputError(f"{path} has no function {function!r}")
    result = made()
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(f"{path}:{function}: expected (module, example inputs), got {type(result).__name__}")
    return result


def capture(program: Any, name: str) -> CapturedModel:
    """The operators of a `torch.export.ExportedProgram`. Raises InputError as `load_model` does."""
    operators: list[Operator] = []
    left_out: Counter[str] = Counter()
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        target = getattr(node.target, "__name__", str(node.target)).partition(".")[0].rstrip("_")
        if target in FREE:
            continue
        call = _Call(node, name)
        found = _operators(target, call)
        if found is None:
            left_out[target] += 1
        else:
            operators += [replace(one, dtype=call.dtype()) for one in found]
    return CapturedModel(name, tuple(operators), dict(left_out))


class _Call:
    """One node: shapes of its arguments and result."""

    def __init__(self, node: Any, model: str) -> None:
        self.node, self.model = node, model

    def argument(self, position: int, default: Any = None) -> Any:
        return self.node.args[position] if position < len(self.node.args) else default

    def shape(self, position: int | None = None) -> tuple[int, ...]:
        """Of an argument; of the result without a position."""
        node = self.node if position is None else self.argument(position)
        value = node.meta["val"] if hasattr(node, "meta") else None
        value = value[0] if isinstance(value, tuple | list) else value
        shape = tuple(getattr(value, "shape", ()))
        if not all(isinstance(extent, int) for extent in shape):
            raise InputError(f"{self.model}: {self.node.name} has sizes that vary; export it with fixed ones")
        return shape

    def dtype(self) -> str:
        """Of the first argument, or of the result where that is stored in more bytes: a comparison costs what
        it reads. One of PRECISIONS."""
        values = [n.meta.get("val") for n in (self.node, *self.node.args[:1]) if hasattr(n, "meta")]
        values = [value[0] if isinstance(value, tuple | list) else value for value in values]
        texts = [str(v.dtype).removeprefix("torch.") for v in values if hasattr(v, "dtype")]
        where = f"{self.model}: {self.node.name}"
        names = [check_precision(_DTYPES.get(text, text), where) for text in texts] or ["fp32"]
        return max(reversed(names), key=lambda name: element_bytes(PRECISIONS[name]))

    def tensors(self) -> int:
        """Arguments that are tensors as large as the result."""
        size = math.prod(self.shape())
        nodes = [i for i, a in enumerate(self.node.args) if hasattr(a, "meta")]
        return sum(math.prod(self.shape(i)) == size for i in nodes)


def _operators(target: str, call: _Call) -> list[Operator] | None:
    """What one operator of PyTorch launches; None where it is not known."""
    if target in _POINTWISE:
        elements = math.prod(call.shape())
        function: Any = _POINTWISE[target]
        return [Elementwise(function, elements, 2 if call.tensors() >= 2 else 1)] if elements else []
    build = _BUILD.get(target)
    return None if build is None else build(call)


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
        k = first[-1]
        return [Reduction("add", max(1, math.prod(first[:-1]) * math.prod(second[:-2])), k)]
    if len(second) == 2:
        return [MatMul(math.prod(first[:-1]), second[-1], first[-1])]
    batch = math.prod(call.shape()[:-2])
    return [MatMul(first[-2], second[-1], first[-1], batch=batch)]


def _attention(call: _Call) -> list[Operator]:
    """Its four steps, as the reference implementation runs them."""
    query, key, value = call.shape(0), call.shape(1), call.shape(2)
    batch, m, n, width = math.prod(query[:-2]), query[-2], key[-2], query[-1]
    steps = FusedAttention(batch, m, n, width).unfused()
    return [*steps[:-1], MatMul(m, value[-1], n, batch=batch)]


def _convolution(call: _Call) -> list[Operator]:
    x, w, y = call.shape(0), call.shape(1), call.shape()
    if len(x) != 4:
        raise InputError(f"{call.model}: {call.node.name}: expected a 2D convolution, got {len(x) - 2}D")
    stride, padding = _first(call.argument(3), 1), call.argument(4, 0)
    padding = _first(padding, 0) if not isinstance(padding, str) else (w[-1] - 1) // 2
    bias: Any = ("bias",) if call.argument(2) is not None else ()
    groups = x[1] // w[1]
    operator = Convolution(x[0], x[1], y[1], x[2], x[3], w[-1], stride, padding, groups, ())
    return [operator, Elementwise("add", math.prod(y))] if bias else [operator]


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


def _pooling(call: _Call) -> list[Operator]:
    y = call.shape()
    kernel = _first(call.argument(1), 2)
    return [Pooling("max", math.prod(y[:-2]), y[-2], y[-1], kernel, _first(call.argument(2), kernel))]


def _adaptive(call: _Call) -> list[Operator]:
    x, y = call.shape(0), call.shape()
    kernel = max(1, x[-1] // y[-1])
    return [Pooling("add", math.prod(y[:-2]), y[-2], y[-1], kernel, kernel)]


def _first(value: Any, default: int) -> int:
    value = value[0] if isinstance(value, list | tuple) and value else value
    return value if isinstance(value, int) else default


_BUILD: Mapping[str, Callable[[_Call], list[Operator]]] = {
    "linear": _linear,
    "addmm": _addmm,
    **dict.fromkeys(("mm", "bmm", "matmul", "_scaled_mm", "_int_mm"), _matmul),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("conv2d", "convolution"), _convolution),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _rows),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm"), _norm),
    **dict.fromkeys(("sum", "mean", "amax", "amin", "max", "min", "prod", "var", "cumsum"), _reduction),
    "embedding": _embedding,
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), _pooling),
    "adaptive_avg_pool2d": _adaptive,
}


def _results(operator: Operator) -> int:
    if isinstance(operator, MatMul):
        return operator.batch * operator.m * operator.n
    if isinstance(operator, Convolution):
        return operator.batch * operator.out_channels * operator.out_height * operator.out_width
    if isinstance(operator, Pooling):
        return operator.planes * operator.out_height * operator.out_width
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
