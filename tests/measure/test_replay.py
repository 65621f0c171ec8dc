from __future__ import annotations

from typing import Any

import pytest

from gnnperf.errors import BuildError, MeasureError
from gnnperf.measure import Argument, Library, Replay, Source

OK: dict[str, Any] = {
    "digest": "d", "schedule": {}, "schedule_id": "a", "status": "ok", "runtime_s": 1.0,
    "interval_s": [0.9, 1.1], "samples": 7, "baseline_s": 2.0, "baseline_interval_s": [1.9, 2.1],
    "speedup": 2.0, "device": "cpu/x86_64/avx2", "origin": "random", "detail": "",
}  # fmt: skip
FAILED = {**OK, "runtime_s": None, "interval_s": None, "samples": 0, "speedup": None}
LINES = [
    {**OK, "runtime_s": 5.0},
    OK,
    {**FAILED, "schedule_id": "b", "status": "build_error", "detail": "error: no"},
    {**FAILED, "schedule_id": "c", "status": "timeout", "detail": "took longer than 1 s"},
]


def source(key: str) -> Source:
    return Source("", "f", (Argument("x"),), key=key)


def test_replay_answers_as_the_compiler_and_the_runner_did() -> None:
    with Replay.from_lines(LINES) as replay:
        good, bad, slow = replay.build_all([source(f"d/{s}") for s in "abc"])
        assert isinstance(bad, BuildError)
        assert str(bad) == "error: no"
        assert isinstance(good, Library)
        assert isinstance(slow, Library)
        measured = replay.measure(None, good, {}, [], reference={})
        assert (measured.status, measured.runtime_s, measured.samples, measured.speedup) == (
            "ok",
            1.0,
            7,
            2.0,
        )
        assert measured.speedup_interval == (1.9 / 1.1, 2.1 / 0.9)
        timed_out = replay.measure(good, slow)
        assert (timed_out.status, timed_out.detail) == ("timeout", "took longer than 1 s")
        with pytest.raises(BuildError, match="error: no"):
            replay.build(source("d/b"))


def test_replay_never_makes_anything_up() -> None:
    with pytest.raises(MeasureError, match="no recorded measurement of 'd/z'"):
        Replay.from_lines(LINES).build(source("d/z"))
    with pytest.raises(MeasureError, match=r"expected one of ok, .*, got 'fine'"):
        Replay.from_lines([{**OK, "status": "fine"}])
