"""One JSON document on standard output, whatever libraries print meanwhile."""

from __future__ import annotations

import ctypes
import json
import math
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.cli import output
from gnnperf.cli.output import Report, progress, stdout_to_stderr, to_json, write


def test_everything_printed_during_the_work_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with stdout_to_stderr():
        print("from Python")
        os.write(1, b"from a file descriptor\n")
        subprocess.run(["echo", "from a child"], check=True)
        ctypes.CDLL(None).puts(b"from C, buffered")
    print("the document")
    captured = capfd.readouterr()
    assert captured.out == "the document\n"
    for source in ("from Python", "from a file descriptor", "from a child", "from C, buffered"):
        assert source in captured.err


def test_stdout_comes_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), stdout_to_stderr():
        raise ValueError("broken")
    print("after")
    assert capfd.readouterr().out == "after\n"


@dataclass(frozen=True)
class Point:
    x: float
    name: str


def test_to_json_takes_what_the_verbs_have() -> None:
    document = {
        "array": np.arange(4, dtype=np.int32).reshape(2, 2),
        "scalar": np.float32(0.5),
        "double": np.float64(0.25),
        "truth": np.bool_(True),
        "point": Point(1.5, "a"),
        "path": Path("a/b"),
        "set": frozenset({1}),
        3: None,
    }
    assert json.loads(to_json(document)) == {
        "array": [[0, 1], [2, 3]],
        "scalar": 0.5,
        "double": 0.25,
        "truth": True,
        "point": {"x": 1.5, "name": "a"},
        "path": "a/b",
        "set": [1],
        "3": None,
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.array(np.inf)])
def test_to_json_has_no_nan_or_infinity(value: object) -> None:
    assert to_json({"runtime_s": value}) == '{"runtime_s": null}'


def test_to_json_refuses_what_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="no JSON form for object"):
        to_json({"x": object()})


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_to_json_is_strict(value: object) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"not JSON: {constant}")

    text = to_json({"value": value})
    assert "\n" not in text
    json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(("columns", "lines"), [(None, 1), ("0", 1), ("wide", 1), ("60", 2)])
def test_a_report_in_a_file_is_120_columns_wide_unless_told_otherwise(
    columns: str | None, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    write(Report({}, "word " * 23), as_json=False)
    assert capsys.readouterr().out.count("\n") == lines


def test_progress_in_a_log_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 10.0, 31.0, 40.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    with progress("measuring", 4) as advance:
        for kernel in ("matmul", "softmax", "stencil"):
            advance(doing=kernel)
    assert capsys.readouterr() == ("", "measuring softmax: 2 of 4, 0:00:31 left\n")


def test_progress_on_a_terminal_is_a_bar_on_stderr() -> None:
    """Through a pseudo-terminal, as a person sees it."""
    code = (
        "from gnnperf.cli.output import progress\n"
        "with progress('measuring', 2) as advance: advance(doing='matmul'); advance()\n"
        "print('done')"
    )
    terminal, other_end = pty.openpty()
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=other_end, check=True)
    os.close(other_end)
    seen = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert result.stdout == b"done\n"
    assert "measuring" in seen
    assert "2/2" in seen
