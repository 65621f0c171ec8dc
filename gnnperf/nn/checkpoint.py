"""The one format of trained models: a folder that says what it holds, checked when it is read.

| in the folder | holds |
|---|---|
| `metadata.json` | format, model, versions, hyperparameters, calibration, provenance, checksums of files |
| `weights.pt` | state dicts of the model's networks, by name: tensors and nothing else |
| further files | those of the model; `metadata.json` names them with their checksums |
| `store/` | where the model retrieves: a schedule store, which grows and has no checksum |
| `README.md` | the model card, written by hand: a checkpoint that replaces another keeps it |
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

import gnnperf
from gnnperf.documents import check_expansion, from_json, text_of
from gnnperf.errors import InputError, first_line

FORMAT = 1
METADATA, WEIGHTS, STORE, CARD = "metadata.json", "weights.pt", "store", "README.md"
KEYS = {
    "format", "model", "gnnperf", "torch", "files", "hyperparameters", "calibration", "provenance", "reads",
    "sha256",
}  # fmt: skip
LONGEST = 80
"""Characters of a value in a message."""

N = TypeVar("N", bound=nn.Module)
M = TypeVar("M", bound="Model")


@dataclass(frozen=True)
class ModelProvenance:
    """Where a model comes from.

    Attributes:
        corpus: what it was trained on: digest, sizes, device.
        figures: metrics by name, of predictions for what was held out.
        seeds: one for each training that the model is a mean of.
    """

    corpus: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    seeds: Sequence[int] = ()


UNKNOWN = ModelProvenance()


@dataclass(frozen=True)
class Contents:
    """A model as plain data.

    Attributes:
        networks: state dicts, by name.
        hyperparameters: what the networks are built from, as JSON.
        calibration: what turns their outputs into decisions and intervals, as JSON; None without any.
        provenance: where the model comes from.
        files: what is neither JSON nor a tensor, by name of the file.
    """

    networks: Mapping[str, Mapping[str, Tensor]]
    hyperparameters: Mapping[str, Any]
    provenance: ModelProvenance
    calibration: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)

    def restore(self, name: str, network: N) -> N:
        """The network with the weights of that name, for inference. ValueError where they do not fit."""
        state = self.networks[name]
        got, expected = (
            {key: tuple(tensor.shape) for key, tensor in tensors.items()}
            for tensors in (state, network.state_dict())
        )
        for key in sorted(got.keys() | expected.keys()):
            if got.get(key) != expected.get(key):
                shapes = f"got {got.get(key, 'no such tensor')}, expected {expected.get(key, 'none')}"
                raise ValueError(f"{WEIGHTS}: shape of {name}.{key}: {shapes}")
        network.load_state_dict(state)
        return network.eval()


class Model(Protocol):
    """What can be kept in a checkpoint."""

    MODEL: ClassVar[str]
    """Name of the kind, as metadata and the folders of released models have it."""

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """What a model of this kind reads, as this version of gnnperf computes it; as JSON. A checkpoint that
        was trained on anything else is refused."""

    def contents(self) -> Contents:
        """What is written."""

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """The model again. KeyError, TypeError or ValueError where the contents are not of this kind."""


def save_checkpoint(
    folder: Path | str, model: Model, fill_store: Callable[[Path], object] | None = None
) -> None:
    """Write a checkpoint, which appears when it is complete.

    Args:
        folder: new, empty, or a checkpoint, which is replaced but for its card.
        model: what to write.
        fill_store: makes the schedule store in the folder that it is given.

    Raises:
        InputError: the folder cannot be written, or holds something else.
    """
    folder = Path(folder).resolve()
    check_replaceable(folder)
    contents = model.contents()
    tensors = io.BytesIO()
    torch.save({name: dict(state) for name, state in contents.networks.items()}, tensors)
    files = {WEIGHTS: tensors.getvalue(), **contents.files}
    metadata = {
        "format": FORMAT,
        "model": model.MODEL,
        "gnnperf": gnnperf.__version__,
        "torch": torch.__version__,
        "files": {name: _sha256(data) for name, data in files.items()},
        "hyperparameters": contents.hyperparameters,
        "calibration": contents.calibration,
        "provenance": {**vars(contents.provenance), "seeds": list(contents.provenance.seeds)},
        "reads": model.reads(),
    }
    metadata["sha256"] = _sha256_of(metadata)
    partial, replaced = (folder.with_name(f".{folder.name}.{os.getpid()}.{what}") for what in ("new", "old"))
    try:
        try:
            partial.mkdir(parents=True)
            for name, data in files.items():
                (partial / name).write_bytes(data)
            (partial / METADATA).write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
            if fill_store is not None:
                fill_store(partial / STORE)
            if (folder / CARD).is_file():
                shutil.copy(folder / CARD, partial)
            if folder.exists():
                folder.rename(replaced)
            partial.rename(folder)
        finally:
            if replaced.exists() and not folder.exists():  # interrupted between the two
                replaced.rename(folder)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}; choose another folder") from error


def check_replaceable(folder: Path) -> None:
    """Raises InputError where a checkpoint cannot be written to a folder because something else is there."""
    if folder.is_dir() and not (folder / METADATA).is_file() and any(folder.iterdir()):
        raise InputError(f"expected a new folder, or a checkpoint to replace, got {folder}; choose another")


def load_checkpoint(folder: Path | str, *models: type[M]) -> M:
    """Read a checkpoint of one of the given kinds of models.

    Raises:
        InputError: no such checkpoint, damaged, or made for another gnnperf: what was got, expected, and what
            to do.
    """
    folder = Path(folder)
    kind, metadata = read_kind(folder, *models)
    for name, value in json.loads(json.dumps(kind.reads())).items():
        if (got := metadata["reads"].get(name)) != value:
            raise InputError(
                f"{folder}: {name}: got {_short(got)}, expected {_short(value)}; use a checkpoint of this "
                f"version, or make one with `gnnperf train release {kind.MODEL}`"
            )
    networks, files = read_files(folder, metadata)
    try:
        provenance = ModelProvenance(**metadata["provenance"])
        return kind.of(
            Contents(networks, metadata["hyperparameters"], provenance, metadata["calibration"], files)
        )
    except (AttributeError, InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"damaged checkpoint {folder}: {first_line(error)}; restore it or train it anew"
        ) from error


def read_kind(folder: Path, *models: type[M]) -> tuple[type[M], dict[str, Any]]:
    """Which of these kinds a checkpoint is of, and its metadata. Raises InputError where it is of none."""
    metadata = read_metadata(folder)
    kinds = {kind.MODEL: kind for kind in models}
    if metadata["model"] not in kinds:
        raise InputError(
            f"{folder}: expected a checkpoint of {' or '.join(kinds)}, got one of {metadata['model']}; "
            "name another folder"
        )
    return kinds[metadata["model"]], metadata


def read_files(
    folder: Path, metadata: Mapping[str, Any]
) -> tuple[Mapping[str, Mapping[str, Tensor]], Mapping[str, bytes]]:
    """State dicts and further files of a checkpoint. Raises InputError where one is not what was written."""
    files = {name: _read(folder, name, checksum) for name, checksum in metadata["files"].items()}
    return _tensors(folder / WEIGHTS, files.pop(WEIGHTS, b"")), files


def read_metadata(folder: Path) -> dict[str, Any]:
    """`metadata.json` of a checkpoint in today's format. Raises InputError where the folder is none."""
    try:
        metadata = from_json(text_of(folder / METADATA))
        if not isinstance(metadata, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError) as error:
        raise InputError(
            f"expected a checkpoint folder with {METADATA} and {WEIGHTS}, got {folder} "
            f"({type(error).__name__}); give a folder written by `gnnperf train`"
        ) from error
    if (got := metadata.get("format")) != FORMAT:
        writer = _short(metadata.get("gnnperf", "an older one"))
        raise InputError(
            f"{folder}: format: got {_short(got)}, expected {FORMAT}; use the gnnperf that wrote it, "
            f"{writer}, or train it anew with `gnnperf train release`"
        )
    for name, kind in (("model", str), ("files", dict), ("reads", dict), ("hyperparameters", dict),
                       ("provenance", dict), ("calibration", dict | None)):  # fmt: skip
        if name not in metadata or not isinstance(metadata[name], kind):
            raise InputError(
                f"damaged checkpoint {folder}: {METADATA}: {name}: got {_short(metadata.get(name))}; "
                "restore it or train it anew"
            )
    # Those that older gnnperfs wrote have no checksum of metadata.
    if unknown := metadata.keys() - KEYS:
        raise InputError(f"damaged checkpoint {folder}: {METADATA} has {_short(min(unknown))!r}; restore it")
    if "sha256" in metadata and (computed := _sha256_of(metadata)) != metadata["sha256"]:
        raise _changed(folder / METADATA, computed, metadata["sha256"])
    return metadata


