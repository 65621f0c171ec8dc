"""What each policy proposes, on corpora with one right answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evaluation.worlds import OWN, line, two_tastes
from helpers.scheduled import programs_of
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.evaluation.rankers import PARTS, PolicyProposal, Ranker, learned, make_policy
from gnnperf.evaluation.rankers.flat import ABSENT, Standardised, flat_features, flat_programs
from gnnperf.evaluation.rankers.learned import NearestNest, RetrievalRanker, score_numbers
from gnnperf.evaluation.rankers.simple import fixed_order, greedy_portfolio
from gnnperf.evaluation.reference import Reference
from gnnperf.evaluation.splits import make_folds
from gnnperf.graph import GRAPH_FEATURES, ProgramGraph
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn import EncoderConfig, ScheduledProgram, ScheduleHead, collate_programs
from gnnperf.schedules.recipes import fact_fields
from gnnperf.training import Corpus, CorpusNest, fit_all, load_corpus, refit
from gnnperf.training.module import NumbersModule
from gnnperf.training.refit import EPOCHS

NAN = float("nan")
POOL = ["stream", "tile", "wrong"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return load_corpus(two_tastes(tmp_path_factory.mktemp("corpus"), own=[("mutation", OWN)]))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Nests whose best schedules were measured on one another."""
    return load_corpus(two_tastes(tmp_path_factory.mktemp("shared")))


@pytest.fixture(scope="module")
def fold_of_shared(shared: Corpus) -> tuple[Reference, Sequence[CorpusNest]]:
    fold = make_folds(shared.nests, "family", 4, 0)[0]
    return Reference.of(shared, fold), [shared.nests[i] for i in fold.queries]


@pytest.fixture(scope="module")
def fold_zero(corpus: Corpus) -> tuple[Reference, Sequence[CorpusNest]]:
    """What is known in the first fold, and its queries."""
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    return Reference.of(corpus, fold), [corpus.nests[i] for i in fold.queries]


def test_a_reference_holds_nothing_of_its_queries(corpus: Corpus) -> None:
    for fold in make_folds(corpus.nests, "family", 4, 0):
        reference = Reference.of(corpus, fold)
        held_out = [corpus.nests[i] for i in fold.queries]
        assert not {n.digest for n in held_out} & set(reference.corpus.measurements)
        assert not {n.family for n in held_out} & {n.family for n in reference.nests}
        names = {f"{n.kernel}_" for n in held_out}
        assert not [s for s in reference.schedules if s.startswith(tuple(names))]
        assert len(reference.nests) == len(fold.reference) == len(reference.log_efficiency)
        stopping = [reference.nests[i] for i in reference.validation]
        assert stopping == [corpus.nests[i] for i in fold.validation]


