"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from gnnperf.report import words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (21.24, "21.2"), (1234.6, "1,235"), (0.04567, "0.0457"), (9.996, "10.0"), (99.96, "100"),
        (3e-9, "3e-09"), (-2.5, "-2.50"), (math.inf, "–"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_three_digits(value: float, shown: str) -> None:
    assert words.number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.5, "1.500 s"), (0.001205, "1.205 ms"), (0.001, "1.000 ms"), (2e-6, "2.000 µs"), (3e-8, "30.00 ns")],
)
def test_durations_are_in_the_unit_that_suits_them(seconds: float, shown: str) -> None:
    assert words.duration(seconds) == shown


def test_an_interval_is_in_the_unit_of_what_it_surrounds() -> None:
    assert words.duration_interval((0.9e-3, 1.1e-3), 1e-3) == "[0.9000, 1.100]"


def test_shares() -> None:
    assert [words.percent(share) for share in (0, 0.0001, 0.024, 0.93)] == ["0%", "< 0.1%", "2.4%", "93%"]


def test_rates() -> None:
    assert words.rate(8.814e10, "FLOP") == "88.1 GFLOP/s"
    assert words.rate(12.0, "B") == "12.0 B/s"


def test_cells_of_tables() -> None:
    shown = [words.cell(v) for v in (None, True, 12345, 0.5, [1.5, 2.5], ["a", 2], {"a": 1}, "text")]
    assert shown == ["–", "yes", "12,345", "0.500", "[1.50, 2.50]", "a; 2", "a: 1", "text"]
