"""What calls PyTorch from compiled programs. `retrieve --output` writes a copy beside those that need it, so
nothing of gnnperf is imported here."""

from __future__ import annotations

import json
import os
from typing import Any

FUNCTION = "gnnperf.torch_operator"


def register() -> None:
    """Makes FUNCTION known to TVM: an operator of PyTorch with its arguments as JSON, and tensors.

    Where TVM has started no threads before, they do not spin when they have nothing to do: they would hold up
    PyTorch's.
    """
    import tvm

    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")
    tvm.register_global_func(FUNCTION, _run, override=True)


def _run(text: str, *tensors: Any) -> Any:
    import torch
    import tvm

    call = json.loads(text)

    def given(value: Any) -> Any:
        if isinstance(value, list):
            return [given(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "dtype" in value:
            return getattr(torch, value["dtype"])
        return torch.utils.dlpack.from_dlpack(tensors[value["tensor"]])

    function: Any = torch.ops
    for name in call["operator"].split("."):
        function = getattr(function, name)
    with torch.inference_mode():
        named = {name: given(value) for name, value in call["named"].items() if value is not None}
        found = function(*given(call["arguments"]), **named)
    if isinstance(found, tuple | list):
        return [tvm.runtime.from_dlpack(one.contiguous()) for one in found]
    return tvm.runtime.from_dlpack(found.contiguous())