@pytest.mark.parametrize("origin", ["foreign", "asked"])
def test_what_only_a_query_found_is_not_known_though_others_tried_it(origin: str, tmp_path: Path) -> None:
    """ "mine" was found by the search of the query and then measured on all others; "ours" was found by
    another nest, too."""
    graphs = {family: nest_like([size]) for family, size in (("a", 8), ("b", 16), ("c", 32))}
    lines = [
        line(graph.digest, schedule, 0.5, origin="mutation" if family in found_by else origin)
        for family, graph in graphs.items()
        for schedule, found_by in (("mine", "a"), ("ours", "ac"))
    ]
    nests = [nest(graph, family) for family, graph in graphs.items()]
    corpus = load_corpus(write_corpus(tmp_path, nests, lines))
    known = {
        corpus.nests[fold.queries[0]].family: Reference.of(corpus, fold).schedules
        for fold in make_folds(corpus.nests, "family", 3, 0)
    }
    assert known == {"a": ["ours"], "b": ["mine", "ours"], "c": ["mine", "ours"]}


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What learns is trained for two epochs."""
    monkeypatch.setattr(refit, "fit_all", partial(fit_all, epochs=2))


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("name", ["random", "constant", "lookup", "flat", "trees", "perceptron", "ours"])
def test_nothing_of_a_query_but_the_nest_decides(name: str, shared: Corpus) -> None:
    """Proposals are the same where the measurements of the queries are others."""
    corpus = shared
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    queries = {corpus.nests[i].digest for i in fold.queries}
    swapped = {
        digest: {s: replace(m, status="wrong_result", runtime_s=None) for s, m in of_nest.items()}
        if digest in queries
        else of_nest
        for digest, of_nest in corpus.measurements.items()
    }
    changed = Corpus(corpus.nests, swapped, corpus.device, corpus.digest, corpus.scheduled)

    def proposals(of: Corpus) -> list[tuple[str, PolicyProposal]]:
        rankers = make_policy(name, of)(Reference.of(of, fold), 0)
        return [(row, rank(of.nests[i], POOL)) for row, rank in rankers.items() for i in fold.queries]

    for (row, before), (same_row, after) in zip(proposals(corpus), proposals(changed), strict=True):
        assert row == same_row
        assert list(before.schedules) == list(after.schedules)


def tastes(corpus: Corpus, name: str) -> Mapping[str, list[tuple[str, list[str]]]]:
    """By row of a policy: what each query of the first fold likes best, and what is proposed to it."""
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    rankers = make_policy(name, corpus)(Reference.of(corpus, fold), 0)
    queries = [corpus.nests[i] for i in fold.queries]
    best = ["tile" if query.kernel.startswith("reduce") else "stream" for query in queries]
    return {
        row: [(liked, list(rank(query, POOL).schedules)) for liked, query in zip(best, queries, strict=True)]
        for row, rank in rankers.items()
    }


@pytest.mark.parametrize("name", ["flat", "trees"])
def test_features_tell_the_two_tastes_apart(name: str, tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path, sizes=range(32, 160, 16)))
    (found,) = tastes(corpus, name).values()
    for liked, proposed in found:
        assert proposed == [liked, *(s for s in ("stream", "tile") if s != liked), "wrong"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("ours", {"ours", "neighbours alone", "nearest nest"}),
        ("perceptron", {"perceptron", "without network"}),
    ],
)
def test_what_learns_tells_the_two_tastes_apart(name: str, rows: set[str], tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path, sizes=(32, 64, 96, 128)))
    found = tastes(corpus, name)
    assert set(found) == rows
    for row, answers in found.items():
        right = [proposed[0] == liked for liked, proposed in answers]
        assert np.mean(right) >= 0.75, row
        assert all(sorted(proposed) <= POOL for _, proposed in answers)


@pytest.mark.parametrize(
    ("name", "row", "settings"),
    [
        ("untrained", "untrained encoder", {"frozen_encoder": True}),
        ("no-passing", "without message passing", {"encoder": EncoderConfig(layers=0)}),
        ("no-contrast", "without contrastive loss", {"contrastive_weight": 0.0, "correlation_weight": 0.0}),
    ],
)
def test_a_part_is_left_out_in_training(
    name: str, row: str, settings: dict[str, Any], fold_of_shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the rest is as it is: the rows are those of ours."""
    asked: list[dict[str, Any]] = []

    def watched(corpus: Corpus, seed: int, **given: Any) -> Any:
        asked.append({"seed": seed, **given})
        return fit_all(corpus, seed, epochs=1, **given)

    monkeypatch.setattr(refit, "fit_all", watched)
    reference, queries = fold_of_shared
    assert name in PARTS
    rankers = make_policy(name, reference.corpus)(reference, 3)
    assert list(rankers) == [row, f"neighbours alone, {row}", f"nearest nest, {row}"]
    assert asked == [{"seed": 3, **settings}]
    proposal = rankers[row](queries[0], POOL)
    assert set(proposal.schedules) <= set(POOL)
    assert proposal.distances is not None and len(proposal.distances) == len(reference.nests)


