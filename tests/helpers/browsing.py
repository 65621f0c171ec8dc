"""A real browser, and pages that are opened in it from a file: fixtures for the folders that test pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.requirements import chromium
from playwright.sync_api import Browser, Page, expect, sync_playwright

QUIET = (
    "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
"""There is no network to talk to, and no screen."""

TIMEOUT_MS = 120_000
"""A busy machine is no reason to fail."""

DESK = {"width": 1280, "height": 800}

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window, with a profile of its own."""
    expect.set_options(timeout=TIMEOUT_MS)
    with (
        sync_playwright() as playwright,
        # The sandbox of Chromium does not start as root, as whom containers run tests.
        playwright.chromium.launch(executable_path=chromium(), args=QUIET, chromium_sandbox=False) as browser,
    ):
        yield browser


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """`opened(html, **context)`: the page, in a browser that is watched for errors and requests."""
    wrong: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []
    file = tmp_path / "page.html"

    def show(html: str, **options: Any) -> Page:
        file.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(**({"viewport": DESK} | options)))
        page: Page = contexts[-1].new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert wrong == [], "what the policy of the page forbids is said here too"
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()] * len(contexts)
