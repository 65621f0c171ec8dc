"""Which operator of `kinds` a task is, whatever it is called: what other libraries are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gnnperf.errors import GnnperfError
from gnnperf.frontends.tvm.tasks import TvmTask, uses_of
from gnnperf.frontends.tvm.workloads.pointwise import CHAINS
from gnnperf.frontends.tvm.workloads.workload import TvmWorkload

Shape = tuple[int, ...]
Params = Mapping[str, Any]
Found = Iterator[tuple[str, Params]]

ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "silu", "gelu")
STRIDES, PADDINGS, GROUPS = (1, 2), (0, 1, 2, 3), (2, 4, 8, 16, 32)


def recognised(task: TvmTask) -> TvmWorkload | None:
    """The float32 operator with the task's arguments and the same program graph; None where there is none.
    It has one result, the last argument, which it does not read.

    Numbers inside of an operator (an epsilon, say) are not in its graph: results must be compared.
    """
    if any(str(parameter.dtype) != "float32" for parameter in task.function.params):
        return None
    *uses, last = uses_of(task.function)
    if last.read or any(use.written for use in uses):
        return None
    shapes = [tuple(int(extent) for extent in p.shape) for p in task.function.params]
    tried: set[str] = set()
    for kind, params in _guesses(shapes):
        workload = TvmWorkload(kind, params)
        if workload.name not in tried:
            tried.add(workload.name)
            if _same(workload, task, shapes):
                return workload
    return None


def _same(workload: TvmWorkload, task: TvmTask, shapes: Sequence[Shape]) -> bool:
    try:
        other = TvmTask(task.name, workload.build())
        if [tuple(int(extent) for extent in p.shape) for p in other.function.params] != list(shapes):
            return False
        return other.graph.digest == task.graph.digest
    except GnnperfError:
        return False
    except Exception:  # TVM raises anything, of sizes that an operator cannot have
        return False


def _guesses(shapes: Sequence[Shape]) -> Found:
    """Operators with so many arguments of such ranks."""
    ranks = tuple(len(shape) for shape in shapes)
    for wanted, guess in _GUESSES:
        if ranks == wanted:
            yield from guess(*shapes)


def _products(a: Shape, b: Shape, out: Shape) -> Found:
    for layout, k in (("nn", a[1]), ("nt", a[1]), ("tn", a[0]), ("tt", a[0])):
        yield "matmul", {"m": out[0], "n": out[1], "k": k, "layout": layout}
    yield from _chains(out)


def _chains(out: Shape) -> Found:
    for chain in CHAINS:
        yield "elementwise", {"m": out[0], "n": out[1], "chain": chain}


def _batched(a: Shape, b: Shape, out: Shape) -> Found:
    for layout in ("nn", "nt"):
        yield "batch_matmul", {"batch": a[0], "m": a[1], "n": out[2], "k": a[2], "layout": layout}
    yield "attention_scores", {"heads": a[0], "queries": a[1], "keys": b[1], "depth": a[2]}
    yield "attention_values", {"heads": a[0], "queries": a[1], "keys": a[2], "depth": b[2]}
    for stride, padding in itertools.product(STRIDES, PADDINGS):
        common = {"stride": stride, "padding": padding, "batch": a[0]}
        yield "conv1d", {**common, "length": a[1], "ci": a[2], "co": b[2], "kernel": b[0], "layout": "NWC"}
        yield "conv1d", {**common, "length": a[2], "ci": a[1], "co": b[0], "kernel": b[2], "layout": "NCW"}


def _pictures(a: Shape, b: Shape, out: Shape) -> Found:
    for stride, padding in itertools.product(STRIDES, PADDINGS):
        common = {"stride": stride, "padding": padding, "batch": a[0]}
        first = {**common, "h": a[2], "w": a[3], "ci": a[1]}
        last = {**common, "h": a[1], "w": a[2], "ci": a[3], "co": b[3], "kernel": b[0]}
        yield "conv2d", {**last, "layout": "NHWC"}
        yield "conv2d", {**first, "co": b[0], "kernel": b[2], "layout": "NCHW"}
        yield "conv2d_transpose", {**first, "co": b[1], "kernel": b[2]}
        for groups in GROUPS:
            if a[1] == b[1] * groups:
                yield "group_conv2d", {**first, "co": b[0], "kernel": b[2], "groups": groups}


def _depthwise(a: Shape, b: Shape, out: Shape) -> Found:
    for stride, padding in itertools.product(STRIDES, PADDINGS):
        common = {"stride": stride, "padding": padding, "batch": a[0]}
        yield "depthwise_conv2d", {**common, "h": a[1], "w": a[2], "c": a[3], "kernel": b[0]}
        first = {"h": a[2], "w": a[3], "c": a[1], "kernel": b[2], "layout": "NCHW"}
        yield "depthwise_conv2d", {**common, **first}


def _volumes(a: Shape, b: Shape, out: Shape) -> Found:
    for stride, padding in itertools.product(STRIDES, PADDINGS):
        common = {"stride": stride, "padding": padding, "batch": a[0]}
        sizes = {"d": a[1], "h": a[2], "w": a[3], "ci": a[4], "co": b[4], "kernel": b[0]}
        yield "conv3d", {**common, **sizes, "layout": "NDHWC"}
        sizes = {"d": a[2], "h": a[3], "w": a[4], "ci": a[1], "co": b[0], "kernel": b[2]}
        yield "conv3d", {**common, **sizes, "layout": "NCDHW"}


def _rows(a: Shape, out: Shape) -> Found:
    for axis in (1, 0):
        yield "softmax", {"m": a[0], "n": a[1], "axis": axis}
    yield from _permuted(a, out)


def _reductions(a: Shape, out: Shape) -> Found:
    for op, axis in itertools.product(("sum", "max", "min", "mean_square"), (1, 0)):
        yield "reduce", {"m": a[0], "n": a[1], "op": op, "axis": axis}


def _pools(a: Shape, out: Shape) -> Found:
    yield from _permuted(a, out)
    layouts = {"NCHW": (a[1], a[2], a[3]), "NHWC": (a[3], a[1], a[2])}
    for (layout, (c, h, w)), op in itertools.product(layouts.items(), ("max", "avg")):
        about = {"c": c, "h": h, "w": w, "op": op, "batch": a[0], "layout": layout}
        yield "global_pool", about
        for kernel, stride, padding in itertools.product((2, 3), STRIDES, (0, 1)):
            yield "pool2d", {**about, "kernel": kernel, "stride": stride, "padding": padding}


def _permuted(a: Shape, out: Shape) -> Found:
    for order in itertools.permutations(range(len(a))):
        if order != tuple(range(len(a))) and tuple(a[axis] for axis in order) == out:
            yield "transpose", {"shape": a, "order": order}


def _scaled(a: Shape, b: Shape, out: Shape) -> Found:
    yield "rms_norm", {"m": a[0], "n": a[1]}
    yield from _chains(a)


def _shifted(a: Shape, b: Shape, c: Shape, out: Shape) -> Found:
    yield "layer_norm", {"m": a[0], "n": a[1]}
    yield from _chains(a)


def _layers(a: Shape, b: Shape, c: Shape, out: Shape) -> Found:
    for activation in ACTIVATIONS:
        yield "dense", {"m": a[0], "n": b[0], "k": a[1], "activation": activation}
    yield from _chains(a)


def _groups(a: Shape, b: Shape, c: Shape, out: Shape) -> Found:
    for groups in (1, *GROUPS):
        if a[1] % groups == 0:
            yield "group_norm", {"c": a[1], "h": a[2], "w": a[3], "groups": groups, "batch": a[0]}


_GUESSES: Sequence[tuple[tuple[int, ...], Callable[..., Found]]] = (
    ((2, 2), _rows),
    ((2, 1), _reductions),
    ((3, 3), _permuted),
    ((4, 4), _pools),
    ((2, 2, 2), _products),
    ((2, 1, 2), _scaled),
    ((3, 3, 3), _batched),
    ((4, 4, 4), _pictures),
    ((4, 3, 4), _depthwise),
    ((5, 5, 5), _volumes),
    ((2, 2, 1, 2), _layers),
    ((2, 1, 1, 2), _shifted),
    ((4, 1, 1, 4), _groups),
)
"""By the ranks of the arguments, the result last."""