def _sha256_of(metadata: Mapping[str, Any]) -> str:
    """Of all of it but the checksum itself, however it is indented and ordered."""
    rest = {key: value for key, value in metadata.items() if key != "sha256"}
    return _sha256(json.dumps(rest, sort_keys=True).encode())


def _changed(path: Path, got: str, expected: object) -> InputError:
    return InputError(
        f"{path}: sha256: got {got[:12]}..., expected {_short(expected)[:12]}...; "
        "the file is not the one that was written: restore it or train it anew"
    )


def _read(folder: Path, name: str, checksum: object) -> bytes:
    """A file of a checkpoint, which is in its folder and is what was written."""
    path = folder / name
    if path.parent != folder or name == "..":
        raise InputError(f"damaged checkpoint {folder}: it names a file {name!r} elsewhere; restore it")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; restore the checkpoint") from error
    if (got := _sha256(data)) != checksum:
        raise _changed(path, got, checksum)
    return data


def _tensors(path: Path, data: bytes) -> Mapping[str, Mapping[str, Tensor]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_expansion(archive, len(data))
        networks = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises a dozen types, with advice that is not ours
        raise InputError(
            f"{path}: expected tensors and nothing else, got other Python objects, which could run code, or "
            "no file of torch.save; get the checkpoint from those who trained it"
        ) from error
    if not isinstance(networks, dict) or not all(isinstance(state, dict) for state in networks.values()):
        raise InputError(f"{path}: expected state dicts by name, got {type(networks).__name__}; restore it")
    return networks


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
