from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for every test."""
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
