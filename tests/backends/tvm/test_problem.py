"""Inputs that functions can be run on, and results that nobody computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.bench import TraceBench
from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import example_problem, made_inputs, poisoned, solved
from gnnperf.frontends.tvm import tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.measure.problem import OUTPUT

import_tvm()
from tvm import te, tirx, topi  # noqa: E402


def made(work: Any, *given: Any) -> Any:
    (task,) = tasks_of([*given, work(*given)], "f")
    assert task.objection is None
    return task.module


def test_what_is_used_as_an_index_is_one() -> None:
    x, i = te.placeholder((7, 300), name="x"), te.placeholder((40,), "int32", "i")
    for axis, end in ((0, 7), (1, 300)):
        drawn = made_inputs(made(lambda x, i, axis=axis: topi.take(x, i, axis), x, i), 0)["x1"]
        assert drawn.min() >= 0 and end // 2 < drawn.max() < end
    drawn = made_inputs(made(lambda x, i: topi.add(i, topi.take(i, i)), x, i), 0)["x1"]
    assert drawn.min() >= 0 and drawn.max() < 40
    wide = made_inputs(made(lambda x, i: topi.add(i, i), x, i), 0)["x1"]
    assert wide.min() < -1000 and wide.max() > 1000


def test_what_is_compared_with_a_loop_is_one_of_its_values() -> None:
    def one_hot(i: Any, depth: int = 40) -> Any:
        return topi.one_hot(i, tirx.const(1.0, "float32"), tirx.const(0.0, "float32"), depth, -1, "float32")

    module = made(one_hot, te.placeholder((128,), "int32", "i"))
    problem = solved(module, build_kernel(module, host_target(1)))
    drawn = problem.inputs["x0"]
    assert drawn.min() >= 0 and 20 < drawn.max() < 40
    np.testing.assert_array_equal(problem.reference[OUTPUT].argmax(1), drawn)
    short = made_inputs(made(lambda i: one_hot(i, 300), te.placeholder((128,), "int8", "i")), 0)["x0"]
    assert short.min() >= 0 and short.max() > 64
    for compared in (lambda i, j: i < j, lambda i, j: i == 5):
        work = lambda i, f=compared: te.compute((128, 40), lambda n, j: f(i[n], j).astype("float32"))  # noqa: E731
        wide = made_inputs(made(work, te.placeholder((128,), "int32", "i")), 0)["x0"]
        assert wide.min() < -1000 and wide.max() > 1000


def test_conditions_are_true_or_false() -> None:
    shapes = ("bool", "float32", "float32")
    given = [te.placeholder((64,), dtype, f"x{n}") for n, dtype in enumerate(shapes)]
    module = made(topi.where, *given)
    inputs = made_inputs(module, 0)
    expected = np.where(inputs["x0"], inputs["x1"], inputs["x2"])
    found = solved(module, build_kernel(module, host_target(1))).reference[OUTPUT]
    np.testing.assert_array_equal(found, expected)


def test_products_of_bfloat16_are_solved_and_judged() -> None:
    """Rounded to it term by term they are right to a few last places, and wrong where a sum is short."""
    a, b = te.placeholder((16, 24), "bfloat16", "a"), te.placeholder((24, 32), "bfloat16", "b")
    module = made(topi.nn.matmul, a, b)
    problem = solved(module, build_kernel(module, host_target(1)))
    found = problem.reference[OUTPUT]
    left, right = (array.astype(np.float32) for array in problem.inputs.values())
    assert found.dtype.name == "bfloat16" and np.isnan(poisoned(found).numpy()).all()
    assert problem.verify({OUTPUT: (left @ right).astype(found.dtype)}) is None
    short = (left[:, :20] @ right[:20]).astype(found.dtype)
    assert "elements differ" in str(problem.verify({OUTPUT: short}))


def test_results_of_one_number_are_poisoned_too() -> None:
    module = made(topi.sum, te.placeholder((8, 8), name="x"))
    reference = solved(module, build_kernel(module, host_target(1))).reference[OUTPUT]
    assert reference.shape == () and np.isnan(poisoned(reference).numpy())


@pytest.mark.parametrize(
    ("dtype", "work", "said"),
    [
        ("float8_e4m3fn", topi.nn.relu, "arrays of float8_e4m3fn"),
        ("float32", lambda x: topi.cumsum(x, 1), "inside of one"),
    ],
)
def test_what_cannot_be_tuned_says_why(dtype: str, work: Any, said: str) -> None:
    x = te.placeholder((8, 8), dtype, "x")
    (task,) = tasks_of([x, work(x)], "f")
    assert task.objection is not None and said in task.objection


def test_a_sum_of_logarithms_is_solved_on_positive_inputs() -> None:
    x = te.placeholder((64, 32), name="x")
    module = made(lambda x: topi.sum(topi.log(x), (0, 1), True), x)
    problem = solved(module, build_kernel(module, host_target(1)))
    np.testing.assert_allclose(problem.reference[OUTPUT], np.log(problem.inputs["x0"]).sum(), rtol=1e-4)
    bench = TraceBench(module, host_target(1), BenchLimits(sample_s=0.001))
    (found,) = bench.measure([module])
    assert found.status == "ok"
    signed = made(lambda x: topi.sum(x, 1, True), x)
    assert (solved(signed, build_kernel(signed, host_target(1))).inputs["x0"] < 0).any()


def doubled_and_added() -> Any:
    """x is doubled in place, y is written, z is added to: no two of these in the same way."""
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def main(  # type: ignore[no-untyped-def]
        y: T.Buffer((8, 16), "float32"),
        x: T.Buffer((8, 16), "float32"),
        a: T.Buffer((8, 16), "float32"),
        z: T.Buffer((8,), "float32"),
    ):
        for i, j in T.grid(8, 16):
            with T.sblock("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = a[vi, vj] + x[vi, vj]
        for i, j in T.grid(8, 16):
            with T.sblock("z"):
                vi, vj = T.axis.remap("SR", [i, j])
                z[vi] = z[vi] + a[vi, vj]
        for i, j in T.grid(8, 16):
            with T.sblock("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                x[vi, vj] = x[vi, vj] * T.float32(2)

    return main


def test_several_results_some_of_which_are_read() -> None:
    (task,) = tasks_of(doubled_and_added(), "f")
    assert task.objection is None
    module, target = task.module, host_target(1)
    problem = solved(module, build_kernel(module, target))
    x, a, z = (problem.inputs[name] for name in ("x1", "x2", OUTPUT))
    assert set(problem.reference) == {"x0", "x1", OUTPUT} and set(problem.updated) == {"x1", OUTPUT}
    np.testing.assert_array_equal(problem.reference["x0"], a + x)
    np.testing.assert_array_equal(problem.reference["x1"], 2 * x)
    np.testing.assert_allclose(problem.reference[OUTPUT], z + a.sum(1), rtol=1e-5)
    text = module.script()
    bench = TraceBench(module, target, BenchLimits(sample_s=0.001))
    for right, wrong in (
        ("a[vi, vj] + x", "a[vi, vj] - x"),
        ("float32(2.0)", "float32(3.0)"),
        ("z[vi] +", ""),
    ):
        assert right in text
        other = import_tvm().script.from_source(text.replace(right, wrong))
        # Each begins with the values that everything is called with, whatever ran before.
        assert [one.status for one in bench.measure([module, other, module])] == ["ok", "wrong_result", "ok"]


def test_what_writes_nothing_is_left() -> None:
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def main(x: T.Buffer((8,), "float32")):  # type: ignore[no-untyped-def]
        y = T.sblock_alloc_buffer((8,), "float32")
        for i in range(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[vi]

    (task,) = tasks_of(main, "f")
    assert "no results" in str(task.objection)


def test_a_program_that_rounds_to_short_floats_is_judged_by_these() -> None:
    import torch

    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return (x.bfloat16() @ w.bfloat16()).float()

    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(16, 32, generator=generator), torch.randn(32, 8, generator=generator)
    problem = example_problem(torch.export.export(Mixed(), (x, w)), 32)
    exact = x.double() @ w.double()
    assert problem.verify({"result 0": exact.float().numpy()}) is None
    assert problem.verify({"result 0": (1.5 * exact).float().numpy()}) is not None
