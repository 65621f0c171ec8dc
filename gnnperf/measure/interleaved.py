"""Timing in turns: what the machine does meanwhile happens to all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gnnperf.devices import MachineLock
from gnnperf.measure.candidate import LONG_RUN_S, OUTCLASSED
from gnnperf.measure.measurement import Measurement
from gnnperf.measure.statistics import relative_half_width
from gnnperf.measure.supervisor import Failed

Turn = Callable[[], float]
"""Seconds of a run of a player's own, whenever it is called. Raises Failed."""


@dataclass(frozen=True)
class Pace:
    """How long players are timed. rounds: of turns, at least (six samples are the fewest whose interval
    reaches 95%). budget_s: wall time, after which no round begins that need not. target: relative half-width
    of the interval of every median at which timing stops. least: rounds that must do where five times the
    budget is spent."""

    rounds: int = 6
    budget_s: float = 2.0
    target: float = 0.01
    least: int = 3


def in_turns(players: Mapping[str, Turn], pace: Pace) -> dict[str, Measurement]:
    """Time players interleaved, in an order that is turned round in every round. Takes the machine's lock.

    A player whose turn fails has that status, and costs the others nothing. One that takes long, and
    `OUTCLASSED` times as long as another, has two turns: it need not be known precisely.
    """
    samples: dict[str, list[float]] = {name: [] for name in players}
    failed: dict[str, Measurement] = {}
    with MachineLock():
        started, rounds = time.monotonic(), 0
        while playing := [name for name in players if name not in failed and not _sits_out(name, samples)]:
            for name in playing[:: 1 if rounds % 2 == 0 else -1]:
                try:
                    samples[name].append(players[name]())
                except Failed as failure:
                    failed[name] = failure.measurement
            rounds += 1
            spent_s = time.monotonic() - started
            if rounds < (pace.rounds if spent_s < 5 * pace.budget_s else pace.least):
                continue
            known = all(relative_half_width(samples[n]) <= pace.target for n in playing if n not in failed)
            if known or spent_s > pace.budget_s:
                break
    return {name: failed.get(name) or Measurement.from_samples(found) for name, found in samples.items()}


def _sits_out(name: str, samples: Mapping[str, Sequence[float]]) -> bool:
    best_s = min((found[0] for found in samples.values() if found), default=0.0)
    return len(samples[name]) >= 2 and min(samples[name]) > max(LONG_RUN_S, OUTCLASSED * best_s)
