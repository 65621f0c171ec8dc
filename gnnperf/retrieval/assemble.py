"""Put winners back into the kernel and let the whole decide.

A nest's winner was found alone. In the whole, what was left untuned matters as well: a kernel whose
other parts lose the fusion or the allocations that the baseline gave them may be slower in spite of
its winners. So several assemblies are built, all are verified, and the fastest counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.errors import BuildError, GnnperfError
from gnnperf.frontends.dace import DaceKernel, auto_optimised, splice
from gnnperf.measure import Compiler, Measurement, Runner
from gnnperf.retrieval.query import Query
from gnnperf.schedules.recipes import Recipe, apply, emit

SECOND_LOOK_S = 3.0
"""Timing budget when the whole looks faster but its interval still holds 1."""


@dataclass(frozen=True)
class Assembly:
    """The tuned kernel that won: its SDFG, its measurement, and the schedule of each replaced unit."""

    sdfg: Any
    measurement: Measurement
    schedules: Mapping[int, Recipe]


def assemble(
    kernel: DaceKernel, queries: Sequence[Query], whole: WholeKernel, compiler: Compiler, runner: Runner
) -> tuple[Assembly | None, str]:
    """The fastest verified assembly, or None and the reason why the baseline is kept."""
    reasons: list[str] = []
    best: Assembly | None = None
    for schedules, spliced in _variants(kernel, queries, reasons):
        for sdfg in _finished(spliced):
            try:
                measurement = whole.measure(sdfg, compiler, runner)
                if _undecided(measurement):
                    measurement = whole.measure(sdfg, compiler, runner, SECOND_LOOK_S)
            except BuildError as error:
                reasons.append(f"the tuned kernel could not be built ({error})")
                continue
            reason = _refusal(measurement)
            if reason:
                reasons.append(reason)
            elif best is None or (measurement.runtime_s or 0.0) < (best.measurement.runtime_s or 0.0):
                best = Assembly(sdfg, measurement, schedules)
            if measurement.status == "ok":
                break  # else DaCe's optimisation of the rest broke it: try without
    if best is not None:
        return best, ""
    return None, f"{'; '.join(dict.fromkeys(reasons))}; the baseline is kept"


def _variants(
    kernel: DaceKernel, queries: Sequence[Query], reasons: list[str]
) -> Iterator[tuple[dict[int, Recipe], Any]]:
    """Winners with the best that was measured elsewhere, and winners alone."""
    winners = {q.unit.index: q.winner[0].schedule for q in queries if q.winner is not None}
    others = {
        q.unit.index: recipe for q in queries if q.winner is None and (recipe := _best_tried(q)) is not None
    }
    choices = [{**winners, **others}, winners] if others else [winners]
    units = {q.unit.index: q.unit for q in queries}
    for schedules in choices:
        functions = {
            index: emit(apply(recipe, units[index].nest), f"gnnperf_unit_{index}")
            for index, recipe in schedules.items()
        }
        try:
            sdfg = splice(kernel, functions)
        except GnnperfError as error:
            reasons.append(f"the tuned kernel could not be put together ({error})")
            continue
        yield schedules, sdfg


def _finished(spliced: Any) -> Iterator[Any]:
    """The kernel with the untuned rest optimised by DaCe; then, for when that fails, as it is."""
    with contextlib.suppress(BuildError):
        yield auto_optimised(spliced)
    yield spliced


def _refusal(measurement: Measurement) -> str:
    """Why a tuned kernel is not kept; empty where it is."""
    if measurement.status != "ok":
        return f"the tuned kernel failed as a whole ({measurement.status}: {measurement.detail})"
    if not measurement.faster_beyond_noise:
        return f"the tuned kernel is not faster as a whole beyond noise ({measurement.speedup:.2f}x)"
    return ""


def _best_tried(query: Query) -> Recipe | None:
    """The fastest verified candidate, though it did not beat the nest's baseline."""
    good = [(m.runtime_s, c.schedule) for c, m in query.tried if m.status == "ok" and m.runtime_s]
    return min(good, key=lambda pair: pair[0], default=(None, None))[1]


def _undecided(measurement: Measurement) -> bool:
    """It looks faster, but noise may be all there is to it."""
    return (measurement.speedup or 0.0) > 1.0 and not measurement.faster_beyond_noise
