"""Operators of torch programs that stay with PyTorch, in the middle of what TVM compiles: those that the
importer of relax lacks, or gives up on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gnnperf.errors import UnsupportedConstruct, first_line
from gnnperf.frontends.tvm.torch_runtime import FUNCTION

Converter = Callable[[Any, Any], Any]
"""A node of torch.fx and relax's importer -> an expression of relax."""


def or_kept(convert: Converter | None, kept: list[str]) -> Converter:
    """A converter that leaves the operator to PyTorch where the given one is missing or fails, and writes its
    name down."""

    def converted(node: Any, importer: Any) -> Any:
        failed = "TVM does not import it"
        if convert is not None:
            try:
                return convert(node, importer)
            except Exception as error:  # the importer raises anything
                failed = first_line(error)
        try:
            return _kept(node, importer, kept)
        except UnsupportedConstruct as reason:
            raise UnsupportedConstruct(
                f"{node.target}: {failed}; it cannot stay with PyTorch: {reason}"
            ) from None

    return converted


def _kept(node: Any, importer: Any, kept: list[str]) -> Any:
    """A call of PyTorch. Raises UnsupportedConstruct for values that TVM does not have."""
    import torch
    from tvm import relax

    tensors: list[Any] = []

    def said(value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            tensors.append(importer.env[value])
            return {"tensor": len(tensors) - 1}
        if isinstance(value, list | tuple):
            return [said(one) for one in value]
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, torch.device | torch.layout | torch.memory_format):
            return None
        raise UnsupportedConstruct(f"{node.target} of {value!r}")

    if not isinstance(node.target, torch._ops.OpOverload):
        raise UnsupportedConstruct(f"{node.target} is no operator of PyTorch's")
    types = _types(node.meta.get("val"))
    named = {name: said(value) for name, value in node.kwargs.items()}
    call = {"operator": str(node.target), "arguments": said(node.args), "named": named}
    kept.append(call["operator"])
    made = relax.op.call_pure_packed(FUNCTION, json.dumps(call), *tensors, ty_args=types)
    return importer.block_builder.emit(made)


def _types(value: Any) -> Any:
    from tvm import relax

    if isinstance(value, tuple | list):
        return relax.TupleType([_types(one) for one in value])
    shape, dtype = (
        list(getattr(value, "shape", ["?"])),
        str(getattr(value, "dtype", "")).removeprefix("torch."),
    )
    if not all(isinstance(extent, int) for extent in shape) or dtype.startswith("complex"):
        raise UnsupportedConstruct("its result has sizes that vary, or complex numbers")
    return relax.TensorType(shape, dtype)
