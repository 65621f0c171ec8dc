"""DaCe's own optimisation as the thing to beat: it must build, and it must be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dace
import numpy as np
import pytest
from frontends.kit import load

from gnnperf.backends.cpp.baselines import Baseline, build_baseline
from gnnperf.errors import BuildError
from gnnperf.frontends.dace import DaceKernel
from gnnperf.frontends.dace.codegen import compiled
from gnnperf.measure import Compiler, Measurement, Runner, Source


@pytest.fixture(scope="module")
def baseline_of(compiler: Compiler) -> Iterator[Callable[[str, str], Baseline]]:
    """`baseline_of(name, wanted)`: of a kernel of these tests."""

    def build(name: str, wanted: str) -> Baseline:
        return build_baseline(load(name), wanted, compiler, runner)

    with Runner(threads=1) as runner:
        yield build


BaselineOf = Callable[[str, str], Baseline]


def test_auto_and_simplify_agree(baseline_of: BaselineOf) -> None:
    simplify, auto = baseline_of("softmax", "simplify"), baseline_of("softmax", "auto")
    assert (simplify.name, simplify.reason) == ("dace-simplify", None)
    assert (auto.name, auto.reason) == ("dace-auto", None)
    assert simplify.library.path != auto.library.path
    for name, expected in simplify.problem.reference.items():
        np.testing.assert_array_equal(auto.problem.reference[name], expected)


def failing(*_: Any, **__: Any) -> None:
    raise ValueError("cannot do this\nfor many reasons")


def wrong(sdfg: Any, *_: Any, **__: Any) -> None:
    for node, _state in sdfg.all_nodes_recursive():
        if type(node).__name__ == "Tasklet" and "exp" in node.code.as_string:
            node.code.code = type(node.code)("__out = 2.0 * exp(__in1)").code
            return


def test_auto_falls_back_with_the_reason(baseline_of: BaselineOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dace.transformation.auto.auto_optimize.auto_optimize", failing)
    baseline = baseline_of("relu", "auto")
    assert (baseline.name, baseline.reason) == ("dace-simplify", "auto_optimize failed: cannot do this")


def test_auto_has_a_limit_of_time(baseline_of: BaselineOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnnperf.frontends.dace.codegen.LONGEST_OPTIMISATION_S", 0.0)
    baseline = baseline_of("softmax", "auto")
    assert baseline.name == "dace-simplify"
    assert baseline.reason == "auto_optimize failed: it takes longer than 0 s"


def test_auto_with_wrong_results_is_no_baseline(
    baseline_of: BaselineOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dace.transformation.auto.auto_optimize.auto_optimize", wrong)
    baseline = baseline_of("functions", "auto")
    assert all(np.isfinite(v).all() for v in baseline.problem.reference.values())
    assert baseline.name == "dace-simplify"
    assert baseline.reason is not None
    assert "changes the results" in baseline.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("this is no C++;", "error:"),
        ("static struct Crash { Crash() { __builtin_trap(); } } crash;", "failed: run_error, killed by SIG"),
    ],
)
def test_auto_that_does_not_compile_or_run_is_no_baseline(
    code: str, reason: str, baseline_of: BaselineOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimised = DaceKernel.optimised_sources

    def spoiled(kernel: DaceKernel) -> dict[str, Source]:
        sources = optimised(kernel)
        return {name: replace(s, text=f"{s.text}\n{code}\n") for name, s in sources.items()}

    monkeypatch.setattr(DaceKernel, "optimised_sources", spoiled)
    baseline = baseline_of("relu", "auto")
    assert baseline.name == "dace-simplify"
    assert baseline.reason is not None
    assert reason in baseline.reason


class FailsLater(Runner):
    """Where what ran once fails when it is timed."""

    def measure(self, *_: Any, **__: Any) -> Measurement:
        return Measurement("run_error", detail="killed by SIGSEGV")


def test_a_baseline_that_fails_when_it_is_timed_is_not_taken(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimised = DaceKernel.optimised_sources

    def two(kernel: DaceKernel) -> dict[str, Source]:
        (source,) = optimised(kernel).values()
        return {"first": source, "second": source}

    monkeypatch.setattr(DaceKernel, "optimised_sources", two)
    with FailsLater(threads=1) as runner:
        baseline = build_baseline(load("relu"), "auto", compiler, runner)
    assert (baseline.name, baseline.reason) == ("first", "second fails when it is run again")


def test_code_of_dace_that_does_not_compile_is_said_to_be_dace_s(compiler: Compiler) -> None:
    program = dace.SDFG("broken")
    program.add_array("x", [4], dace.float64)
    state = program.add_state()
    tasklet = state.add_tasklet("broken", {}, {"out"}, "out = Implies(1, 2);", language=dace.Language.CPP)
    state.add_edge(tasklet, "out", state.add_write("x"), None, dace.Memlet("x[0]"))
    with pytest.raises(BuildError) as caught:
        compiled(program, "broken", compiler)
    assert str(caught.value).startswith("what DaCe makes of the kernel does not compile: ")
    assert "\n" not in str(caught.value)
