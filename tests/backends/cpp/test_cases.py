"""Whole kernels are verified on more than one set of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.backends.cpp import cases
from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.errors import MeasureError
from gnnperf.frontends.dace import DaceKernel, load_kernel
from gnnperf.frontends.nest_program import Tuned
from gnnperf.measure import Compiler, Runner

HEADER = "import dace\nimport numpy as np\nN = dace.symbol('N')\n@dace.program\n"
MAP = "def kernel(A: dace.float64[N], C: dace.float64[N]):\n    C[:] = "


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner() as runner:
        yield compiler, runner


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "LONGEST_CHECK_S", 60.0)
    monkeypatch.setattr(cases, "LONGEST_SECOND_RUN_S", 60.0)


def loaded(folder: Path, body: str, inputs: Mapping[str, Any] | None = None) -> DaceKernel:
    path = folder / "kernel.py"
    path.write_text(HEADER + MAP + body)
    return load_kernel(f"{path}:kernel", {"N": 50}, inputs)


def unknown(_: Mapping[str, Any]) -> None:
    """Python does not say."""


def plain(kernel: DaceKernel) -> Tuned:
    return kernel.kept("dace-simplify")


def test_what_is_right_is_verified_on_all_kinds_of_numbers(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    kernel = loaded(tmp_path, "2.0 * A + 1.0")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    evidence, fault = whole.verify_elsewhere(plain(kernel), kernel.other_inputs(), unknown, *tools)
    assert fault == ""
    assert [*evidence.inputs] == [
        "the inputs", "another order", "negative numbers", "numbers of all magnitudes", "zeros", "ones"
    ]  # fmt: skip
    assert (evidence.finite, evidence.changed, evidence.unverifiable) == (1.0, 1.0, {})


def test_what_is_wrong_on_other_inputs_alone_is_found(tmp_path: Path, tools: tuple[Compiler, Runner]) -> None:
    """Generated inputs are positive: on them, a number is its absolute value."""
    kernel, other = loaded(tmp_path, "2.0 * A"), loaded(tmp_path, "2.0 * np.abs(A)")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    assert whole.measure(plain(other), *tools, budget_s=0.01).status == "ok"
    evidence, fault = whole.verify_elsewhere(plain(other), kernel.other_inputs(), unknown, *tools)
    assert fault.startswith("wrong on other inputs, negative numbers: C: 50 of 50 elements differ")
    assert [*evidence.inputs] == ["the inputs", "another order"]


def test_inputs_of_which_python_makes_something_else_than_the_plain_program_say_nothing(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    kernel, other = loaded(tmp_path, "2.0 * A"), loaded(tmp_path, "2.0 * np.abs(A)")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    asked: list[Mapping[str, Any]] = []

    def in_python(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(inputs)
        return {"C": 2.0 * np.abs(inputs["A"])}

    evidence, fault = whole.verify_elsewhere(plain(other), kernel.other_inputs(), in_python, *tools)
    assert (fault, len(asked)) == ("", 1)
    assert (asked[0]["A"] < 0).all() and "negative numbers" not in evidence.inputs
    _, fault = whole.verify_elsewhere(
        plain(other), kernel.other_inputs(), lambda i: {"C": 2.0 * i["A"]}, *tools
    )
    assert "negative numbers" in fault


def test_integers_that_are_rounded_may_be_one_off_and_are_said_to_be(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    """At 0.3, the only input where it does, 10 * x rounds up to 3, and 10 * (x - 1e-16) does not."""
    text = "def kernel(A: dace.float64[N], C: dace.uint8[N]):\n    C[:] = (10.0 * (A{})).astype(np.uint8)"
    given = {"A": np.append(np.full(149, 0.15), 0.3)}
    kernels = []
    for name, change in (("one", ""), ("two", " - 1e-16"), ("three", " - 0.1")):
        path = tmp_path / f"{name}.py"
        path.write_text(HEADER + text.format(change))
        kernels.append(load_kernel(f"{path}:kernel", {"N": 150}, given))
    whole = WholeKernel.prepare(kernels[0], "simplify", *tools)
    assert whole.evidence.quantised == ["C"] and whole.built.problem.reference["C"][-1] == 3
    assert whole.measure(plain(kernels[1]), *tools, budget_s=0.01).status == "ok"
    assert whole.measure(plain(kernels[2]), *tools, budget_s=0.01).status == "wrong_result"


def test_inputs_without_a_result_say_nothing(tmp_path: Path, tools: tuple[Compiler, Runner]) -> None:
    """The logarithm of a negative number, or of zero, is none."""
    kernel = loaded(tmp_path, "np.log(A)")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    evidence, fault = whole.verify_elsewhere(plain(kernel), kernel.other_inputs(), unknown, *tools)
    assert (fault, *evidence.inputs) == (
        "", "the inputs", "another order", "numbers of all magnitudes", "ones"
    )  # fmt: skip


def test_inputs_whose_rounding_decides_the_result_say_nothing(
    tmp_path: Path, tools: tuple[Compiler, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a number does by which something is divided, where it is zero but for rounding."""
    kernel, other = loaded(tmp_path, "2.0 * A"), loaded(tmp_path, "2.0 * np.abs(A)")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    monkeypatch.setattr(cases, "perturbed", lambda data: {**data, "A": 1.01 * data["A"]})
    evidence, fault = whole.verify_elsewhere(plain(other), kernel.other_inputs(), unknown, *tools)
    assert (fault, *evidence.inputs) == ("", "the inputs", "zeros")


