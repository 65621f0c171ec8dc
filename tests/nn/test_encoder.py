from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.synthetic import lonely, nest_like

from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph, collate, encode
from gnnperf.nn import PROFILE_FIELDS, Encoder, EncoderConfig, profile_row

GRAPHS = [
    nest_like([8, 16]),
    nest_like([32, 4, 7], reduction=True),
    lonely(),
    nest_like([100], operation="exp"),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["trained", "lean"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    torch.manual_seed(0)
    return Encoder(EncoderConfig(width=32, layers=2), lean=request.param == "lean").eval()


@pytest.fixture
def lean(encoder: Encoder) -> Encoder:
    return encoder.lean()


def embed(encoder: Encoder, *graphs: ProgramGraph) -> torch.Tensor:
    with torch.no_grad():
        return encoder.embed(collate([encode(g) for g in graphs]))


def shuffled(graph: ProgramGraph, seed: int) -> ProgramGraph:
    """The same graph, its nodes in another order."""
    order = list(range(len(graph.nodes)))
    random.Random(seed).shuffle(order)
    position = {old: new for new, old in enumerate(order)}
    edges = tuple(replace(e, source=position[e.source], target=position[e.target]) for e in graph.edges)
    return ProgramGraph(tuple(graph.nodes[i] for i in order), edges, graph.values)


def test_embeddings_lie_on_the_unit_sphere(encoder: Encoder) -> None:
    embedding = embed(encoder, *GRAPHS)
    assert embedding.shape == (4, 64)
    torch.testing.assert_close(embedding.norm(dim=1), torch.ones(4))


def test_a_graph_embeds_alike_alone_and_in_a_batch(encoder: Encoder) -> None:
    alone = torch.cat([embed(encoder, g) for g in GRAPHS])
    torch.testing.assert_close(embed(encoder, *GRAPHS), alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_nodes_does_not_matter(encoder: Encoder, seed: int) -> None:
    graph = nest_like([32, 4, 7], reduction=True)
    expected = embed(encoder, graph)
    torch.testing.assert_close(embed(encoder, shuffled(graph, seed)), expected, atol=1e-5, rtol=0)


def test_one_node_and_no_edge(encoder: Encoder) -> None:
    assert embed(encoder, lonely()).isfinite().all()


@pytest.mark.parametrize(
    "other", [nest_like([8, 17]), nest_like([8, 16], reduction=True), nest_like([8, 16], operation="exp")]
)
def test_programs_that_differ_embed_apart(encoder: Encoder, other: ProgramGraph) -> None:
    assert (embed(encoder, nest_like([8, 16])) - embed(encoder, other)).abs().max() > 1e-4


def test_an_absent_profile_is_the_same_as_none(encoder: Encoder) -> None:
    batch = collate([encode(GRAPHS[0])])
    absent = profile_row(None).unsqueeze(0)
    assert absent.isnan().all()
    torch.testing.assert_close(encoder.embed(batch, absent), encoder.embed(batch))


def test_any_single_value_of_a_profile_counts(encoder: Encoder) -> None:
    batch = collate([encode(GRAPHS[0])])
    without = encoder.embed(batch)
    for field in PROFILE_FIELDS:
        embedding = encoder.embed(batch, profile_row({field: 0.5}).unsqueeze(0))
        assert (embedding - without).abs().max() > 1e-5


def test_input_scales_are_fitted_and_stored(encoder: Encoder) -> None:
    batch = collate([encode(g) for g in GRAPHS])
    encoder.fit_scales(batch, torch.stack([profile_row({PROFILE_FIELDS[0]: 0.1}) for _ in GRAPHS]))
    scaled = encoder.graph_scale(batch.graph_features)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(scaled.shape[1]), atol=1e-5, rtol=0)
    assert encoder.profile.scale(profile_row({PROFILE_FIELDS[0]: 0.1}))[0] == pytest.approx(0.0, abs=1e-5)
    assert "node_scale.mean" in encoder.state_dict()


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(InputError, match="expected heads that divide width=10, got heads=4"):
        EncoderConfig(width=10, heads=4)


def test_torchscript_computes_the_same(encoder: Encoder, lean: Encoder) -> None:
    scripted = torch.jit.script(lean)
    for graphs in (GRAPHS, [lonely()]):
        batch = collate([encode(g) for g in graphs])
        torch.testing.assert_close(scripted(*batch), encoder(*batch))


def test_exported_program_computes_the_same(encoder: Encoder, lean: Encoder) -> None:
    n, e, b = torch.export.Dim("n"), torch.export.Dim("e"), torch.export.Dim("b", min=2)
    node, edge, graph = {0: n}, {0: e}, {0: b}
    shapes = (node, node, {1: e}, edge, edge, graph, {0: b + 1}, node)
    example = tuple(collate([encode(g) for g in GRAPHS]))
    exported = torch.export.export(lean, example, dynamic_shapes=shapes)
    other = collate([encode(nest_like([5, 6, 7])), encode(nest_like([3]))])
    torch.testing.assert_close(exported.module()(*other), encoder(*other), atol=1e-5, rtol=0)
    assert np.isfinite(exported.module()(*other).detach().numpy()).all()