@pytest.mark.parametrize("name", ["ours", "perceptron"])
def test_for_a_first_look_networks_learn_briefly(
    name: str, fold_of_shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def watched(corpus: Corpus, seed: int, epochs: int = EPOCHS, **given: Any) -> Any:
        asked.append(epochs)
        return fit_all(corpus, seed, epochs=1, **given)

    monkeypatch.setattr(refit, "fit_all", watched)
    reference, _ = fold_of_shared
    for quick in (False, True):
        make_policy(name, reference.corpus, quick)(reference, 3)
    assert asked[0] == EPOCHS > 3 * asked[1] > 0


def at_distances(reference: Reference, near: Callable[[CorpusNest], bool]) -> learned.Distances:
    """0.1 to some of the reference nests, 0.9 to the others."""
    return lambda query: np.array([0.1 if near(nest) else 0.9 for nest in reference.nests])


def test_the_nearest_nest_alone(fold_zero: Any) -> None:
    reference, (query, *_) = fold_zero
    for world, liked in (("map", ["stream", "tile"]), ("reduce", ["tile", "stream"])):
        near = at_distances(reference, lambda nest, world=world: nest.kernel.startswith(world))  # type: ignore[misc]
        rank = NearestNest(reference, near)
        assert rank(query, POOL).schedules == [*liked, "wrong"]
        assert rank(query, ["wrong", liked[1]]).schedules == [liked[1], "wrong"]
        assert rank(query, []).schedules == []
        assert rank(query, POOL).distances is None


def test_the_next_nest_answers_where_the_nearest_knows_nothing(fold_zero: Any) -> None:
    """A schedule that one nest alone has found, at whatever distance."""
    reference, (query, *_) = fold_zero
    last = reference.nests[-1]
    (own,) = [s for s in reference.schedules if s.startswith(f"{last.kernel}_{int(last.symbols['N'])}")]
    rank = NearestNest(reference, at_distances(reference, lambda nest: nest is not last))
    assert rank(query, [own]).schedules == [own]


def test_neighbours_without_a_score_and_with_one(fold_zero: Any) -> None:
    """The neighbours say what the nearest like; a score has the last word."""
    reference, (query, *_) = fold_zero
    near = at_distances(reference, lambda nest: nest.kernel.startswith("reduce"))
    alone = RetrievalRanker(reference, near, None)(query, POOL)
    assert list(alone.schedules) == ["tile", "stream"]  # "wrong" failed wherever it was tried
    assert alone.ordered and alone.distances is not None
    assert alone.distances.tolist() == near(query).tolist()
    asked: list[int] = []

    def fewest_nodes(programs: Sequence[ScheduledProgram]) -> np.ndarray:
        asked.append(len(programs))
        return np.array([-100.0 * len(program.graph.node_kind) for program in programs])

    (mapping, *_) = [n for n in reference.nests if n.kernel.startswith("map")]
    scored = RetrievalRanker(reference, near, fewest_nodes)(mapping, POOL)
    assert list(scored.schedules) == ["stream", "tile"]  # tiles are more loops
    assert asked == [2]
    assert list(RetrievalRanker(reference, near, fewest_nodes)(mapping, ["tile"]).schedules) == ["tile"]
    assert list(RetrievalRanker(reference, near, fewest_nodes)(mapping, []).schedules) == []


def test_what_does_not_fit_the_query_is_not_proposed(tmp_path: Path) -> None:
    """Though it worked for neighbours, and is in the pool."""
    corpus = load_corpus(two_tastes(tmp_path))
    fits_others = {
        digest: {s: replace(m, status="ok", runtime_s=0.1, interval_s=(0.1, 0.1), samples=9, baseline_s=1.0,
                            baseline_interval_s=(1.0, 1.0)) if s == "unfit" else m
                 for s, m in of_nest.items()}
        for digest, of_nest in corpus.measurements.items()
    }  # fmt: skip
    changed = replace(corpus, measurements=fits_others)
    reference = Reference.of(changed, make_folds(corpus.nests, "family", 4, 0)[0])
    near = at_distances(reference, lambda nest: True)
    query, pool = reference.nests[0], ["stream", "tile", "unfit"]
    assert "unfit" in RetrievalRanker(reference, near, None)(query, pool).schedules
    ranked = RetrievalRanker(reference, near, lambda programs: np.zeros(len(programs)))
    assert sorted(ranked(query, pool).schedules) == ["stream", "tile"]
    assert list(ranked(query, ["unfit"]).schedules) == []
    for name in ("trees", "perceptron"):
        rank = make_policy(name, changed)(reference, 0)
        (order,) = [rank[row] for row in rank if row != "without network"]
        assert sorted(order(query, pool).schedules) == ["stream", "tile"]
        assert list(order(query, ["unfit"]).schedules) == []


@pytest.mark.usefixtures("briefly")
def test_without_network_the_neighbours_are_those_of_flat_features(fold_of_shared: Any) -> None:
    """On the scale of distances that retrieval knows."""
    reference, queries = fold_of_shared
    rankers: Mapping[str, Ranker] = make_policy("perceptron", reference.corpus)(reference, 0)
    assert rankers["perceptron"](queries[0], POOL).distances is None
    locate = Standardised(reference.nests)
    for query in queries:
        distances = rankers["without network"](query, POOL).distances
        assert distances is not None
        flat = np.linalg.norm(locate(reference.nests) - locate([query])[0], axis=1)
        ratio = distances / flat
        assert ratio.max() == pytest.approx(ratio.min(), rel=1e-4)


def test_the_perceptron_is_the_judge_of_numbers_and_nothing_else_learns(tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path, sizes=(64,)))
    torch.manual_seed(5)
    drawn = {}

    class Watched(NumbersModule):
        def on_fit_start(self) -> None:
            drawn.update({name: weight.clone() for name, weight in self.named_parameters()})
            super().on_fit_start()

    module, _ = fit_all(corpus, 0, epochs=1, module=Watched)
    changed = {n for n, weight in module.named_parameters() if not torch.equal(weight, drawn[n])}
    assert changed and all(name.startswith("head.numbers.") for name in changed)
    programs = programs_of()
    graphs, node_costs, facts = collate_programs(programs)
    with torch.no_grad():
        nodes, states = module.encoder.states(*graphs, node_costs)
        both = module.head.judgements(nodes, states, graphs.node_kind, node_costs, graphs.batch, facts)
    np.testing.assert_allclose(score_numbers(module.head, programs), both[1], atol=1e-6)
    assert score_numbers(module.head, []).shape == (0,)


