"""What each policy proposes, on corpora with one right answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation.worlds import OWN, line, two_tastes
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.evaluation.rankers import PolicyProposal, make_policy
from gnnperf.evaluation.rankers.constant import fixed_order, portfolio
from gnnperf.evaluation.rankers.flat import flat_features
from gnnperf.evaluation.reference import Reference
from gnnperf.evaluation.splits import make_folds
from gnnperf.graph import ProgramGraph
from gnnperf.training import Corpus, CorpusNest, load_corpus

NAN = float("nan")
POOL = ["stream", "tile", "wrong"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return load_corpus(two_tastes(tmp_path_factory.mktemp("corpus"), own=[("mutation", OWN)]))


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


def test_what_only_a_query_found_is_not_known_though_others_tried_it(tmp_path: Path) -> None:
    """ "mine" was found by the search of the query and then measured on all others; "ours" was found by
    another nest, too."""
    graphs = {family: nest_like([size]) for family, size in (("a", 8), ("b", 16), ("c", 32))}
    lines = [
        line(graph.digest, schedule, 0.5, origin="mutation" if family in found_by else "foreign")
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


@pytest.mark.parametrize("name", ["random", "constant", "lookup", "flat", "trees"])
def test_nothing_of_a_query_but_the_nest_decides(name: str, corpus: Corpus, tmp_path: Path) -> None:
    """Proposals are the same where the measurements of the queries are others."""
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    queries = {corpus.nests[i].digest for i in fold.queries}
    swapped = {
        digest: {s: replace(m, status="wrong_result", runtime_s=None) for s, m in of_nest.items()}
        if digest in queries
        else of_nest
        for digest, of_nest in corpus.measurements.items()
    }
    changed = Corpus(corpus.nests, swapped, corpus.device, corpus.digest)

    def proposals(of: Corpus) -> list[tuple[str, PolicyProposal]]:
        rankers = make_policy(name, of).fit(Reference.of(of, fold), 0)
        return [(row, rank(of.nests[i], POOL)) for row, rank in rankers.items() for i in fold.queries]

    for (row, before), (same_row, after) in zip(proposals(corpus), proposals(changed), strict=True):
        assert row == same_row
        assert list(before.schedules) == list(after.schedules)


@pytest.mark.parametrize("name", ["flat", "trees"])
def test_features_tell_the_two_tastes_apart(name: str, tmp_path: Path) -> None:
    corpus = load_corpus(two_tastes(tmp_path, sizes=range(32, 160, 16)))
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    (rank,) = make_policy(name, corpus).fit(Reference.of(corpus, fold), 0).values()
    for i in fold.queries:
        liked = ["tile", "stream"] if corpus.nests[i].kernel.startswith("reduce") else ["stream", "tile"]
        assert list(rank(corpus.nests[i], POOL).schedules) == [*liked, "wrong"]


def test_oracle_knows_what_the_query_likes(corpus: Corpus) -> None:
    fold = make_folds(corpus.nests, "family", 4, 0)[0]
    (rank,) = make_policy("oracle", corpus).fit(Reference.of(corpus, fold), 0).values()
    for i in fold.queries:
        liked = ["tile", "stream"] if corpus.nests[i].kernel.startswith("reduce") else ["stream", "tile"]
        assert rank(corpus.nests[i], POOL).schedules == [*liked, "wrong"]


def test_random_leaves_the_order_open(fold_zero: Any) -> None:
    reference, queries = fold_zero
    (rank,) = make_policy("random", reference.corpus).fit(reference, 0).values()
    assert rank(queries[0], POOL) == PolicyProposal(POOL, ordered=False)


def test_constants_choose_from_the_pool(fold_zero: Any) -> None:
    reference, queries = fold_zero
    rankers = make_policy("constant", reference.corpus).fit(reference, 0)
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
    assert list(portfolio(table, BASELINE)) == [0, 2, 1]


def test_a_portfolio_counts_the_baseline() -> None:
    """What is best on average gains nothing where the baseline is as good."""
    table = np.log(np.array([[1.0, 0.1], [0.1, 0.5]], dtype=np.float32))
    baseline = np.log(np.array([1.0, 0.1], dtype=np.float32))
    assert list(fixed_order(table, baseline)) == [0, 1]
    assert list(portfolio(table, baseline)) == [1, 0]


def lookup(tmp_path: Path, query: ProgramGraph, kernel: str, *known: tuple[str, ProgramGraph]) -> list[str]:
    """What exact lookup proposes, when each known nest has one schedule, named after its position."""
    lines = [measurement(graph.digest, f"of {at}", 0.5) for at, (_, graph) in enumerate(known)]
    nests = [nest(graph, "family", name=name) for name, graph in known]
    reference = Reference(load_corpus(write_corpus(tmp_path, nests, lines)), len(known))
    (rank,) = make_policy("lookup", reference.corpus).fit(reference, 0).values()
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
