"""The encoder trained by regression of dynamic profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from helpers.synthetic import nest_like

from gnnperf.graph import collate, encode
from gnnperf.nn import PROFILE_FIELDS, EncoderConfig, profile_row
from gnnperf.training import CorpusNest
from gnnperf.training.regression import RegressionModule, fit_regression

SMALL = EncoderConfig(width=16, layers=1, heads=2, embedding_width=8, dropout=0.0)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def nest(extent: int, **profile: Any) -> CorpusNest:
    graph = nest_like([extent, extent])
    graph = type(graph)(graph.nodes, graph.edges, graph.values, profile)
    return CorpusNest(graph.digest, "k", "f", "dace", graph, "dace-auto", 1.0)


NESTS = [nest(8 * i, runtime_s=1e-6 * i * i, flops_share=0.01 * i) for i in range(1, 17)]


def batch(nests: list[CorpusNest]) -> Any:
    profiles = torch.stack([profile_row(n.graph.profile) for n in nests])
    return collate([encode(n.graph) for n in nests]), profiles


def test_absent_values_are_left_out_of_the_loss() -> None:
    torch.manual_seed(0)
    module = RegressionModule(SMALL).eval()
    graphs, profile = batch(NESTS[:2])
    module.fit_scales(graphs, profile)
    with torch.no_grad():
        error = module.head(module.encoder.embed(graphs)) - module.target_scale(profile)
        present = [PROFILE_FIELDS.index(name) for name in ("runtime_s", "flops_share")]
        expected = error[:, present].square().mean()
        assert module.loss((graphs, profile)).item() == pytest.approx(expected.item())
        nothing = torch.full_like(profile, float("nan"))
        assert module.loss((graphs, nothing)).item() == 0.0


def test_profiles_of_a_handful_of_nests_are_memorised() -> None:
    torch.manual_seed(0)
    module = RegressionModule(SMALL)
    everything = batch(NESTS)
    module.fit_scales(*everything)
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-2)
    before = module.loss(everything).item()
    for _ in range(200):
        loss = module.loss(everything)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.02 < before


def test_a_seed_gives_the_same_encoder_again_and_leaves_torchs_generator_alone() -> None:
    before = torch.random.get_rng_state()
    encoders = [fit_regression(NESTS, NESTS[:4], seed, SMALL, max_epochs=2) for seed in (1, 1, 2)]
    assert not any(encoder.training for encoder in encoders)
    first, again, other = (encoder.embed(batch(NESTS)[0]) for encoder in encoders)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())
