"""torch-geometric's networks, those of plain tensors with the same weights, and what both compute."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from helpers.made_up_model import senseless_programs
from helpers.nests import small_nest
from helpers.random_graphs import program_graphs
from helpers.scheduled import programs_of
from helpers.synthetic import lonely, nest_like
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gnnperf.graph import GraphBatch, ProgramGraph, collate, encode
from gnnperf.nests.document import nest_to_dict
from gnnperf.nn import Encoder, EncoderConfig, collate_programs, encoder_id
from gnnperf.nn.lean import LeanReadout, LeanTransformer, segment_softmax, segment_sum
from gnnperf.nn.message_passing import GraphTransformer, attention_readout
from gnnperf.nn.traces import CostModel, CostModelConfig, batch_numbers
from gnnperf.shipped import shipped

TOLERANCE = 1e-6
WIDTH, HEADS, KINDS, FEATURES = 16, 4, 3, 5


class PlainLayer(nn.Module):
    """Message passing with one head after the other instead of segments of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleDict(
            {name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value", "output")}
        )
        self.attention["edge_kind"] = nn.Embedding(KINDS, WIDTH)
        self.attention["edge"] = nn.Linear(FEATURES, WIDTH, bias=False)
        self.perceptron_norm = nn.LayerNorm(WIDTH)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, nodes: Tensor, edge_index: Tensor, edge_kind: Tensor, edge_features: Tensor) -> Tensor:
        part, near = self.attention, self.attention_norm(nodes)
        source, target = edge_index
        edge = part["edge"](edge_features) + part["edge_kind"](edge_kind)
        key, value = part["key"](near)[source] + edge, part["value"](near)[source] + edge
        query, messages = part["query"](near)[target], torch.zeros_like(nodes)
        for node in range(len(nodes)):
            enters = target == node
            for head in torch.arange(WIDTH).chunk(HEADS):
                q, k = query[enters][:, head], key[enters][:, head]
                weights = ((q * k).sum(1) / (WIDTH // HEADS) ** 0.5).softmax(0)
                messages[node, head] = weights @ value[enters][:, head]
        nodes = nodes + part["output"](messages)
        return nodes + self.perceptron(self.perceptron_norm(nodes))


class PlainReadout(nn.Module):
    """Attention readout of one graph after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(WIDTH, HEADS)
        self.value = nn.Linear(WIDTH, WIDTH)

    def forward(self, nodes: Tensor, batch: Tensor, graphs: int) -> Tensor:
        rows = []
        for graph in range(graphs):
            own = nodes[batch == graph]
            weights = self.score(own).softmax(0).repeat_interleave(WIDTH // HEADS, dim=1)
            rows.append((weights * self.value(own)).sum(0))
        return torch.stack(rows)


def as_theirs(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of plain layers by the names of torch-geometric's, which have kinds of edges one-hot beside the
    features."""
    theirs = {}
    for name, tensor in state.items():
        if name.endswith("attention.edge.weight"):
            kinds = state[name.replace("edge.weight", "edge_kind.weight")]
            tensor = torch.cat([tensor, kinds.T], dim=1)
        for old, new in (
            (r"^layers\.", "passing.layers."), (r"attention\.output\.", "output."),
            (r"attention\.(query|key|value|edge)\.", r"attention.lin_\1."),
            (r"readout\.score\.", "readout.gate_nn."), (r"readout\.value\.", "readout.nn."),
        ):  # fmt: skip
            name = re.sub(old, new, name)
        theirs[name] = tensor
    return {name: tensor for name, tensor in theirs.items() if "edge_kind" not in name}


@pytest.mark.parametrize("edges", [0, 1, 40])
def test_layers_agree_with_plain_ones(edges: int) -> None:
    torch.manual_seed(edges)
    own = nn.Module()
    own.layers = nn.ModuleList(PlainLayer() for _ in range(2))
    own.readout = PlainReadout()
    state = as_theirs(own.state_dict())
    nodes, batch = torch.randn(12, WIDTH), torch.tensor([0] * 5 + [1] * 7)
    passed = torch.randint(12, (2, edges)), torch.randint(KINDS, (edges,)), torch.randn(edges, FEATURES)
    expected = nodes
    for layer in own.layers:
        expected = layer(expected, *passed)
    sizes = WIDTH, 2, HEADS, KINDS, FEATURES
    for passing, readout in (
        (GraphTransformer(*sizes, 0.0), attention_readout(WIDTH, HEADS)),
        (LeanTransformer(*sizes), LeanReadout(WIDTH, HEADS)),
    ):
        network = nn.Module()
        network.passing, network.readout = passing, readout
        network.load_state_dict(state)
        with torch.no_grad():
            got = passing(nodes, *passed)
            torch.testing.assert_close(got, expected, atol=TOLERANCE, rtol=0)
            torch.testing.assert_close(
                readout(got, batch, None, 2), own.readout(expected, batch, 2), atol=TOLERANCE, rtol=0
            )


@pytest.fixture(scope="module", params=[0, 3])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    """With as many layers, and with scales that were fitted."""
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=32, layers=request.param, embedding_width=16))
    graphs, node_costs, _ = collate_programs(programs_of())
    encoder.fit_scales(graphs, node_costs, graphs)
    return encoder.eval()


