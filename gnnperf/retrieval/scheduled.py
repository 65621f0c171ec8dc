"""What the network says of recipes on a nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe

if TYPE_CHECKING:
    from gnnperf.nn import Bundle


class OfNest(Protocol):
    """A task that is a loop nest in normal form. trip_counts: measured means of its loops whose bounds depend
    on data, by iterator."""

    @property
    def nest(self) -> LoopNest: ...
    @property
    def graph(self) -> ProgramGraph: ...
    @property
    def trip_counts(self) -> Mapping[str, float]: ...


def scores_of(
    bundle: Bundle, task: OfNest, recipes: Sequence[Recipe], vectors: VectorUnit = AVX512
) -> NDArray[np.float32]:
    """Score what s recipes make of a task: f32[s], in nats, 0 for the best; -inf where one does not fit.
    vectors: of the machine."""
    from gnnperf.nn import scheduled_programs

    programs = scheduled_programs(task.nest, task.graph, recipes, task.trip_counts, vectors)
    fits = [program is not None for program in programs]
    scores = np.full(len(recipes), -np.inf, np.float32)
    scores[fits] = bundle.score([program for program in programs if program is not None])
    return scores - scores.max(initial=-1e30)
