from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from helpers.compiled import compiled_folder
from helpers.made_up_model import made_up, made_up_folder

from gnnperf.export import ExportedModel, export_checkpoint, load_exported

__all__ = ["compiled_folder", "made_up", "made_up_folder"]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(made_up_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up encoder, head and store, exported as TorchScript."""
    path = tmp_path_factory.mktemp("exported")
    export_checkpoint(made_up_folder, path, "torchscript")
    return path


@pytest.fixture(scope="session")
def model(folder: Path) -> ExportedModel:
    return load_exported(folder / "model.pt")
