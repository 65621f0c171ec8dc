"""`gnnperf collect`: measure nests x recipes of a corpus configuration into an append-only log.

Passes over the entries. "search" has a first look at every nest, so that a portfolio of recipes can be chosen
that does well on all of them. "cross" measures on each nest the portfolio and recipes that were good on like
nests: these pairs say which nests like the same schedules, which is what the encoder learns. "converge" goes
on with the searches, of all entries or of a share of them, until they find nothing better. Each pass skips
what the log says is done with the same settings, and nothing is measured again. With a portfolio from an
earlier start, or of another corpus, new entries are searched as they are crossed: no pass goes over all of
them first. "cross" and "converge" take an entry of every family at a time, so that those before an
interruption are finished.

Two passes stand alone. "asked" measures recipes that somebody asks for. "long search", of a configuration
with `beside`, is for comparing transfer with: an evolutionary search that begins with random recipes, more
random recipes, and every recipe that the other corpus measured.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.backends.cpp.trials import NestBench, Trial
from gnnperf.corpus import random_nests
from gnnperf.corpus.asked import Asked, recipes_of
from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.foreign import choose_portfolio, of_like_nests
from gnnperf.corpus.nest_records import record_line, task_line, trial_of
from gnnperf.corpus.reader import read_corpus
from gnnperf.devices import DeviceSpec, probe
from gnnperf.errors import BuildError, InputError, MeasureError
from gnnperf.frontends.dace import capture_inputs, load_kernel
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.record_log import Line, RecordLog, RelayedLog, read_lines
from gnnperf.measure.workers import Send, each
from gnnperf.schedules.recipes import DEFAULTS, Recipe, random_recipe
from gnnperf.search.mutation import SearchBudget, default_starts, search

FIRST_LOOK = 6
"""Random recipes, beside DEFAULTS, that a nest's first search tries."""
GIVE_UP = 3.0
"""Times slower than the best so far: enough to know that a recipe does not suit a nest."""
PORTFOLIO_SHARE = 2 / 3
"""of the foreign recipes are the same for all nests; the rest suited nests like the one they are for."""
SAID = 3
"""Exit code of what failed on an entry and said why; other codes, Python's own among them, say nothing."""
POPULATION, EVOLVED = 0.2, 0.8
"""Random recipes that the evolution of a long search begins with, and all that it tries, as shares of the
number of random recipes."""

Spread = Callable[
    ["NestCollector", Sequence[NestEntry], str, Callable[[tuple[str, Any]], None]],
    Generator[tuple[NestEntry, int], None, None],
]
"""Does a kind of work (see `NestCollector.do`) on entries somewhere, and yields each with its exit code, as
`workers.each` does; what is sent meanwhile is received here."""


