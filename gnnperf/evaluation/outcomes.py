"""What trying a schedule on a nest gives, looked up in a corpus instead of measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from gnnperf.corpus.record import CorpusRecord
from gnnperf.training.regret import Relative, relative_runtimes


@dataclass(frozen=True)
class Outcomes:
    """The recorded trials of one nest: schedule id -> measurement, in the order they were run."""

    recorded: Mapping[str, CorpusRecord]

    @cached_property
    def runtimes(self) -> Mapping[str, Relative]:
        """Schedule id -> runtime, of the schedules that worked, and of the baseline."""
        return relative_runtimes(self.recorded)

    @cached_property
    def best(self) -> Relative:
        """The best known runtime, from whatever schedule, the baseline included."""
        return min(self.runtimes.values(), key=lambda runtime: runtime.share)

    @cached_property
    def measured(self) -> Set[str]:
        """Schedules whose trial costs a measurement: all but those that do not apply, which is seen
        before anything is built."""
        return {s for s, m in self.recorded.items() if m.status != "not_applicable"}

    def tried(self, order: Iterable[str]) -> list[Relative | None]:
        """What measuring schedules in this order gives; None failed.

        Passed over, as they cost nothing or nothing is known of them: schedules that were not recorded,
        that do not apply, or that lower to the same code as an earlier one (which share its timing).
        """
        results: list[Relative | None] = []
        seen: set[object] = {None}
        for schedule in order:
            if schedule not in self.measured:
                continue
            runtime = self.runtimes.get(schedule)
            if runtime is None:
                results.append(None)
                continue
            m = self.recorded[schedule]
            timing = (m.runtime_s, m.interval_s, m.baseline_s)
            if timing not in seen:
                seen.add(timing)
                results.append(runtime)
        return results

    def fastest_first(self, schedules: Iterable[str]) -> list[str]:
        """Those that were measured, the fastest first: the order of an oracle. Failures come last."""
        worst = float("inf")
        shares = {s: self.runtimes[s].share if s in self.runtimes else worst for s in schedules}
        return sorted(shares, key=lambda s: (shares[s], s))
