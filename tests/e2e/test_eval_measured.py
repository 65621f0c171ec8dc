"""`gnnperf eval ablation --measure`: contenders choose for held-out families; their choices are measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from e2e.conftest import REPO, Shell

from gnnperf.cli.main import run
from gnnperf.measure.record_log import read_lines

KERNELS = """
import dace
import numpy as np

M, N = (dace.symbol(name) for name in "MN")


@dace.program
def scale(a: dace.float32[M, N], x: dace.float32[N], b: dace.float32[M, N]):
    b[:] = a * x


@dace.program
def row_sums(a: dace.float32[M, N], s: dace.float32[M]):
    s[:] = np.add.reduce(a, axis=1)


@dace.program
def column_sums(a: dace.float32[M, N], s: dace.float32[N]):
    s[:] = np.add.reduce(a, axis=0)
"""
CONFIG = """
name: small
recipes_per_nest: 2
foreign_per_nest: 1
entries:
  - {kernel: kernels.py:scale, family: scaling, symbols: {M: 60, N: 90}}
  - {kernel: kernels.py:row_sums, family: rows, symbols: {M: 60, N: 90}}
  - {kernel: kernels.py:column_sums, family: columns, symbols: {M: 60, N: 90}}
"""


@pytest.mark.slow
def test_what_contenders_choose_is_measured_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    shell = Shell(tmp_path, {"OMP_NUM_THREADS": "1"})
    assert shell.gnnperf("collect", "corpus.yaml", "-o", "corpus").exit_code == 0
    command = (
        "eval", "ablation", "--corpus", "corpus", "--config", "corpus.yaml", "--measure", "out",
        "--per-family", 1, "--folds", 3, "--quick", "--json",
    )  # fmt: skip
    document = shell.gnnperf(*command).document
    figures, settings = document["figures"], document["settings"]
    assert settings["measured"] and (figures["nests"], figures["families"]) == (3, 3)
    assert {row["k"] for row in document["rows"]} == {1, 3, 5}
    assert 0 < figures["nests_full_at_1"] <= figures["nests_full_at_3"] <= figures["nests_full_at_5"] <= 1
    records = tmp_path / "out" / "measured" / "records.jsonl"
    measured = records.read_bytes()
    assert measured
    again = shell.here(capfd, *command).document
    assert records.read_bytes() == measured and again["rows"] == document["rows"]
    recorded = shell.here(capfd, "eval", "ablation", "--recorded", "out", "--json").document
    assert recorded["rows"] == document["rows"] and recorded["figures"] == figures
    other = shell.here(capfd, *command[:-1], "--seed", 1)
    assert other.exit_code == 2 and "expected an empty folder or rows measured with" in other.stderr
    rows = tmp_path / "out" / "rows.jsonl"
    rows.write_text(
        rows.read_text().replace(f'"machine": "{settings["machine"]}"', '"machine": "cpu/elsewhere"')
    )
    other = shell.here(capfd, *command)
    assert other.exit_code == 2 and "expected an empty folder or rows measured with machine" in other.stderr
    assert "got 'cpu/elsewhere'" in other.stderr and records.read_bytes() == measured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--per-family", "1"], "--per-family is for --measure"),
        (["--config", __file__], "--config is for --measure"),
        (["--measure", "out", "--split", "size"], "leave --split out"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    options: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "ablation", "--corpus", str(tmp_path), *options]) == 2
    assert message in capfd.readouterr().err


def test_what_was_recorded_is_printed_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded = ["eval", "ablation", "--recorded", str(tmp_path)]
    assert run([*recorded, "--folds", "3"]) == 2
    assert capfd.readouterr().err == (
        "gnnperf: --folds: --recorded takes none: expected no such option; leave it out\n"
    )
    assert run(recorded) == 2
    assert "expected a folder of `gnnperf eval ablation --measure`, got" in capfd.readouterr().err
    assert run(["eval", "ablation", "--recorded", str(REPO / "checkpoints" / "ablation"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["figures"]["families"] > 60


def test_of_what_was_interrupted_the_rest_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows that have not chosen for all nests, and nests where not all that was chosen was measured, are
    left out."""
    folder = shutil.copytree(REPO / "checkpoints" / "ablation", tmp_path / "out")
    recorded = ["eval", "ablation", "--recorded", str(folder), "--json"]

    def drop(path: Path, *words: str) -> None:
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not all(word in line for word in words)]
        assert len(kept) < len(lines)
        path.write_text("".join(kept))

    assert run(recorded) == 0
    whole = json.loads(capfd.readouterr().out)
    drop(folder / "rows.jsonl", '"name": "flat 0 0"')
    _, first, *_ = map(json.loads, (folder / "rows.jsonl").read_text().splitlines())
    chosen = first["row"]["proposed"][0]
    records = folder / "measured" / "records.jsonl"
    records.write_text("".join(json.dumps(line) + "\n" for _, line in read_lines(records.parent, "records")))
    records.with_suffix(".jsonl.zst").unlink()
    drop(records, chosen["nest"], chosen["schedules"][0])
    assert run(recorded) == 0
    rest = json.loads(capfd.readouterr().out)
    policies = {row["policy"] for row in whole["rows"]}
    assert {row["policy"] for row in rest["rows"]} == policies - {"flat features"}
    assert rest["figures"]["nests"] == whole["figures"]["nests"] - 1
    for interrupted in (("perceptron", "trees"), ("ours",)):
        for policy in interrupted:
            drop(folder / "rows.jsonl", f'"name": "{policy} 0 0"')
        assert run(recorded) == 2
        assert "expected all proposals of 'ours'" in capfd.readouterr().err
