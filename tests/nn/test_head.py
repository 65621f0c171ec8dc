"""The head that scores scheduled programs."""

from __future__ import annotations

from math import log, nan

import numpy as np
import pytest
import torch
from helpers.scheduled import programs_of, shuffled

from gnnperf.graph import GraphBatch
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.graph.vocabulary import NODE_KINDS
from gnnperf.nn import (
    Bundle,
    Encoder,
    EncoderConfig,
    HeadConfig,
    ScheduledProgram,
    ScheduleHead,
    collate_programs,
)
from gnnperf.schedules.recipes import fact_fields

PROGRAMS = programs_of()
"""Three nests, each under three recipes."""
NUMBERS = 2 * len(COST_FIELDS) + len(fact_fields())


def made() -> Bundle:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=2, embedding_width=8))
    head = ScheduleHead(16, len(fact_fields()), HeadConfig(width=8, numbers_width=8))
    graphs, node_costs, facts = collate_programs(PROGRAMS)
    encoder.fit_scales(graphs, node_costs, graphs)
    head.fit_scales(graphs.node_kind, node_costs, graphs.batch, facts)
    return Bundle(encoder.eval(), head.eval())


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return made()


def judge(bundle: Bundle, programs: list[ScheduledProgram]) -> tuple[torch.Tensor, torch.Tensor]:
    """What both judges say of b programs, f32[2, b], and what the second says alone, f32[b]."""
    graphs, node_costs, facts = collate_programs(programs)
    with torch.no_grad():
        nodes, states = bundle.encoder.states(*graphs, node_costs)
        about = graphs.node_kind, node_costs, graphs.batch, facts
        both = bundle.head.judgements(nodes, states, *about)
        torch.testing.assert_close(bundle.head(nodes, states, *about), both.mean(0))
        return both, bundle.head.by_numbers(*about)


def test_the_score_is_the_mean_of_two_judges_and_the_second_sees_no_graph(bundle: Bundle) -> None:
    both, alone = judge(bundle, PROGRAMS)
    assert both.shape == (2, len(PROGRAMS))
    torch.testing.assert_close(both[1], alone)
    np.testing.assert_allclose(bundle.score(PROGRAMS), both.mean(0), atol=1e-6)
    assert (both[0] != both[1]).all()


def test_times_of_nodes_are_added_up_by_hand() -> None:
    """Statements, accesses and loops of 2 nats each, whatever they are, and a correction by 0.5."""
    bundle = made()
    with torch.no_grad():
        for weight in bundle.head.parameters():
            weight.zero_()
        bundle.head.node_time[-1].bias.fill_(2.0)
        bundle.head.correction[-1].bias.fill_(0.5)
        bundle.head.numbers[-1].bias.fill_(-1.0)
    kinds = [NODE_KINDS.index(kind) for kind in ("access", "compute", "intrinsic", "loop")]
    counts = [int(np.isin(p.graph.node_kind, kinds).sum()) for p in PROGRAMS]
    assert len(set(counts)) > 1
    both, _ = judge(bundle, PROGRAMS)
    assert both[0].tolist() == pytest.approx([0.5 - (2.0 + log(count)) for count in counts])
    assert both[1].tolist() == pytest.approx([-1.0] * len(PROGRAMS))


def test_a_score_does_not_depend_on_the_other_programs(bundle: Bundle) -> None:
    together = bundle.score(PROGRAMS)
    alone = np.concatenate([bundle.score([program]) for program in PROGRAMS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(bundle.score(PROGRAMS[::-1]), together[::-1], atol=1e-5)
    assert bundle.score([]).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_nodes_does_not_matter(bundle: Bundle, seed: int) -> None:
    moved = [shuffled(program, seed) for program in PROGRAMS]
    assert any((a.graph.node_kind != b.graph.node_kind).any() for a, b in zip(moved, PROGRAMS, strict=True))
    np.testing.assert_allclose(bundle.score(moved), bundle.score(PROGRAMS), atol=1e-5)


def test_schedules_of_a_nest_score_apart(bundle: Bundle) -> None:
    both, _ = judge(bundle, PROGRAMS)
    for of_nest in both.view(2, 3, 3).flatten(0, 1):
        assert of_nest.diff().abs().min() > 1e-4


def test_edges_are_for_the_first_judge_alone(bundle: Bundle) -> None:
    """Costs and facts are unchanged, but where things lie in the program is not."""
    (program,) = PROGRAMS[:1]
    cut = program._replace(
        graph=type(program.graph)(
            program.graph.node_kind,
            program.graph.node_features,
            program.graph.edge_index[:, :0],
            program.graph.edge_kind[:0],
            program.graph.edge_features[:0],
            program.graph.graph_features,
        )
    )
    both, _ = judge(bundle, [program, cut])
    assert (both[0, 0] - both[0, 1]).abs() > 1e-4
    assert both[1, 0].item() == pytest.approx(both[1, 1].item())


def test_an_absent_fact_is_as_on_average(bundle: Bundle) -> None:
    mean = bundle.head.fact_scale.mean.numpy()
    (program,) = PROGRAMS[:1]
    for at in range(0, len(mean), 10):
        absent, average = program.facts.copy(), program.facts.copy()
        absent[at], average[at] = nan, mean[at]
        scores = bundle.score([program._replace(facts=facts) for facts in (absent, average)])
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
        assert np.isfinite(scores).all()
    nothing = bundle.score([program._replace(facts=np.full_like(program.facts, nan))])
    assert np.isfinite(nothing).all()


def test_inputs_of_the_numbers_are_standardised(bundle: Bundle) -> None:
    graphs, node_costs, facts = collate_programs(PROGRAMS)
    rows = bundle.head.standardised(graphs.node_kind, node_costs, graphs.batch, facts)
    assert rows.shape == (len(PROGRAMS), NUMBERS)
    assert rows.isfinite().all() and rows.abs().max() <= 4
    varies = rows.std(0) > 1e-3
    assert varies.sum() > 50
    torch.testing.assert_close(rows[:, varies].mean(0), torch.zeros(int(varies.sum())), atol=1e-4, rtol=0)


def test_a_graph_without_statements_has_a_score(bundle: Bundle) -> None:
    (program,) = PROGRAMS[:1]
    loops = np.flatnonzero(program.graph.node_kind == NODE_KINDS.index("loop"))[:1]
    bare = GraphBatch(
        torch.from_numpy(program.graph.node_kind[loops]),
        torch.from_numpy(program.graph.node_features[loops]),
        torch.zeros(2, 0, dtype=torch.int64),
        torch.zeros(0, dtype=torch.int64),
        torch.zeros(0, program.graph.edge_features.shape[1]),
        torch.from_numpy(program.graph.graph_features[None]),
        torch.tensor([0, 1]),
        torch.tensor([0]),
    )
    costs, facts = torch.from_numpy(program.node_costs[loops]), torch.from_numpy(program.facts[None])
    with torch.no_grad():
        nodes, states = bundle.encoder.states(*bare, costs)
        score = bundle.head(nodes, states, bare.node_kind, costs, bare.batch, facts)
    assert score.isfinite().all()
