"""Folders that come with gnnperf: inside an installed package, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

import gnnperf


def shipped(folder: str) -> Path:
    """`folder` is relative to the top of a checkout, as "checkpoints/loop-nests"."""
    package = Path(gnnperf.__file__).parent
    installed, checkout = (root / folder for root in (package, package.parent))
    return installed if installed.is_dir() else checkout


def shipped_bundle() -> Path:
    """The bundle for loop nests: encoder, retrieval head, calibration and schedule store."""
    return shipped("checkpoints/loop-nests")


def shipped_tensor_bundle() -> Path:
    """The bundle for tensor programs: cost model and schedule store."""
    return shipped("checkpoints/tensor-programs")
