from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from helpers.compiled import compiled_folder

import gnnperf
from gnnperf.export import ExportedModel, export_checkpoint, load_exported
from gnnperf.nn import Bundle, load_checkpoint

__all__ = ["compiled_folder"]

RELEASED = Path(gnnperf.__file__).parent.parent / "checkpoints"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def released() -> Bundle:
    return load_checkpoint(RELEASED / "loop-nests", Bundle)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released encoder, head and store, exported as TorchScript."""
    path = tmp_path_factory.mktemp("exported")
    export_checkpoint(RELEASED / "loop-nests", path, "torchscript")
    return path


@pytest.fixture(scope="session")
def model(folder: Path) -> ExportedModel:
    return load_exported(folder / "model.pt")
