"""Recipes that somebody asks for, measured on nests that configurations list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.nests import NestCollector, key_of, rounds_of
from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusRecord
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.schedules.recipes import Recipe

Asked = Mapping[str, Mapping[Recipe, str]]
"""Digest of a nest -> recipes for it, in the order of measuring, each with the origin that is recorded."""


def asked_for(recipes: Mapping[str, Sequence[Recipe]]) -> Asked:
    """Recipes of nests, by their digests, whose origin is that they were asked for."""
    return {digest: dict.fromkeys(of_one, "asked") for digest, of_one in recipes.items()}


@dataclass
class AskedRecipes(NestCollector):
    """Measures every recipe asked for, all those of a nest in one session, so that they were timed alike.
    Nests that are not listed are passed over."""

    asked: Asked = field(default_factory=dict)

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
        new = [recipe for recipe in asked if recipe.id not in tried]
        for trial in self._bench(case, known).run(new, ""):
            self._add(graph.digest, replace(trial, origin=asked[trial.recipe]))


def entries_behind(
    config: NestConfig, nests: Iterable[tuple[str, Mapping[str, float]]]
) -> tuple[NestEntry, ...]:
    """The entries that nests are cut from. nests: the kernel and sizes of each."""
    wanted = {(kernel, frozenset(sizes.items())) for kernel, sizes in nests}
    return tuple(e for e in config.entries if (e.name, frozenset(e.symbols.items())) in wanted)


def measured_before(config: NestConfig, corpus: MeasuredTasks) -> tuple[NestConfig, Asked]:
    """The entries of a configuration whose nests a corpus holds, and what it has measured on them, the best
    first: what is much slower is given up soon then. Raises InputError where it holds none of them."""
    nests = [task for task in corpus.tasks.values() if task.frontend == "dace"]
    entries = entries_behind(config, ((nest.name, nest.parameters) for nest in nests))
    if not entries:
        raise InputError(f"--again: expected a corpus of nests that {config.name} lists, got {corpus.folder}")
    asked = {
        nest.task: {
            Recipe.from_dict(record.schedule): record.origin
            for record in sorted(corpus.records[nest.task].values(), key=_seconds)
        }
        for nest in nests
    }
    return replace(config, entries=entries), asked


def _seconds(record: CorpusRecord) -> float:
    return float("inf") if record.runtime_s is None else record.runtime_s
