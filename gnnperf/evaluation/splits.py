"""Which nests are queries, and which may be known to whoever answers them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from gnnperf.errors import InputError
from gnnperf.training.corpus import CorpusNest

SplitName = Literal["family", "size"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)


@dataclass(frozen=True)
class Fold:
    """Positions of nests in a corpus. `queries` are held out, `train` is learned from, `validation` stops
    the learning and chooses hyperparameters. Schedules come from `reference`: all nests but the queries."""

    queries: tuple[int, ...]
    validation: tuple[int, ...]
    train: tuple[int, ...]

    @property
    def reference(self) -> tuple[int, ...]:
        return (*self.train, *self.validation)


def make_folds(nests: Sequence[CorpusNest], split: SplitName, count: int, seed: int) -> list[Fold]:
    """Folds in which every nest is a query once.

    "family" holds out whole families: no nest of the query's family, nor of the other families of its fold,
    is known. "size" holds out kernels at one size, with all their nests; the same kernel at other sizes is
    known. In either, the fold that comes next is the validation set.

    Args:
        nests: of a corpus.
        split: what is held out together.
        count: of folds, at least 3; at most as many as there are groups to hold out.
        seed: of which groups share a fold.

    Raises:
        InputError: fewer than 3 folds, or fewer groups than folds.
    """
    groups = _groups(nests, split)
    if not 3 <= count <= len(groups):
        what = {"family": "families", "size": "kernel sizes"}[split]
        raise InputError(
            f"expected at least 3 folds and at most {len(groups)}, the {what} of the corpus, got {count}; "
            "give another number of folds, or a larger corpus"
        )
    held_out = _deal(groups, count, seed)
    folds = []
    for number, queries in enumerate(held_out):
        validation = held_out[(number + 1) % count]
        train = sorted(set(range(len(nests))).difference(queries, validation))
        folds.append(Fold(tuple(queries), tuple(validation), tuple(train)))
    return folds


Groups = dict[tuple[str, str], list[int]]
"""(family, "") or (kernel, its sizes) -> positions of nests that are held out together."""


def _groups(nests: Sequence[CorpusNest], split: SplitName) -> Groups:
    groups: Groups = {}
    for position, nest in enumerate(nests):
        size = json.dumps(nest.symbols, sort_keys=True)
        key = (nest.family, "") if split == "family" else (nest.kernel, size)
        groups.setdefault(key, []).append(position)
    return groups


def _deal(groups: Groups, count: int, seed: int) -> list[list[int]]:
    """Groups to folds in turn, so that the sizes of one kernel, which follow one another, are held out
    together only where there are more sizes than folds. The largest names come first: folds are of like
    size, though families are not."""
    nests_of: dict[str, int] = {}
    for (name, _), positions in groups.items():
        nests_of[name] = nests_of.get(name, 0) + len(positions)
    names = sorted(nests_of)
    Random(seed).shuffle(names)
    names.sort(key=lambda name: -nests_of[name])
    folds: list[list[int]] = [[] for _ in range(count)]
    dealt = (key for name in names for key in sorted(groups) if key[0] == name)
    for number, key in enumerate(dealt):
        folds[number % count].extend(groups[key])
    return [sorted(fold) for fold in folds]
