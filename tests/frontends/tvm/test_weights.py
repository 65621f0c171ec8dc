"""Weights that are free of layout: packed inside or ahead, and the function's signature stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import computed, poisoned, signature, tensors
from gnnperf.errors import InputError
from gnnperf.frontends.base import Given
from gnnperf.frontends.tvm import TvmTask, scheduled_nest, tasks_of
from gnnperf.frontends.tvm.program import tvm_program
from gnnperf.frontends.tvm.relax_programs import torch_program
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.weights import has_free_weights, unpacked, with_constant_weights
from gnnperf.measure.problem import OUTPUT, random_inputs
from gnnperf.nests.analysis import accesses


def dense() -> Any:
    from tvm import te, topi

    a, w = te.placeholder((24, 48), name="a"), te.placeholder((40, 48), name="w")
    return [a, w, topi.nn.dense(a, w)]


def twice() -> Any:
    """Two weights, the second of which is used first."""
    from tvm import te

    a, v, w = (
        te.placeholder(shape, name=n) for n, shape in (("a", (8, 16)), ("v", (32, 24)), ("w", (16, 32)))
    )
    k, j = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 32), "j")
    free = {"layout_free_placeholders": [v, w]}
    b = te.compute((8, 32), lambda x, y: te.sum(a[x, k] * w[k, y], axis=k), name="b", attrs=free)
    return [
        a,
        v,
        w,
        te.compute((8, 24), lambda x, y: te.sum(b[x, j] * v[j, y], axis=j), name="c", attrs=free),
    ]


def scheduled(module: Any, count: int = 2) -> list[Any]:
    found = [sample.sch.mod for sample in DesignSpace(module, host_target(2)).sample(count, 3)]
    assert found
    return found


def results(module: Any, kernel: Any, seed: int) -> np.ndarray:
    *shapes, out = signature(module)
    given = [*tensors(random_inputs(shapes, seed).values()), poisoned(np.empty(*out))]
    return computed(kernel, given)[OUTPUT]


@pytest.mark.parametrize("make", [dense, twice])
@pytest.mark.parametrize("constant", [False, True])
def test_schedules_take_what_the_function_takes(make: Any, constant: bool) -> None:
    (task,) = tasks_of(make(), "kernel")
    module = with_constant_weights(task.module) if constant else task.module
    target = host_target(2)
    plain = build_kernel(module, target)
    packs = 0
    for one in scheduled(module):
        kernel = build_kernel(one, target)
        for seed in (0, 1):  # other weights are packed anew
            np.testing.assert_allclose(
                results(module, kernel, seed), results(module, plain, seed), rtol=2e-4, atol=1e-4
            )
        assert [list(p.shape) for p in one["main"].params] == [list(p.shape) for p in module["main"].params]
        packing = unpacked(one)[1]
        assert constant or packing is None
        packs += packing is not None and len(packing.weights)
    assert packs > 0 or not constant


def test_threads_that_compile_do_not_meet() -> None:
    (task,) = tasks_of(dense(), "kernel")
    module = scheduled(with_constant_weights(task.module), 1)[0]
    with ThreadPoolExecutor(8) as pool:
        packings = [packing for _, packing in pool.map(unpacked, [module] * 200)]
    assert {tuple(packing.weights) for packing in packings if packing} == {(1,)} and all(packings)


def test_what_varies_is_packed_in_the_graph_and_what_does_not_is_there_already() -> None:
    (task,) = tasks_of(dense(), "kernel")

    def written(module: Any) -> set[str]:
        nest = scheduled_nest(scheduled(module, 1)[0])
        return {a.load.buffer for node in nest.body for a in accesses(node) if a.is_write}

    assert "w_global" in written(task.module)
    assert "w_global" not in written(with_constant_weights(task.module))


def test_the_user_says_which_weights_they_are() -> None:
    def tasks(kernel: Any, weights: str | None) -> list[TvmTask]:
        return [*tvm_program(kernel, Given(weights=weights)).tasks]

    assert [tasks(dense(), w)[0].constant_weights for w in (None, "varying", "constant")] == [
        False,
        False,
        True,
    ]
    digests = {tasks(dense(), w)[0].graph.digest for w in ("varying", "constant")}
    assert len(digests) == 1
    with pytest.raises(InputError, match="expected varying or constant, got 'none'"):
        tasks(dense(), "none")
    from tvm import te

    a = te.placeholder((8,), name="a")
    with pytest.raises(InputError, match=r"leaves the layout of weights free .* leave it out"):
        tasks([a, te.compute((8,), lambda i: a[i] + 1)], "constant")


@pytest.mark.parametrize(("rows", "packed"), [(8, False), (64, True)])
def test_what_varies_and_is_read_seldom_is_not_packed(rows: int, packed: bool) -> None:
    from tvm import te, topi

    a, w = te.placeholder((rows, 48), name="a"), te.placeholder((40, 48), name="w")
    kernel = [a, w, topi.nn.dense(a, w)]
    for weights, expected in (("varying", packed), ("constant", True)):
        (task,) = tvm_program(kernel, Given(weights=weights)).tasks
        assert has_free_weights(task.function) == expected


@pytest.mark.parametrize(
    ("rows", "right", "packed"),
    [(64, "jk", [1]), (8, "jk", None), (64, "kj", None), (0, "jk", None)],
)
def test_a_transposed_factor_is_packed_where_it_pays(rows: int, right: str, packed: list[int] | None) -> None:
    from tvm import te

    extents = {"j": 40, "k": 48}
    a, b = te.placeholder((rows, 48), name="a"), te.placeholder([extents[c] for c in right], name="b")
    k = te.reduce_axis((0, 48), "k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, k] * b[tuple({"j": j, "k": k}[c] for c in right)], axis=k)

    (task,) = tvm_program([a, b, te.compute((rows, 40), element, name="c")], Given()).tasks
    assert has_free_weights(task.function) == (packed is not None)
    if packed is not None:
        assert [int(place) for place in task.function.attrs["layout_free_buffers"]] == packed
        assert "b_global" in scheduled(task.module, 1)[0].script()


def test_weights_of_torch_programs_are_constant() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (y := self.layer(x)) @ y.mT

    program = torch_program(torch.export.export(Net().eval(), (torch.randn(8, 16),)), "net", host_target(2))
    free = {task.name: has_free_weights(task.function) for task in program.tasks}
    assert set(free.values()) == {True, False}  # of the layer, and of the product of two inputs
    assert all(task.constant_weights == free[task.name] for task in program.tasks)