@given(st.lists(program_graphs(), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_lean_and_trained_embed_alike(encoder: Encoder, graphs: list[ProgramGraph], seed: int) -> None:
    lean = encoder.lean()
    check_alike(encoder, lean, graphs)
    batch, node_costs, _ = collate_programs(senseless_programs(graphs, seed))
    check_states_alike(encoder, lean, batch, node_costs)


def test_lean_and_trained_have_the_same_states_of_scheduled_programs(encoder: Encoder) -> None:
    batch, node_costs, _ = collate_programs(programs_of())
    check_states_alike(encoder, encoder.lean(), batch, node_costs)


@pytest.mark.parametrize("graphs", [[lonely()], [lonely(), nest_like([8, 16]), lonely("exp")]])
def test_lean_and_trained_embed_alike_without_edges(encoder: Encoder, graphs: list[ProgramGraph]) -> None:
    check_alike(encoder, encoder.lean(), graphs)


def check_alike(encoder: Encoder, lean: Encoder, graphs: list[ProgramGraph]) -> None:
    batch = collate([encode(graph) for graph in graphs])
    with torch.no_grad():
        torch.testing.assert_close(lean(*batch), encoder(*batch), atol=TOLERANCE, rtol=0)


def check_states_alike(encoder: Encoder, lean: Encoder, batch: GraphBatch, node_costs: Tensor) -> None:
    with torch.no_grad():
        for got, expected in zip(
            lean.states(*batch, node_costs), encoder.states(*batch, node_costs), strict=True
        ):
            torch.testing.assert_close(got, expected, atol=TOLERANCE, rtol=TOLERANCE)


def test_lean_and_trained_have_the_same_weights(encoder: Encoder) -> None:
    lean = encoder.lean()
    assert list(lean.state_dict()) == list(encoder.state_dict())
    assert encoder_id(lean) == encoder_id(encoder) == encoder_id(lean.lean())
    assert not any(p.requires_grad for p in lean.parameters())
    assert all(p.requires_grad for p in encoder.parameters())


def test_every_weight_of_the_trained_network_is_used() -> None:
    """To embed, or for states of scheduled programs."""
    encoder = Encoder(EncoderConfig(width=8, layers=1))
    batch = collate([encode(nest_like([8, 16])), encode(nest_like([3, 4], reduction=True))])
    graphs, node_costs, _ = collate_programs(programs_of())
    encoder.fit_scales(graphs, node_costs, batch)
    nodes, states = encoder.states(*graphs, node_costs)
    (encoder(*batch)[:, 0].sum() + nodes.square().sum() + states.square().sum()).backward()
    assert all(p.grad is not None for p in encoder.parameters())


def test_cost_models_judge_alike() -> None:
    torch.manual_seed(0)
    config = CostModelConfig(width=16, statement_width=16)
    model, lean = CostModel(config).eval(), CostModel(config, lean=True).eval()
    lean.load_state_dict(model.state_dict())
    batch = collate([encode(nest_like([8, 16])), encode(nest_like([4, 4, 9], reduction=True))])
    numbers = batch_numbers(batch, config.threads)
    with torch.no_grad():
        torch.testing.assert_close(lean(batch, *numbers), model(batch, *numbers), atol=TOLERANCE, rtol=0)


def test_ranking_with_a_checkpoint_does_not_import_torch_geometric(checkpoint: Path) -> None:
    code = f"""
import sys
from gnnperf.nests import nest_graph
from gnnperf.nests.document import nest_from_dict
from gnnperf.nn import Bundle, load_checkpoint, scheduled_programs
from gnnperf.nn.traces import TensorBundle
from gnnperf.schedules.recipes import Recipe
nest = nest_from_dict({nest_to_dict(small_nest(8, 16))!r})
graph = nest_graph(nest)
bundle = load_checkpoint({str(checkpoint)!r}, Bundle)
bundle.embed([graph]), bundle.score(scheduled_programs(nest, graph, [Recipe(), Recipe(tile_p=4)]))
load_checkpoint({str(shipped("checkpoints/tensor-programs"))!r}, TensorBundle).score([graph])
print("torch_geometric" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_segment_softmax_is_a_softmax_per_segment() -> None:
    scores = torch.tensor([[0.0], [1.0], [5.0]])
    weights = segment_softmax(scores, torch.tensor([0, 0, 2]), 3)
    torch.testing.assert_close(weights[:2], scores[:2].softmax(0))
    assert weights[2] == 1.0


def test_segment_softmax_survives_scores_that_overflow_exp() -> None:
    weights = segment_softmax(torch.tensor([[1e4], [1e4], [-1e4]]), torch.tensor([0, 0, 0]), 1)
    torch.testing.assert_close(weights, torch.tensor([[0.5], [0.5], [0.0]]))


def test_segment_sum_of_nothing_is_zero() -> None:
    assert segment_sum(torch.empty(0, 2), torch.empty(0, dtype=torch.int64), 3).tolist() == [[0.0, 0.0]] * 3
