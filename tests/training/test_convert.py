"""Old checkpoints become checkpoints of today's format, with the same weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gnnperf.errors import InputError
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.checkpoint import Contents
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.traces import TensorBundle
from gnnperf.shipped import shipped
from gnnperf.training.convert import convert_checkpoint

Kind = type[Bundle | TensorBundle | RuntimeHead | DemandBundle]


def old_metadata(kind: Kind, contents: Contents) -> dict[str, Any]:
    """What gnnperf 0.1 wrote about a model, as far as it says more than what the model reads."""
    about, came = contents.hyperparameters, contents.provenance
    if kind is Bundle:
        return {
            "encoder_id": "0",
            **about,
            "seed": came.seeds[0],
            "corpus": came.corpus,
            "figures": came.figures,
        }
    if kind is TensorBundle:
        return {"models": about["models"], "trees": True, "corpus": came.corpus, "figures": came.figures}
    if kind is RuntimeHead:
        return {"families": [], "calibration": contents.calibration, "seeds": came.seeds, "data": came.corpus}
    networks = [{"kernel": name.partition(".")[0], **network} for name, network in about["networks"].items()]
    data = {**came.corpus, "seeds": len(came.seeds)}
    return {"networks": networks, **(contents.calibration or {}), "figures": came.figures, "data": data}


def write_old(folder: Path, kind: Kind) -> Contents:
    """A released model as gnnperf 0.1 wrote it."""
    contents = load_checkpoint(shipped(f"checkpoints/{kind.MODEL}"), kind).contents()
    folder.mkdir()
    states: Any = dict(contents.networks)
    torch.save(states if kind is Bundle else list(states.values()), folder / "weights.pt")
    (folder / "metadata.json").write_text(json.dumps(old_metadata(kind, contents)))
    (folder / "README.md").write_text("card")
    for name, data in contents.files.items():
        (folder / name).write_bytes(data)
    if kind is Bundle:
        (folder / "calibration.json").write_text(json.dumps(contents.calibration))
        (folder / "store").mkdir()
        (folder / "store" / "records").touch()
    return contents


@pytest.mark.parametrize("kind", [Bundle, TensorBundle, RuntimeHead, DemandBundle])
def test_an_old_checkpoint_is_converted(kind: Kind, tmp_path: Path) -> None:
    before = write_old(tmp_path / "old", kind)
    with pytest.raises(InputError, match="older gnnperf"):
        load_checkpoint(tmp_path / "old", kind)
    convert_checkpoint(tmp_path / "old", tmp_path / "new")
    after = load_checkpoint(tmp_path / "new", kind).contents()
    for name, state in before.networks.items():
        for key, tensor in state.items():
            got: Tensor = after.networks[name][key]
            assert got.dtype == tensor.dtype and torch.equal(got, tensor)
    assert asdict(after.provenance) == asdict(before.provenance)
    assert json.dumps(after.calibration) == json.dumps(before.calibration)
    assert after.files == before.files
    assert (tmp_path / "new" / "README.md").read_text() == "card"
    assert (tmp_path / "new" / "store" / "records").exists() == (kind is Bundle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: shutil.rmtree(old), r"expected a checkpoint of gnnperf 0.1 .*FileNotFoundError"),
        (lambda old: (old / "metadata.json").write_text('{"a": 1}'), "gnnperf 0.1, got .* with a"),
        (lambda old: (old / "metadata.json").write_text('{"families": 1}'), "damaged checkpoint"),
        (lambda old: (old / "weights.pt").write_bytes(b"torn"), "expected a checkpoint of gnnperf 0.1"),
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


def test_a_checkpoint_of_today_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gnnperf 0\.1, got .* with format, model"):
        convert_checkpoint(shipped("checkpoints/gpu-runtime"), tmp_path / "new")
