"""Exported programs end to end: the winners of all tasks in the whole program, verified against PyTorch and
timed in turn with the program as it was and with PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnnperf.backends.base import Trials, Whole
from gnnperf.backends.tvm.first_wrong import wrong_part
from gnnperf.backends.tvm.problem import example_problem, reduction_length
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.errors import MeasureError, first_line
from gnnperf.frontends.tvm import TvmTask
from gnnperf.measure import Evidence, Measurement, Timing
from gnnperf.measure.interleaved import Pace, Turn, in_turns
from gnnperf.measure.problem import Problem
from gnnperf.measure.supervisor import Failed

BASELINE, TUNED = "baseline", "tuned"
FIRST_RUNS = 3
"""Of the untuned program, which tell what share of it a task is."""
Start = Callable[[ExitStack], Turn]
"""Starts another implementation of a program, until the stack closes. Raises Failed."""
Scheduled = Mapping[str, Any]
"""Scheduled modules of some tasks, by the task's name."""


def exported_problem(path: Path, tasks: Sequence[TvmTask]) -> Problem:
    """What PyTorch makes of the example inputs that a program was exported with. tasks: of the program.

    The tolerance is that of a program whose sums follow one another, or more where rounding errors of the
    inputs say so. Raises MeasureError where PyTorch cannot run it.
    """
    import torch

    try:
        program = torch.export.load(path)
        if program.example_inputs is None:
            raise ValueError("it was saved without example inputs")
        length = sum(task.calls * reduction_length(task.module) for task in tasks)
        return example_problem(program, length)
    except Exception as error:  # it is the user's program
        raise MeasureError(f"PyTorch cannot run {path.name}: {first_line(error)}") from None


def timed_whole(
    server: BenchServer,
    players: Mapping[str, tuple[int, Scheduled]],
    problem: Problem,
    others: Mapping[str, Start],
    pace: Pace,
) -> dict[str, Measurement]:
    """A measurement of every player, in turn. What fails has a status and no time.

    players: numbers of the server's programs with schedules of their tasks. Raises MeasureError.
    """
    with server.rehearsed_whole([*players.values()], problem) as (outcomes, ours), ExitStack() as stack:
        names = [*players]
        turns: dict[str, Turn] = {names[n]: turn for n, turn in ours.items()}
        failed = {n: o.measurement for n, o in zip(names, outcomes, strict=True) if o.status != "ok"}
        for name, start in others.items():
            try:
                turns[name] = start(stack)
            except Failed as failure:
                failed[name] = failure.measurement
        found = in_turns(turns, pace)
    return {name: found.get(name) or failed[name] for name in (*players, *others)}


def checked_translation(path: Path, problem: Problem, server: BenchServer) -> Timing:
    """Of the program that the server knows first, with nothing scheduled, in a few runs. Raises MeasureError
    where it computes something else than PyTorch; it names the part."""
    with server.rehearsed_whole([(0, {})], problem) as (outcomes, turns):
        (found,) = outcomes
        if found.status == "ok":
            times_s = sorted(turns[0]() for _ in range(FIRST_RUNS))
            return Timing(times_s[FIRST_RUNS // 2], (times_s[0], times_s[-1]))
    part = wrong_part(path)
    first = f"; the first part that is wrong is {part}" if part else ""
    raise MeasureError(
        f"TVM translates {path.name} wrongly, with nothing scheduled ({found.status}: {found.detail})"
        f"{first}; write it otherwise, or leave it to PyTorch"
    )


def measured_whole(
    problem: Problem, trials: Sequence[Trials], server: BenchServer, others: Mapping[str, Start],
    pace: Pace | None = None,
) -> Whole:  # fmt: skip
    """An exported program, the first that the server knows, with all winners. Where that is not right, or not
    faster beyond noise, the winners are given up.

    problem: of the program. others: what it is timed beside. Raises MeasureError where the program cannot be
    measured at all.
    """
    winners = {t.task.name: t.winner[0].program for t in trials if t.winner}
    players: dict[str, tuple[int, Scheduled]] = {BASELINE: (0, {})}
    if winners:
        players[TUNED] = (0, winners)
    found = timed_whole(server, players, problem, others, pace or Pace(rounds=6, budget_s=3.0))
    if found[BASELINE].status != "ok":
        raise MeasureError(f"{found[BASELINE].status}: {found[BASELINE].detail}")
    baseline = found[BASELINE].timing

    def beside(ours: str) -> dict[str, Measurement]:
        return {name: found[name].over(found[ours]) for name in others}

    kept = Whole(baseline, baseline, competitors=beside(BASELINE))
    if not winners:
        return kept
    tuned = found[TUNED].over(found[BASELINE])
    if not tuned.faster_beyond_noise:
        why = "not faster beyond noise" if tuned.status == "ok" else f"{tuned.status}: {tuned.detail}"
        note = f"the whole program with the schedules of its tasks: {why}; the baseline is kept"
        for one in trials:
            if one.winner is not None:
                one.winner, one.reason = None, note
        return replace(kept, note=note)
    schedules = {t.number: t.winner[0].schedule for t in trials if t.winner}
    return Whole(
        baseline, tuned.timing, tuned.speedup or 1.0, tuned.speedup_interval, False, schedules, beside(TUNED),
        evidence=Evidence.of(problem.reference, {}),
    )  # fmt: skip
