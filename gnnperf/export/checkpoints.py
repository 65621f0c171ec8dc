"""From a checkpoint folder to the functions and metadata of its artefact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.export.demand_functions import demand_functions
from gnnperf.export.functions import Function
from gnnperf.export.retrieval_functions import retrieval_functions
from gnnperf.export.runtime_functions import runtime_functions, runtime_metadata
from gnnperf.nn import PROFILE_FIELDS, Bundle, load_checkpoint
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead

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
        "profile_fields": PROFILE_FIELDS,
        "schedule_fields": bundle.schedule_fields,
        "effect_fields": bundle.effect_fields,
        "corpus": corpus,
        "device": {"fingerprint": corpus.get("device")},
        "figures": bundle.provenance.figures,
        "max_distance": (bundle.calibration or {}).get("max_distance"),
    }
