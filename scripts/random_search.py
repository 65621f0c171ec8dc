"""Long searches of some nests of a corpus, which `gnnperf eval search` compares transfer with.

python scripts/random_search.py -o checkpoints/corpus/random_search

Per nest: an evolutionary search that begins with random recipes, more random recipes, and, so that all
that is compared was timed in one session, every recipe that the corpus measured on it. The log is
append-only: start it again and it goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.cli.options import released_corpus
from gnnperf.cli.output import progress
from gnnperf.corpus.collect_nests import Collector
from gnnperf.corpus.nest_config import CollectConfig, Entry
from gnnperf.corpus.nest_log import CorpusLog
from gnnperf.errors import GnnperfError
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Runner
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe, random_recipe
from gnnperf.search.mutation import SearchBudget, search
from gnnperf.training import load_corpus

CONFIG = Path(__file__).parents[1] / "configs/corpus/random_search.yaml"
POPULATION, EVOLVED = 0.2, 0.8
"""Random recipes that an evolutionary search begins with, and all that it tries, as shares of the number of
random recipes."""


@dataclass
class LongSearches(Collector):
    """`known`: per nest that is searched, the recipes that the corpus measured on it."""

    known: Mapping[str, Sequence[Recipe]] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.config.entries)

    def run(self) -> None:
        self._pass("searching", lambda entry: f"random search {entry.key}")

    @property
    def works(self) -> Mapping[str, Callable[[Entry, UnitCase, ProgramGraph], None]]:
        return {"searching": self._record}

    def _record(self, entry: Entry, case: UnitCase, graph: ProgramGraph) -> None:
        """Measure what is not yet in the log."""
        digest = graph.digest
        if digest not in self.known:
            self.warn(f"{entry}: not a nest of the corpus")
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
        for origin, new in (
            ("random", list(fresh(case.case.nest, rng, recipes, missing))),
            ("foreign", [recipe for recipe in self.known[digest] if recipe not in recipes]),
        ):
            for trial in bench.run(new, origin):
                self._add(digest, trial)


def fresh(nest: LoopNest, rng: Random, known: set[Recipe], count: int) -> Iterator[Recipe]:
    """Random recipes that are not among the known ones, which they join; fewer where there are no more."""
    for _ in range(20 * count):
        if count <= 0:
            return
        recipe = random_recipe(nest, rng)
        if recipe not in known:
            known.add(recipe)
            count -= 1
            yield recipe


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-c", "--config", type=Path, default=CONFIG)
    parser.add_argument("--corpus", type=Path, default=released_corpus())
    parser.add_argument("-o", "--output", type=Path, default=Path("checkpoints/corpus/random_search"))
    parser.add_argument("--seal", action="store_true", help="compress the log when everything is measured")
    arguments = parser.parse_args()
    try:
        config, corpus = CollectConfig.load(arguments.config), load_corpus(arguments.corpus)
        known = {
            digest: [Recipe.from_dict(m.schedule) for m in of_nest.values()]
            for digest, of_nest in corpus.measurements.items()
        }
        log = CorpusLog(arguments.output)
        try:
            with Compiler() as compiler, Runner() as runner:
                searches = LongSearches(config, log, compiler, runner, known=known)
                searches.warn = lambda text: print(f"left out: {text}", file=sys.stderr)
                with progress("measuring", searches.steps) as searches.advance:
                    searches.run()
            if arguments.seal:
                log.seal()
        finally:
            log.close()
    except GnnperfError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
