"""Models and stores for programs that run without Python: artefacts with metadata that is checked at load."""

from gnnperf.export.artefact import ExportedModel, load_exported
from gnnperf.export.exporting import Exported, export_checkpoint
from gnnperf.export.flat_store import FlatStore, export_store, open_flat, write_flat
from gnnperf.export.functions import Function, TensorSpec

__all__ = [
    "Exported",
    "ExportedModel",
    "FlatStore",
    "Function",
    "TensorSpec",
    "export_checkpoint",
    "export_store",
    "load_exported",
    "open_flat",
    "write_flat",
]