def test_oracle_knows_what_the_query_likes(corpus: Corpus) -> None:
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    (rank,) = make_policy("oracle", corpus)(Reference.of(corpus, fold), 0).values()
    for i in fold.queries:
        liked = ["tile", "stream"] if corpus.nests[i].kernel.startswith("reduce") else ["stream", "tile"]
        assert rank(corpus.nests[i], POOL).schedules == [*liked, "wrong"]


def test_random_leaves_the_order_open(fold_zero: Any) -> None:
    reference, queries = fold_zero
    (rank,) = make_policy("random", reference.corpus)(reference, 0).values()
    assert rank(queries[0], POOL) == PolicyProposal(POOL, ordered=False)


def test_constants_choose_from_the_pool(fold_zero: Any) -> None:
    reference, queries = fold_zero
    rankers = make_policy("constant", reference.corpus)(reference, 0)
    assert list(rankers["best single"](queries[0], ["wrong", "tile"]).schedules) == ["tile"]
    assert list(rankers["fixed order"](queries[0], ["wrong", "tile"]).schedules) == ["tile", "wrong"]
    assert list(rankers["portfolio"](queries[0], ["wrong", "tile"]).schedules) == ["tile", "wrong"]
    assert rankers["portfolio"](queries[0], []).schedules == []


BASELINE = np.log(np.array([0.2, 0.2, 0.2], dtype=np.float32))


def test_fixed_order_assumes_half_the_speed_where_nothing_was_measured() -> None:
    table = np.log(np.array([[0.6, 0.9, NAN], [0.6, NAN, 0.1]], dtype=np.float32))
    # Geometric means: 0.6, sqrt(0.9 * 0.5) = 0.67, sqrt(0.5 * 0.1) = 0.22.
    assert list(fixed_order(table, BASELINE[:2])) == [1, 0, 2]


