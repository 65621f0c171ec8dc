"""`python scripts/benchmarks/run.py`: what it offers, what it refuses, and where `gnnperf eval` leads to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from benchmarks import run as module
from benchmarks.run import NAMES, benchmarks, summary

from gnnperf.cli.main import run
from gnnperf.cli.output import Verb

SCRIPT = Path(module.__file__)
FORKING = ("tensor_transfer", "torch_models", "cost_model", "products", "library_calls")
"""Benchmarks that fork the process that measures before torch is loaded."""


def test_all_benchmarks_are_listed_without_importing_them() -> None:
    for option in ("--list", "--help"):
        words = [sys.executable, "-X", "importtime", str(SCRIPT), option]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert all(name in done.stdout for name in NAMES)
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "click" in imported and not {"torch", "dace", "tvm", "numpy", "benchmarks"} & imported
    assert all(summary(name).endswith(".") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_the_options_of_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = benchmarks.get_command(click.Context(benchmarks), name)
    assert isinstance(command, Verb) and command.name == name
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--json", "--report", "--output", "-o"} <= options
    assert run([name, "--help"], benchmarks) == 0
    assert capsys.readouterr().out.startswith(f"Usage: python scripts/benchmarks/run.py {name} [OPTIONS]")


def test_what_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["case-linalg", "--output", str(tmp_path / "file" / "x")], benchmarks) == 2
    assert "--output: expected a folder" in capsys.readouterr().err


def test_an_unknown_benchmark_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["case-fft"], benchmarks) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "No such command 'case-fft'" in said
    assert "See 'python scripts/benchmarks/run.py --help'" in said


def test_eval_says_where_the_benchmarks_of_a_checkout_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "case-spmm"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "python scripts/benchmarks/run.py case-spmm" in said
    assert run(["eval", "nonsense"]) == 2
    assert "scripts" not in capsys.readouterr().err


@pytest.mark.parametrize("name", FORKING)
def test_benchmarks_that_fork_do_not_import_torch_before(name: str) -> None:
    folder = str(SCRIPT.parents[1])
    code = f"import sys; sys.path[0] = {folder!r}; import benchmarks.{name}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
