"""Policies answer the queries of a fold, and the corpus says what came of it. Folds run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.devices import vectors_of
from gnnperf.errors import InputError
from gnnperf.evaluation.row_log import RowLog
from gnnperf.measure.workers import spawned

if TYPE_CHECKING:
    from gnnperf.evaluation.rankers import PolicyProposal
    from gnnperf.evaluation.reference import Reference
    from gnnperf.evaluation.splits import Fold
    from gnnperf.training.corpus import Corpus
    from gnnperf.training.regret import Relative


T = TypeVar("T")


@dataclass(frozen=True)
class Folders:
    """What is replayed. corpora: folders, read as one. trials: folder with more measurements of nests of the
    corpora, which no policy sees and which say what a query's candidates give, where given.
    """

    corpora: Sequence[Path]
    trials: Path | None = None

    def load(self) -> Corpus:
        """The corpora, without the nests that they hold no loops of: a recipe cannot be applied to these.
        Raises InputError."""
        from gnnperf.training.corpus import load_corpora

        corpus = load_corpora(self.corpora)
        held = tuple(nest for nest in corpus.nests if nest.nest is not None)
        if not held:
            raise InputError(
                f"expected corpora that hold their nests, got {', '.join(map(str, self.corpora))}; collect "
                "them anew"
            )
        return replace(corpus, nests=held)

    def load_trials(self, corpus: Corpus) -> Corpus:
        """What queries are answered from. Raises InputError, too where it holds no nest of the corpora."""
        from gnnperf.training.corpus import load_corpus

        if self.trials is None:
            return corpus
        trials = load_corpus(self.trials)
        if not any(nest.digest in trials.measurements for nest in corpus.nests):
            raise InputError(
                f"--trials: expected measurements of nests of {', '.join(map(str, self.corpora))}, got "
                f"{self.trials}, which has others; give another folder"
            )
        return trials


@dataclass(frozen=True)
class ReplayTask:
    """One policy on one fold: `number` of the fold, and the seed of what is learned. quick: networks learn
    briefly."""

    policy: str
    fold: Fold
    number: int
    seed: int
    quick: bool = False

    @property
    def name(self) -> str:
        """Different for different tasks of a replay."""
        return f"{self.policy} {self.number} {self.seed}"


@dataclass(frozen=True)
class Answer:
    """What one policy gave one query.

    Attributes:
        row: of the table.
        nest: position of the query in the corpus.
        fold: number of its fold.
        seed: of what was learned.
        tried: runtimes of the candidates that would be measured, in their order; None failed.
        ordered: False where all orders of them are equally likely.
        spearman: rank correlation of the policy's distance to reference nests with the regret of taking
            their best schedules; None of a policy without distances, and where too little was measured.
    """

    row: str
    nest: int
    fold: int
    seed: int
    tried: tuple[Relative | None, ...]
    ordered: bool
    spearman: float | None = None

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Answer:
        """What `dataclasses.asdict` made."""
        from gnnperf.training.regret import Relative

        tried = tuple(None if one is None else Relative(**one) for one in fields["tried"])
        return Answer(**{**fields, "tried": tried})


def replay(corpus: Corpus, judge: Corpus, task: ReplayTask) -> list[Answer]:
    """Fit a policy on the reference nests of a fold and let it answer the queries that `judge` has measured,
    for the machine that it did so on."""
    from gnnperf.evaluation.outcomes import Outcomes
    from gnnperf.evaluation.reference import Reference

    reference = Reference.of(corpus, task.fold, vectors_of(judge.device))
    digests = {position: corpus.nests[position].digest for position in task.fold.queries}
    outcomes = {
        position: Outcomes(judge.measurements[digest])
        for position, digest in digests.items()
        if digest in judge.measurements
    }
    pools = {
        position: [schedule for schedule in reference.schedules if schedule in of_query.measured]
        for position, of_query in outcomes.items()
    }
    return [
        Answer(
            row, position, task.number, task.seed, tuple(outcomes[position].tried(proposal.schedules)),
            proposal.ordered, spearman,
        )
        for position, row, proposal, spearman in proposals(corpus, task, reference, pools)
    ]  # fmt: skip


def proposals(
    corpus: Corpus, task: ReplayTask, reference: Reference, pools: Mapping[int, Sequence[str]]
) -> Iterator[tuple[int, str, PolicyProposal, float | None]]:
    """What the policy of a task proposes to queries of its fold, once it is fitted: position of the query,
    row of the table, proposal, and its rank correlation as of `Answer`.

    reference: of the fold. pools: what to choose from, by position of the query.
    """
    from gnnperf.evaluation.rankers import make_policy

    rankers = make_policy(task.policy, corpus, task.quick)(reference, task.seed)
    known = list(task.fold.reference)
    for position, pool in pools.items():
        for row, rank in rankers.items():
            proposal = rank(corpus.nests[position], pool)
            spearman = None
            if proposal.distances is not None:
                spearman = rank_correlation(proposal.distances, corpus.regret[position, known])
            yield position, row, proposal, spearman


def rank_correlation(distances: Float[NDArray, " r"], regret: Float[NDArray, " r"]) -> float | None:
    """Spearman's, over the references whose regret is known (not NaN); None of fewer than 3, or where all are
    alike."""
    from scipy.stats import spearmanr

    measured = ~np.isnan(regret)
    if measured.sum() < 3 or min(np.ptp(regret[measured]), np.ptp(distances[measured])) == 0:
        return None
    return float(spearmanr(distances[measured], regret[measured]).statistic)


def replay_all(
    folders: Folders,
    tasks: Sequence[ReplayTask],
    workers: int,
    advance: Callable[[int, str], None],
    log: RowLog | None = None,
) -> list[Answer]:
    """The answers of all tasks, in their order; arguments as of `in_processes`. log: keeps those of a task
    once it is done; tasks that it knows are not done again."""
    log = log or RowLog(None, {})
    found = resumed(replay, "answers", folders, tasks, workers, advance, log)
    return [Answer.from_dict(fields) for fields in found]


def resumed(
    work: Callable[[Corpus, Corpus, ReplayTask], Sequence[Any]],
    column: str,
    folders: Folders,
    tasks: Sequence[ReplayTask],
    workers: int,
    advance: Callable[[int, str], None],
    log: RowLog,
) -> Iterator[dict[str, Any]]:
    """What the work gives for all tasks, in their order, as JSON values.

    work: gives dataclasses. column: of the log's rows, that holds them. log: keeps what a task gave; tasks
    that it knows are not done again. The other arguments are as of `in_processes`.
    """
    left = [task for task in tasks if task.name not in log.rows]
    advance(len(tasks) - len(left), "")
    for at, found in in_processes(work, folders, left, workers, advance) if left else ():
        log.add(left[at].name, {column: [asdict(one) for one in found]})
    return (fields for task in tasks for fields in log.rows[task.name][column])


def in_processes(
    work: Callable[[Corpus, Corpus, ReplayTask], T],
    folders: Folders,
    tasks: Sequence[ReplayTask],
    workers: int,
    advance: Callable[[int, str], None],
) -> Iterator[tuple[int, T]]:
    """Position and result of each task as it is done, in processes of one thread each.

    Args:
        work: a function of a module: of the corpus, of what queries are answered from, and of a task.
        folders: of the corpora; each process reads them.
        tasks: what to do.
        workers: number of processes.
        advance: called after each task.
    """
    with closing(spawned(partial(_work, work), tasks, workers, _read, folders)) as done:
        for found in done:
            yield found
            advance(1, "")


_corpus: Corpus
_judge: Corpus
"""Of a worker process."""


def _read(folders: Folders) -> None:
    global _corpus, _judge
    _corpus = folders.load()
    _judge = folders.load_trials(_corpus)


def _work(work: Callable[[Corpus, Corpus, ReplayTask], T], task: ReplayTask) -> T:
    return work(_corpus, _judge, task)
