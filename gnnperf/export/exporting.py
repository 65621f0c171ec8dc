"""`gnnperf export`: a checkpoint becomes a model file and a store file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gnnperf.errors import InputError
from gnnperf.export.aoti import save_aoti
from gnnperf.export.checkpoints import read_checkpoint
from gnnperf.export.flat_store import export_store
from gnnperf.export.metadata import build_metadata
from gnnperf.export.torchscript import save_torchscript
from gnnperf.store import Store

Backend = Literal["torchscript", "aoti"]
MODELS = {"torchscript": "model.pt", "aoti": "model.pt2"}
STORE = "store.gnnstore"


@dataclass(frozen=True)
class Exported:
    """What was written. store: None where the checkpoint has none. Sizes in bytes."""

    kind: str
    functions: tuple[str, ...]
    model: Path
    model_bytes: int
    store: Path | None = None
    store_bytes: int = 0
    nests: int = 0
    records: int = 0


def export_checkpoint(checkpoint: Path, folder: Path, backend: Backend) -> Exported:
    """Write the artefact of a checkpoint into a folder, and beside it the checkpoint's store, if it has one.

    Raises InputError: no checkpoint, or the folder cannot be written. Raises BuildError: AOTInductor failed.
    """
    found = read_checkpoint(checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}; choose another folder") from error
    model = folder / MODELS[backend]
    metadata = json.dumps(build_metadata(found.kind, backend, found.functions, found.about))
    save = {"torchscript": save_torchscript, "aoti": save_aoti}[backend]
    save(model, found.functions, metadata)
    result = Exported(found.kind, tuple(f.name for f in found.functions), model, model.stat().st_size)
    if not (checkpoint / "store").is_dir():
        return result
    path = folder / STORE
    header = export_store(path, Store.open(checkpoint / "store"), found.about["encoder_id"])
    return Exported(
        result.kind, result.functions, model, result.model_bytes,
        path, path.stat().st_size, header["nests"], header["records"],
    )  # fmt: skip
