"""What recipes make of the nests of a corpus, each made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnnperf.devices import VectorUnit
from gnnperf.nn import ScheduledProgram, scheduled_programs
from gnnperf.schedules.recipes import Recipe

if TYPE_CHECKING:
    from gnnperf.training.corpus import CorpusNest


class ScheduledNests:
    """Scheduled programs by nest and schedule; they are made when first asked for, about 5 ms each.

    vectors: of the machine that they were measured on.
    """

    def __init__(self, vectors: VectorUnit) -> None:
        self._vectors = vectors
        self._known: dict[str, dict[str, ScheduledProgram | None]] = {}

    def on(self, vectors: VectorUnit) -> ScheduledNests:
        """The same on a machine with such vectors."""
        return self if vectors == self._vectors else ScheduledNests(vectors)

    def of(self, nest: CorpusNest, recipes: Mapping[str, Recipe]) -> Sequence[ScheduledProgram | None]:
        """Of recipes by schedule id, in their order; None where one does not fit the nest, or the corpus does
        not hold the nest."""
        if nest.nest is None:
            return [None] * len(recipes)
        known = self._known.setdefault(nest.digest, {})
        missing = {schedule: recipe for schedule, recipe in recipes.items() if schedule not in known}
        made = scheduled_programs(
            nest.nest, nest.graph, list(missing.values()), nest.trip_counts, self._vectors
        )
        known.update(zip(missing, made, strict=True))
        return [known[schedule] for schedule in recipes]
