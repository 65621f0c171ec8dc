"""DaCe's own optimisation as the thing to beat: it must build, and it must be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from frontends.kit import load, run

from gnnperf.frontends.dace import build_baseline
from gnnperf.measure import Compiler, Runner


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner(threads=1) as runner:
        yield compiler, runner


def test_auto_and_simplify_agree(tools: tuple[Compiler, Runner]) -> None:
    compiler, runner = tools
    kernel = load("softmax")
    simplify = build_baseline(kernel.simplified, kernel.name, "simplify", compiler)
    reference = run(runner, kernel, simplify.library)
    auto = build_baseline(
        kernel.simplified, kernel.name, "auto", compiler, runner, kernel.data, reference, tuple(kernel.inouts)
    )
    assert (simplify.name, simplify.reason) == ("simplify", None)
    assert (auto.name, auto.reason) == ("auto", None)


def failing(*_: Any, **__: Any) -> None:
    raise ValueError("cannot do this\nfor many reasons")


def wrong(sdfg: Any, *_: Any, **__: Any) -> None:
    for node, _state in sdfg.all_nodes_recursive():
        if type(node).__name__ == "Tasklet" and "exp" in node.code.as_string:
            node.code.code = type(node.code)("__out = 2.0 * exp(__in1)").code
            return


def test_auto_falls_back_with_the_reason(
    tools: tuple[Compiler, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, _ = tools
    monkeypatch.setattr("dace.transformation.auto.auto_optimize.auto_optimize", failing)
    baseline = build_baseline(load("relu").simplified, "relu", "auto", compiler)
    assert baseline.name == "simplify"
    assert baseline.reason == "auto_optimize failed: cannot do this"


def test_auto_with_wrong_results_is_no_baseline(
    tools: tuple[Compiler, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, runner = tools
    kernel = load("functions")
    simplify = build_baseline(kernel.simplified, "functions", "simplify", compiler)
    reference = run(runner, kernel, simplify.library)
    assert all(np.isfinite(v).all() for v in reference.values())
    monkeypatch.setattr("dace.transformation.auto.auto_optimize.auto_optimize", wrong)
    baseline = build_baseline(
        kernel.simplified,
        "functions_wrong",
        "auto",
        compiler,
        runner,
        kernel.data,
        reference,
        tuple(kernel.inouts),
    )
    assert baseline.name == "simplify"
    assert baseline.reason is not None
    assert "changes the results" in baseline.reason
