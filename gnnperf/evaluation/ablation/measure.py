"""What was proposed, measured on this machine, and the table of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from gnnperf.corpus.asked import asked_for, entries_behind
from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.nests import NestCollector, rounds_of
from gnnperf.errors import InputError
from gnnperf.evaluation.ablation.propose import Proposed
from gnnperf.evaluation.ablation.table import WITHOUT, WITHOUT_NETWORK
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.replay import Answer
from gnnperf.evaluation.transfer import OURS
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.record_log import RecordLog
from gnnperf.schedules.recipes import Recipe
from gnnperf.training import Corpus, load_corpus

BEST = 3
"""Schedules of each nest, the fastest that its corpus knows, that are measured anew beside what is proposed:
all that is compared is timed in one session."""


def asked_of(corpus: Corpus, proposals: Sequence[Proposed]) -> list[dict[str, Sequence[Recipe]]]:
    """Recipes to measure, by nest: of one nest of every family, then of the next."""
    recipes = corpus.efficiency.recipes
    asked: dict[str, dict[Recipe, None]] = {}
    for proposal in proposals:
        if proposal.row in WITHOUT:
            of_nest = asked.setdefault(proposal.nest, {})
            of_nest.update(dict.fromkeys(recipes[schedule] for schedule in proposal.schedules))
    for nest, of_nest in asked.items():
        outcomes = Outcomes(corpus.measurements[nest])
        best = [s for s in outcomes.fastest_first(outcomes.measured) if s in recipes][:BEST]
        of_nest.update(dict.fromkeys(recipes[schedule] for schedule in best))
    rounds = rounds_of(nest for nest in corpus.nests if nest.digest in asked)
    return [{nest.digest: list(asked[nest.digest]) for nest in nests} for nests in rounds]


def measure_asked(
    folder: Path,
    configs: Sequence[NestConfig],
    corpus: Corpus,
    rounds: Sequence[Mapping[str, Sequence[Recipe]]],
    advance: Callable[[int, str], None],
    warn: Callable[[str], None],
) -> None:
    """Measure recipes on nests of a corpus, into a log that knows what is done.

    configs: of the collections that the corpus comes from; they say how its nests are made again.
    rounds: as of `asked_of`.
    advance: called with the entries of `entries_of` each round, as they are done.
    """
    log = RecordLog(folder)
    try:
        with Compiler() as compiler, Runner() as runner:
            for asked, config in product(rounds, configs):
                only = replace(config, entries=entries_of(config, corpus, asked))
                NestCollector(only, log, compiler, runner, advance, warn, asked=asked_for(asked)).run()
    finally:
        log.close()


def entries_of(
    config: NestConfig, corpus: Corpus, asked: Mapping[str, Sequence[Recipe]]
) -> tuple[NestEntry, ...]:
    """The kernels that nests with questions are cut from."""
    return entries_behind(config, ((n.kernel, n.symbols) for n in corpus.nests if n.digest in asked))


def measured_answers(
    folder: Path, corpus: Corpus, proposals: Sequence[Proposed]
) -> tuple[Corpus, list[Answer]]:
    """The nests that were measured, with these measurements alone, and what came of the proposals.

    Of what was interrupted: the rows that have proposals for all nests, and of the nests those where all
    that these rows propose was tried.

    Raises InputError where nothing of that is there.
    """
    of_row: dict[str, set[str]] = {}
    for proposal in proposals:
        of_row.setdefault(proposal.row, set()).add(proposal.nest)
    asked = set().union(*of_row.values())
    rows = {row for row in WITHOUT if of_row.get(row) == asked}
    if OURS not in rows or rows.isdisjoint(WITHOUT_NETWORK):
        raise InputError(
            f"expected all proposals of {OURS!r} in {folder.parent}, and of a row without network, got "
            "fewer; go on with --measure"
        )
    proposals = [proposal for proposal in proposals if proposal.row in rows]
    measured = load_corpus(folder)
    missing = {
        p.nest for p in proposals if not set(p.schedules) <= measured.measurements.get(p.nest, {}).keys()
    }
    nests = tuple(nest for nest in corpus.nests if nest.digest in asked - missing)
    if not nests:
        raise InputError(f"expected measurements in {folder}, got none; see what was left out")
    place = {nest.digest: at for at, nest in enumerate(nests)}
    answers = [
        Answer(
            p.row, place[p.nest], p.fold, p.seed,
            tuple(Outcomes(measured.measurements[p.nest]).tried(p.schedules)), True, p.spearman,
        )
        for p in proposals
        if p.nest in place
    ]  # fmt: skip
    return replace(measured, nests=nests), answers
