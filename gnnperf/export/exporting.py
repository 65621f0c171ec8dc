"""`gnnperf export`: a checkpoint becomes a model file and a store file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gnnperf.errors import InputError
from gnnperf.export.aoti import save_aoti
from gnnperf.export.demand_functions import demand_functions
from gnnperf.export.flat_store import export_store
from gnnperf.export.functions import Function
from gnnperf.export.metadata import build_metadata
from gnnperf.export.retrieval_functions import describe_costs, retrieval_functions
from gnnperf.export.runtime_functions import runtime_functions, runtime_metadata
from gnnperf.export.torchscript import save_torchscript
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.schedules.recipes import fact_fields
from gnnperf.store import Store

RETRIEVAL, RUNTIME, DEMAND = "retrieval", "runtime", "demand"


@dataclass(frozen=True)
class Exportable:
    """kind: RETRIEVAL, RUNTIME or DEMAND. about: what its metadata says beside what all say."""

    kind: str
    functions: Sequence[Function]
    about: Mapping[str, Any]


def read_checkpoint(folder: Path) -> Exportable:
    """Read any released checkpoint. Raises InputError where the folder is none, or is damaged."""
    kinds: Sequence[type[Bundle | RuntimeHead | DemandBundle]] = (Bundle, RuntimeHead, DemandBundle)
    model = load_checkpoint(folder, *kinds)
    corpus = model.provenance.corpus
    match model:
        case RuntimeHead():
            return Exportable(
                RUNTIME, runtime_functions(model), {**runtime_metadata(model), "corpus": corpus}
            )
        case DemandBundle():
            about = {
                "corpus": corpus,
                "half_widths_log2": model.half_widths,
                "devices": {
                    d.name: d.to_dict() for ds in model.networks.values() for n in ds for d in n.devices
                },
            }
            return Exportable(DEMAND, demand_functions(model), about)
        case Bundle():
            return Exportable(RETRIEVAL, retrieval_functions(model), _about_retrieval(model))


def _about_retrieval(bundle: Bundle) -> dict[str, Any]:
    corpus = bundle.provenance.corpus
    return {
        "encoder_id": bundle.encoder_id,
        "embedding_width": bundle.embedding_width,
        "cost_fields": describe_costs(),
        "fact_fields": fact_fields(),
        "corpus": corpus,
        "device": {"fingerprint": corpus.get("device")},
        "figures": bundle.provenance.figures,
    }


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
    return replace(
        result, store=path, store_bytes=path.stat().st_size, nests=header["nests"], records=header["records"]
    )
