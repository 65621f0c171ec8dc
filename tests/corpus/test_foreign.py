"""Which recipes of other nests are measured on a nest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from helpers.synthetic import nest, nest_like

from gnnperf.corpus.foreign import best_of, choose_portfolio, of_like_nests
from gnnperf.schedules.recipes import DEFAULTS, Recipe

A, B, C, D = (Recipe(order="row", tile_p=tile) for tile in (64, 128, 256, 512))


class Corpus:
    """Nests by size, each with speedups by recipe; None: it failed."""

    def __init__(self) -> None:
        self.nests: dict[str, Any] = {}
        self.measured: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, family: str, loops: list[int], speedups: Mapping[Recipe, float | None]) -> str:
        graph = nest_like(loops)
        digest: str = graph.digest
        self.nests[digest] = nest(graph, family)
        self.measured[digest] = {
            recipe.id: {
                "schedule_id": recipe.id,
                "schedule": recipe.to_dict(),
                "status": "wrong_result" if speedup is None else "ok",
                **({} if speedup is None else {"baseline_s": speedup, "runtime_s": 1.0}),
            }
            for recipe, speedup in speedups.items()
        }
        return digest

    def portfolio(self, count: int, start: tuple[Recipe, ...] = ()) -> list[Recipe]:
        return choose_portfolio(self.nests, self.measured, count, start)


@pytest.fixture
def corpus() -> Corpus:
    return Corpus()


def test_a_portfolio_covers_what_those_before_left(corpus: Corpus) -> None:
    """A is best on two nests, B almost as good there; C on the third, where A is bad."""
    for size in (8, 16):
        corpus.add("f", [size, size], {A: 10.0, B: 9.5, C: 1.0})
    corpus.add("f", [32, 32], {A: 1.0, B: 1.1, C: 10.0})
    assert corpus.portfolio(1) == [A]
    assert corpus.portfolio(2) == [A, C]
    assert corpus.portfolio(9) == [A, C], "B adds nothing"


def test_a_portfolio_goes_beyond_the_defaults(corpus: Corpus) -> None:
    corpus.add("f", [8, 8], {DEFAULTS[0]: 10.0, A: 10.0})
    corpus.add("f", [16, 16], {DEFAULTS[0]: 5.0, B: 10.0, C: 4.0})
    assert corpus.portfolio(9) == [B]


def test_every_family_counts_the_same(corpus: Corpus) -> None:
    """Three nests of one family gain a little with A, one of another gains more with B."""
    for size in (8, 16, 32):
        corpus.add("many", [size, size], {A: 10.0, DEFAULTS[0]: 8.0})
    corpus.add("few", [8, 8, 8], {B: 10.0, DEFAULTS[0]: 7.0})
    assert corpus.portfolio(1) == [B]


def test_what_failed_is_not_chosen_and_what_fails_everywhere_is_left_out(corpus: Corpus) -> None:
    corpus.add("f", [8, 8], {A: None, B: 2.0})
    corpus.add("f", [16, 16], {A: None})
    assert corpus.portfolio(9) == [B]
    assert Corpus().portfolio(9) == []


def test_an_earlier_portfolio_is_extended(corpus: Corpus) -> None:
    corpus.add("f", [8, 8], {A: 10.0, B: 9.0, D: 2.0})
    assert corpus.portfolio(2, start=(B,)) == [B, A]
    assert corpus.portfolio(1, start=(B,)) == [B]


def test_the_best_of_like_nests_comes_first(corpus: Corpus) -> None:
    one = corpus.add("f", [8, 8], {A: 2.0})
    near = corpus.add("g", [32, 32], {B: 2.0, A: 1.0})
    corpus.add("h", [8, 8, 8, 8], {C: 2.0})
    found = of_like_nests(one, corpus.nests, corpus.measured, set(), 9)
    assert found == [B, C]
    assert of_like_nests(one, corpus.nests, corpus.measured, set(), 1) == [B]
    assert of_like_nests(one, corpus.nests, corpus.measured, {B.id}, 1) == [C]
    best = best_of(corpus.measured[near].values())
    assert best is not None
    assert best["schedule_id"] == B.id
    assert best_of([]) is None
