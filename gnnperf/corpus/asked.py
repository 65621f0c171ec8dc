"""Recipes that somebody asks for, to be measured on nests that configurations list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gnnperf.corpus.config import NestConfig, NestEntry
from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusRecord
from gnnperf.errors import InputError
from gnnperf.schedules.recipes import Recipe

Asked = Mapping[str, Mapping[Recipe, str]]
"""Digest of a nest -> recipes for it, in the order of measuring, each with the origin that is recorded."""


def asked_for(recipes: Mapping[str, Sequence[Recipe]], origin: str = "asked") -> Asked:
    """Recipes of nests, by their digests, all of one origin."""
    return {digest: dict.fromkeys(of_one, origin) for digest, of_one in recipes.items()}


def recipes_of(corpus: MeasuredTasks) -> Asked:
    """All that a corpus of nests has measured on them, which is foreign to what is searched for anew."""
    found = corpus.records.items()
    return asked_for(
        {task: [Recipe.from_dict(r.schedule) for r in records.values()] for task, records in found}, "foreign"
    )


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
