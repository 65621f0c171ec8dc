"""What some tests need beyond the tools that the README asks for: `@pytest.mark.needs("chromium")`.

Where it is missing they are skipped, and one line at the end of the run says how to enable them. With
GNNPERF_FORBID_SKIPS=1, as in CI, a run that skipped anything fails and names what it skipped.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from typing import NamedTuple

import pytest


class Requirement(NamedTuple):
    found: Callable[[], object]
    remedy: str
    """What enables the tests that need it."""


def chromium() -> str | None:
    """Path of the system's Chromium."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _installed(package: str) -> bool:
    try:
        return bool(distribution(package))
    except PackageNotFoundError:
        return False


REQUIREMENTS = {
    "chromium": Requirement(chromium, "apt-get install chromium"),
    "mkl": Requirement(lambda: _installed("mkl"), "pip install '.[mkl]', as make test-all does"),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if not REQUIREMENTS[name].found():
                pytest.skip(name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("GNNPERF_FORBID_SKIPS") and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = _skipped(config)
    if not skipped:
        return
    if os.environ.get("GNNPERF_FORBID_SKIPS"):
        for name, reason in skipped:
            terminalreporter.write_line(f"SKIPPED {name} for want of {reason}", red=True)
    terminalreporter.write_line(summary([reason for _, reason in skipped]), yellow=True)


def summary(reasons: list[str]) -> str:
    """One line about skipped tests, from the reason of each: how many lack what, and what enables them."""
    groups = []
    for reason, count in sorted(Counter(reasons).items()):
        remedy = f" ({REQUIREMENTS[reason].remedy})" if reason in REQUIREMENTS else ""
        groups.append(f"{count} for want of {reason}{remedy}")
    return f"skipped tests: {', '.join(groups)}"


def _skipped(config: pytest.Config) -> list[tuple[str, str]]:
    """Names of the tests that this run skipped, and why; none in the workers of xdist."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    reports = terminal.stats.get("skipped", ()) if terminal else ()
    return [(report.nodeid, str(report.longrepr[2]).removeprefix("Skipped: ")) for report in reports]
