"""What all tests share: the hypothesis profiles and golden files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: tests that
# interrupt a command would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the machines are shared. On CI the examples are fixed, so that a red run can be repeated.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: `text` equals `tests/golden/<name>`, or, with `--update-golden`, replaces it."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; --update-golden takes it"

    return check
