"""Workloads compute what NumPy computes; the corpus keeps its held-out workloads apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.errors import InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import KINDS, TvmWorkload, read_workloads

CORPUS = Path(__file__).parents[3] / "configs" / "corpus" / "tensor.yaml"
RNG = np.random.default_rng(0)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def windows(x: Any, kernel: int, stride: int, axes: tuple[int, int]) -> Any:
    """The windows of a picture, as two axes at the end."""
    found = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axes)
    step = tuple(slice(None, None, stride if axis in axes else 1) for axis in range(x.ndim))
    return found[step]


def conv_nhwc(x: Any, w: Any, stride: int, padding: int) -> Any:
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    return np.einsum("nyxcab,abcd->nyxd", windows(x, w.shape[0], stride, (1, 2)), w)


def unpack(b: Any) -> Any:
    """[n/16, k/4, 16, 4] -> [n, k]"""
    return b.transpose(0, 2, 1, 3).reshape(b.shape[0] * 16, b.shape[1] * 4)


CASES: list[tuple[str, dict[str, Any], Callable[..., Any]]] = [
    ("matmul", {"m": 5, "n": 7, "k": 6}, lambda a, b: a @ b),
    ("matmul", {"m": 5, "n": 7, "k": 6, "layout": "tt"}, lambda a, b: a.T @ b.T),
    (
        "batch_matmul", {"batch": 2, "m": 3, "n": 4, "k": 5, "layout": "nt"},
        lambda a, b: a @ b.transpose(0, 2, 1),
    ),
    ("dense", {"m": 3, "n": 4, "k": 5}, lambda a, w, bias: np.maximum(a @ w.T + bias, 0)),
    (
        "attention_scores", {"heads": 2, "queries": 3, "keys": 4, "depth": 9},
        lambda q, k: softmax(q @ k.transpose(0, 2, 1) / 3),
    ),
    (
        "attention_values", {"heads": 2, "queries": 3, "keys": 4, "depth": 5},
        lambda p, v: (p @ v).transpose(1, 0, 2),
    ),
    (
        "conv2d", {"h": 7, "w": 6, "ci": 3, "co": 4, "kernel": 3, "stride": 2, "padding": 1},
        lambda x, w: conv_nhwc(x, w, 2, 1),
    ),
    (
        "conv2d", {"h": 7, "w": 6, "ci": 3, "co": 4, "kernel": 3, "padding": 1, "layout": "NCHW"},
        lambda x, w: conv_nhwc(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), 1, 1).transpose(0, 3, 1, 2),
    ),
    (
        "group_conv2d", {"h": 5, "w": 5, "ci": 4, "co": 6, "kernel": 3, "groups": 2, "layout": "NHWC"},
        lambda x, w: np.concatenate(
            [conv_nhwc(x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3], 1, 0) for g in range(2)], -1
        ),
    ),
    (
        "depthwise_conv2d", {"h": 6, "w": 5, "c": 3, "kernel": 3},
        lambda x, w: np.einsum("nyxcab,abc->nyxc", windows(x, 3, 1, (1, 2)), w),
    ),
    (
        "conv1d", {"length": 9, "ci": 2, "co": 3, "kernel": 3, "stride": 2},
        lambda x, w: np.einsum(
            "nxca,acd->nxd", np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2], w
        ),
    ),
    (
        "conv3d", {"d": 4, "h": 4, "w": 5, "ci": 2, "co": 3, "kernel": 2},
        lambda x, w: np.einsum(
            "nzyxcdab,dabce->nzyxe", np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), (1, 2, 3)), w
        ),
    ),
    ("softmax", {"m": 3, "n": 8}, softmax),
    ("softmax", {"m": 3, "n": 8, "axis": 0}, lambda x: softmax(x.T).T),
    (
        "layer_norm", {"m": 3, "n": 8},
        lambda x, g, b: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b,
    ),
    ("rms_norm", {"m": 3, "n": 8}, lambda x, g: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * g),
    ("reduce", {"m": 3, "n": 8, "op": "mean_square", "axis": 0}, lambda x: (x**2).mean(0)),
    ("reduce", {"m": 3, "n": 8, "op": "max", "axis": 1}, lambda x: x.max(1)),
    (
        "pool2d", {"c": 2, "h": 6, "w": 6, "kernel": 2, "stride": 2, "op": "avg"},
        lambda x: windows(x, 2, 2, (2, 3)).mean((-1, -2)),
    ),
    ("global_pool", {"c": 3, "h": 4, "w": 4, "op": "max"}, lambda x: x.max((2, 3), keepdims=True)),
    ("elementwise", {"m": 3, "n": 4, "chain": "silu_mul"}, lambda a, b: a / (1 + np.exp(-a)) * b),
    ("transpose", {"shape": [2, 3, 4], "order": [2, 0, 1]}, lambda x: x.transpose(2, 0, 1)),
    (
        "matmul_int8", {"m": 3, "n": 16, "k": 8},
        lambda a, b: a.astype(np.int32) @ unpack(b).astype(np.int32).T,
    ),
    (
        "conv2d_int8", {"h": 4, "w": 4, "ci": 4, "co": 16, "kernel": 3, "layout": "plain"},
        lambda x, w: conv_nhwc(x.astype(np.int32), w.astype(np.int32).transpose(0, 1, 3, 2), 1, 0),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "params", "expected"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_workloads_compute_what_numpy_computes(
    kind: str, params: dict[str, Any], expected: Callable[..., Any]
) -> None:
    tvm = import_tvm()
    module = TvmWorkload(kind, params).build()
    *inputs, out = module["main"].params
    arrays = []
    for buffer in inputs:
        shape, dtype = tuple(int(extent) for extent in buffer.shape), np.dtype(str(buffer.dtype))
        whole = dtype.kind in "iu"
        arrays.append((RNG.integers(0, 100, shape) if whole else RNG.standard_normal(shape)).astype(dtype))
    result = tvm.runtime.empty([int(extent) for extent in out.shape], str(out.dtype))
    tvm.tirx.build(module, {"kind": "llvm"})["main"](*map(tvm.runtime.tensor, arrays), result)
    np.testing.assert_allclose(result.numpy(), expected(*arrays), rtol=1e-4, atol=1e-4)


def test_the_corpus_covers_what_it_should() -> None:
    _, workloads = read_workloads(CORPUS)
    assert len(workloads) >= 150
    assert {w.kind for w in workloads} == set(KINDS)
    assert len({w.name for w in workloads}) == len(workloads)
    held_out = {w.kind for w in workloads if w.split == "held_out"}
    assert held_out == set(KINDS), "every kind has shapes that models must not see"


def test_held_out_shapes_are_far_from_training_shapes() -> None:
    """None within 10% in all sizes; other parameters (layout, operation) make it another workload."""
    _, workloads = read_workloads(CORPUS)
    training = [w for w in workloads if w.split == "training"]
    for held in (w for w in workloads if w.split == "held_out"):
        for other in (w for w in training if w.kind == held.kind):
            assert not near(held, other), f"{held.name} is near {other.name}"


def near(a: TvmWorkload, b: TvmWorkload) -> bool:
    sizes = [sorted((key, value) for key, value in flat(w.params) if isinstance(value, int)) for w in (a, b)]
    if [key for key, _ in sizes[0]] != [key for key, _ in sizes[1]]:
        return False
    return all(abs(x - y) <= 0.1 * y for (_, x), (_, y) in zip(*sizes, strict=True))


def flat(params: Any) -> Any:
    for key, value in params.items():
        if isinstance(value, list):
            yield from ((f"{key}{n}", item) for n, item in enumerate(value))
        else:
            yield key, value


@pytest.mark.parametrize("kind", ["[matmul]", "matmull", "3", "{a: b}"])
def test_a_kind_that_is_none_is_told(tmp_path: Path, kind: str) -> None:
    (tmp_path / "corpus.yaml").write_text(f"workloads:\n  - {{kind: {kind}, m: 8, n: 8, k: 8}}\n")
    with pytest.raises(InputError, match="workload 1: expected a kind"):
        read_workloads(tmp_path / "corpus.yaml")
