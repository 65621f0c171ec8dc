"""The encoder of program graphs, and the inputs that it standardises."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.scheduled import programs_of
from helpers.synthetic import lonely, nest_like

from gnnperf.errors import InputError
from gnnperf.graph import NODE_KINDS, ProgramGraph, collate, encode
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn import Encoder, EncoderConfig, collate_programs
from gnnperf.nn.graph_net import CostInput

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
    assert (embed(encoder, nest_like([8, 16])) - embed(encoder, other)).abs().max() > 1e-5


def test_states_of_scheduled_programs_depend_on_their_costs(encoder: Encoder) -> None:
    graphs, node_costs, _ = collate_programs(programs_of())
    nodes, states = encoder.states(*graphs, node_costs)
    assert nodes.shape == (len(graphs.node_kind), 32 + len(COST_FIELDS))
    assert states.shape == (len(graphs.ptr) - 1, 32)
    torch.testing.assert_close(nodes[:, 32:], encoder.costs(graphs.node_kind, node_costs))
    # What one statement costs is known to the nodes near it, and to its graph, but to no other.
    statement = int((graphs.node_kind == NODE_KINDS.index("compute")).nonzero()[0])
    dearer = node_costs.clone()
    dearer[statement] += 1.0
    more_nodes, more_states = encoder.states(*graphs, dearer)
    assert (more_nodes - nodes)[statement, :32].abs().max() > 1e-4
    changed = (more_states - states).abs().amax(1)
    assert changed[0] > 1e-4
    assert changed[1:].max() < 1e-5


def test_input_scales_are_fitted_and_stored(encoder: Encoder) -> None:
    """Of programs as they are and of scheduled ones alike; costs are of scheduled ones alone."""
    batch = collate([encode(g) for g in GRAPHS])
    graphs, node_costs, _ = collate_programs(programs_of())
    encoder.fit_scales(graphs, node_costs, batch)
    for scale, name in (
        (encoder.node_scale, "node_features"),
        (encoder.edge_scale, "edge_features"),
        (encoder.graph_scale, "graph_features"),
    ):
        rows = torch.cat([getattr(batch, name), getattr(graphs, name)])
        torch.testing.assert_close(scale.mean, rows.mean(0), atol=1e-4, rtol=1e-4)
    assert {"node_scale.mean", "costs.scale.mean"} <= set(encoder.state_dict())


def test_costs_are_standardised_over_the_nodes_that_carry_them() -> None:
    """Statements carry the first field, loops the last; what stands elsewhere is not looked at."""
    statement, loop, buffer = (NODE_KINDS.index(kind) for kind in ("compute", "loop", "buffer"))
    first, last = 0, len(COST_FIELDS) - 1
    assert COST_FIELDS[first].kinds == ("compute", "intrinsic") and COST_FIELDS[last].kinds == ("loop",)
    kinds = torch.tensor([statement, statement, loop, loop, buffer])
    costs = torch.full((5, len(COST_FIELDS)), 1e6)
    costs[:2, first] = torch.tensor([3.0, 7.0])  # mean 5, deviation 2
    costs[2:4, last] = torch.tensor([10.0, 10.0])  # does not vary
    inputs = CostInput()
    inputs.fit(kinds, costs)
    found = inputs(kinds, costs)
    assert found[:, first].tolist() == [-1.0, 1.0, 0.0, 0.0, 0.0]
    assert found[:, last].tolist() == [0.0] * 5
    assert (found[4] == 0).all()
    costs[0, first] = 1000.0
    assert inputs(kinds, costs)[0, first] == 6.0  # the limit


@pytest.mark.parametrize("lean", [False, True])
def test_without_layers_every_node_is_by_itself(lean: bool) -> None:
    torch.manual_seed(0)
    alone = Encoder(EncoderConfig(width=32, layers=0), lean=lean).eval()
    graph = nest_like([32, 4, 7], reduction=True)
    unlike = replace(graph, edges=graph.edges[:-1])
    torch.testing.assert_close(embed(alone, graph), embed(alone, unlike), atol=1e-6, rtol=0)
    assert not [name for name in alone.state_dict() if name.startswith("passing.layers")]


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(InputError, match="expected heads that divide width=10, got heads=4"):
        EncoderConfig(width=10, heads=4)
    with pytest.raises(InputError, match="expected layers of at least 0, got layers=-1"):
        EncoderConfig(layers=-1)


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
