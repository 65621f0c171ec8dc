"""Long searches of nests that a corpus has measured, to compare transfer with.

Per nest, in one session: an evolutionary search that begins with random recipes, more random recipes, and
every recipe that the corpus measured on it, so that all that is compared was timed alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from random import Random

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.corpus.config import NestEntry
from gnnperf.corpus.nests import NestCollector, rounds_of
from gnnperf.corpus.reader import read_corpus
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.recipes import Recipe, random_recipe
from gnnperf.search.mutation import SearchBudget, search

POPULATION, EVOLVED = 0.2, 0.8
"""Random recipes that an evolutionary search begins with, and all that it tries, as shares of the number of
random recipes."""


class LongSearches(NestCollector):
    """Searches the nests of a configuration with `beside`."""

    @cached_property
    def measured(self) -> Mapping[str, list[Recipe]]:
        """digest -> the recipes that the corpus measured. Raises InputError where there is no corpus."""
        assert self.config.beside is not None
        found = read_corpus(self.config.beside).records.items()
        return {task: [Recipe.from_dict(r.schedule) for r in records.values()] for task, records in found}

    @property
    def steps(self) -> int:
        return len(self.config.entries)

    def run(self) -> None:
        """Search every nest that is not done."""
        assert self.measured  # read before anything is measured: it may not be there
        entries = [*itertools.chain(*rounds_of(self.config.entries))]
        self._pass("long search", entries, lambda entry: f"random search {entry.key}")

    @property
    def works(self) -> Mapping[str, Callable[[NestEntry, UnitCase, ProgramGraph], None]]:
        return {"long search": self._long_search}

    def _long_search(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        """Measure what is not yet in the log."""
        digest = graph.digest
        if digest not in self.measured:
            self.warn(f"{entry}: not a nest of {self.config.beside}")
            return
        self._add_nest(entry, case, graph)
        tried = self._known(digest)
        bench = self._bench(case, tried)
        rng = Random(f"{self.config.seed} {digest}")
        wanted = self.config.recipes_per_nest
        budget = SearchBudget(round(EVOLVED * wanted), float("inf"), POPULATION / EVOLVED)
        evolution = [trial for trial in tried if trial.origin != "foreign"][: budget.trials]
        search(bench, [], budget, rng, lambda trial: self._add(digest, trial), evolution)
        tried = self._known(digest)
        recipes = {trial.recipe for trial in tried}
        missing = wanted - sum(trial.origin == "random" for trial in tried)
        draw = partial(random_recipe, case.case.nest, rng, self.device.vectors)
        for origin, new in (
            ("random", list(fresh(draw, recipes, missing))),
            ("foreign", [recipe for recipe in self.measured[digest] if recipe not in recipes]),
        ):
            for trial in bench.run(new, origin):
                self._add(digest, trial)


def fresh(draw: Callable[[], Recipe], known: set[Recipe], count: int) -> Iterator[Recipe]:
    """Drawn recipes that are not among the known ones, which they join; fewer where there are no more."""
    for _ in range(20 * count):
        if count <= 0:
            return
        recipe = draw()
        if recipe not in known:
            known.add(recipe)
            count -= 1
            yield recipe
