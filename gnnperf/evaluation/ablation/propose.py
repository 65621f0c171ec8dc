"""What every contender would try on held-out nests, out of all schedules that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.evaluation.replay import Folders, ReplayTask, proposals, resumed
from gnnperf.evaluation.row_log import FILE, RowLog, read_rows

if TYPE_CHECKING:
    from gnnperf.evaluation.reference import Reference
    from gnnperf.training import Corpus, CorpusNest


@dataclass(frozen=True)
class Proposed:
    """The first schedules of one row of the table on one nest. nest: its digest. schedules: ids, in the order
    to try them: those that fit, each another program. spearman: as of `Answer`."""

    row: str
    nest: str
    fold: int
    seed: int
    schedules: Sequence[str]
    spearman: float | None = None


def chosen_nests(corpus: Corpus, per_family: int, seed: int) -> frozenset[int]:
    """Positions of some nests of every family, drawn."""
    by_family: dict[str, list[int]] = {}
    for position, nest in enumerate(corpus.nests):
        by_family.setdefault(nest.family, []).append(position)
    rng = Random(seed)
    return frozenset(i for of in by_family.values() for i in rng.sample(of, min(per_family, len(of))))


def propose_all(
    folder: Path,
    folders: Folders,
    tasks: Sequence[ReplayTask],
    nests: frozenset[int],
    count: int,
    workers: int,
    settings: dict[str, Any],
    advance: Callable[[int, str], None],
) -> list[Proposed]:
    """Proposals of all tasks for some nests; those of earlier runs are in the folder.

    Args:
        folder: where they are kept as they come.
        folders, tasks, workers, advance: as of `in_processes`.
        nests: positions in the corpus.
        count: schedules per nest.
        settings: what the folder's proposals must have been made with, as JSON values.
    """
    work = partial(propose, nests=nests, count=count)
    log = RowLog(folder, settings)
    found = resumed(work, "proposed", folders, tasks, workers, advance, log)
    return [Proposed(**fields) for fields in found]


def recorded_proposals(folder: Path) -> tuple[dict[str, Any], list[Proposed]]:
    """The settings and proposals of an earlier `propose_all`. Raises InputError where there are none."""
    found = read_rows(folder / FILE)
    if found is None:
        raise InputError(f"expected a folder of `gnnperf eval ablation --measure`, got {folder}")
    settings, rows = found
    return settings, [Proposed(**one) for row in rows.values() for one in row["proposed"]]


def propose(corpus: Corpus, _: Corpus, task: ReplayTask, nests: frozenset[int], count: int) -> list[Proposed]:
    """Fit a policy on the reference nests of a fold; it chooses among all schedules that these know, for this
    machine."""
    from gnnperf.evaluation.reference import Reference

    reference = Reference.of(corpus, task.fold, describe_host().vectors)
    asked = sorted(nests.intersection(task.fold.queries))
    result = []
    for position, row, proposal, spearman in proposals(
        corpus, task, reference, dict.fromkeys(asked, reference.schedules)
    ):
        query = corpus.nests[position]
        first = different(reference, query, proposal.schedules, count)
        result.append(Proposed(row, query.digest, task.number, task.seed, first, spearman))
    return result


def different(reference: Reference, query: CorpusNest, schedules: Iterable[str], count: int) -> list[str]:
    """The first of the schedules that fit a nest, each of which makes another program of it."""
    found: dict[int, str] = {}
    for schedule in schedules:
        if len(found) == count:
            break
        (program,) = reference.queries.of(query, {schedule: reference.recipes[schedule]})
        if program is not None:
            found.setdefault(hash_of(program), schedule)
    return list(found.values())


def hash_of(program: Any) -> int:
    """Equal for what schedules make that no measurement could tell apart."""
    graph = program.graph
    parts = (graph.node_kind, graph.node_features, graph.edge_index, graph.edge_kind, graph.edge_features)
    return hash((*(part.tobytes() for part in parts),))
