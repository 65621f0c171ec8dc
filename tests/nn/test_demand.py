"""The network of demands on the resources of a GPU."""

from __future__ import annotations

import pytest
import torch

from gnnperf.nn.demand import DemandConfig, DemandNet

CONFIG = DemandConfig(features=3, state=2, resources=4, devices=2, width=8)


@pytest.fixture
def net() -> DemandNet:
    torch.manual_seed(0)
    net = DemandNet(CONFIG)
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return net.eval()


def inputs(rows: int = 5) -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.randn(rows, n) for n in (3, 2, 4)] + [torch.zeros(rows, 2)]


def test_untrained_it_is_the_slowest_resource() -> None:
    features, state, _, share = inputs(1)
    times = torch.tensor([[3.0, -20.0, -20.0, -20.0]])
    assert DemandNet(CONFIG)(features, state, times, share).item() == pytest.approx(3.0, abs=1e-4)


def test_a_gpu_twice_as_fast_in_all_takes_half_the_time(net: DemandNet) -> None:
    features, state, times, share = inputs()
    assert torch.allclose(
        net(features, state, times - 1, share), net(features, state, times, share) - 1, atol=1e-5
    )


def test_a_faster_resource_never_makes_it_slower(net: DemandNet) -> None:
    features, state, times, share = inputs()
    before = net(features, state, times, share)
    for resource in range(CONFIG.resources):
        faster = times.clone()
        faster[:, resource] -= 2
        assert (net(features, state, faster, share) <= before + 1e-6).all()


def test_offsets_of_a_device_are_its_own(net: DemandNet) -> None:
    features, state, times, share = inputs()
    one, other = (share + torch.eye(2)[i] for i in range(2))
    assert not torch.allclose(net(features, state, times, one), net(features, state, times, other))
    with torch.no_grad():
        net.supply.weight.zero_()
        net.overall.weight.zero_()
    assert torch.allclose(net(features, state, times, one), net(features, state, times, other))
    assert net.offsets().item() == 0
