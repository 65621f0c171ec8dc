"""What the network says of recipes on a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from helpers.nests import RECIPES, small_nest
from nests.examples import spmm

from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest, nest_graph
from gnnperf.nn import Bundle, scheduled_programs
from gnnperf.retrieval.scheduled import scores_of
from gnnperf.schedules.recipes import Recipe

TILE, STREAM, WRONG, UNFIT = RECIPES.values()


@dataclass(frozen=True)
class Task:
    """A task that is a nest."""

    nest: LoopNest
    trip_counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def graph(self) -> ProgramGraph:
        return nest_graph(self.nest, self.trip_counts)


TASK = Task(small_nest(64, 32, reduction=True))


def test_the_best_has_0_and_what_does_not_fit_is_no_candidate(bundle: Bundle) -> None:
    recipes = [UNFIT, TILE, STREAM, UNFIT, WRONG]
    scores = scores_of(bundle, TASK, recipes)
    assert (scores.shape, scores.dtype) == ((5,), np.float32)
    assert np.isneginf(scores).tolist() == [True, False, False, True, False]
    assert scores.max() == 0.0
    programs = scheduled_programs(TASK.nest, TASK.graph, [TILE, STREAM, WRONG])
    expected = bundle.score([program for program in programs if program is not None])
    np.testing.assert_allclose(scores[[1, 2, 4]], expected - expected.max(), atol=1e-6)


def test_nothing_fits_and_nothing_asked(bundle: Bundle) -> None:
    assert np.isneginf(scores_of(bundle, TASK, [UNFIT, UNFIT])).all()
    assert scores_of(bundle, TASK, []).shape == (0,)


def test_measured_trip_counts_count(bundle: Bundle) -> None:
    recipes = [Recipe(), Recipe(parallel="none"), Recipe(order="row")]
    short, long = (scores_of(bundle, Task(spmm(), {"p": trips}), recipes) for trips in (2.0, 500.0))
    assert short.tolist() != pytest.approx(long.tolist())
