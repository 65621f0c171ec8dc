"""W&B never makes a run fail, wait or reach for the network on its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb

from gnnperf.training.loggers import OfflineWandbLogger, close_wandb


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield
    close_wandb()


def test_a_run_is_kept_on_disk(tmp_path: Path) -> None:
    logger = OfflineWandbLogger(save_dir=str(tmp_path / "new" / "folder"), name="x")
    assert logger.experiment.offline
    logger.log_metrics({"loss": 1.0})
    close_wandb()
    assert wandb.run is None
    assert list(tmp_path.glob("new/folder/wandb/offline-run-*/run-*.wandb"))


def test_online_without_a_key_does_not_ask_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    with caplog.at_level(logging.WARNING):
        logger = OfflineWandbLogger(save_dir=str(tmp_path))
    assert logger.experiment.offline
    assert "without WANDB_API_KEY" in caplog.text


def test_disabled_stays_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert OfflineWandbLogger(save_dir=str(tmp_path)).experiment.disabled
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("failures", "mode"), [(1, "offline"), (2, "disabled")])
def test_what_cannot_start_is_done_without(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failures: int,
    mode: str,
) -> None:
    """The first `failures` attempts to open a run end as they do without a network, or without a disk."""
    start, attempts = wandb.init, []

    def init(**settings: Any) -> Any:
        attempts.append(settings["mode"])
        if len(attempts) <= failures:
            raise wandb.errors.CommError("no network")
        return start(**settings)

    monkeypatch.setattr(wandb, "init", init)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with caplog.at_level(logging.WARNING):
        OfflineWandbLogger(save_dir=str(tmp_path)).log_metrics({"loss": 1.0})
    assert attempts[0] == "online"
    assert attempts[-1] == mode
    assert f"W&B did not start (no network); it is {mode} for this run" in caplog.text
