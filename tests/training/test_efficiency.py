"""The table the retrieval head learns from, worked by hand."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.training import load_corpus
from gnnperf.training.efficiency import FAILURE
from gnnperf.training.metrics import best_of_k


def table(tmp_path: Path, *of_nests: dict[str, float | None]) -> dict[str, list[float]]:
    """Schedule -> its column."""
    nests = [nest(nest_like([8 + i]), f"f{i}") for i in range(len(of_nests))]
    lines = [
        measurement(n["task"], name, runtime_s)
        for n, runtimes in zip(nests, of_nests, strict=True)
        for name, runtime_s in runtimes.items()
    ]
    found = load_corpus(write_corpus(tmp_path, nests, lines)).efficiency
    return dict(zip(found.recipes, found.log_efficiency.T.tolist(), strict=True))


def test_efficiency_is_against_the_best_known(tmp_path: Path) -> None:
    columns = table(tmp_path, {"a": 0.5, "b": 0.25, "c": None}, {"a": 2.0, "d": 4.0})
    assert columns["a"] == pytest.approx(
        [log(0.25 / 0.5), log(1 / 2.0)]
    )  # on the second, the baseline is best
    assert columns["b"][0] == 0.0
    assert np.isnan(columns["b"][1])
    assert columns["c"][0] == pytest.approx(FAILURE)
    assert columns["d"][1] == pytest.approx(log(1 / 4.0))


def test_what_does_not_apply_is_unknown_and_not_a_failure(tmp_path: Path) -> None:
    graph = nest_like([8])
    lines = [
        measurement(graph.digest, "a", 0.5),
        measurement(graph.digest, "b", None, status="not_applicable"),
        {**measurement(graph.digest, "t", 0.1), "schedule": {"kind": "trace", "version": 1}},
    ]
    found = load_corpus(write_corpus(tmp_path, [nest(graph, "f")], lines)).efficiency
    assert list(found.recipes) == ["a"]
    # The trace is no recipe, but it is what is known to be possible.
    assert found.log_efficiency.tolist() == [pytest.approx([log(0.1 / 0.5)])]


def test_best_of_k_passes_over_what_was_not_measured() -> None:
    nan = np.nan
    measured = np.log(np.array([[0.5, 1.0, 0.8], [0.2, nan, 1.0], [nan, nan, nan]], dtype=np.float32))
    score = np.array([[3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]], dtype=np.float32)
    assert best_of_k(score, measured, 1) == pytest.approx([0.5, 0.2])
    assert best_of_k(score, measured, 2) == pytest.approx([0.8, 1.0])
