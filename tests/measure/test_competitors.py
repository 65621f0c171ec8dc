"""Contenders are verified and timed; one that fails is reported and costs the others nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gnnperf.measure import Argument, Compiler, Library, Source
from gnnperf.measure.competitors import Effort, PythonFunction, measure_side_by_side
from gnnperf.measure.problem import Problem
from gnnperf.measure.python_function import by_name

FUNCTIONS = Path(__file__).with_name("competing.py")
BRIEF = Effort(processes=1, rounds=6, budget_s=0.0, warm_up_s=0.0, timed_s=0.0, timeout_s=60.0)
N = 1000


def python(name: str, package: str = "numpy") -> PythonFunction:
    return PythonFunction(FUNCTIONS, name, package)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A lock of our own: nothing here depends on how fast anything is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNPERF_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def library(cache: None) -> Iterator[Library]:
    """`y += a * x`, compiled."""
    text = (
        "#include <cstdint>\n"
        'extern "C" void axpy(double* a, double* x, double* y) '
        f"{{ for (int i = 0; i < {N}; ++i) y[i] += *a * x[i]; }}\n"
    )
    with Compiler() as compiler:
        yield compiler.build(Source(text, "axpy", (Argument("a"), Argument("x"), Argument("y"))))


@pytest.fixture
def problem() -> Problem:
    data = {"a": np.float64(3), "x": np.linspace(-1, 1, N), "y": np.ones(N)}
    return Problem({**data, "N": N}, ["y"], {"y": data["y"] + 3 * data["x"]}, updated=["y"])


def test_libraries_and_functions_are_timed_in_turn(library: Library, problem: Problem) -> None:
    contenders = {"compiled": library, "in place": python("axpy"), "returned": python("returns")}
    found = measure_side_by_side(contenders, problem, BRIEF)
    assert list(found) == list(contenders)
    for measurement in found.values():
        assert measurement.status == "ok", measurement.detail
        assert measurement.samples == BRIEF.rounds
        assert measurement.runtime_s is not None and measurement.interval_s is not None
        low, high = measurement.interval_s
        assert 0 < low <= measurement.runtime_s <= high


def test_processes_are_pooled(problem: Problem) -> None:
    effort = Effort(processes=2, rounds=6, budget_s=0.0, warm_up_s=0.0, timed_s=0.0)
    (measurement,) = measure_side_by_side({"numpy": python("axpy")}, problem, effort).values()
    assert measurement.samples == 12


FAILURES = {
    "off_by_a_little": ("wrong_result", "y: 1 of 1000 elements differ"),
    "does_nothing": ("wrong_result", "y: 1"),
    "changes_its_input": ("wrong_result", "x: an input was overwritten"),
    "raises": ("run_error", "ValueError: no such luck"),
    "crashes": ("run_error", "killed by SIGSEGV"),
    "no_such_function": ("run_error", "AttributeError"),
    "crashes_later": ("run_error", "killed by SIGSEGV"),
}


def test_failures_are_reported_and_cost_themselves_only(problem: Problem) -> None:
    contenders = {name: python(name) for name in FAILURES}
    found = measure_side_by_side({**contenders, "good": python("axpy")}, problem, BRIEF)
    for name, (status, detail) in FAILURES.items():
        assert (found[name].status, found[name].runtime_s) == (status, None)
        assert detail in found[name].detail and "\n" not in found[name].detail
    assert found["good"].status == "ok" and found["good"].samples == BRIEF.rounds


def test_a_hang_ends_at_the_time_limit(problem: Problem) -> None:
    effort = Effort(processes=1, rounds=6, budget_s=0.0, warm_up_s=0.0, timed_s=0.0, timeout_s=5.0)
    found = measure_side_by_side({"hangs": python("hangs")}, problem, effort)
    assert (found["hangs"].status, found["hangs"].detail) == ("timeout", "no answer in 5 s")


def test_a_missing_package_is_said_to_be_missing(problem: Problem) -> None:
    contenders = {"absent": python("axpy", "no_such_package"), "numpy": python("axpy")}
    found = measure_side_by_side(contenders, problem, BRIEF)
    assert found["absent"].status == "not_applicable"
    assert found["absent"].detail == "no_such_package is not installed"
    assert found["numpy"].status == "ok"


def test_symbols_are_passed_by_name_and_outputs_are_restored() -> None:
    """The second run of an in-place kernel starts from the same values as the first."""
    x = np.linspace(0, 1, 50, dtype=np.float32) ** 2
    once = x.copy()
    for _ in range(3):
        once[1:-1] = 0.5 * once[1:-1] + 0.25 * (once[:-2] + once[2:])
    problem = Problem({"x": x, "N": 50, "STEPS": 3}, ["x"], {"x": once}, updated=["x"])
    (measurement,) = measure_side_by_side({"numpy": python("smooth")}, problem, BRIEF).values()
    assert measurement.status == "ok", measurement.detail


def test_many_results_are_in_the_order_in_which_they_are_returned() -> None:
    shapes: dict[str, tuple[int, ...]] = {f"__return_{i}": (1,) for i in range(12)}
    assert [by_name(tuple(range(12)), shapes)[name] for name in shapes] == list(range(12))


def test_torch_gets_tensors_and_what_it_returns_is_verified(tmp_path: Path, problem: Problem) -> None:
    path = tmp_path / "with_torch.py"
    path.write_text(
        "import torch\n"
        "def right(a, x, y):\n"
        "    assert isinstance(x, torch.Tensor) and not torch.is_grad_enabled()\n"
        "    return {'y': torch.add(y, x, alpha=a)}\n"
        "def wrong(a, x, y):\n"
        "    return {'y': torch.add(y, x, alpha=a).float().double()}\n"
    )
    contenders = {name: PythonFunction(path, name, "torch") for name in ("right", "wrong")}
    found = measure_side_by_side(contenders, problem, BRIEF)
    assert found["right"].status == "ok", found["right"].detail
    assert found["wrong"].status == "wrong_result"
