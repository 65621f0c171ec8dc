"""The format of checkpoints: what is written is what is read, all or nothing, and only by who can use it."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gnnperf.errors import InputError
from gnnperf.nn import Bundle, Encoder, load_checkpoint, save_checkpoint
from gnnperf.nn.demand import DemandBundle
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.traces import TensorBundle
from gnnperf.shipped import shipped
from gnnperf.store import Store


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change metadata, which has a checksum no more, as in what older gnnperfs wrote."""
    document = json.loads((folder / "metadata.json").read_text())
    del document["sha256"]
    change(document)
    (folder / "metadata.json").write_text(json.dumps(document))


def forge_weights(folder: Path, data: bytes) -> None:
    """Other weights, whose checksum is right."""
    from hashlib import sha256

    (folder / "weights.pt").write_bytes(data)
    edit(folder, lambda document: document["files"].update({"weights.pt": sha256(data).hexdigest()}))


@pytest.fixture
def folder(bundle: Bundle, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "b", bundle)
    return tmp_path / "b"


@pytest.mark.parametrize("kind", [Bundle, TensorBundle, RuntimeHead, DemandBundle])
def test_a_released_checkpoint_is_written_as_it_was_read(
    kind: type[Bundle | TensorBundle | RuntimeHead | DemandBundle], tmp_path: Path
) -> None:
    released = shipped(f"checkpoints/{kind.MODEL}")
    save_checkpoint(tmp_path / "again", load_checkpoint(released, kind))
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (released / path.name).read_bytes(), path.name


def test_a_checkpoint_replaces_another_but_for_its_card(folder: Path, bundle: Bundle) -> None:
    (folder / "README.md").write_text("a card")
    (folder / "store").mkdir()
    (folder / "store" / "of-the-old-encoder").touch()
    save_checkpoint(folder, bundle, lambda store: store.mkdir())
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "metadata.json", "store", "weights.pt",
    ]  # fmt: skip
    assert (folder / "README.md").read_text() == "a card"
    assert not list((folder / "store").iterdir())
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_what_fails_half_way_leaves_what_was_there(folder: Path, bundle: Bundle) -> None:
    before = (folder / "metadata.json").stat().st_mtime_ns

    def full(store: Path) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(InputError, match=r"cannot write .*: No space left on device; choose another folder"):
        save_checkpoint(folder, bundle, full)
    assert (folder / "metadata.json").stat().st_mtime_ns == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_a_checkpoint_is_put_back_where_the_new_one_cannot_take_its_place(
    error: type[BaseException], folder: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise error if error is KeyboardInterrupt else OSError(28, os.strerror(28))
        return rename(path, target)

    before = (folder / "metadata.json").stat().st_mtime_ns
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(error):
        save_checkpoint(folder, bundle)
    assert (folder / "metadata.json").stat().st_mtime_ns == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_other_files_are_not_replaced(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="expected a new folder, or a checkpoint to replace"):
        save_checkpoint(tmp_path, bundle)
    with pytest.raises(InputError, match="cannot write"):
        save_checkpoint(tmp_path / "thesis.txt" / "b", bundle)


def test_no_checkpoint(tmp_path: Path) -> None:
    message = r"expected a checkpoint folder with metadata.json and weights.pt, got .* \(FileNotFoundError\)"
    with pytest.raises(InputError, match=message):
        load_checkpoint(tmp_path, Bundle)
    for content in ("", "[]", "{"):
        (tmp_path / "metadata.json").write_text(content)
        with pytest.raises(InputError, match=r"expected a checkpoint folder with .*Error"):
            load_checkpoint(tmp_path, Bundle)


def test_one_of_no_format_is_refused_with_what_makes_another(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"bundle_version": 3}')
    with pytest.raises(
        InputError, match=r"format: got None, expected 1; .* `gnnperf train release`"
    ) as error:
        load_checkpoint(tmp_path, Bundle)
    assert "\n" not in str(error.value)


def test_another_kind_of_model(folder: Path) -> None:
    message = "expected a checkpoint of gpu-runtime or tunable-kernels, got one of loop-nests"
    with pytest.raises(InputError, match=message):
        load_checkpoint(folder, RuntimeHead, DemandBundle)


@pytest.mark.parametrize("name", ["network", "schema_digest", "cost_fields", "fact_fields"])
def test_what_reads_something_else_is_refused(folder: Path, name: str) -> None:
    edit(folder, lambda document: document["reads"].update({name: "other"}))
    with pytest.raises(InputError, match=rf"{name}: got other, expected .*train release loop-nests"):
        load_checkpoint(folder, Bundle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format=99), "format: got 99, expected 1; use the gnnperf that wrote it"),
        (lambda d: d.pop("provenance"), "damaged checkpoint .*: provenance: got None"),
        (lambda d: d.update(files=[]), r"damaged checkpoint .*: files: got \[\]"),
        (lambda d: d["hyperparameters"]["encoder"].update(breadth=3), "damaged checkpoint .*breadth"),
        (lambda d: d["hyperparameters"]["encoder"].update(width=7), "damaged checkpoint .*width=7"),
        (
            lambda d: d["hyperparameters"]["encoder"].update(embedding_width=32),
            r"weights.pt: shape of encoder\..*: got \(64,\), expected \(32,\); restore it",
        ),
        (
            lambda d: d["hyperparameters"]["encoder"].update(layers=4),
            r"shape of encoder\..*: got no such tensor, expected \(",
        ),
        (lambda d: d["provenance"].update(author="me"), "damaged checkpoint .*author"),
        (lambda d: d["files"].update({"../other": "0"}), "names a file '../other'"),
        (lambda d: d["files"].update({"table.parquet": "0"}), r"cannot read .*table\.parquet: No such file"),
        (lambda d: d["files"].pop("weights.pt"), "expected tensors and nothing else"),
    ],
)
def test_damaged_metadata(folder: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    edit(folder, change)
    with pytest.raises(InputError, match=message) as error:
        load_checkpoint(folder, Bundle)
    assert "\n" not in str(error.value)


def test_a_file_that_was_changed(folder: Path) -> None:
    weights = folder / "weights.pt"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"weights.pt: sha256: got .*, expected .*; the file is not the one"):
        load_checkpoint(folder, Bundle)


class Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("gone-off",)


@pytest.mark.parametrize("protocol", ["torch", "pickle"])
def test_objects_among_the_weights_are_not_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if protocol == "torch":
        torch.save({"encoder": Bomb()}, tmp_path / "w")
        forge_weights(folder, (tmp_path / "w").read_bytes())
    else:
        forge_weights(folder, pickle.dumps(Bomb()))
    with pytest.raises(
        InputError, match=r"could run code.*get the checkpoint from those who trained"
    ) as error:
        load_checkpoint(folder, Bundle)
    assert not (tmp_path / "gone-off").exists()
    assert "weights_only" not in str(error.value)


def test_weights_that_expand_without_end_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnnperf.documents.SMALL", 2**20)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data/0", bytes(2**26))
    forge_weights(folder, archive.getvalue())
    with pytest.raises(InputError, match=r"weights\.pt: expected tensors"):
        load_checkpoint(folder, Bundle)


def test_metadata_as_long_as_a_disk_is_refused(folder: Path) -> None:
    os.truncate(folder / "metadata.json", 2**35)
    with pytest.raises(InputError, match="expected a checkpoint folder with"):
        load_checkpoint(folder, Bundle)


def test_tensors_without_names(folder: Path, tmp_path: Path) -> None:
    torch.save([Encoder().state_dict()], tmp_path / "w")
    forge_weights(folder, (tmp_path / "w").read_bytes())
    with pytest.raises(InputError, match="expected state dicts by name, got list"):
        load_checkpoint(folder, Bundle)


def test_metadata_that_was_changed_is_refused(folder: Path) -> None:
    """Any one byte: digits of figures read as figures."""
    path = folder / "metadata.json"
    written = path.read_bytes()
    for place in range(0, len(written) - 1, 97):
        path.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
        with pytest.raises(InputError):
            load_checkpoint(folder, Bundle)
    changed = json.loads(written)
    changed["hyperparameters"]["encoder"]["width"] += 0.5
    path.write_text(json.dumps(changed))
    with pytest.raises(InputError, match=r"metadata\.json: sha256: got \w{12}\.\.\., expected \w{12}\.\.\."):
        load_checkpoint(folder, Bundle)
    path.write_text(json.dumps(json.loads(written), sort_keys=True))  # the same in other words
    load_checkpoint(folder, Bundle)


@pytest.mark.parametrize("kind", [Bundle, TensorBundle])
def test_released_stores_are_embedded_by_the_released_encoder(kind: type[Bundle | TensorBundle]) -> None:
    """Those of another one would have no neighbours for anything, without a word."""
    encoder = load_checkpoint(shipped("checkpoints/loop-nests"), Bundle)
    store = Store.open(shipped(f"checkpoints/{kind.MODEL}/store"))
    assert set(store.widths()) == {encoder.encoder_id}
    assert not store.stale(encoder.encoder_id)
