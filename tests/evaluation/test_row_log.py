"""What a benchmark keeps: rows survive a kill, belong to their settings, and failures are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnperf.errors import InputError
from gnnperf.evaluation.row_log import RowLog

SETTINGS = {"k": 5, "device": "cpu"}
ROW = {"ours_s": 1.5, "failures": []}


def test_rows_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    RowLog(tmp_path, SETTINGS).add("a", ROW)
    again = RowLog(tmp_path, SETTINGS)
    assert again.rows == {"a": ROW}
    again.add("b", {**ROW, "ours_s": 2.5})
    assert list(RowLog(tmp_path, SETTINGS).rows) == ["a", "b"]


def test_a_torn_line_is_measured_again_and_leaves_no_trace(tmp_path: Path) -> None:
    log = RowLog(tmp_path, SETTINGS)
    log.add("a", ROW)
    log.add("b", ROW)
    path = tmp_path / "rows.jsonl"
    path.write_text(path.read_text()[:-7])
    log = RowLog(tmp_path, SETTINGS)
    assert list(log.rows) == ["a"]
    log.add("b", ROW)
    assert list(RowLog(tmp_path, SETTINGS).rows) == ["a", "b"]


def test_rows_are_written_beside_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that is killed loses nothing, and one that leaves nothing out writes nothing."""
    RowLog(tmp_path, SETTINGS).add("a", ROW)
    path = tmp_path / "rows.jsonl"

    def killed(self: Path, text: str, encoding: str) -> int:
        self.write_bytes(text[:9].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    assert list(RowLog(tmp_path, SETTINGS).rows) == ["a"]
    path.write_bytes(before := path.read_bytes() + b'{"name": "b", "r')
    with pytest.raises(KeyboardInterrupt):
        RowLog(tmp_path, SETTINGS)
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]


def test_what_failed_is_measured_again(tmp_path: Path) -> None:
    log = RowLog(tmp_path, SETTINGS)
    log.add("a", {"ours_s": None, "failures": ["a: broken"]})
    assert log.rows["a"]["failures"] and RowLog(tmp_path, SETTINGS).rows == {}


def test_rows_of_other_settings_are_refused_and_kept(tmp_path: Path) -> None:
    RowLog(tmp_path, SETTINGS).add("a", ROW)
    before = (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"rows measured with k 3, got 5 in .*; choose another folder"):
        RowLog(tmp_path, {**SETTINGS, "k": 3})
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_without_a_folder_rows_are_in_memory() -> None:
    log = RowLog(None, SETTINGS)
    log.add("a", ROW)
    assert log.rows == {"a": ROW}
