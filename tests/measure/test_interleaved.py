"""Players take turns; one that fails costs the others nothing."""

from __future__ import annotations

from functools import partial

import pytest

from gnnperf.measure.interleaved import Pace, in_turns
from gnnperf.measure.supervisor import Failed


def test_turns_go_round_in_both_directions() -> None:
    said: list[str] = []

    def player(name: str) -> float:
        said.append(name)
        return 1.0

    in_turns({name: partial(player, name) for name in "abc"}, Pace(2, 0.0))
    assert "".join(said[:6]) == "abccba"


def test_a_player_that_fails_has_that_status() -> None:
    times = iter([1.0, 1.0])

    def fragile() -> float:
        for time_s in times:
            return time_s
        raise Failed("run_error", "killed by SIGSEGV")

    found = in_turns({"fragile": fragile, "other": lambda: 2.0}, Pace(6, 0.0, least=6))
    assert (found["fragile"].status, found["fragile"].detail) == ("run_error", "killed by SIGSEGV")
    assert (found["other"].runtime_s, found["other"].samples) == (2.0, 6)
    alone = in_turns({"fragile": fragile}, Pace())
    assert alone["fragile"].status == "run_error"


@pytest.mark.parametrize(("slow_s", "turns"), [(6.0, 2), (4.0, 7)])
def test_what_is_much_slower_than_another_and_takes_long_has_two_turns(slow_s: float, turns: int) -> None:
    found = in_turns({"slow": lambda: slow_s, "fast": lambda: 1.0}, Pace(7, 0.0, least=7))
    assert (found["slow"].runtime_s, found["slow"].samples, found["fast"].samples) == (slow_s, turns, 7)
    over = found["fast"].over(found["slow"])
    assert over.speedup == slow_s and over.speedup_interval == (slow_s, slow_s)


def test_what_is_soon_over_has_all_its_turns() -> None:
    found = in_turns({"slow": lambda: 1e-2, "fast": lambda: 1e-6}, Pace(7, 0.0, least=7))
    assert found["slow"].samples == found["fast"].samples == 7
