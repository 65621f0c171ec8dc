"""A small encoder and head compiled by AOTInductor, which takes a while: once for all tests that need it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.sharing import shared_folder

from gnnperf.export import export_checkpoint
from gnnperf.nn import Bundle, Encoder, EncoderConfig, HeadConfig, ScheduleHead, save_checkpoint
from gnnperf.schedules.recipes import fact_fields


@pytest.fixture(scope="session")
def compiled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a bundle, with out/model.pt2 compiled from it."""
    return shared_folder(tmp_path_factory, "compiled", _compile)


def _compile(folder: Path) -> None:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=1, embedding_width=8))
    head = ScheduleHead(16, len(fact_fields()), HeadConfig(width=8, numbers_width=8))
    save_checkpoint(folder, Bundle(encoder.eval(), head.eval()))
    export_checkpoint(folder, folder / "out", "aoti")