@dataclass
class NestCollector:
    """Runs the passes. `advance(steps, doing)` reports progress, `warn(text)` what was left out; `spread`
    says where the work is done; here, on `processes` entries at a time, if it is None. Where recipes are
    `asked` for, they are measured and nothing else, and nests without any are passed over."""

    config: NestConfig
    log: RecordLog
    compiler: Compiler
    runner: Runner
    advance: Callable[[int, str], None] = lambda _steps, _doing: None
    warn: Callable[[str], None] = lambda _: None
    portfolio: Sequence[Recipe] = ()
    spread: Spread | None = None
    processes: int = 2
    asked: Asked | None = None

    def __post_init__(self) -> None:
        self.device: DeviceSpec = probe()

    @property
    def steps(self) -> int:
        entries = self.config.entries
        if self.asked is not None or self.config.beside is not None:
            return len(entries)
        return (2 if self._looks_first else 1) * len(entries) + sum(map(self._converges, entries))

    def run(self) -> None:
        """All passes over all entries, in an order that visits all families early.

        Raises InputError where the configuration is `beside` a corpus that is not there.
        """
        entries = [*itertools.chain(*rounds_of(self.config.entries))]
        if self.asked is not None:
            ids = sorted((digest, sorted(r.id for r in recipes)) for digest, recipes in self.asked.items())
            self._pass("asked", entries, lambda e: key_of("asked", e, ids))
        elif self.config.beside is not None:
            again = replace(self, asked=recipes_of(read_corpus(self.config.beside)))
            again._pass("long search", entries, lambda e: f"random search {e.key}")
        else:
            self._search_and_cross(entries)

    def _search_and_cross(self, entries: Sequence[NestEntry]) -> None:
        settings = self.config
        if self._looks_first:
            self._pass("search", entries, lambda e: f"search {e.key}")
        self.portfolio = self._portfolio()
        shared = [r.id for r in (*DEFAULTS, *self.portfolio)]
        budget = (settings.recipes_per_nest, settings.patience, settings.budget_s_per_nest)
        for of_round in rounds_of(entries):
            self._pass("cross", of_round, lambda e: key_of("cross", e, settings.foreign_per_nest, shared))
            to_search = [entry for entry in of_round if self._converges(entry)]
            self._pass("converge", to_search, lambda e: key_of("converge", e, *budget))

    @property
    def _looks_first(self) -> bool:
        """Must all entries be seen before there is a portfolio?"""
        return self.config.portfolio is None and self._portfolio_key not in self.log.done

    def _converges(self, entry: NestEntry) -> bool:
        """Is the entry among the share whose searches go on until they find nothing better?"""
        drawn = int(hashlib.sha256(f"converge {entry.key}".encode()).hexdigest()[:8], 16) / 2**32
        return drawn < self.config.converge_share

    def _pass(self, name: str, entries: Sequence[NestEntry], key: Callable[[NestEntry], str]) -> None:
        """The work of that name on the entries whose `key` is not done."""
        if self.spread is None:
            self.log.require_device(self.device.fingerprint)
        todo = [entry for entry in entries if key(entry) not in self.log.done]
        self.advance(len(entries) - len(todo), name)
        receive = self.log.receiving(self.warn)
        if self.spread is not None:
            tasks = self.spread(self, todo, name, receive)
        else:
            tasks = each(todo, lambda entry, send: self._task(entry, name, send), receive, self.processes)
        with closing(tasks) as ended:
            for entry, code in ended:
                if code == 0:
                    self.log.mark_done(key(entry))
                elif code != SAID:
                    self.warn(f"{entry}: its process ended with {code}")
                self.advance(1, f"{name} {entry}")

    def _task(self, entry: NestEntry, name: str, send: Send) -> None:
        """In a process of its own."""
        folder = self.compiler.folder / hashlib.sha256(entry.key.encode()).hexdigest()[:16]
        with Compiler(folder, jobs=1) as compiler, Runner(self.runner.threads) as runner:
            log = RelayedLog(self.log.known, send)
            replace(self, log=log, compiler=compiler, runner=runner).do(entry, name, send)

    def do(self, entry: NestEntry, name: str, send: Send) -> None:
        """The work of that name (see `works`) on an entry, in this process. What fails is not done: it may be
        the machine, so the next start tries again. Raises SystemExit then."""
        self.warn = lambda text: send(("warning", text))
        try:
            work = self.works[name]
            for case, graph in self._cases(entry):
                work(entry, case, graph)
        except Exception as error:  # one entry must not end hours of measuring; DaCe raises anything
            self.warn(f"{entry}: {type(error).__name__}: {error}")
            raise SystemExit(SAID) from None

    @property
    def works(self) -> Mapping[str, Callable[[NestEntry, UnitCase, ProgramGraph], None]]:
        """What a pass of that name does with a nest."""
        return {
            "search": self._first_look, "cross": self._cross, "converge": self._converge,
            "asked": self._measure_asked, "long search": self._long_search,
        }  # fmt: skip

    def _cases(self, entry: NestEntry) -> Iterator[tuple[UnitCase, ProgramGraph]]:
        kernel = load_kernel(*self._sources(entry), self.config.seed)
        capture_inputs(kernel, self.compiler, self.runner)
        failed = []
        for skipped in kernel.skipped:
            self.warn(f"{entry.kernel}: {skipped.part}: {skipped.reason}")
        for unit in kernel.units:
            if unit.objection is not None:
                self.warn(f"{entry.kernel}: {unit.name}: {unit.objection}")
                continue
            if not unit.nest.has_loops:
                continue
            graph = unit.graph
            try:
                case = UnitCase.prepare(unit, "auto", self.compiler, self.runner)
            except BuildError as error:
                self.warn(f"{entry.kernel}: {unit.name}: {error}")
                continue
            except MeasureError as error:
                failed.append(f"{unit.name}: {error}")
                continue
            yield case, graph
        if failed:
            raise MeasureError("; ".join(failed))

    def _sources(self, entry: NestEntry) -> tuple[str, Mapping[str, float], str | None]:
        """What `load_kernel` needs."""
        if entry.random is not None:
            file = random_nests.write(entry.random, Path(self.compiler.folder))
            return f"{file}:{entry.kernel}", entry.symbols, f"{file}:inputs"
        inputs = self.config.path(entry.inputs) if entry.inputs else None
        return self.config.path(entry.kernel), entry.symbols, inputs

    def _first_look(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        trials = min(self.config.recipes_per_nest, len(DEFAULTS) + FIRST_LOOK)
        self._search(
            entry, case, graph, SearchBudget(trials, self.config.budget_s_per_nest, random_share=1.0)
        )

    def _converge(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        trials, seconds = self.config.recipes_per_nest, self.config.budget_s_per_nest
        self._search(entry, case, graph, SearchBudget(trials, seconds, patience=self.config.patience))

    def _search(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph, budget: SearchBudget) -> None:
        """Search within a budget of trials to which foreign recipes do not count."""
        digest = graph.digest
        self._add_nest(entry, case, graph)
        known = self._known(digest)
        foreign = sum(trial.origin == "foreign" for trial in known)
        seed = int(hashlib.sha256(f"{self.config.seed} {digest}".encode()).hexdigest()[:8], 16)
        found = search(
            self._bench(case, known), default_starts(), replace(budget, trials=budget.trials + foreign),
            Random(seed), lambda trial: self._add(digest, trial), known,
        )  # fmt: skip
        key = f"nest {digest}"
        spent_s = self.log.done.get(key, {}).get("search_s", 0.0) + found.seconds
        self.log.mark_done(
            key, trials=len(found.trials) - foreign, search_s=round(spent_s, 1), ended=found.ended,
            budget={"trials": budget.trials, "patience": budget.patience, "seconds": budget.seconds},
        )  # fmt: skip

    def _cross(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        digest = graph.digest
        self._add_nest(entry, case, graph)
        if len(self._known(digest)) <= len(DEFAULTS):  # new since the portfolio was chosen
            self._first_look(entry, case, graph)
        known = self._known(digest)
        tried = {trial.recipe.id for trial in known}
        # What it was given before an interruption is given again: foreign recipes are not excluded.
        own = {trial.recipe.id for trial in known if trial.origin != "foreign"}
        shared = [*self.portfolio]
        like = of_like_nests(
            digest, self.log.tasks, self.log.records, own | {r.id for r in shared},
            max(0, self.config.foreign_per_nest - len(shared)),
        )  # fmt: skip
        bench = self._bench(case, known)
        for recipes, origin in ((DEFAULTS, "default"), ([*shared, *like], "foreign")):
            new = [r for r in dict.fromkeys(recipes) if r.id not in tried]
            tried |= {r.id for r in new}
            for trial in bench.run(new, origin):
                self._add(digest, trial)

    def _measure_asked(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        """All recipes of a nest in one session, so that they were timed alike."""
        assert self.asked is not None
        if not (asked := self.asked.get(graph.digest)):
            return
        self._add_nest(entry, case, graph)
        known = self._known(graph.digest)
        tried = {trial.recipe.id for trial in known}
        new = [recipe for recipe in asked if recipe.id not in tried]
        for trial in self._bench(case, known).run(new, ""):
            self._add(graph.digest, replace(trial, origin=asked[trial.recipe]))

    def _long_search(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        """In one session too."""
        assert self.asked is not None
        digest = graph.digest
        if digest not in self.asked:
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
            ("foreign", [recipe for recipe in self.asked[digest] if recipe not in recipes]),
        ):
            for trial in bench.run(new, origin):
                self._add(digest, trial)

    @property
    def _portfolio_key(self) -> str:
        return f"portfolio {round(PORTFOLIO_SHARE * self.config.foreign_per_nest)}"

    def _portfolio(self) -> list[Recipe]:
        """The portfolio that the log holds for these settings, or a new one that extends the last, or that of
        the corpus that the configuration names."""
        key, count = self._portfolio_key, round(PORTFOLIO_SHARE * self.config.foreign_per_nest)
        if key not in self.log.done:
            source, about = self.config.portfolio, {}
            if source is None:
                done: Iterable[Line] = self.log.done.values()
            else:
                done, about = (line for _, line in read_lines(source, "done")), {"of": source.name}
            earlier = [line["recipes"] for line in done if line["key"].startswith("portfolio ")]
            if source is not None and not earlier:
                raise InputError(f"portfolio: expected the folder of a corpus with a portfolio, got {source}")
            start = [Recipe.from_dict(r) for r in max(earlier, key=len, default=[])[:count]]
            chosen = choose_portfolio(self.log.tasks, self.log.records, count, start)
            self.log.mark_done(key, recipes=[recipe.to_dict() for recipe in chosen], **about)
        return [Recipe.from_dict(r) for r in self.log.done[key]["recipes"]]

    def _known(self, digest: str) -> list[Trial]:
        return [trial_of(line) for line in self.log.records.get(digest, {}).values()]

    def _bench(self, case: UnitCase, known: Sequence[Trial]) -> NestBench:
        limits = replace(case.limits, budget_s=self.config.budget_s_per_recipe)
        bench = NestBench(case.case, self.compiler, self.runner, limits, GIVE_UP)
        bench.remember(known)
        return bench

    def _add_nest(self, entry: NestEntry, case: UnitCase, graph: ProgramGraph) -> None:
        if graph.digest not in self.log.tasks:
            line = task_line(entry, case, graph, self.device, self.runner, self.compiler.version)
            self.log.add("tasks", line)

    def _add(self, digest: str, trial: Trial) -> None:
        self.log.add("records", record_line(digest, trial, self.device.fingerprint))


def key_of(work: str, entry: NestEntry, *settings: Any) -> str:
    """Names work on an entry with these settings: with others it is other work."""
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
    return f"{work} {entry.key} {digest}"


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


class _OfFamily(Protocol):
    @property
    def family(self) -> str: ...


OfFamily = TypeVar("OfFamily", bound=_OfFamily)


def rounds_of(entries: Iterable[OfFamily]) -> list[list[OfFamily]]:
    """An entry, or nest, of every family at a time: what is interrupted has seen all of them."""
    by_family: dict[str, list[OfFamily]] = {}
    for entry in entries:
        by_family.setdefault(entry.family, []).append(entry)
    longest = max(map(len, by_family.values()), default=0)
    return [[group[i] for group in by_family.values() if i < len(group)] for i in range(longest)]
