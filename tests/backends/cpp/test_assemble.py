"""Which forms of its tasks a whole program is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from nests.examples import gemm

from gnnperf.backends.cpp.assemble import assemble
from gnnperf.measure import Evidence, Measurement
from gnnperf.schedules.recipes import CppFunction, Recipe, apply, emit

CALLED, LONELY = Recipe(library="blas"), Recipe(parallel="none")


def text(recipe: Recipe) -> str:
    return emit(apply(recipe, gemm()), "gnnperf_unit_0").source


class Program:
    """One task. Its tuned form is the text of the task's."""

    def tuned(self, functions: Mapping[int, CppFunction]) -> Iterator[str]:
        yield functions[0].source

    def other_inputs(self) -> Iterator[Any]:
        return iter(())


class WholeProgram:
    """Takes what `seconds` say of the task's text."""

    built = SimpleNamespace(problem=SimpleNamespace(reference={"C": None}))
    evidence = Evidence()

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = seconds
        self.measured: list[str] = []

    def measure(self, tuned: str, *_: Any) -> Measurement:
        self.measured.append(tuned)
        return Measurement.from_samples([self.seconds[tuned]] * 6, [10.0] * 6)

    def verify_elsewhere(self, *_: Any) -> tuple[Evidence, str]:
        return Evidence(("the inputs",), 1.0, 1.0), ""


def tried(recipe: Recipe, runtime_s: float) -> Any:
    return SimpleNamespace(schedule=recipe), Measurement.from_samples([runtime_s] * 6, [1.0] * 6)


@pytest.mark.parametrize(
    ("baseline_name", "candidate_s", "whole_s", "given"),
    [
        ("loops+openblas", 1.5, 3.0, CALLED),  # the candidate is slower than the task's own baseline
        ("loops+openblas", None, 3.0, CALLED),
        ("loops+openblas", 0.99, 3.0, LONELY),  # not faster beyond noise, but the fastest that is known
        ("loops+openblas", None, 20.0, None),  # of no use in the whole
    ],
)
def test_a_baseline_that_is_a_recipe_is_put_into_the_whole(
    baseline_name: str, candidate_s: float | None, whole_s: float, given: Recipe | None
) -> None:
    task = SimpleNamespace(index=0, nest=gemm(), recipes={"loops+openblas": CALLED})
    trials: Any = SimpleNamespace(
        number=0, task=task, winner=None, reason="",
        baseline_name=baseline_name, tried=[] if candidate_s is None else [tried(LONELY, candidate_s)],
    )  # fmt: skip
    whole: Any = WholeProgram({text(CALLED): whole_s, text(LONELY): whole_s})
    program, tools = Program(), (None, None)
    found, note = assemble(program, [trials], whole, *tools)  # type: ignore[arg-type]
    if given is None:
        assert found is None and "not faster as a whole beyond noise (0.50x)" in note
    else:
        assert found is not None and (found.schedules, note) == ({0: given}, "")
        assert whole.measured == [text(given)], "no program without any schedule"
