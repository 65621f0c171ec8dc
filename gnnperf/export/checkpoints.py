"""From a checkpoint folder to the functions and metadata of its artefact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.export.demand_functions import demand_functions
from gnnperf.export.functions import Function
from gnnperf.export.retrieval_functions import retrieval_functions
from gnnperf.export.runtime_functions import runtime_functions, runtime_metadata
from gnnperf.nn import load_bundle
from gnnperf.nn.demand import load_demands
from gnnperf.nn.runtime import load_head
from gnnperf.retrieval.neighbours import CALIBRATION

RETRIEVAL, RUNTIME, DEMAND = "retrieval", "runtime", "demand"


@dataclass(frozen=True)
class Exportable:
    """kind: RETRIEVAL, RUNTIME or DEMAND. about: what its metadata says beside what all say."""

    kind: str
    functions: Sequence[Function]
    about: Mapping[str, Any]


def read_checkpoint(folder: Path) -> Exportable:
    """Read any released checkpoint. Raises InputError where the folder is none, or is damaged."""
    try:
        metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        keys = set(metadata)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"expected a checkpoint folder with metadata.json and weights.pt, got {folder} "
            f"({type(error).__name__})"
        ) from error
    if "encoder_id" in keys:
        return _retrieval(folder)
    if "families" in keys:
        head = load_head(folder)
        about = {**runtime_metadata(head), "corpus": metadata.get("data", {})}
        return Exportable(RUNTIME, runtime_functions(head), about)
    if "networks" in keys:
        bundle = load_demands(folder)
        about = {
            "corpus": metadata.get("data", {}),
            "half_widths_log2": bundle.half_widths,
            "devices": {
                d.name: d.to_dict() for ds in bundle.networks.values() for n in ds for d in n.devices
            },
        }
        return Exportable(DEMAND, demand_functions(bundle), about)
    raise InputError(
        f"{folder}: expected the metadata of a retrieval, runtime or tunable-kernel checkpoint, got one with "
        f"{', '.join(sorted(keys)) or 'nothing'}"
    )


def _retrieval(folder: Path) -> Exportable:
    bundle = load_bundle(folder)
    about = bundle.metadata
    calibration = folder / CALIBRATION
    return Exportable(
        RETRIEVAL,
        retrieval_functions(bundle),
        {
            "encoder_id": about.encoder_id,
            "embedding_width": about.encoder.embedding_width,
            "profile_fields": about.profile_fields,
            "schedule_fields": about.schedule_fields,
            "effect_fields": about.effect_fields,
            "corpus": about.corpus,
            "device": {"fingerprint": about.corpus.get("device")},
            "figures": about.figures,
            "max_distance": json.loads(calibration.read_text())["max_distance"]
            if calibration.exists()
            else None,
        },
    )
