"""`gnnperf collect`: killed, interrupted, started again, sealed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell
from e2e.test_interrupts import wait_until

from gnnperf.training import load_corpus

CONFIG = f"""
name: tiny
recipes_per_nest: 12
foreign_per_nest: 3
entries:
  - {{kernel: {KERNELS.name}:scores, family: gemm, symbols: {{N: 40, M: 48, K: 56}}}}
  - {{kernel: {KERNELS.name}:no_nest, family: nothing}}
  - {{kernel: {KERNELS.name}:spmm, family: spmm, symbols: {{N: 60, M: 50, K: 32, NNZ: 400, empty: 0.25}},
     inputs: {KERNELS.name}:csr}}
"""


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
def test_killed_and_interrupted_it_goes_on_where_it_was(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / KERNELS.name).write_text(KERNELS.read_text())
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    log = tmp_path / "corpus" / "records.jsonl"
    command = ("collect", "corpus.yaml", "--output", "corpus")

    with shell.start(*command) as process:
        wait_until(lambda: len(lines(log)) >= 2)
        process.kill()
    killed_after = len(lines(log))
    wait_until(lambda: not shell.processes())

    with shell.start(*command) as process:
        wait_until(lambda: len(lines(log)) >= killed_after + 2)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate()
    kept = len(lines(log))
    assert (process.returncode, stdout) == (130, "")
    assert f"interrupted; {kept} measurements are kept in corpus; run the same command to go on" in stderr
    assert "Traceback" not in stderr
    wait_until(lambda: not shell.processes())
    assert all(json.loads(line) for line in lines(log))

    done = shell.gnnperf(*command, "--seal", "--json")
    answer = done.document
    assert "Traceback" not in done.stderr
    assert answer["tasks"] == 2
    assert answer["families"] == {"gemm": 1, "spmm": 1}
    assert answer["measurements"] == sum(answer["statuses"].values()) >= 24
    assert answer["statuses"]["ok"] > 12
    assert sorted(p.name for p in (tmp_path / "corpus").iterdir()) == [
        "done.jsonl.zst", "records.jsonl.zst", "tasks.jsonl.zst",
    ]  # fmt: skip
    corpus = load_corpus(tmp_path / "corpus")
    assert corpus.measurement_count == answer["measurements"], "nothing was measured twice"


def test_families_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / KERNELS.name).write_text(KERNELS.read_text())
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    done = Shell(tmp_path).gnnperf("collect", "corpus.yaml", "--only", "stencil")
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no family 'stencil'; there are gemm, nothing, spmm" in line


@pytest.mark.slow
def test_what_a_corpus_holds_is_measured_again_and_nothing_else(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / KERNELS.name).write_text(KERNELS.read_text())
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    first = ("collect", "corpus.yaml", "--only", "gemm", "--output", "before")
    assert shell.gnnperf(*first).exit_code == 0
    done = shell.gnnperf("collect", "corpus.yaml", "--again", "before", "--output", "after")
    assert done.exit_code == 0, done.stderr
    before, after = (load_corpus(tmp_path / name).measurements for name in ("before", "after"))
    (digest,) = before
    assert {recipe: m.origin for recipe, m in after[digest].items()} == {
        recipe: m.origin for recipe, m in before[digest].items()
    }
    assert [*after] == [digest]
    refused = shell.gnnperf("collect", "corpus.yaml", "--only", "spmm", "--again", "before", "-o", "other")
    assert refused.exit_code == 2
    assert "--again: expected a corpus of nests that" in refused.stderr
    assert not (tmp_path / "other").exists()
