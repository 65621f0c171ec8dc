"""What is skipped is said in one line, and is a failure where skipping is forbidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
EXAMPLES = """
import pytest

@pytest.mark.needs("chromium")
@pytest.mark.parametrize("page", "ab")
def test_page(page):
    raise AssertionError("it ran")

def test_other():
    pytest.skip("a moon")
"""


@pytest.mark.parametrize(("workers", "forbid"), [(0, False), (1, True)])
def test_one_line_says_what_is_missing_and_what_enables_it(
    tmp_path: Path, workers: int, forbid: bool
) -> None:
    (tmp_path / "test_examples.py").write_text(EXAMPLES)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["helpers.requirements"]')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs(name): of others\n")
    environment = {**os.environ, "PATH": "/nowhere", "PYTHONPATH": str(TESTS)}
    environment.pop("GNNPERF_FORBID_SKIPS", None)
    if forbid:
        environment["GNNPERF_FORBID_SKIPS"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"-n{workers}", "test_examples.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (1 if forbid else 0), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    expected = "skipped tests: 1 for want of a moon, 2 for want of chromium (apt-get install chromium)"
    assert lines.count(expected) == 1
    named = [line for line in lines if line.startswith("SKIPPED test_examples.py::")]
    assert len(named) == (3 if forbid else 0)
