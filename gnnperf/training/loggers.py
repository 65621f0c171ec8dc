"""Experiment loggers that cannot make a run fail."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import WandbLogger

log = logging.getLogger(__name__)


class OfflineWandbLogger(WandbLogger):
    """Weights & Biases, offline unless asked otherwise.

    Runs are written below `save_dir` and need no network and no key; `wandb sync` uploads them
    later. With WANDB_MODE=online and a key in WANDB_API_KEY the run is uploaded as it goes; where
    that cannot be, it goes on offline, and where even that cannot be, without W&B.

    Args:
        save_dir: folder; W&B makes a folder `wandb` in it.
        name: of the run.
        project: of the run.
    """

    def __init__(self, save_dir: str = "runs", name: str | None = None, project: str = "gnnperf") -> None:
        import wandb

        wanted = os.environ.get("WANDB_MODE", "offline")
        # Without a key, wandb would ask for one at the terminal and wait.
        online = wanted == "online" and bool(os.environ.get("WANDB_API_KEY"))
        if wanted == "online" and not online:
            log.warning("WANDB_MODE=online without WANDB_API_KEY: logging to W&B offline")
        mode = "online" if online else "disabled" if wanted == "disabled" else "offline"
        settings = wandb.Settings(init_timeout=30, silent=True, console="off")
        # W&B writes from a process of its own, whose current folder may not be ours.
        folder = Path(save_dir).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(name=name, save_dir=folder, project=project, mode=mode, settings=settings)
        self._wandb_init.pop("anonymous", None)  # wandb warns of it, whatever its value

    @property
    def experiment(self) -> Any:
        """The wandb run; opened at the first use."""
        for fallback in ("offline", "disabled"):
            try:
                return super().experiment
            except Exception as error:  # a logger must not end a training run, whatever is wrong with it
                reason = " ".join(str(error).split())
                log.warning("W&B did not start (%s); it is %s for this run", reason, fallback)
                self._wandb_init["mode"] = fallback
        return super().experiment


def close_wandb() -> None:
    """End the W&B run of this process, if there is one; what was logged is on disk then."""
    wandb = sys.modules.get("wandb")
    if wandb is not None and wandb.run is not None:
        wandb.finish()
