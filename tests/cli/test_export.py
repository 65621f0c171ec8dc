"""`gnnperf export` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnnperf.cli.main import run


def test_a_model_is_written_and_described(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(checkpoint), "-o", str(tmp_path / "new" / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["functions"] == ["embed", "score"] and document["kind"] == "retrieval"
    assert Path(document["model"]).stat().st_size == document["model_bytes"]
    assert document["store"] is None  # this checkpoint has none
    assert run(["export", str(checkpoint), "-o", str(tmp_path)]) == 0
    assert "model.pt: retrieval model" in capsys.readouterr().out.replace("\n", " ")


def test_a_folder_that_is_no_checkpoint_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "expected a checkpoint folder" in captured.err
