"""Injected faults: a slice of the campaign, and that it would notice harm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import run as module
from benchmarks.fault_kinds.injecting import (
    FIGURES,
    Place,
    attempt,
    expect,
    inject,
    may_start_processes,
)
from benchmarks.fault_kinds.mutation import damaged, damaged_bytes
from benchmarks.faults import shares
from benchmarks.run import benchmarks

from gnnperf.cli.main import run
from gnnperf.errors import InputError


@pytest.mark.slow
def test_forty_faults_do_no_harm() -> None:
    """In a process of its own, which has no store open when it forks."""
    words = [sys.executable, module.__file__, "faults", "--count", "40", "--seed", "1", "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert tuple(figures) == FIGURES
    assert figures.pop("faults") == sum(shares(40).values())
    assert not any(figures.values())


def test_every_kind_has_its_share() -> None:
    assert sum(shares(10_500).values()) >= 10_000
    assert min(shares(1).values()) == 1


def test_an_unknown_kind_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["faults", "--only", "graphs,floods"], benchmarks) == 2
    assert "--only: expected some of exports, schedules" in capsys.readouterr().err


HARM = (
    "nothing",
    "executions",
    "executions",
    "leftovers",
    "leftovers",
    "unexpected",
    "unexpected",
    "unexpected",
)


def harmful(place: Place) -> object:
    """Injects by number what the campaign has to notice."""
    numbers = iter(range(len(HARM)))

    def fail(error: Exception) -> None:
        raise error

    def act(chance: random.Random, work: Path) -> str:
        match next(numbers):
            case 1:
                exec(place.code)
            case 2:
                os.system("true")
            case 3:
                (Path(os.environ["TMPDIR"]) / "file").touch()
            case 4:
                with may_start_processes():
                    if os.fork() == 0:
                        os._exit(0)
            case 5:
                attempt(lambda: fail(KeyError("a")))
            case 6:
                attempt(lambda: fail(InputError("")))
            case 7:
                os.abort()
        return "well"

    return act


def test_harm_is_noticed() -> None:
    found = inject(__name__, "harmful", "seed", range(len(HARM)))
    assert {name: found[name] for name in FIGURES} == {
        "faults": 8, "lost_records": 0, "wrong_accepted": 0, "executions": 2, "hangs": 0, "unexpected": 3,
        "leftovers": 2,
    }  # fmt: skip
    assert len(found["failures"]) == 7
    assert found["outcomes"]["well"] == 1


def test_refusals_are_told_apart_from_results() -> None:
    assert attempt(lambda: 3) == (3, "")
    with pytest.raises(Exception, match="wrong_accepted"):
        attempt(lambda: expect(False, "wrong_accepted", "that"))


def test_what_is_damaged_differs_and_does_so_again() -> None:
    for seed in range(200):
        data = damaged_bytes(random.Random(seed), b"some bytes" * 10)
        assert data != b"some bytes" * 10
        assert data == damaged_bytes(random.Random(seed), b"some bytes" * 10)
        document = {"a": [1, {"b": 2}], "c": "d"}
        damaged(random.Random(seed), document)
        assert document == {"a": [1, {"b": 2}], "c": "d"}
