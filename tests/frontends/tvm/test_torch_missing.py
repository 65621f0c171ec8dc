"""Operators of PyTorch that the importer of relax lacks or gets wrong: lowered here, or left to PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gnnperf.backends.tvm.problem import example_problem, named_results, tensors
from gnnperf.errors import InputError
from gnnperf.frontends.torch_modules import export_module
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.relax_programs import torch_program
from gnnperf.frontends.tvm.target import host_target

LOWERED: dict[str, Callable[[Tensor], Any]] = {
    "largest": lambda x: x.amax(1),
    "smallest of two dimensions": lambda x: x.amin((0, 2), keepdim=True),
    "products": lambda x: x.prod(1),
    "means": lambda x: (x.mean(), x.mean(1), x.mean((0, 2), keepdim=True)),
    "largest and where": lambda x: x.round().max(1),
    "smallest and where": lambda x: x.round().min(-1, keepdim=True),
    "where the largest is": lambda x: x.round().argmax(1),
    "where the smallest is": lambda x: x.argmin(0, keepdim=True),
    "where the largest of all is": lambda x: x.argmax(),
    "sums of exponentials": lambda x: torch.logsumexp(x, 1),
    "variance and mean": lambda x: torch.var_mean(x, (1, 2)),
    "biased variance and mean": lambda x: torch.var_mean(x, correction=0),
    "scaled exponential units": F.selu,
    "continuous exponential units": lambda x: F.celu(x, 1.5),
    "groups without weights": lambda x: F.group_norm(x, 2),
    "product and sum": lambda x: torch.addmm(x[0], x[1, :, :4], x[2, :4], beta=0.5, alpha=2),
    "pooled": lambda x: F.max_pool2d(x[None], 2),
}
NORMS: dict[str, torch.nn.Module] = {
    "layers": torch.nn.LayerNorm((5, 6)),
    "layers without weights": torch.nn.LayerNorm(6, elementwise_affine=False),
    "groups": torch.nn.GroupNorm(2, 4),
    "groups without weights": torch.nn.GroupNorm(4, 4, affine=False),
    "instances": torch.nn.InstanceNorm2d(4, affine=True),
}
KEPT: dict[str, Callable[[Tensor], Any]] = {
    "lgamma": torch.lgamma,
    "searchsorted": lambda x: torch.searchsorted(torch.linspace(-1, 1, 5), x),
    "cummax": lambda x: x.cummax(1),
    "max_pool2d_with_indices": lambda x: F.max_pool2d(x[None], 2, return_indices=True)[1],
    "index": lambda x: x[:, [0, -1, 2], [1, 1, 0]],
    "index_put": lambda x: x.index_put((x > 0,), torch.tensor(1.0)),
    "grid_sampler_2d": lambda x: F.grid_sample(
        x[None], torch.linspace(-1, 1, 50).reshape(1, 5, 5, 2), align_corners=False
    ),
    "im2col": lambda x: F.unfold(x[None], 2),
    "div": lambda x: (x * 9).long() // 2,
    "_linalg_det": lambda x: torch.linalg.det(x[:, :4, :4]),
    "any": lambda x: (x > 1).any(),
}


class Function(torch.nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def run(function: Callable[[Tensor], Any], x: Tensor) -> list[str]:
    """Compares what TVM and PyTorch compute; names of operators that stayed with PyTorch."""
    tvm = import_tvm()
    program = export_module(Function(lambda x: (function(x), -x)), (x,), "function")
    whole = torch_program(program, "function", host_target())
    machine, weights = whole.compiled({}).machine()
    *found, _ = machine["main"](tvm.runtime.tensor(x.numpy()), *weights)
    wanted = function(x)
    wanted = [wanted] if isinstance(wanted, Tensor) else [*wanted]
    for one, expected in zip(found, wanted, strict=True):
        assert str(one.dtype) == str(expected.dtype).removeprefix("torch.")
        np.testing.assert_allclose(one.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    return [name.split(".")[1] for name in whole.kept]


@pytest.mark.parametrize("name", LOWERED)
def test_lowered_operators(name: str) -> None:
    x = torch.randn(6, 4, 8, generator=torch.Generator().manual_seed(0))
    assert run(LOWERED[name], x) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_products_have_the_type_of_what_they_multiply(dtype: torch.dtype) -> None:
    class Layer(torch.nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            return y @ y.T + torch.bmm(x[None], x.T[None])[0]

    program = export_module(Layer(8, 4).to(dtype), (torch.randn(3, 8).to(dtype),), "layer")
    whole = torch_program(program, "layer", host_target())
    assert not whole.kept
    problem = example_problem(program, 8)
    machine, weights = whole.compiled({}).machine()
    found = machine["main"](*tensors(problem.inputs.values()), *weights)
    assert problem.verify(named_results(found)) is None
    assert problem.reference["result 0"].dtype.name == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_every_type(name: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    norm = copy.deepcopy(NORMS[name])
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    x = torch.randn(3, 4, 5, 6, generator=generator).to(dtype)
    program = export_module(norm.to(dtype), (x + 3,), "norm")
    whole = torch_program(program, "norm", host_target())
    assert not whole.kept
    problem = example_problem(program, 30)
    machine, weights = whole.compiled({}).machine()
    found = machine["main"](*tensors(problem.inputs.values()), *weights)
    assert problem.verify(named_results(found)) is None


def test_convolutions_of_short_floats_stay_with_pytorch() -> None:
    layer = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU()).half()
    program = export_module(layer, (torch.randn(1, 2, 8, 8).half(),), "layer")
    assert torch_program(program, "layer", host_target()).kept == ["aten.convolution.default"]


@pytest.mark.parametrize("name", KEPT)
def test_operators_that_stay_with_pytorch(name: str) -> None:
    x = torch.randn(6, 4, 8, generator=torch.Generator().manual_seed(0))
    assert run(KEPT[name], x) == [name]


def test_a_program_of_nothing_else_is_refused() -> None:
    program = export_module(Function(torch.lgamma), (torch.randn(4),), "gamma")
    with pytest.raises(InputError, match=r"'gamma' stays with PyTorch: .* \(aten\.lgamma\.default\)"):
        torch_program(program, "gamma", host_target())


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: torch.fft.rfft(x).abs(), r"aten\._fft_r2c\.default: .* complex numbers"),
        (lambda x: x[x > 0], r"aten\.index\.Tensor: .* sizes that vary"),
    ],
)
def test_what_neither_can_run_is_named(function: Callable[[Tensor], Any], said: str) -> None:
    program = export_module(Function(function), (torch.randn(4, 8),), "f")
    with pytest.raises(InputError, match=said) as raised:
        torch_program(program, "f", host_target())
    assert "\n" not in str(raised.value)


def test_ties_are_won_by_the_first_as_in_pytorch() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    assert run(lambda x: x.argmax(1), x) == []
    assert run(lambda x: x.min(1), x) == []


def test_a_mean_takes_what_it_adds_up_into_its_loops() -> None:
    program = export_module(Function(lambda x: ((x - 1) ** 2).mean()), (torch.randn(64, 256),), "error")
    whole = torch_program(program, "error", host_target())
    assert sorted(task.name for task in whole.tasks) == ["error_divide", "error_fused_subtract_power_sum"]


def test_where_the_largest_is_takes_reductions_that_have_schedules() -> None:
    program = export_module(Function(lambda x: x.argmax(1)), (torch.randn(64, 256),), "best")
    whole = torch_program(program, "best", host_target())
    assert sum("max" in task.name or "min" in task.name for task in whole.tasks) == 2
    assert all(task.objection is None for task in whole.tasks)


def test_numbers_among_the_inputs_are_constants() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: Tensor, n: int, bias: Tensor | None) -> Tensor:
            return x * n if bias is None else x * n + bias

    program = export_module(Scaled(), (x := torch.randn(4, 8), 3, None), "scaled")
    assert program.example_inputs == ((x,), {})
    machine, _ = torch_program(program, "scaled", host_target()).compiled({}).machine()
    (found,) = machine["main"](*tensors([x.numpy()]))
    np.testing.assert_allclose(found.numpy(), x.numpy() * 3, rtol=1e-6)
