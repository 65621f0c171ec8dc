"""What nests of TVM functions compute, scheduled or not, element by element: the same as NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from frontends.interpret import Interpreter
from helpers.tvm_units import units_of

from gnnperf.frontends.tvm import scheduled_nest, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.spaces import DesignSpace, plain_generator
from gnnperf.frontends.tvm.target import host_target
from gnnperf.nests import LoopNest

tvm = import_tvm()
from frontends.tvm import functions, test_intrinsics  # noqa: E402
from schedules.traces import test_transfer  # noqa: E402


def product(a: Any, b: Any) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


def packed_product(a: Any, b: Any) -> Any:
    columns, rows, n, k = b.shape
    plain = b.transpose(1, 3, 0, 2).reshape(rows * k, columns * n)
    return a.astype(np.int32) @ plain.astype(np.int32)


def chain(a: Any, b: Any, bias: Any) -> Any:
    return np.maximum(a @ b.T + bias, 0)


def gathered(table: Any, index: Any) -> Any:
    return table[index]


def bits_apart(a: Any, b: Any) -> Any:
    differ = np.ascontiguousarray(a[:, None] ^ b[None])
    return np.unpackbits(differ.view(np.uint8), axis=-1).sum(-1)


CASES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "matmul": (functions.matmul(12, 10, 8), product),
    "conv2d": (functions.conv2d(5, 3, 4, padding=1), test_transfer.convolved),
    "softmax": (functions.softmax(5, 12), test_transfer.normalised),
    "dense_chain": (functions.dense_chain(6, 5, 8), chain),
    "batched": (test_transfer.batched(2, 6, 4, 5), lambda a, b: np.einsum("nmk,npk->nmp", a, b)),
    "packed": (functions.packed(4, 32, 8), packed_product),
    "gather": (functions.gather(), gathered),
    **{f"bits_{t}": (functions.distances(t), bits_apart) for t in ("int8", "int32", "uint32")},
    "finite": (functions.finite_or_zero(), np.nan_to_num),
    "argmax": (tvm.te.create_prim_func(functions.argmax()), lambda a: a.argmax(1)),
}


def arguments(function: Any) -> dict[str, Any]:
    """Values by the names that the nests have; the last is the result."""
    rng = np.random.default_rng(0)
    found = {}
    for parameter in function.params:
        shape, dtype = [int(s) for s in parameter.shape], np.dtype(str(parameter.dtype))
        values = rng.integers(-3, 4, shape) if dtype.kind == "i" else rng.integers(0, 5, shape)
        if str(parameter.name) == "index":
            values = rng.integers(0, 64, shape)
        found[str(parameter.name)] = (rng.random(shape) - 0.5 if dtype.kind == "f" else values).astype(dtype)
    return found


def computed(nests: Iterable[LoopNest], function: Any) -> Any:
    """The result after the nests have run one after the other."""
    memory = arguments(function)
    result = list(memory)[-1]
    memory[result][...] = 77
    for nest in nests:
        for name, buffer in nest.buffers.items():
            if not buffer.transient and name not in memory:  # from one nest to the next
                memory[name] = np.full(buffer.shape, 77, buffer.dtype)
        Interpreter(nest, memory).run()
    return memory[result]


def expected(function: Any, reference: Callable[..., Any]) -> Any:
    *given, _ = arguments(function).values()
    return reference(*given)


def agree(one: Any, two: Any, tolerance: float = 1e-4) -> bool:
    return bool(np.allclose(np.asarray(one, np.float64), two, rtol=tolerance, atol=tolerance))


@pytest.mark.parametrize("name", CASES)
def test_units_compute_what_the_function_computes(name: str) -> None:
    thing, reference = CASES[name]
    (task,) = tasks_of(thing, name)
    assert agree(computed(units_of(task), task.function), expected(task.function, reference))
    assert agree(computed([task.nest], task.function), expected(task.function, reference))


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("gather", "packed")])
def test_scheduled_nests_compute_what_the_function_computes(name: str) -> None:
    thing, reference = CASES[name]
    (task,) = tasks_of(thing, name)
    for sample in DesignSpace(task.module, host_target(2), plain_generator()).sample(3, 1):
        found = computed([scheduled_nest(sample.sch.mod)], task.function)
        assert agree(found, expected(task.function, reference))


def test_tensorized_nests_compute_what_the_function_computes() -> None:
    function = functions.packed(4, 32, 8)
    nest = scheduled_nest(test_intrinsics.vnni(function).mod)
    assert agree(computed([nest], function), expected(function, packed_product))
