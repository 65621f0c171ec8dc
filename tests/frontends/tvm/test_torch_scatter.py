"""Programs of PyTorch that write where indices say."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.relax_programs import plain_program, torch_program
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.weights import marked_blocks, unpacked

INDICES = torch.tensor([0, -1, 2, 0, 0, 3, -2])
OFFSETS = torch.tensor([0, 3, 3, 6])
FUNCTIONS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "rows added, some of them twice": lambda x, v, i: x.index_add(0, i % 4, v),
    "columns added": lambda x, v, i: x.index_add(1, i % 5, v[:4].repeat(1, 2)[:, :7]),
    "numbers counted": lambda x, v, i: torch.zeros(4).index_add(0, i % 4, torch.ones(7)),
    "rows put": lambda x, v, i: x.index_put((i[:3],), v[:3]),
    "one value put": lambda x, v, i: x.index_put((i[:3],), torch.tensor(7.0)),
    "elements added": lambda x, v, i: x.index_put((i, i - 1), v[:, 0], accumulate=True),
    "elements of a table added": lambda x, v, i: x.index_put((i[:3, None], i[None, 2:4]), v[:3, :2], True),
    "inner dimensions": lambda x, v, i: torch.zeros(2, 4, 5, 3).index_put(
        (torch.zeros(7, dtype=torch.int64), i), v[:, :, None].expand(7, 5, 3), True
    ),
    "added element by element": lambda x, v, i: x.scatter_add(
        0, (i % 4)[:, None].expand(7, 5) * torch.tensor([1, 0, 1, 0, 1]), v
    ),
    "the largest": lambda x, v, i: x.scatter_reduce(0, (i % 4)[:, None].expand(7, 5), v, "amax"),
    "products": lambda x, v, i: x.scatter_reduce(0, (i % 4)[:, None].expand(7, 5), v, "prod"),
    "sums of bags": lambda x, v, i: F.embedding_bag(i % 4, x, OFFSETS, mode="sum"),
    "means of bags": lambda x, v, i: F.embedding_bag(i % 4, x, OFFSETS, mode="mean"),
    "the largest of bags": lambda x, v, i: F.embedding_bag(i % 4, x, OFFSETS, mode="max"),
    "weighted bags": lambda x, v, i: F.embedding_bag(
        i % 4, x, OFFSETS, mode="sum", per_sample_weights=v[:, 1]
    ),
    "bags up to the last offset": lambda x, v, i: F.embedding_bag(
        i % 4, x, torch.tensor([0, 3, 3, 7]), mode="mean", include_last_offset=True
    ),
    "bags with padding": lambda x, v, i: F.embedding_bag(i % 4, x, OFFSETS, mode="mean", padding_idx=0),
    "bags of one length": lambda x, v, i: F.embedding_bag((i[:6] % 4).view(2, 3), x, mode="mean"),
}


def exported(
    function: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> tuple[torch.export.ExportedProgram, list[Tensor]]:
    class Program(torch.nn.Module):
        def forward(self, x: Tensor, values: Tensor, indices: Tensor) -> Tensor:
            return function(x, values, indices)

    generator = torch.Generator().manual_seed(0)
    x, values = torch.randn(4, 5, generator=generator), torch.randn(7, 5, generator=generator)
    given = [x, values, INDICES]
    return torch.export.export(Program(), tuple(given)), given


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_written_where_indices_say(name: str) -> None:
    tvm = import_tvm()
    program, given = exported(FUNCTIONS[name])
    machine, _ = plain_program(program, host_target()).compiled({}).machine()
    (found,) = machine["main"](*(tvm.runtime.tensor(array.numpy()) for array in given))
    expected = program.module()(*given).numpy()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(expected, np.zeros_like(expected))


def test_what_is_not_lowered_is_refused_and_tvm_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    gc.collect()
    capfd.readouterr()
    program, _ = exported(lambda x, v, i: torch.fft.rfft(x.index_put((i[:3],), v[:3])).abs())
    with pytest.raises(InputError, match=r"relax cannot import 'waves'.*complex numbers"):
        torch_program(program, "waves", host_target())
    gc.collect()
    assert capfd.readouterr() == ("", "")


def test_a_program_that_scatters_takes_schedules_that_pack_weights() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(32, 64)

        def forward(self, x: Tensor, indices: Tensor) -> Tensor:
            return torch.zeros(4, 64).index_add(0, indices, self.linear(x))

    tvm, target = import_tvm(), host_target()
    program = torch.export.export(Layer(), given := (torch.randn(64, 32), torch.arange(64) % 4))
    whole = torch_program(program, "layer", target)
    (task,) = [task for task in whole.tasks if "matmul" in task.name]
    assert all(unpacked(task.module) == (task.module, None) for task in whole.tasks)  # as they are written
    found = DesignSpace(task.module, target).sample(4, 0, 8)
    packing = [sample.sch.mod for sample in found if marked_blocks(sample.sch)]
    machine, weights = whole.compiled({task.name: packing[0]}).machine()
    (result,) = machine["main"](*(tvm.runtime.tensor(array.numpy()) for array in given), *weights)
    expected = program.module()(*given).detach().numpy()
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
