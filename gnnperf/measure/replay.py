"""Experiments without the device: answers requests for measurements from recorded ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gnnperf.errors import BuildError, MeasureError
from gnnperf.measure.library import Library, Source
from gnnperf.measure.measurement import STATUSES, Measurement
from gnnperf.measure.statistics import speedup_interval


class Replay:
    """Stands in for a `Compiler` and a `Runner` at once: nothing is compiled and nothing runs.

    Answers by `Source.key` ("<nest digest>/<schedule id>"). A request that was never recorded is a
    MeasureError: an experiment that replays must stay inside its recordings. Example:

        replay = Replay.from_lines(corpus_lines)
        libraries = replay.build_all(sources)          # BuildError where that was recorded
        replay.measure(baseline, libraries[0], data={}, outputs=())
    """

    def __init__(self, recorded: Mapping[str, Measurement], threads: int = 0) -> None:
        self.recorded = recorded
        self.threads = threads

    @classmethod
    def from_lines(cls, lines: Iterable[Mapping[str, Any]]) -> Replay:
        """From the measurement lines of a corpus; a later line replaces an earlier one of its key."""
        return cls({f"{line['digest']}/{line['schedule_id']}": _measurement(line) for line in lines})

    def build_all(self, sources: Iterable[Source]) -> list[Library | BuildError]:
        """What `Compiler.build_all` returned when the sources were built."""
        results: list[Library | BuildError] = []
        for source in sources:
            found = self._find(source.key)
            results.append(
                BuildError(found.detail)
                if found.status == "build_error"
                else Library(
                    "", source.symbol, source.arguments, source.protocol, source.init, key=source.key
                )
            )
        return results

    def build(self, source: Source) -> Library:
        """One source. Raises BuildError if it did not compile then."""
        (result,) = self.build_all([source])
        if isinstance(result, BuildError):
            raise result
        return result

    def measure(self, baseline: Library | None, candidate: Library, *_: Any, **__: Any) -> Measurement:
        """What `Runner.measure` returned for the candidate; data and limits are not looked at."""
        return self._find(candidate.key)

    def close(self) -> None:
        """Nothing to end."""

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, key: str) -> Measurement:
        try:
            return self.recorded[key]
        except KeyError:
            raise MeasureError(f"no recorded measurement of {key!r}") from None


def _measurement(line: Mapping[str, Any]) -> Measurement:
    if line["status"] not in STATUSES:
        raise MeasureError(f"recorded status: expected one of {', '.join(STATUSES)}, got {line['status']!r}")
    if line["status"] != "ok":
        return Measurement(line["status"], detail=line.get("detail", ""))
    lo, hi = line["interval_s"]
    base_lo, base_hi = line["baseline_interval_s"]
    return Measurement(
        "ok",
        line["runtime_s"],
        (lo, hi),
        line["samples"],
        line["baseline_s"],
        (base_lo, base_hi),
        line["baseline_s"] / line["runtime_s"],
        speedup_interval((base_lo, base_hi), (lo, hi)),
        detail=line.get("detail", ""),
    )