def test_a_portfolio_takes_what_complements_what_it_has() -> None:
    """The first schedule suits all a bit; the second adds nothing to it, the third a lot on one nest."""
    table = np.log(np.array([[0.8, 0.81, 0.1], [0.8, 0.7, 1.0], [0.8, 0.79, NAN]], dtype=np.float32))
    assert list(fixed_order(table, BASELINE)) == [0, 1, 2]
    assert list(greedy_portfolio(table, BASELINE)) == [0, 2, 1]


def test_a_portfolio_counts_the_baseline() -> None:
    """What is best on average gains nothing where the baseline is as good."""
    table = np.log(np.array([[1.0, 0.1], [0.1, 0.5]], dtype=np.float32))
    baseline = np.log(np.array([1.0, 0.1], dtype=np.float32))
    assert list(fixed_order(table, baseline)) == [0, 1]
    assert list(greedy_portfolio(table, baseline)) == [1, 0]


def lookup(tmp_path: Path, query: ProgramGraph, kernel: str, *known: tuple[str, ProgramGraph]) -> list[str]:
    """What exact lookup proposes, when each known nest has one schedule, named after its position."""
    lines = [measurement(graph.digest, f"of {at}", 0.5) for at, (_, graph) in enumerate(known)]
    nests = [nest(graph, "family", name=name) for name, graph in known]
    corpus = load_corpus(write_corpus(tmp_path, nests, lines))
    reference = Reference(corpus, len(known), corpus.scheduled)
    (rank,) = make_policy("lookup", reference.corpus)(reference, 0).values()
    asked = CorpusNest(query.digest, kernel, "family", "dace", query, "dace-auto", 1.0)
    return list(rank(asked, []).schedules)


def sized(extent: int, depth: int = 2) -> ProgramGraph:
    graph = nest_like([extent] * depth)
    return replace(graph, values={**graph.values, "distinct_bytes": 8 * extent})


def test_lookup_of_the_same_nest(tmp_path: Path) -> None:
    assert lookup(tmp_path, sized(64), "k", ("k", sized(32)), ("other", sized(64))) == ["of 1"]


def test_lookup_of_the_same_kernel_at_the_nearest_size(tmp_path: Path) -> None:
    known = [("k", sized(16)), ("k", sized(48)), ("k", sized(64, depth=3)), ("other", sized(63))]
    assert lookup(tmp_path, sized(65), "k", *known) == ["of 1"]


def test_lookup_of_an_unknown_kernel_is_the_baseline(tmp_path: Path) -> None:
    assert lookup(tmp_path, sized(64), "new", ("k", sized(32))) == []


def test_flat_features_do_not_depend_on_edges_or_names() -> None:
    one = CorpusNest("a", "k", "f", "dace", nest_like([64, 32]), "dace-auto", 1.0)
    other = replace(one, kernel="m", graph=replace(one.graph, edges=one.graph.edges[:-1]))
    larger = replace(one, graph=nest_like([128, 32]))
    rows = flat_features([one, other, larger])
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()


def test_flat_numbers_of_programs_are_those_of_the_network_but_for_edges() -> None:
    """An absent fact is a number that no fact has."""
    programs = programs_of()
    rows = flat_programs(programs)
    costs, facts = 2 * len(COST_FIELDS), len(fact_fields())
    assert rows.shape == (len(programs), costs + facts + GRAPH_FEATURES)
    graphs, node_costs, stated = collate_programs(programs)
    head = ScheduleHead(8, facts)
    pooled = head.pooled(graphs.node_kind, node_costs, graphs.batch, len(programs))
    np.testing.assert_allclose(rows[:, :costs], pooled, rtol=1e-6)
    np.testing.assert_array_equal(rows[:, costs : costs + facts], stated.nan_to_num(ABSENT).numpy())
    np.testing.assert_array_equal(rows[:, costs + facts :], graphs.graph_features.numpy())
    assert np.isfinite(rows).all() and stated.nan_to_num().min() > ABSENT
    for program, row in zip(programs, rows, strict=True):
        np.testing.assert_allclose(flat_programs([program])[0], row, rtol=1e-6)
