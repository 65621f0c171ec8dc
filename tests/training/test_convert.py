"""Old checkpoints become checkpoints of today's format, with the same weights."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xgboost
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.graph import EDGE_FEATURES
from gnnperf.nn import load_checkpoint
from gnnperf.nn.checkpoint import Contents
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.traces import TensorBundle, TreeJudge
from gnnperf.nn.traces.trees import PROGRAM_NUMBERS
from gnnperf.shipped import shipped
from gnnperf.training.convert import convert_checkpoint

Kind = type[TensorBundle | RuntimeHead | DemandBundle]


def old_metadata(kind: Kind, contents: Contents) -> dict[str, Any]:
    """What gnnperf 0.1 wrote about a model, as far as it says more than what the model reads."""
    about, came = contents.hyperparameters, contents.provenance
    if kind is TensorBundle:
        return {"models": about["models"], "trees": True, "corpus": came.corpus, "figures": came.figures}
    if kind is RuntimeHead:
        return {"families": [], "calibration": contents.calibration, "seeds": came.seeds, "data": came.corpus}
    networks = [{"kernel": name.partition(".")[0], **network} for name, network in about["networks"].items()]
    data = {**came.corpus, "seeds": len(came.seeds)}
    return {"networks": networks, **(contents.calibration or {}), "figures": came.figures, "data": data}


def old_names(state: Mapping[str, Tensor], features: int) -> dict[str, Tensor]:
    """Weights by the names that they had in layers of gnnperf's own."""
    result = {}
    for name, tensor in state.items():
        old = name.replace("passing.layers.", "layers.").replace("attention.lin_", "attention.")
        old = re.sub(r"(layers\.\d+)\.output", r"\1.attention.output", old)
        old = old.replace("readout.gate_nn", "readout.score").replace("readout.nn", "readout.value")
        if name.endswith("lin_edge.weight"):
            result[old], kinds = tensor[:, :features].clone(), tensor[:, features:]
            result[old.replace(".edge.", ".edge_kind.")] = kinds.T.clone()
        else:
            result[old] = tensor
    return result


def old_states(folder: Path, contents: Contents) -> dict[str, dict[str, Tensor]]:
    """Of networks over graphs; the trees beside them become a file of XGBoost's."""
    (folder / "trees.ubj").write_bytes(boosted_trees()[0])
    return {name: old_names(s, EDGE_FEATURES) for name, s in contents.networks.items() if name != "trees"}


def boosted_trees() -> tuple[bytes, TreeJudge]:
    """Of one threshold each: as a file of XGBoost's, and as they are kept today."""
    numbers = np.tile(np.linspace(-1, 1, 50, dtype=np.float32)[:, None], (1, PROGRAM_NUMBERS))
    booster = xgboost.train({"max_depth": 1, "nthread": 1}, xgboost.DMatrix(numbers, numbers[:, 0] > 0), 3)
    booster.set_attr(scale="2.0")
    return bytes(booster.save_raw("ubj")), TreeJudge.of_booster(booster, 2.0)


def write_old(folder: Path, kind: Kind) -> Contents:
    """A released model as gnnperf 0.1 wrote it."""
    contents = load_checkpoint(shipped(f"checkpoints/{kind.MODEL}"), kind).contents()
    folder.mkdir()
    states: Any = dict(contents.networks)
    if kind is TensorBundle:
        states = old_states(folder, contents)
    torch.save(list(states.values()), folder / "weights.pt")
    (folder / "metadata.json").write_text(json.dumps(old_metadata(kind, contents)))
    (folder / "README.md").write_text("card")
    for name, data in contents.files.items():
        (folder / name).write_bytes(data)
    if kind is TensorBundle:
        (folder / "store").mkdir()
        (folder / "store" / "records").touch()
    return contents


