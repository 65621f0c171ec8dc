"""Schedules as records keep them, of whatever kind. A record may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from gnnperf.errors import InputError, first_line, quoted
from gnnperf.schedules import Schedule
from gnnperf.schedules.calls import LibraryCall
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import TraceDocument

LONGEST = 2**18
"""Characters of a schedule."""

_READERS: Mapping[str, Callable[[str], Schedule]] = {
    Recipe.kind: Recipe.from_json,
    TraceDocument.kind: TraceDocument.from_json,
    LibraryCall.kind: LibraryCall.from_json,
}


def read_schedule(kind: str, text: str) -> Schedule:
    """Raises InputError where the text is no schedule of this kind, or one that nothing of gnnperf makes."""
    if kind not in _READERS:
        raise InputError(f"expected a schedule of kind {' or '.join(_READERS)}, got {quoted(kind)}")
    if len(text) > LONGEST:
        raise InputError(f"expected a schedule of at most {LONGEST} characters, got {len(text)}")
    return _READERS[kind](text)


@lru_cache(1 << 14)
def schedule_problem(kind: str, text: str) -> str:
    """Why the text is no schedule that may be used; empty where it is."""
    try:
        read_schedule(kind, text)
    except InputError as error:
        return first_line(error)
    return ""
