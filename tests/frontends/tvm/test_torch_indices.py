"""Programs of PyTorch that count from the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.relax_programs import plain_program
from gnnperf.frontends.tvm.target import host_target

FUNCTIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "the last row": lambda x, _: x[:, -1] * 2,
    "rows by constants": lambda x, _: x[:, torch.tensor([-1, 0, -3])],
    "rows by numbers of the input": lambda x, i: x[i],
    "elements by numbers of the input": lambda x, i: x[i, i - 1],
    "rows that are there": lambda x, i: torch.nn.functional.embedding(i.abs(), x[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_indices_count_from_the_end(name: str) -> None:
    class Program(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            return FUNCTIONS[name](x, i)

    tvm = import_tvm()
    x, i = torch.arange(60.0).reshape(3, 4, 5), torch.tensor([0, -1, 2])
    whole = plain_program(torch.export.export(Program(), (x, i)), host_target())
    machine, _ = whole.compiled({}).machine()
    (found,) = machine["main"](tvm.runtime.tensor(x.numpy()), tvm.runtime.tensor(i.numpy()))
    np.testing.assert_array_equal(found.numpy(), FUNCTIONS[name](x, i).numpy())