@pytest.mark.parametrize("kind", [TensorBundle, RuntimeHead, DemandBundle])
def test_an_old_checkpoint_is_converted(kind: Kind, tmp_path: Path) -> None:
    before = write_old(tmp_path / "old", kind)
    with pytest.raises(InputError, match="older gnnperf"):
        load_checkpoint(tmp_path / "old", kind)
    convert_checkpoint(tmp_path / "old", tmp_path / "new")
    after = load_checkpoint(tmp_path / "new", kind).contents()
    trees = {"trees": boosted_trees()[1].state()} if kind is TensorBundle else {}
    for name, state in {**before.networks, **trees}.items():
        for key, tensor in state.items():
            got: Tensor = after.networks[name][key]
            assert got.dtype == tensor.dtype and torch.equal(got, tensor)
    assert asdict(after.provenance) == asdict(before.provenance)
    assert json.dumps(after.calibration) == json.dumps(before.calibration)
    assert after.files == before.files
    assert (tmp_path / "new" / "README.md").read_text() == "card"
    assert (tmp_path / "new" / "store" / "records").exists() == (kind is TensorBundle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: shutil.rmtree(old), r"expected a checkpoint of an older gnnperf .*FileNotFoundError"),
        (lambda old: (old / "metadata.json").write_text('{"a": 1}'), "older gnnperf, got .* with a"),
        (lambda old: (old / "metadata.json").write_text('{"families": 1}'), "damaged checkpoint"),
        (lambda old: (old / "weights.pt").write_bytes(b"torn"), "expected a checkpoint of an older gnnperf"),
    ],
)
def test_what_cannot_be_converted(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    write_old(tmp_path / "old", RuntimeHead)
    with pytest.raises(InputError, match="expected another folder"):
        convert_checkpoint(tmp_path / "old", tmp_path / "old")
    change(tmp_path / "old")
    with pytest.raises(InputError, match=message):
        convert_checkpoint(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_of_today_is_not_converted(checkpoint: Path, tmp_path: Path) -> None:
    for folder in (shipped("checkpoints/gpu-runtime"), checkpoint):
        with pytest.raises(InputError, match=r"older gnnperf, got .* with format, model"):
            convert_checkpoint(folder, tmp_path / "new")


@pytest.mark.parametrize(
    "document",
    [
        {"encoder_id": "0", "encoder": {}, "seed": 0},  # of gnnperf 0.1
        {"format": 1, "model": "loop-nests", "reads": {"network": "torch-geometric", "effect_fields": []}},
    ],
)
def test_heads_that_saw_no_scheduled_graphs_are_trained_anew(
    document: dict[str, Any], checkpoint: Path, tmp_path: Path
) -> None:
    shutil.copytree(checkpoint, tmp_path / "old")
    (tmp_path / "old" / "metadata.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="without their graphs; `gnnperf train release loop-nests`") as error:
        convert_checkpoint(tmp_path / "old", tmp_path / "new")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("layers", ["layers of gnnperf's own", "layers of today"])
def test_layers_and_trees_of_older_formats_are_converted(layers: str, tmp_path: Path) -> None:
    released = shipped("checkpoints/tensor-programs")
    contents = load_checkpoint(released, TensorBundle).contents()
    old, metadata = tmp_path / "old", json.loads((released / "metadata.json").read_text())
    old.mkdir()
    states = old_states(old, contents)
    if layers == "layers of today":
        states = {name: dict(contents.networks[name]) for name in states}
    else:
        del metadata["reads"]["network"]
    torch.save(states, old / "weights.pt")
    for name in ("weights.pt", "trees.ubj"):
        metadata["files"][name] = hashlib.sha256((old / name).read_bytes()).hexdigest()
    del metadata["reads"]["trees"], metadata["sha256"]
    (old / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(
        InputError, match=r"(layers of|trees as) .*older gnnperf; `gnnperf train convert .* -o"
    ):
        load_checkpoint(old, TensorBundle)
    convert_checkpoint(old, tmp_path / "new")
    after = load_checkpoint(tmp_path / "new", TensorBundle).contents()
    for name, state in {**contents.networks, "trees": boosted_trees()[1].state()}.items():
        for key, tensor in state.items():
            assert torch.equal(after.networks[name][key], tensor)
    metadata["reads"]["schema_digest"] = "another"
    (old / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match="its schema_digest are not those of this version"):
        convert_checkpoint(old, tmp_path / "newer")
