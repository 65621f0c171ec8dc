"""Best schedules in words, and in few enough groups to be told apart by colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gnnperf.errors import InputError
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Record

MAX_GROUPS = 14
"""Groups of schedules that are shown as such; the nests of the rarer ones are one group more."""

OTHER, NO_GAIN, UNMEASURED = "other schedules", "none beats the baseline", "not measured"


def gains(best: Record) -> bool:
    """Whether the record beats its baseline beyond noise: its whole interval lies below the baseline."""
    return (
        best.baseline_s is not None
        and best.interval_hi_s is not None
        and best.interval_hi_s < best.baseline_s
    )


def in_words(record: Record) -> str:
    """The schedule of a record for people."""
    recipe = _recipe(record)
    return f"{record.schedule_kind} {record.schedule}" if recipe is None else recipe.describe()


def traits(record: Record) -> str:
    """The choices that tell kinds of recipes apart: loop order, library calls, fusion, packing, threads."""
    recipe = _recipe(record)
    if recipe is None:
        return record.schedule_kind
    words = [f"{recipe.order} order"]
    if recipe.library:
        words.append("library calls")
    if recipe.fuse or recipe.combine:
        words.append("fused")
    if recipe.pack:
        words.append("packed")
    if recipe.parallel != "spatial":
        words.append("one thread" if recipe.parallel == "none" else "parallel reduction")
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Groups:
    """names: the largest group first, what is no group of recipes last. of: the group of each nest."""

    names: tuple[str, ...]
    of: tuple[int, ...]


def group(best: Sequence[Record | None]) -> Groups:
    """Group nests by the main traits of their best schedules (None where nothing was measured)."""
    found = [UNMEASURED if r is None else traits(r) if gains(r) else NO_GAIN for r in best]
    counts = Counter(name for name in found if name not in (NO_GAIN, UNMEASURED))
    shown = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    if len(shown) > MAX_GROUPS + 1:  # one rare group alone keeps its name
        rare = set(shown[MAX_GROUPS:])
        found = [OTHER if name in rare else name for name in found]
        shown = shown[:MAX_GROUPS]
    names = (*shown, *(name for name in (OTHER, NO_GAIN, UNMEASURED) if name in found))
    return Groups(names, tuple(names.index(name) for name in found))


def _recipe(record: Record) -> Recipe | None:
    """None for traces and configs, and for recipes of another version."""
    try:
        return Recipe.from_json(record.schedule)
    except InputError:
        return None
