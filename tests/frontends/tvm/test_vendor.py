"""Products and convolutions by libraries: what is recognised, told to the library, and computed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import computed, poisoned, signature, tensors
from gnnperf.errors import InputError, NotApplicable
from gnnperf.frontends.tvm import tasks_of
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.vendor.functions import calls_of, libraries_called, with_calls
from gnnperf.frontends.tvm.vendor.library import (
    ONEDNN,
    OPENBLAS,
    WeightsOrder,
    installed_file,
    libraries_of,
    weights_order,
)
from gnnperf.frontends.tvm.vendor.operations import operations
from gnnperf.frontends.tvm.weights import unpacked, with_constant_weights
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.problem import OUTPUT, random_inputs
from gnnperf.schedules.calls import LibraryCall
from gnnperf.schedules.reading import read_schedule

CORES = 2


def module_of(kind: str, **params: Any) -> Any:
    return TvmWorkload(kind, params).build()


def product(layout: str = "nn", m: int = 40, n: int = 36, k: int = 52) -> Any:
    return module_of("matmul", m=m, n=n, k=k, layout=layout)


def pictures(layout: str = "NHWC", **changed: Any) -> Any:
    sizes = {"batch": 1, "h": 12, "w": 10, "ci": 16, "co": 24, "kernel": 3, "stride": 1, "padding": 1}
    return module_of("conv2d", layout=layout, **{**sizes, **changed})


def te_module(*built: Any) -> Any:
    return tasks_of(list(built), "made")[0].module


def dense(dtype: str = "float32", rows: int = 32) -> Any:
    """A product with a bias and what follows it."""
    from tvm import te, topi

    a, w = te.placeholder((rows, 48), dtype, name="a"), te.placeholder((40, 48), dtype, name="w")
    b = te.placeholder((40,), dtype, name="b")
    return te_module(a, w, b, topi.nn.relu(topi.tanh(topi.nn.dense(a, w, bias=b))))


def dilated() -> Any:
    """Padded more after than before, with a dilated kernel."""
    from tvm import te, topi

    x, w = te.placeholder((2, 8, 15, 14), name="x"), te.placeholder((6, 8, 3, 2), name="w")
    return te_module(x, w, topi.nn.relu(topi.nn.conv2d_nchw(x, w, (2, 1), (1, 0, 2, 1), (2, 3))))


def results(module: Any, kernel: Any) -> np.ndarray:
    *shapes, out = signature(module)
    given = [*tensors(random_inputs(shapes, 3).values()), poisoned(np.empty(*out))]
    return computed(kernel, given)[OUTPUT]


def check(module: Any, call: LibraryCall) -> Any:
    """A call computes what the function does; the module with it."""
    target = host_target(CORES)
    called = with_calls(module, call, CORES)
    expected = results(module, build_kernel(module, target))
    np.testing.assert_allclose(results(module, build_kernel(called, target)), expected, rtol=2e-4, atol=2e-4)
    return called


# --------------------------------------------------------------------------- what is recognised


def test_a_product_is_told_in_words() -> None:
    (found,) = operations(product("nt")["main"])
    assert (found.kind, found.work) == ("product", 40 * 36 * 52)
    # A[40, 52] as it is, B[36, 52] transposed, C[40, 36]; nothing around it
    assert found.texts["m"] == "product float32 N T m 40 36 52 52 52 36 0"
    assert found.along == {"m": (0, 40), "n": (1, 36)}


def test_a_convolution_is_told_with_its_padding() -> None:
    (found,) = operations(pictures(stride=2)["main"])
    # channels last, two dimensions, 1 picture, 16 -> 24 channels, 12 x 10 by 3 x 3 -> 6 x 5, stride 2,
    # dilation 1, padding 1
    assert found.texts["s"] == "convolution l s 2 1 16 24 12 10 3 3 6 5 2 2 1 1 1 1"
    assert (found.padding, found.order) == (0, (3, 2, 0, 1))


@pytest.mark.parametrize(
    "module",
    [
        lambda: module_of("softmax", m=128, n=128, axis=1),
        lambda: product(m=8, n=8, k=8),
        lambda: module_of("reduce", m=512, n=512, op="sum", axis=1),
    ],
    ids=["softmax", "small", "sum"],
)
def test_nothing_is_called_for_what_is_no_product(module: Any) -> None:
    assert calls_of(module()["main"], CORES) == []
    with pytest.raises(NotApplicable):
        with_calls(module(), LibraryCall("onednn", "s"), CORES)


def test_threads_share_what_there_is_enough_of() -> None:
    shares = [
        calls_of(module["main"], CORES)[0].shares
        for module in (
            module_of("batch_matmul", batch=4, m=64, n=96, k=64, layout="nt"),
            product(m=80, n=160, k=100),
            product(m=160, n=80, k=100),
            pictures(batch=2, h=24, w=20),
            pictures(h=24, w=20),
        )
    ]
    assert shares == ["b", "n", "m", "n", "s"]


# --------------------------------------------------------------------------- what is computed


@pytest.mark.parametrize("library", ["onednn", "openblas"])
@pytest.mark.parametrize("shares", ["m", "n"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_products(layout: str, shares: str, library: str) -> None:
    check(product(layout, 41, 37), LibraryCall(library, shares))


@pytest.mark.parametrize("rows", [32, 33])
def test_what_follows_parts_of_different_sizes(rows: int) -> None:
    """It waits for all of them: each needs what another one computes."""
    module = dense(rows=rows)
    for _ in range(5):
        check(module, LibraryCall("onednn", "m"))
    called = with_calls(module, LibraryCall("onednn", "m"), CORES)
    assert hasattr(called["main"].body.block.body, "seq") == (rows % CORES != 0)  # a loop of its own


@pytest.mark.parametrize("shares", ["b", "m", "n"])
def test_batched_products(shares: str) -> None:
    module = module_of("batch_matmul", batch=3, m=20, n=30, k=40, layout="nt")
    check(module, LibraryCall("onednn", shares))


@pytest.mark.parametrize("shares", ["s", "n"])
@pytest.mark.parametrize(
    "made",
    [
        lambda: pictures(),
        lambda: pictures("NCHW", batch=3),
        lambda: pictures("NCHW", stride=2, co=100),
        lambda: pictures(stride=2, kernel=1, padding=0),
        lambda: pictures("NCHW", h=3, padding=2, kernel=5),
        lambda: module_of(
            "conv1d", batch=1, length=31, ci=16, co=16, kernel=3, stride=1, padding=1, layout="NWC"
        ),
        lambda: module_of(
            "conv3d", batch=1, d=4, h=6, w=6, ci=8, co=16, kernel=3, stride=1, padding=1, layout="NCDHW"
        ),
        dilated,
    ],
)
def test_convolutions(made: Any, shares: str) -> None:
    module = made()
    if shares in operations(module["main"])[0].along:
        check(module, LibraryCall("onednn", shares))


def test_what_follows_is_computed_beside_the_part_that_it_needs() -> None:
    from tvm.s_tir import Schedule

    schedule = Schedule(check(dense(), LibraryCall("onednn", "m")))
    last = schedule.get_child_blocks(schedule.get_sblock("root"))[-1]
    first = schedule.get_loops(schedule.get_sblock("gnnperf_onednn_0"))[0]
    assert schedule.get(schedule.get_loops(last)[0]).same_as(schedule.get(first))
    check(dense(rows=33), LibraryCall("onednn", "m"))  # parts that differ


def test_double_precision_is_openblas() -> None:
    module = dense("float64", 64)
    assert libraries_of("float64", False) == [OPENBLAS]
    call = LibraryCall("openblas", "m")
    assert libraries_called(check(module, call)) == [OPENBLAS]
    with pytest.raises(NotApplicable, match="float64"):
        with_calls(module, LibraryCall("onednn", "m"), CORES)


def test_the_type_that_a_library_lacks_is_named() -> None:
    from tvm import te, topi

    a, w = te.placeholder((32, 48), name="a"), te.placeholder((40, 48), name="w")
    v = te.placeholder((40, 40), "float64", name="v")
    module = te_module(a, w, v, topi.nn.dense(topi.cast(topi.nn.dense(a, w), "float64"), v))
    with pytest.raises(NotApplicable, match="onednn does not multiply float64"):
        with_calls(module, LibraryCall("onednn", "m"), CORES)


def test_constant_weights_are_packed_ahead() -> None:
    from tvm import te, topi

    x, w = te.placeholder((1, 6, 6, 16), name="x"), te.placeholder((3, 3, 16, 100), name="w")
    module = with_constant_weights(te_module(x, w, topi.nn.conv2d_nhwc(x, w, 1, 1, 1)))
    called = check(module, LibraryCall("onednn", "s"))
    assert unpacked(called)[1] is not None
    assert libraries_called(called) == [ONEDNN]


def test_the_order_of_weights_pads_whole_blocks() -> None:
    (found,) = operations(pictures("NCHW", co=100)["main"])
    order = weights_order(found.texts["s"], CORES)
    assert order.sizes[0] >= 100 and order.sizes[1] >= 16 and order.sizes[2:] == (3, 3)
    for dimension, size in order.blocks:
        assert order.sizes[dimension] % size == 0
    steps = sorted(order.steps, reverse=True)
    assert isinstance(order, WeightsOrder) and all(a >= b for a, b in pairwise(steps))


def test_libraries_are_where_their_packages_say() -> None:
    assert {Path(installed_file(library)).is_file() for library in (ONEDNN, OPENBLAS)} == {True}


# --------------------------------------------------------------------------- as records keep them


def test_a_call_is_read_as_it_was_written() -> None:
    call = LibraryCall("onednn", "m")
    assert read_schedule("call", call.to_json()) == call
    assert call.describe() == "calls onednn, threads share rows"


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"library":"onednn"}', '{"library":"evil","shares":"m"}', '{"library":[],"shares":{}}'],
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        read_schedule("call", text)
