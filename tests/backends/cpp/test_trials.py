"""A bench: one measurement per code, failures as statuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backends.cpp.fakes import Workshop, bench
from nests.examples import gemm

from gnnperf.backends.cpp import trials
from gnnperf.backends.cpp.trials import source_of
from gnnperf.errors import NotApplicable
from gnnperf.measure import Limits, Measurement, Source
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import DEFAULTS, Recipe

ROW, BLOCKED = Recipe(order="row"), Recipe(order="blocked", tile_q=32, register_q=4, register_p=2)
ROW_TOO = replace(ROW, prefetch=8)
"""Dense nests have nothing to prefetch: the same code."""


def test_trials_come_back_in_order() -> None:
    workshop = Workshop()
    trials = list(bench(workshop).run([BLOCKED, ROW], "random"))
    assert [t.recipe for t in trials] == [BLOCKED, ROW]
    assert {t.origin for t in trials} == {"random"}
    assert all(t.measurement.status == "ok" and t.runtime_s == t.measurement.runtime_s for t in trials)


def test_equal_code_is_built_and_measured_once() -> None:
    assert source_of(ROW, gemm()) == source_of(ROW_TOO, gemm())
    workshop = Workshop()
    one = bench(workshop)
    trials = [*one.run([ROW, ROW_TOO, BLOCKED, ROW], "random"), *one.run([ROW_TOO, BLOCKED], "mutation")]
    assert len(workshop.built) == len(workshop.timed) == 2
    assert len({t.measurement.runtime_s for t in trials if t.recipe != BLOCKED}) == 1


def test_benches_share_nothing() -> None:
    workshop = Workshop()
    list(bench(workshop).run([ROW], "default"))
    list(bench(workshop).run([ROW], "default"))
    assert len(workshop.timed) == 2


def test_what_does_not_compile_is_not_run() -> None:
    workshop = Workshop()
    bad = source_of(BLOCKED, gemm()).text
    workshop.refuse = lambda text: text == bad
    one = bench(workshop)
    blocked, row = one.run([BLOCKED, ROW], "random")
    assert (blocked.measurement.status, blocked.measurement.detail) == ("build_error", "error: too clever")
    assert blocked.runtime_s == float("inf")
    assert row.measurement.status == "ok"
    assert bad not in workshop.timed
    list(one.run([BLOCKED], "random"))
    assert workshop.built.count(bad) == 1


def test_what_does_not_apply_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(recipe: Recipe, nest: LoopNest) -> Source:
        if recipe == BLOCKED:
            raise NotApplicable("no loop to block")
        return source_of(recipe, nest)

    monkeypatch.setattr(trials, "source_of", unfit)
    workshop = Workshop()
    blocked, row = bench(workshop).run([BLOCKED, ROW], "random")
    assert (blocked.measurement.status, blocked.measurement.detail) == ("not_applicable", "no loop to block")
    assert row.measurement.status == "ok"
    assert len(workshop.built) == 1


def test_a_wrong_result_has_no_runtime() -> None:
    (trial,) = bench(Workshop(lambda _: None)).run([ROW], "random")
    assert trial.measurement.status == "wrong_result"
    assert trial.runtime_s == float("inf")


def test_trials_are_measured_as_they_are_asked_for() -> None:
    workshop = Workshop()
    trials = bench(workshop).run(DEFAULTS, "default")
    assert len(workshop.built) > 2
    next(trials), next(trials)
    assert len(workshop.timed) == 2


def test_what_was_measured_before_is_not_measured_again() -> None:
    (known,) = bench(Workshop()).run([ROW], "random")
    workshop = Workshop()
    one = bench(workshop)
    one.remember([known])
    again, blocked = one.run([ROW_TOO, BLOCKED], "foreign")
    assert (again.measurement, again.origin) == (known.measurement, "foreign")
    assert workshop.timed == [source_of(BLOCKED, gemm()).text]
    assert blocked.measurement.status == "ok"


def test_what_is_far_slower_than_the_best_is_given_up() -> None:
    """The first is 10 times as fast as its baseline: from then on, 3/10 of the baseline is hopeless."""
    workshop = Workshop(lambda _: 0.1)
    one = bench(workshop, give_up=3.0)
    list(one.run([ROW, BLOCKED], "random"))
    first, second = (limits.cutoff for limits in workshop.limits)
    assert (first, second) == (Limits().cutoff, pytest.approx(0.3))


def test_prepare_says_what_would_be_built() -> None:
    one = bench(Workshop())
    assert one.prepare(ROW) == source_of(ROW, gemm())
    assert not isinstance(one.prepare(ROW), Measurement)


def test_symbols_name_the_code() -> None:
    """Many sources go into one library: equal text has one name, another text another."""
    nest = gemm()
    sources = [source_of(recipe, nest) for recipe in DEFAULTS]
    assert len({s.symbol for s in sources}) == len({s.text for s in sources})
    assert all(f" {s.symbol}(" in s.text for s in sources)
