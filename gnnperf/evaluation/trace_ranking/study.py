"""Hold out workloads of known kinds, hold out kinds: nothing of what is held out is learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.errors import InputError
from gnnperf.evaluation.trace_ranking.baselines import (
    CONTENDERS,
    NETWORK,
    OURS,
    RANDOM,
    WITHOUT_NETWORKS,
    RankingSettings,
)
from gnnperf.evaluation.trace_ranking.scores import (
    Ranking,
    first_pick_ratio,
    rank_pool,
    rank_randomly,
    summary,
)
from gnnperf.training.traces.corpus import HELD_OUT
from gnnperf.training.traces.data import SchedulePool

WORKLOAD, KIND = "workload", "kind"
ALL = "all"


@dataclass(frozen=True)
class RankingTask:
    """Learn from `known`, rank the schedules of `asked`. held_out: WORKLOAD or KIND."""

    held_out: str
    known: tuple[SchedulePool, ...]
    asked: tuple[SchedulePool, ...]


def ranking_tasks(pools: Sequence[SchedulePool], settings: RankingSettings) -> Iterator[RankingTask]:
    """What is trained and judged. Workloads marked as held out are never learned from; those of a held-out
    kind are judged too. Raises InputError where there is nothing to hold out, or nothing left to learn from.
    """
    learned = [p for p in pools if p.workload.split != HELD_OUT]
    held_out = [p for p in pools if p.workload.split == HELD_OUT]
    kinds = sorted({p.workload.family for p in pools})
    known = sorted({p.workload.family for p in learned})
    if not learned or not held_out or len(known) < 2:
        raise InputError(
            "expected measured workloads of at least two kinds, some marked as held out, got "
            f"{len(learned)} others and {len(held_out)} held out of {len(kinds)} kinds; collect more"
        )
    asked = tuple(p for p in held_out if p.workload.family in known)
    if asked:
        yield RankingTask(WORKLOAD, tuple(learned), asked)
    for fold in folds_of(kinds, settings):
        rest = tuple(p for p in learned if p.workload.family not in fold)
        if rest:
            yield RankingTask(KIND, rest, tuple(p for p in pools if p.workload.family in fold))


def folds_of(kinds: Iterable[str], settings: RankingSettings) -> list[frozenset[str]]:
    """The kinds, dealt at random into folds."""
    dealt = np.random.default_rng(settings.seed).permutation(sorted(set(kinds)))
    return [frozenset(dealt[n :: settings.folds].tolist()) for n in range(min(settings.folds, len(dealt)))]


Judged = dict[tuple[str, str], dict[str, Ranking]]
"""(held out, model) -> workload -> its ranking."""
Say = Callable[[str], None]


def ranking_steps(
    tasks: Sequence[RankingTask], settings: RankingSettings
) -> dict[str, Callable[[Say], dict[str, Any]]]:
    """What is to be done, by name and in order: each step trains one contender on one task, ranks what was
    held out, and gives a row of JSON values for `judged_of`."""

    def step(task: RankingTask, name: str, _: Say) -> dict[str, Any]:
        names = [pool.workload.name for pool in task.asked]
        if name == RANDOM:
            ranked = {RANDOM: [rank_randomly(pool) for pool in task.asked]}
        else:
            found = CONTENDERS[name](task.known, task.asked, settings)
            ranked = {model: [*map(rank_pool, task.asked, scores)] for model, scores in found.items()}
        rankings = {
            model: {name: asdict(ranking) for name, ranking in zip(names, of_model, strict=True)}
            for model, of_model in ranked.items()
        }
        return {"held_out": task.held_out, "rankings": rankings, "failures": []}

    return {
        f"{task.held_out} held out, {number} of {len(tasks)}: {name}": partial(step, task, name)
        for number, task in enumerate(tasks, start=1)
        for name in (*CONTENDERS, RANDOM)
    }


def judged_of(rows: Sequence[Mapping[str, Any]]) -> Judged:
    """The rows of all steps, or of some, together."""
    judged: Judged = {}
    for row in rows:
        for model, rankings in row["rankings"].items():
            found = {name: Ranking(**ranking) for name, ranking in rankings.items()}
            judged.setdefault((row["held_out"], model), {}).update(found)
    return judged


def table(judged: Judged, pools: Sequence[SchedulePool], each_workload: bool = False) -> list[dict[str, Any]]:
    """A row for each model and all kinds or one of them; with each_workload one per workload too."""
    kind_of = {pool.workload.name: pool.workload.family for pool in pools}
    rows = [row for key in judged for row in _rows(key, judged[key], pools, each_workload)]
    for row in rows:
        if row["kind"] == ALL and row["model"] in (OURS, NETWORK):
            row |= _worth_of_network(judged, row["held_out"], row["model"], kind_of)
    return rows


def _worth_of_network(
    judged: Judged, held_out: str, model: str, kind_of: Mapping[str, str]
) -> dict[str, float]:
    """How much faster first picks are than those of the judges without a network, with the ends of the 95%
    interval over kinds; nothing where these were not asked."""
    own, others = judged[held_out, model], judged.get((held_out, WITHOUT_NETWORKS[-1]), {})
    both = sorted(own.keys() & others.keys())
    if not both:
        return {}
    ratio, low, high = first_pick_ratio(
        [own[name] for name in both], [others[name] for name in both], [kind_of[name] for name in both]
    )
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high}


def headline(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The figures of a table: of all kinds together, by what is held out, model and metric."""
    figures: dict[str, float] = {}
    for row in rows:
        if row["kind"] == ALL:
            prefix = "" if row["held_out"] == WORKLOAD else "heldout_kind_"
            prefix += "" if row["model"] == OURS else f"{row['model']}_"
            figures |= {f"{prefix}{name}": value for name, value in row.items() if name not in _ABOUT}
    return figures | dict(_network_figures(figures))


