"""`gnnperf eval search`: trials that searches need for what a few transferred candidates reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from gnnperf.corpus.record import CorpusRecord
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.metrics import (
    KEPT,
    expected_search_reduction,
    search_reduction,
    transfer_efficiency,
)
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.replay import Answer, Folders, replay_all
from gnnperf.evaluation.transfer import OURS, ReplaySettings
from gnnperf.training import Corpus
from gnnperf.training.regret import Relative

KS = (1, 3, 5)
OWN = frozenset({"default", "random", "mutation"})
"""Origins of the trials of a nest's own search."""

Recorded = Mapping[str, CorpusRecord]
Needed = Callable[[Sequence[Relative | None], Relative], float]


def random_trials(recorded: Recorded) -> list[str]:
    """Schedules that were drawn at random for the nest."""
    return [schedule for schedule, m in recorded.items() if m.origin == "random"]


def evolutionary_trials(recorded: Recorded) -> list[str]:
    """Schedules of the nest's own search in the order they were tried: what it began with, then mutations
    of the best, up to the last of them. None where nothing was mutated."""
    own = [(schedule, m.origin) for schedule, m in recorded.items() if m.origin in OWN]
    last = max((at for at, (_, origin) in enumerate(own) if origin == "mutation"), default=-1)
    return [schedule for schedule, _ in own[: last + 1]]


SEARCHES: Mapping[str, tuple[Callable[[Recorded], list[str]], Needed]] = {
    "random": (random_trials, expected_search_reduction),
    "evolutionary": (evolutionary_trials, search_reduction),
}
"""Name -> which of the recorded trials are its own, and how its need of trials is counted."""
PREFIX = {"random": "", "evolutionary": "evolutionary_"}
"""Of the names of its figures."""


@dataclass(frozen=True)
class SearchComparison:
    """One search against the first k candidates of ours on one nest.

    Attributes:
        digest, kernel, family: of the nest.
        k: transferred candidates.
        efficiency: of the best of them, against the best known.
        search: its name.
        trials: it needs to match them; None: it never did in what was recorded.
        recorded: trials of the search, each of other code.
    """

    digest: str
    kernel: str
    family: str
    k: int
    efficiency: float
    search: str
    trials: float | None
    recorded: int

    @property
    def at_least(self) -> float:
        """Trials needed at least: where they never were enough, the number recorded."""
        return self.recorded if self.trials is None else self.trials


def evaluate_search(
    folders: Folders,
    corpus: Corpus,
    settings: ReplaySettings,
    advance: Callable[[int, str], None] = lambda _steps, _doing: None,
) -> BenchmarkResult:
    """Compare, on each held-out nest, ours with the searches that were recorded for it.

    Args:
        folders: of the corpus, and of the trials where they are not those of the corpus.
        corpus: the same, read.
        settings: how to replay ours.
        advance: called after each task of `settings.tasks`.
    """
    trials = folders.load_trials(corpus).measurements
    answers = replay_all(folders, settings.tasks(corpus), settings.workers, advance)
    compared = compare(corpus, trials, [answer for answer in answers if answer.row == OURS])
    return BenchmarkResult(
        "search",
        dict(figures_of(compared)),
        [asdict(comparison) for comparison in compared],
        {**settings.describe(folders, corpus), "trials": folders.trials or list(folders.corpora)},
    )


def compare(
    corpus: Corpus, trials: Mapping[str, Recorded], answers: Sequence[Answer]
) -> list[SearchComparison]:
    """What each search that was recorded for a nest needs to match each answer, for each k.

    Args:
        corpus: which the nests of the answers are of.
        trials: by digest of the nest.
        answers: in any order.

    Returns:
        By search, k, family and kernel.
    """
    compared = [
        comparison
        for answer in answers
        for comparison in _compare(corpus, Outcomes(trials[corpus.nests[answer.nest].digest]), answer)
    ]
    return sorted(compared, key=lambda c: (list(SEARCHES).index(c.search), c.k, c.family, c.kernel))


def _compare(corpus: Corpus, outcomes: Outcomes, answer: Answer) -> Iterator[SearchComparison]:
    nest = corpus.nests[answer.nest]
    for search, (own, needed) in SEARCHES.items():
        tried = outcomes.tried(own(outcomes.recorded))
        for k in KS if tried else ():
            reached = [KEPT, *(achieved for achieved in answer.tried[:k] if achieved is not None)]
            count = needed(tried, min(reached, key=lambda achieved: achieved.share))
            yield SearchComparison(
                nest.digest,
                nest.kernel,
                nest.family,
                k,
                transfer_efficiency(answer.tried, outcomes.best, k),
                search,
                None if math.isinf(count) else count,
                len(tried),
            )


def figures_of(compared: Sequence[SearchComparison]) -> Iterator[tuple[str, float]]:
    """Per search: the median and the maximum of the trials needed, at least; the share of nests on which it
    never got there; the median of the trials that were recorded."""
    for search, prefix in PREFIX.items():
        for k in KS:
            some = [c for c in compared if (c.search, c.k) == (search, k)]
            if some:
                yield f"{prefix}median_trials_to_match_{k}", float(np.median([c.at_least for c in some]))
                yield f"{prefix}max_trials_to_match_{k}", max(c.at_least for c in some)
                yield f"{prefix}never_matched_share_{k}", float(np.mean([c.trials is None for c in some]))
        recorded = {c.digest: c.recorded for c in compared if c.search == search}
        if recorded:
            yield f"{prefix}recorded_trials_median", float(np.median([*recorded.values()]))
            yield f"{prefix}nests", len(recorded)
