from __future__ import annotations

import math
from dataclasses import asdict

import pytest
import torch

from gnnperf.devices import load_device
from gnnperf.frontends.operators import Elementwise, MatMul, Softmax
from gnnperf.nn.runtime import RuntimeModel
from gnnperf.nn.runtime.adaptation import Likeness, Traits, fit_likeness, traits_of
from gnnperf.nn.runtime.columns import FAMILIES, on_device

EVEN = dict.fromkeys(FAMILIES, 0.1)
LIKENESS = Likeness((0.3, 0.1, 0.1), EVEN, EVEN, dict.fromkeys(FAMILIES, 0.05), 1.0)


def products(*sizes: int, dtype: str = "fp32") -> Traits:
    model = RuntimeModel()
    x = on_device([MatMul(n, n, n, dtype=dtype).workload() for n in sizes], load_device("a100"))
    return traits_of(x, model.shares(x))


def test_shares_say_what_a_kernel_waits_for() -> None:
    works = [Elementwise("add", 1024, 2), Elementwise("add", 1 << 28, 2), MatMul(8192, 8192, 8192)]
    x = on_device([work.workload() for work in works], load_device("a100"))
    launch, memory, rate = RuntimeModel().shares(x).T.tolist()
    assert launch == pytest.approx([1.0, 0.0, 0.0], abs=0.05)
    assert memory[0] == pytest.approx(0.0, abs=0.05) and memory[1] < -0.7 and memory[2] > -0.05
    assert rate[:2] == [0.0, 0.0] and rate[2] < -0.2


def test_without_runs_nearby_nothing_changes_and_nothing_is_surer() -> None:
    runs, far = products(512, 600, 700), products(512, 600, dtype="fp16")
    aloof = Likeness((1e-9, 1e-9, 1e-9), EVEN, EVEN, EVEN, 1.0)
    shift, left = aloof.posterior(runs, torch.full((3,), 0.4).double(), far)
    assert shift.abs().max() < 1e-6 and left.min() > 1 - 1e-6


def test_runs_of_like_kernels_are_followed_and_single_ones_are_not() -> None:
    sizes = (512, 560, 600, 640, 700)
    runs, asked = products(*sizes), products(620)
    slower = torch.full((5,), 0.3, dtype=torch.float64)
    shift, left = LIKENESS.posterior(runs, slower, asked)
    assert 0.2 < float(shift[0]) < 0.3 and 0 < float(left[0]) < 0.6
    odd = slower.clone()
    odd[2] = 2.0  # a run that something else disturbed
    moved, _ = LIKENESS.posterior(runs, odd, asked)
    assert abs(float(moved[0] - shift[0])) < 0.1


def test_a_floor_is_shared_by_all_families() -> None:
    device = load_device("l4")
    model = RuntimeModel()
    small = [Elementwise("add", n, 2).workload() for n in (256, 512, 1024)]
    runs, asked = (
        traits_of(x, model.shares(x))
        for x in (on_device(works, device) for works in (small, [Softmax(64, 64).workload()]))
    )
    shift, _ = LIKENESS.posterior(runs, torch.full((3,), 0.5).double(), asked)
    assert float(shift[0]) > 0.3


def test_likeness_is_learned_from_gpus_that_were_left_out() -> None:
    chance = torch.Generator().manual_seed(0)
    traits = products(*range(512, 4096, 64))

    def gpu(whole: float) -> tuple[Traits, torch.Tensor]:
        single = 0.02 * torch.randn(len(traits.family), generator=chance, dtype=torch.float64)
        return traits, whole + single

    found = fit_likeness([gpu(0.3), gpu(-0.3), gpu(0.1), gpu(-0.2)])
    assert found.single["bmm"] < 0.05
    together = math.hypot(found.family["bmm"], found.size["bmm"], *found.properties)
    assert together > 0.12
    assert Likeness.of(asdict(found)) == found