def _network_figures(figures: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """What the network is worth: by itself, and the best that there is without it."""
    for held_out, prefix in (("", "tvm_"), ("heldout_kind_", "tvm_kinds_")):
        for metric in ("top1", "top1_mean", "top5", "pairwise"):
            if f"{held_out}{NETWORK}_{metric}" in figures:
                others = [figures[f"{held_out}{name}_{metric}"] for name in WITHOUT_NETWORKS]
                yield f"{prefix}full_{metric}", figures[f"{held_out}{metric}"]
                yield f"{prefix}network_{metric}", figures[f"{held_out}{NETWORK}_{metric}"]
                yield f"{prefix}without_network_{metric}", max(others)


def describe(
    pools: Sequence[SchedulePool], settings: RankingSettings, corpus: MeasuredTasks
) -> dict[str, Any]:
    """What models are judged with and on."""
    learned = [p for p in pools if p.workload.split != HELD_OUT]
    return {
        "corpus_digest": corpus.digest,
        "device": corpus.device,
        "workloads": len(pools),
        "kinds": len({p.workload.family for p in pools}),
        "schedules": sum(len(p.graphs) for p in pools),
        "schedules_learned_from": sum(len(p.graphs) for p in learned),
        "folds": settings.folds,
        "fit": asdict(settings.fit),
        "seed": settings.seed,
        "began_as": None if settings.start is None else settings.start.encoder_id,
    }


_ABOUT = ("held_out", "kind", "workload", "model", "workloads", "schedules")
"""Fields of a row that say what it is of; the others are metrics."""


def _rows(
    key: tuple[str, str], rankings: Mapping[str, Ranking], pools: Sequence[SchedulePool], each_workload: bool
) -> Iterator[dict[str, Any]]:
    held_out, name = key
    mine = [p for p in pools if p.workload.name in rankings]
    groups = [(ALL, ALL, mine)]
    for kind in sorted({p.workload.family for p in mine}):
        of_kind = [p for p in mine if p.workload.family == kind]
        groups.append((kind, ALL, of_kind))
        if each_workload:
            groups += [(kind, p.workload.name, [p]) for p in of_kind]
    for kind, workload, members in groups:
        yield {
            "held_out": held_out, "kind": kind, "workload": workload, "model": name,
            "workloads": len(members), "schedules": sum(len(p.graphs) for p in members),
            **summary([rankings[p.workload.name] for p in members]),
        }  # fmt: skip
