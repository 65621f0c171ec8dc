"""case-spmm: one small product through the whole command, and what users get wrong."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from benchmarks import mkl
from benchmarks.run import benchmarks
from e2e.conftest import Finished, Shell

from gnnperf.cli.main import run


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def done(shell: Shell, output: Path) -> Finished:
    words = ("--match", "banded in_cache float32 F=256", "--quick", "--oracle", "--output", output, "--json")
    return shell.benchmark("case-spmm", *words)


@pytest.mark.needs("mkl")
def test_document(done: Finished) -> None:
    document = done.document
    figures = document["figures"]
    names = (
        "geomean_vs_mkl_shipped",
        "geomean_vs_mkl_fastest",
        "min_vs_mkl_fastest",
        "oracle_vs_mkl_fastest",
    )
    assert set(figures) == {*names, "candidates_measured_max"}
    assert all(figures[name] > 0 for name in names)
    assert figures["candidates_measured_max"] <= 3
    (row,) = document["rows"]
    assert (row["structure"], row["rows"], row["nonzeros"]) == ("banded", 2048, 16 * 2048)
    for competitor in ("mkl_fastest", "mkl_shipped", "scipy", "torch"):
        low, high = row[f"vs_{competitor}_interval"]
        assert 0 < low <= row[f"vs_{competitor}"] <= high
    assert "rowtile" in row["oracle_schedule"]
    assert document["settings"]["mkl_kernels"]["mkl_fastest"].startswith("libmkl_avx")


@pytest.mark.needs("mkl")
def test_files(done: Finished, output: Path) -> None:
    assert json.loads((output / "case-spmm.json").read_text()) == done.document
    assert (output / "case-spmm.png").read_bytes().startswith(b"\x89PNG")
    assert ">banded 256<" in (output / "case-spmm.svg").read_text(encoding="utf-8")


@pytest.mark.needs("mkl")
def test_a_product_that_does_not_exist_is_one_line(shell: Shell) -> None:
    refused = shell.benchmark("case-spmm", "--match", "tridiagonal")
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "--match: expected a part of a name like 'uniform in_cache float32 F=16'" in refused.stderr


def test_without_mkl_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(mkl, "distribution", missing)
    assert run(["case-spmm"], benchmarks) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "pip install 'gnnperf[mkl]'" in said.err
