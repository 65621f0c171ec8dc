"""Checkpoints of older gnnperfs as those of today.

Up to 0.1, the four models had a format each. After that, networks over graphs had layers of gnnperf's own for
a while instead of torch-geometric's, which have the same weights by other names, and trees were a file of
XGBoost's. It reads that file unchecked: convert what you trust.
"""

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
from gnnperf.nn.checkpoint import (
    CARD,
    CONVERTED,
    METADATA,
    STORE,
    WEIGHTS,
    Contents,
    Model,
    ModelProvenance,
    read_files,
    read_metadata,
)
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.traces import TensorBundle, TreeJudge
from gnnperf.nn.traces.bundle import TREES

State = Mapping[str, Tensor]
Reader = tuple[type[Model], Callable[[Path, Mapping[str, Any], Any], Contents]]


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
            f"expected a checkpoint of an older gnnperf with {METADATA} and {WEIGHTS}, got {old} "
            f"({type(error).__name__}); name another folder"
        ) from error
    kind, read = _reader(old, document)
    try:
        model = kind.of(read(old, document, weights))
    except (InputError, KeyError, OSError, TypeError, ValueError) as error:
        raise InputError(f"damaged checkpoint {old}: {error}; restore it") from error
    has_store = (old / STORE).is_dir()
    save_checkpoint(new, model, (lambda store: shutil.copytree(old / STORE, store)) if has_store else None)
    if (old / CARD).is_file():
        shutil.copy(old / CARD, new)
    return load_checkpoint(new, kind)


def renamed(state: State) -> dict[str, Tensor]:
    """Weights of a network over graphs with layers of gnnperf's own, by the names of torch-geometric's."""
    result: dict[str, Tensor] = {}
    for name, tensor in state.items():
        layer, found, weight = name.rpartition(".attention.")
        prefix, _, number = layer.rpartition("layers.")
        to = f"{prefix}passing.layers.{number}"
        if not found:
            prefix, found, number = name.rpartition("layers.")
            moved = f"{prefix}passing.layers.{number}" if found else name
            for old, new in (("readout.score.", "readout.gate_nn."), ("readout.value.", "readout.nn.")):
                moved = moved.replace(old, new)
            result[moved] = tensor
        elif weight.startswith("output."):
            result[f"{to}.{weight}"] = tensor
        elif weight == "edge.weight":  # of the features, and of the kinds of edges, one-hot
            kinds = state[f"{layer}.attention.edge_kind.weight"]
            result[f"{to}.attention.lin_edge.weight"] = torch.cat([tensor, kinds.T], dim=1)
        elif weight != "edge_kind.weight":
            result[f"{to}.attention.lin_{weight}"] = tensor
    return result


def _reader(old: Path, document: Mapping[str, Any]) -> Reader:
    """How a checkpoint is read. Raises InputError where it is not an old one, or cannot be converted."""
    of_nests = document.get("model") == Bundle.MODEL and "cost_fields" not in document.get("reads", ())
    if of_nests or "encoder_id" in document:
        raise InputError(
            f"{old}: expected a model whose networks are still in use, got one whose head ranked recipes "
            f"without their graphs; `gnnperf train release {Bundle.MODEL}` makes a new one"
        )
    if "format" in document:
        kind = GRAPH_MODELS.get(read_metadata(old)["model"])
        if kind is not None and not kind.reads().keys() <= document["reads"].keys():
            return kind, _of_another_reading
    else:
        for key, reader in READERS.items():
            if key in document:
                return reader
    raise InputError(f"expected a checkpoint of an older gnnperf, got {old} with {', '.join(document)}")


def _of_another_reading(old: Path, document: Mapping[str, Any], weights: object) -> Contents:
    kind = GRAPH_MODELS[document["model"]]
    for name, value in json.loads(json.dumps(kind.reads())).items():
        if name not in CONVERTED and document["reads"].get(name) != value:
            raise ValueError(f"its {name} are not those of this version")
    networks, files = read_files(old, document)
    if "network" not in document["reads"]:
        networks = {name: renamed(state) for name, state in networks.items()}
    if data := files.get(OLD_TREES):
        networks = {**networks, TREES: _trees(data)}
    provenance = ModelProvenance(**document["provenance"])
    return Contents(networks, document["hyperparameters"], provenance, document["calibration"])


def _trees(data: bytes) -> State:
    """What XGBoost wrote, with an attribute that is the scale of its scores."""
    import xgboost

    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(data))
        return TreeJudge.of_booster(booster, float(booster.attr("scale") or "nan")).state()
    except xgboost.core.XGBoostError as error:
        raise ValueError(f"{OLD_TREES}: not boosted trees: {str(error).splitlines()[-1]}") from error


def _tensor_programs(old: Path, document: Mapping[str, Any], weights: Sequence[State]) -> Contents:
    seeds = range(len(document["models"]))
    provenance = ModelProvenance(document["corpus"], document["figures"], list(seeds))
    networks = _numbered([renamed(state) for state in weights])
    if document["trees"]:
        networks[TREES] = dict(_trees((old / OLD_TREES).read_bytes()))
    return Contents(networks, {"models": document["models"]}, provenance)


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


OLD_TREES = "trees.ubj"
GRAPH_MODELS: Mapping[str, type[Model]] = {kind.MODEL: kind for kind in (TensorBundle,)}
"""Models whose layers changed."""
READERS: Mapping[str, Reader] = {
    "models": (TensorBundle, _tensor_programs),
    "families": (RuntimeHead, _gpu_runtime),
    "networks": (DemandBundle, _tunable_kernels),
}
"""By the key of metadata that only this kind of model had."""
