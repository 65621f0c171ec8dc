"""Operators are known by what they do, not by their names."""

from __future__ import annotations

from typing import Any

import pytest

from gnnperf.frontends.tvm import TvmTask, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.frontends.tvm.workloads.recognise import recognised

import_tvm()
from frontends.tvm import functions  # noqa: E402
from tvm import te  # noqa: E402

WORKLOADS = [
    TvmWorkload("matmul", {"m": 12, "n": 20, "k": 8, "layout": "tn"}),
    TvmWorkload("batch_matmul", {"batch": 3, "m": 12, "n": 20, "k": 8, "layout": "nt"}),
    TvmWorkload("attention_scores", {"heads": 3, "queries": 12, "keys": 20, "depth": 8}),
    TvmWorkload("attention_values", {"heads": 3, "queries": 12, "keys": 20, "depth": 8}),
    TvmWorkload("dense", {"m": 12, "n": 20, "k": 8, "activation": "tanh"}),
    TvmWorkload("conv1d", {"length": 18, "ci": 4, "co": 6, "kernel": 3, "stride": 2, "padding": 1}),
    TvmWorkload("conv2d", {"h": 14, "w": 12, "ci": 4, "co": 6, "kernel": 3, "padding": 1, "layout": "NCHW"}),
    TvmWorkload(
        "conv2d_transpose", {"h": 7, "w": 6, "ci": 4, "co": 6, "kernel": 3, "stride": 2, "padding": 1}
    ),
    TvmWorkload("group_conv2d", {"h": 9, "w": 9, "ci": 8, "co": 8, "kernel": 3, "groups": 4}),
    TvmWorkload("depthwise_conv2d", {"h": 14, "w": 12, "c": 6, "kernel": 3, "stride": 2, "padding": 1}),
    TvmWorkload("conv3d", {"d": 6, "h": 7, "w": 8, "ci": 3, "co": 5, "kernel": 3}),
    TvmWorkload("softmax", {"m": 12, "n": 20, "axis": 0}),
    TvmWorkload("reduce", {"m": 12, "n": 20, "op": "max", "axis": 1}),
    TvmWorkload("layer_norm", {"m": 12, "n": 20}),
    TvmWorkload("rms_norm", {"m": 12, "n": 20}),
    TvmWorkload("group_norm", {"c": 8, "h": 5, "w": 6, "groups": 4}),
    TvmWorkload("pool2d", {"c": 6, "h": 12, "w": 14, "kernel": 3, "stride": 2, "op": "max", "padding": 1}),
    TvmWorkload("global_pool", {"c": 6, "h": 12, "w": 14, "op": "avg", "layout": "NHWC"}),
    TvmWorkload("elementwise", {"m": 12, "n": 20, "chain": "residual"}),
    TvmWorkload("transpose", {"shape": (4, 6, 8), "order": (2, 0, 1)}),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.kind)
def test_every_kind_is_recognised(workload: TvmWorkload) -> None:
    found = recognised(TvmTask("f", workload.build()))
    assert found is not None and found.kind == workload.kind
    assert dict(workload.params).items() <= found.params.items()


def test_names_and_the_frontend_do_not_matter() -> None:
    (task,) = tasks_of(functions.matmul(names="XYZuvw"), "another")
    found = recognised(task)
    assert found is not None and (found.kind, found.params["layout"]) == ("matmul", "nn")


def something(dtype: str = "float32") -> Any:
    a, b = (te.placeholder((12, 20), dtype, name) for name in "AB")
    return [a, b, te.compute((12, 20), lambda i, j: a[i, j] * b[i, j] - b[i, 19 - j], "C")]


def test_nothing_is_made_up() -> None:
    (task,) = tasks_of(something(), "f")
    assert recognised(task) is None
    a = te.placeholder((12, 20), "float64", "A")
    r = te.reduce_axis((0, 20), "r")
    (wide,) = tasks_of([a, te.compute((12,), lambda i: te.sum(a[i, r], r), "s")], "f")
    assert recognised(wide) is None
