"""Recipes that somebody asks for, measured on nests that configurations list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.corpus.config import NestEntry
from gnnperf.corpus.nests import NestCollector, key_of, rounds_of
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.recipes import Recipe


@dataclass
class AskedRecipes(NestCollector):
    """Measures every recipe asked for, all those of a nest in one session, so that they were timed alike.

    asked: recipes of each nest, by its digest. Nests that are not listed are passed over.
    """

    asked: Mapping[str, Sequence[Recipe]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.config.entries)

    def run(self) -> None:
        """Measure what is not yet in the log."""
        ids = sorted((digest, sorted(r.id for r in recipes)) for digest, recipes in self.asked.items())
        entries = [*itertools.chain(*rounds_of(self.config.entries))]
        self._pass("asked", entries, lambda entry: key_of("asked", entry, ids))

    @property
    def works(self) -> Mapping[str, Callable[[NestEntry, UnitCase, ProgramGraph], None]]:
        return {"asked": self._measure}

    def _measure(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        if not (asked := self.asked.get(graph.digest)):
            return
        self._add_nest(entry, case, graph)
        known = self._known(graph.digest)
        tried = {trial.recipe.id for trial in known}
        new = [recipe for recipe in dict.fromkeys(asked) if recipe.id not in tried]
        for trial in self._bench(case, known).run(new, "asked"):
            self._add(graph.digest, trial)
