"""Sums that begin in a block of their own: with it, where that is the same, they are what TVM schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import solved
from gnnperf.frontends.tvm import tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.measure.problem import OUTPUT

tvm = import_tvm()

SIGNATURE = """
@T.prim_func(s_tir=True)
def main(
    A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 12), "float32"),
    D: T.Buffer((8, 12), "float32"), C: T.Buffer((8, 12), "float32"),
):
"""
ZERO = """
    for i, j in T.grid(8, 12):
        with T.sblock("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
"""
OTHER = """
    for i, j in T.grid(8, 12):
        with T.sblock("other"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj]
"""
SUM = """
    for i, j, k in T.grid(8, 12, 16):
        with T.sblock("sum"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
WHOLE = """
    for i, j, k in T.grid(8, 12, 16):
        with T.sblock("sum"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
INSIDE = """
    for i in range(8):
        for j in range(12):
            with T.sblock("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float32(0)
        for j, k in T.grid(12, 16):
            with T.sblock("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
WHOLE_INSIDE = """
    for i in range(8):
        for j, k in T.grid(12, 16):
            with T.sblock("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
AXES = """vi, vj, vk = T.axis.remap("SSR", [i, j, k])"""
BACKWARDS = """vi, vj = T.axis.remap("SS", [i, j]); vk = T.axis.reduce(16, 15 - k)"""
IN_EVERY_STEP = """
    for k in range(16):
        for i, j in T.grid(8, 12):
            with T.sblock("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float32(0)
        for i, j in T.grid(8, 12):
            with T.sblock("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def function(*body: str) -> Any:
    return tvm.script.from_source(SIGNATURE + "".join(body))


def loaded(*body: str) -> Any:
    (task,) = tasks_of(function(*body), "f")
    return task.function


@pytest.mark.parametrize(
    ("apart", "together"),
    [
        ((ZERO, SUM), (WHOLE,)),
        ((ZERO.replace("T.grid(8, 12)", "T.grid(12, 8)").replace("[i, j]", "[j, i]"), SUM), (WHOLE,)),
        ((ZERO, OTHER, SUM, OTHER), (OTHER, WHOLE, OTHER)),
        ((INSIDE,), (WHOLE_INSIDE,)),
        ((ZERO, SUM, SUM), (WHOLE, SUM)),
    ],
)
def test_a_sum_begins_with_what_a_block_of_its_own_writes(
    apart: tuple[str, ...], together: tuple[str, ...]
) -> None:
    tvm.ir.assert_structural_equal(loaded(*apart), loaded(*together))


@pytest.mark.parametrize(
    "body",
    [
        (SUM,),
        (WHOLE,),
        (ZERO.replace("T.float32(0)", "A[vi, vj]"), SUM),
        (ZERO.replace("(8, 12)", "(8, 6)"), SUM),
        (ZERO.replace("(8, 12)", "(8, 6)").replace("C[vi, vj]", "C[vi, vj * 2]"), SUM),
        (ZERO, SUM.replace("(8, 12, 16)", "(8, 6, 16)")),
        (ZERO, SUM.replace(AXES, BACKWARDS)),
        (ZERO, OTHER.replace("A[vi, vj]", "C[vi, vj]"), SUM),
        (ZERO, SUM.replace("* B[vk, vj]", "* C[vi, 0]")),
        (ZERO, SUM.replace("SSR", "SSS")),
        (ZERO, "    for again in range(2):", SUM.replace("\n", "\n    ")),
        (IN_EVERY_STEP,),
    ],
)
def test_what_would_not_be_the_same_is_left(body: tuple[str, ...]) -> None:
    given = function(*body)
    tvm.ir.assert_structural_equal(loaded(*body), given.with_attr("global_symbol", "main"))


def test_such_a_sum_is_computed_and_its_result_is_no_input() -> None:
    (task,) = tasks_of(function(OTHER, ZERO, SUM), "f")
    assert task.objection is None
    problem = solved(task.module, build_kernel(task.module, host_target(1)))
    assert OUTPUT not in problem.inputs
    np.testing.assert_allclose(
        problem.reference[OUTPUT], problem.inputs["x0"] @ problem.inputs["x1"], rtol=1e-4, atol=1e-5
    )
