"""A small encoder and head compiled by AOTInductor, which takes a while: once for all tests that need it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.sharing import shared_folder

from gnnperf.export import export_checkpoint
from gnnperf.nn import Bundle, Encoder, EncoderConfig, HeadConfig, RetrievalHead, save_checkpoint
from gnnperf.schedules.recipes import effect_fields, recipe_fields


@pytest.fixture(scope="session")
def compiled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a bundle, with out/model.pt2 compiled from it."""
    return shared_folder(tmp_path_factory, "compiled", _compile)


def _compile(folder: Path) -> None:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=1, embedding_width=8))
    widths = 16, len(recipe_fields()), len(effect_fields())
    head = RetrievalHead(*widths, HeadConfig(width=8, effect_width=8))
    save_checkpoint(folder, Bundle(encoder.eval(), head.eval()))
    export_checkpoint(folder, folder / "out", "aoti")
