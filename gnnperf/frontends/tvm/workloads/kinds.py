"""The operator kinds by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from gnnperf.frontends.tvm.workloads import convolutions, int8, pointwise, products, rows

KINDS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        builder.__name__: builder
        for builder in (
            products.matmul,
            products.batch_matmul,
            products.dense,
            products.attention_scores,
            products.attention_values,
            convolutions.conv1d,
            convolutions.conv2d,
            convolutions.conv2d_transpose,
            convolutions.conv3d,
            convolutions.depthwise_conv2d,
            convolutions.group_conv2d,
            int8.conv2d_int8,
            int8.matmul_int8,
            pointwise.elementwise,
            pointwise.transpose,
            rows.global_pool,
            rows.group_norm,
            rows.layer_norm,
            rows.pool2d,
            rows.reduce,
            rows.rms_norm,
            rows.softmax,
        )
    }
)
"""Kind -> a function of its parameters that returns a `tvm.tirx.PrimFunc`, not scheduled."""


def prim_func(kind: str, params: Mapping[str, Any]) -> Any:
    """The operator as a `tvm.tirx.PrimFunc` with the symbol `main`, not scheduled."""
    return KINDS[kind](**params).with_attr("global_symbol", "main")
