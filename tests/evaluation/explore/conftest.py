"""A real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

QUIET = (
    "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
"""There is no network to talk to, and no screen."""

TIMEOUT_MS = 120_000
"""A busy machine is no reason to fail."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window, with a profile of its own."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        # Whoever has no browser may run the other tests; what is tested before a release is tested.
        missing = "no Chromium on the path (Debian: apt-get install chromium)"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    expect.set_options(timeout=TIMEOUT_MS)
    with (
        sync_playwright() as playwright,
        # The sandbox of Chromium does not start as root, as whom containers run tests.
        playwright.chromium.launch(executable_path=found, args=QUIET, chromium_sandbox=False) as browser,
    ):
        yield browser
