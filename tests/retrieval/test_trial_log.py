"""What a search says of its trials."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gnnperf.measure import Measurement
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.tuning import TOLD, TrialLog, Tuning


def make_log() -> TrialLog:
    """A log of a search that keeps nothing."""
    query = Query(SimpleNamespace(name="nest"), None)  # type: ignore[arg-type]
    return TrialLog(query, Tuning(*[None] * 5))  # type: ignore[arg-type]


def took(*seconds: float | None) -> list[tuple[str, Measurement]]:
    return [(str(s), Measurement("timeout") if s is None else Measurement.from_samples([s])) for s in seconds]


def test_the_best_after_so_many_trials() -> None:
    log = make_log()
    log.restore(took(None), 1)
    log.add("given", took(8.0, 9.0))
    log.add("search", took(4.0, 5.0, 3.0))
    found = log.summary(exhausted=True)
    assert (found["trials"], found["known"], found["exhausted"]) == (5, 1, True)
    assert found["origins"] == {"known": 1, "given": 2, "search": 3}
    assert found["statuses"] == {"timeout": 1, "ok": 5}
    assert dict(zip(found["after"], found["best_s"], strict=True)) == {1: None, 2: 8.0, 4: 4.0, 6: 3.0}
    assert log.words == ", best 3000 ms"


def test_the_fastest_are_told_failures_last() -> None:
    log = make_log()
    log.add("search", took(None, *(float(n) for n in range(20, 0, -1))))
    assert [name for name, _ in log.best()] == [str(float(n)) for n in range(1, TOLD + 1)]
    failed = make_log()
    failed.add("search", took(None, 2.0))
    assert [m.status for _, m in failed.best()] == ["ok", "timeout"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_points_double_up_to_the_last(count: int) -> None:
    log = make_log()
    log.add("search", took(*[1.0] * count))
    assert log.summary(False)["after"] == {0: [], 1: [1], 2: [1, 2], 3: [1, 2, 3], 4: [1, 2, 4]}[count]
