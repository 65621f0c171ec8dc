"""A loaded artefact: the same calls as of the checkpoint it was exported from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.export.aoti import load_aoti
from gnnperf.export.functions import Call, check_tensors
from gnnperf.export.metadata import check_metadata
from gnnperf.export.torchscript import load_torchscript
from gnnperf.graph import ProgramGraph, collate, encode
from gnnperf.nn import ScheduledProgram, collate_programs


class ExportedModel:
    """An artefact whose metadata was checked. Every call compares shapes and types with the metadata.

    Example:
        model = load_exported("out/model.pt")
        vectors = model.embed([graph])
    """

    def __init__(self, path: Path, functions: Call, metadata: Mapping[str, Any]) -> None:
        self.path = path
        self.metadata = metadata
        self._functions = functions

    def call(self, function: str, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Call a function of the metadata by its name. Raises InputError: no such one, or shapes differ."""
        about = self.metadata["functions"].get(function)
        if about is None:
            known = ", ".join(self.metadata["functions"])
            raise InputError(f"{self.path}: expected a function out of {known}, got {function!r}")
        sizes: dict[str, int] = {}
        check_tensors(f"{self.path}: {function}", inputs, about["inputs"], sizes)
        with torch.inference_mode():  # compiled code takes rows as they lie in memory
            found = self._functions(function, [tensor.contiguous() for tensor in inputs])
        outputs = (found,) if isinstance(found, Tensor) else tuple(found)
        check_tensors(f"{self.path}: result of {function}", outputs, about["outputs"], sizes)
        return outputs

    def embed(self, graphs: Sequence[ProgramGraph]) -> Float32[np.ndarray, "b d"]:
        """As `Bundle.embed`: f32[b, embedding_width], rows of norm 1."""
        return self.call("embed", *collate([encode(g) for g in graphs]))[0].numpy()

    def score(self, programs: Sequence[ScheduledProgram]) -> Float32[np.ndarray, " b"]:
        """As `Bundle.score`: f32[b], the highest of one program is the schedule to try first."""
        if not programs:
            return np.zeros(0, np.float32)
        graphs, node_costs, facts = collate_programs(programs)
        return self.call("score", *graphs, node_costs, facts)[0].numpy()


def load_exported(path: Path | str) -> ExportedModel:
    """Load what `gnnperf export` wrote: TorchScript (.pt) or AOTInductor (.pt2).

    Raises InputError: no artefact, damaged, or made for another schema or version (got / expected).
    """
    path = Path(path)
    if path.suffix == ".pt2":
        compiled, text = load_aoti(path)
        return ExportedModel(path, compiled, check_metadata(path, text, "aoti"))
    functions, text = load_torchscript(path)
    return ExportedModel(path, functions, check_metadata(path, text, "torchscript"))
