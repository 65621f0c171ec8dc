"""Checkpoints of gnnperf up to 0.1, whose four models had a format each, in the one format of today."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.nn import Bundle, load_checkpoint, save_checkpoint
from gnnperf.nn.checkpoint import CARD, METADATA, STORE, WEIGHTS, Contents, Model, ModelProvenance
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.traces import TensorBundle

State = Mapping[str, Tensor]


def convert_checkpoint(old: Path, new: Path) -> Model:
    """Write a checkpoint of today's format with the weights, store and card of an old one; returns its model.

    Raises:
        InputError: `old` is no old checkpoint, or `new` is it, or cannot be written.
    """
    if old.resolve() == new.resolve():
        raise InputError(f"expected another folder than {old} to write, which stays as it is; name a new one")
    try:
        document = json.loads((old / METADATA).read_text(encoding="utf-8"))
        weights = torch.load(old / WEIGHTS, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises a dozen types, with advice that is not ours
        raise InputError(
            f"expected a checkpoint of gnnperf 0.1 with {METADATA} and {WEIGHTS}, got {old} "
            f"({type(error).__name__}); name another folder"
        ) from error
    found = next((READERS[key] for key in READERS if key in document), None)
    if found is None or "format" in document:
        raise InputError(f"expected a checkpoint of gnnperf 0.1, got {old} with {', '.join(document)}")
    kind, read = found
    try:
        model = kind.of(read(old, document, weights))
    except (InputError, KeyError, OSError, TypeError, ValueError) as error:
        raise InputError(f"damaged checkpoint {old}: {error}; restore it") from error
    has_store = (old / STORE).is_dir()
    save_checkpoint(new, model, (lambda store: shutil.copytree(old / STORE, store)) if has_store else None)
    if (old / CARD).is_file():
        shutil.copy(old / CARD, new)
    return load_checkpoint(new, kind)


def _loop_nests(old: Path, document: Mapping[str, Any], weights: Mapping[str, State]) -> Contents:
    calibration = old / "calibration.json"
    seed = document["seed"]
    return Contents(
        weights,
        {name: document[name] for name in ("encoder", "head", "schedule_fields")},
        ModelProvenance(document["corpus"], document["figures"], [] if seed is None else [seed]),
        json.loads(calibration.read_text(encoding="utf-8")) if calibration.is_file() else None,
    )


def _tensor_programs(old: Path, document: Mapping[str, Any], weights: Sequence[State]) -> Contents:
    trees = {"trees.ubj": (old / "trees.ubj").read_bytes()} if document["trees"] else {}
    seeds = range(len(document["models"]))
    provenance = ModelProvenance(document["corpus"], document["figures"], list(seeds))
    return Contents(_numbered(weights), {"models": document["models"]}, provenance, files=trees)


def _gpu_runtime(old: Path, document: Mapping[str, Any], weights: Sequence[State]) -> Contents:
    provenance = ModelProvenance(document["data"], {}, document["seeds"])
    return Contents(_numbered(weights), {"models": len(weights)}, provenance, document["calibration"])


def _tunable_kernels(old: Path, document: Mapping[str, Any], weights: Sequence[State]) -> Contents:
    networks, about, counts = {}, {}, dict[str, int]()
    for network, state in zip(document["networks"], weights, strict=True):
        kernel = network["kernel"]
        name = f"{kernel}.{counts.setdefault(kernel, 0)}"
        counts[kernel] += 1
        networks[name] = state
        about[name] = {part: network[part] for part in ("parameters", "config", "devices")}
    data = dict(document["data"])
    return Contents(
        networks,
        {"networks": about},
        ModelProvenance(data, document["figures"], list(range(data.pop("seeds", 1)))),
        {name: document[name] for name in ("half_widths", "adapted_half_widths")},
        {path.name: path.read_bytes() for path in sorted(old.glob("measured-*.parquet"))},
    )


def _numbered(weights: Sequence[State]) -> dict[str, State]:
    return {str(number): state for number, state in enumerate(weights)}


READERS: Mapping[str, tuple[type[Model], Callable[[Path, Mapping[str, Any], Any], Contents]]] = {
    "encoder_id": (Bundle, _loop_nests),
    "models": (TensorBundle, _tensor_programs),
    "families": (RuntimeHead, _gpu_runtime),
    "networks": (DemandBundle, _tunable_kernels),
}
"""By the key of metadata that only this kind of model had."""
