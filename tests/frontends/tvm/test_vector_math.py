"""Exponentials by polynomials: as exact as they claim, scheduled or not, and what they leave alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.vector_math import needs_vector_math, vector_math
from gnnperf.schedules.traces import program_key

COUNT = 1 << 14
REFERENCES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "exp": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
}
LOGARITHMS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
}


def module_of(name: str, dtype: str = "float32", lanes: int = 1) -> Any:
    """An elementwise function, of which `lanes` elements at a time are computed together."""
    tvm = import_tvm()
    from tvm import te

    given = te.placeholder((COUNT,), dtype)
    result = te.compute((COUNT,), lambda i: getattr(te, name)(given[i]))
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([given, result])}))
    (loop,) = schedule.get_loops(schedule.get_child_blocks(schedule.get_sblock("root"))[0])
    if lanes > 1:
        schedule.vectorize(schedule.split(loop, [None, lanes])[1])
    return schedule.mod


def run(module: Any, x: NDArray[np.float32]) -> NDArray[np.float32]:
    tvm = import_tvm()
    given, result = tvm.runtime.tensor(x), tvm.runtime.tensor(np.empty_like(x))
    tvm.tirx.build(module, host_target(1)).get_function("main")(given, result)
    return np.asarray(result.numpy())


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(("name", "ulps"), [("exp", 1.0), ("sigmoid", 3.0), ("tanh", 6.0), ("erf", 6.0)])
def test_results_are_right_to_a_few_units_in_the_last_place(name: str, ulps: float, lanes: int) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-s, s, COUNT // 4) for s in (1e-3, 1.0, 8.0, 87.0)]).astype(np.float32)
    got = run(vector_math(module_of(name, lanes=lanes)), x)
    wanted = REFERENCES[name](x.astype(np.float64))
    normal = np.abs(wanted) > np.finfo(np.float32).tiny
    error = np.abs(got - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert error[normal].max() <= ulps
    assert np.abs(got - wanted)[~normal].max(initial=0) < 2e-38


@pytest.mark.parametrize("name", REFERENCES)
def test_infinities_and_nan_are_kept(name: str) -> None:
    x = np.zeros(COUNT, np.float32)
    x[:5] = np.nan, np.inf, -np.inf, 1e4, -1e4
    with np.errstate(over="ignore"):
        wanted = REFERENCES[name](x.astype(np.float64))
    assert np.array_equal(
        run(vector_math(module_of(name)), x)[:6], wanted[:6].astype(np.float32), equal_nan=True
    )


def test_the_ends_of_the_range_of_exp() -> None:
    x = np.zeros(COUNT, np.float32)
    x[:4] = 88.72, 88.73, -95.0, -104.0  # the largest, too large, a subnormal, too small
    got = run(vector_math(module_of("exp")), x)
    assert got[0] == pytest.approx(math.exp(np.float32(88.72)), rel=2e-7) and got[1] == math.inf
    assert got[2] == pytest.approx(math.exp(-95.0), abs=2e-45) and got[3] == 0


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(("name", "ulps"), [("log", 1.0), ("log2", 2.0), ("log10", 2.0)])
def test_logarithms(name: str, ulps: float, lanes: int) -> None:
    rng = np.random.default_rng(0)
    x = np.exp2(rng.uniform(-149, 128, COUNT)).astype(np.float32)
    x[: COUNT // 2] = rng.uniform(0.25, 4, COUNT // 2)
    x[:4] = 1, 2**-149, np.finfo(np.float32).max, np.finfo(np.float32).tiny
    got = run(vector_math(module_of(name, lanes=lanes)), x)
    wanted = LOGARITHMS[name](x.astype(np.float64))
    assert got[0] == 0
    error = np.abs(got - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert error[1:].max() <= ulps
    x[:5] = 0, -0.0, -1, np.inf, np.nan
    ends = run(vector_math(module_of(name, lanes=lanes)), x)[:5]
    assert np.array_equal(ends, np.float32([-np.inf, -np.inf, np.nan, np.inf, np.nan]), equal_nan=True)


def powers(exponent: float, dtype: str = "float32") -> Any:
    tvm = import_tvm()
    from tvm import te

    given = te.placeholder((COUNT,), dtype)
    result = te.compute((COUNT,), lambda i: te.power(given[i], tvm.tirx.const(exponent, dtype)))
    return tvm.IRModule({"main": te.create_prim_func([given, result])})


@pytest.mark.parametrize("exponent", [1, 2, 3, 7, 16, -1, -2, -5, 0.5, -0.5])
def test_powers_are_products(exponent: float) -> None:
    x = np.random.default_rng(0).uniform(-4, 4, COUNT).astype(np.float32)
    x = np.abs(x) if abs(exponent) < 1 else x
    x[:3] = np.inf, np.nan, 1
    module = powers(exponent)
    changed = vector_math(module)
    assert "T.pow" not in changed.script()
    got, wanted = run(changed, x), x.astype(np.float64) ** exponent
    normal = np.isfinite(wanted) & (np.abs(wanted) > 1e-30)
    error = np.abs(got[normal] - wanted[normal]) / np.spacing(np.abs(wanted[normal]).astype(np.float32))
    assert error.max() <= max(2, abs(exponent))
    assert np.array_equal(got[:3], wanted[:3].astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("exponent", [0.3, 1.5, 17, -40])
def test_other_powers_are_left_alone(exponent: float) -> None:
    assert not needs_vector_math(powers(exponent))
    assert not needs_vector_math(powers(2.0, "float64"))


def test_other_functions_and_types_are_left_alone() -> None:
    assert needs_vector_math(module_of("exp"))
    for module in (module_of("exp", "float64"), module_of("sqrt"), module_of("sin")):
        assert not needs_vector_math(module)
        assert program_key(vector_math(module)) == program_key(module)


def test_of_an_argument_that_holds_another() -> None:
    tvm = import_tvm()
    from tvm import te

    given = te.placeholder((COUNT,), "float32")
    result = te.compute((COUNT,), lambda i: te.exp(te.tanh(given[i]) + te.exp(given[i])))
    module = tvm.IRModule({"main": te.create_prim_func([given, result])})
    x = np.random.default_rng(1).uniform(-2, 2, COUNT).astype(np.float32)
    assert run(vector_math(module), x) == pytest.approx(np.exp(np.tanh(x) + np.exp(x)), rel=2e-6)
