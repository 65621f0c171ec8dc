"""case-...: one small kernel through the whole command, and names that do not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import Finished, Shell


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output")


WORDS = ("case-linalg", "--kernels", "gemm_chain", "--quick", "-k", 1, "--json")


@pytest.fixture(scope="module")
def done(shell: Shell, output: Path) -> Finished:
    """The smallest kernel of the suites."""
    return shell.benchmark(*WORDS, "--output", output)


@pytest.mark.slow
def test_document(done: Finished) -> None:
    document = done.document
    assert document["benchmark"] == "case-linalg"
    figures = document["figures"]
    assert figures["kernels"] == 1
    for figure in ("geomean_vs_auto_optimize", "min_vs_auto_optimize", "geomean_vs_numpy"):
        assert figures[figure] > 0
    (row,) = document["rows"]
    assert row["kernel"] == "gemm_chain" and row["baseline"] in (
        "dace-auto",
        "dace-auto+openblas",
        "dace-simplify",
    )
    assert row["candidates_per_nest_max"] <= 1
    check_interval(row, "ours_s", "ours_interval_s")
    check_interval(row, "vs_numpy", "vs_numpy_interval")
    assert document["settings"]["k"] == 1 and document["settings"]["versions"]["numpy"]


def check_interval(row: dict[str, Any], name: str, interval: str) -> None:
    low, high = row[interval]
    assert 0 < low <= row[name] <= high


@pytest.mark.slow
def test_files(done: Finished, output: Path) -> None:
    assert json.loads((output / "case-linalg.json").read_text()) == done.document
    assert json.loads((output / "gemm_chain.json").read_text())["kernel"] == "gemm_chain"
    assert (output / "case-linalg.png").read_bytes().startswith(b"\x89PNG")
    assert ">gemm_chain<" in (output / "case-linalg.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_was_measured_is_not_measured_again(done: Finished, shell: Shell, output: Path) -> None:
    (row,) = done.document["rows"]
    (again,) = shell.benchmark(*WORDS, "--output", output).document["rows"]
    assert again == row  # two measurements would differ


@pytest.mark.parametrize("suite", ["stencils", "dnn", "linalg"])
def test_an_unknown_kernel_is_one_line_with_the_known_names(shell: Shell, suite: str) -> None:
    refused = shell.benchmark(f"case-{suite}", "--kernels", "no_such_kernel")
    assert refused.exit_code == 2
    assert refused.stdout == "" and refused.stderr.count("\n") == 1
    assert "--kernels: expected some of" in refused.stderr and "'no_such_kernel'" in refused.stderr