def test_results_that_stay_may_be_told_by_other_inputs(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    kernel = loaded(tmp_path, "np.minimum(A, 0.0)")
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    assert whole.evidence.unverifiable == {"C": "all elements are 0.0"}
    evidence, fault = whole.verify_elsewhere(plain(kernel), kernel.other_inputs(), unknown, *tools)
    assert (fault, evidence.unverifiable) == ("", {})


def test_results_of_given_inputs_that_stay_may_be_told_by_inputs_near_them(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    """On a straight line, second differences are zero."""
    given = {"A": np.linspace(1.0, 50.0, 50), "C": np.zeros(50)}
    kernel = loaded(
        tmp_path, "np.roll(A, 1) - 2.0 * A + np.roll(A, -1) - 50.0 * (A < 2.0) + 50.0 * (A > 49.0)", given
    )
    whole = WholeKernel.prepare(kernel, "simplify", *tools)
    assert whole.evidence.unverifiable == {"C": "it stays as it was"}
    evidence, fault = whole.verify_elsewhere(plain(kernel), kernel.nearby_inputs(), unknown, *tools)
    assert (fault, evidence.unverifiable) == ("", {})
    assert [*evidence.inputs] == ["the inputs", "numbers up to a tenth from those given"]
    ((_, near),) = kernel.nearby_inputs()
    assert 0.05 < np.max(np.abs(near["A"] / given["A"] - 1.0)) <= 0.1


def test_inputs_of_the_user_stay_as_they_are(tmp_path: Path) -> None:
    given = {"A": np.linspace(0.0, 1.0, 50)}
    for _, inputs in loaded(tmp_path, "2.0 * A", given).other_inputs():
        np.testing.assert_array_equal(inputs["A"], given["A"])
        assert inputs["C"].ctypes.data % 64 == 0
    assert not [*loaded(tmp_path, "2.0 * A", {**given, "C": np.zeros(50)}).other_inputs()]


RACE = """def kernel(A: dace.float64[N], C: dace.float64[N]):
    for i in dace.map[0:N]:
        with dace.tasklet(dace.Language.CPP):
            a << A[i]
            c >> C[i]
            '''
            c = a + (double)(std::chrono::steady_clock::now().time_since_epoch().count() % 997);
            '''
"""


def test_kernels_that_differ_from_run_to_run_are_recognised(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + RACE)
    kernel = load_kernel(f"{path}:kernel", {"N": 50})
    with pytest.raises(MeasureError, match="differ from run to run"):
        WholeKernel.prepare(kernel, "simplify", *tools)
