"""Schedules that MetaSchedule's own rules lack: sums of columns, and of whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnnperf.frontends.tvm import tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target

tvm = import_tvm()
from tvm import te, topi  # noqa: E402


def summed(shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    x = te.placeholder(shape, name="x")
    (task,) = tasks_of([x, topi.sum(topi.multiply(x, x), axes)], "sums")
    return task.module


def traces(module: Any) -> list[str]:
    return [str(design.trace) for design in DesignSpace(module, host_target(2)).designs]


def test_sums_of_columns_have_tiles_and_sums_of_rows_as_before() -> None:
    tiles = [trace.count("sample_perfect_tile") for trace in traces(summed((8, 64, 128), (1,)))]
    assert max(tiles) >= 3
    assert max(trace.count("sample_perfect_tile") for trace in traces(summed((8, 64, 128), (2,)))) < 3


@pytest.mark.parametrize(("shape", "split"), [((64, 128), True), ((4, 16, 128), True), ((8, 8), False)])
def test_a_sum_of_all_is_split_among_threads_and_lanes(shape: tuple[int, ...], split: bool) -> None:
    found = [trace.count("rfactor") for trace in traces(summed(shape, tuple(range(len(shape)))))]
    assert (2 in found) == split


@pytest.mark.parametrize(("shape", "axes"), [((8, 64, 128), (1,)), ((64, 128), (0, 1)), ((3, 1365), (0, 1))])
def test_schedules_compute_what_the_function_does(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    module, x = summed(shape, axes), np.random.default_rng(0).standard_normal(shape, np.float32)
    wanted = (x.astype(np.float64) ** 2).sum(axes)
    for sample in DesignSpace(module, host_target(2)).sample(8, 0):
        result = tvm.runtime.tensor(np.empty(wanted.shape, np.float32))
        tvm.tirx.build(sample.sch.mod, host_target(2)).get_function("main")(tvm.runtime.tensor(x), result)
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4)
