from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.synthetic import lonely, nest_like

from gnnperf.errors import InputError
from gnnperf.nn import (
    Encoder,
    EncoderConfig,
    HeadConfig,
    RetrievalHead,
    encoder_id,
    load_bundle,
    save_bundle,
)
from gnnperf.schedules.recipes import DEFAULTS, effect_fields, recipe_fields

GRAPHS = [nest_like([8, 16]), lonely()]


@pytest.fixture
def encoder() -> Encoder:
    torch.manual_seed(0)
    return Encoder(EncoderConfig(width=16, layers=1, embedding_width=8))


@pytest.fixture
def head() -> RetrievalHead:
    torch.manual_seed(1)
    return RetrievalHead(16, len(recipe_fields()), len(effect_fields()), HeadConfig(width=8))


def edit(folder: Path, **changes: object) -> None:
    metadata = json.loads((folder / "metadata.json").read_text())
    (folder / "metadata.json").write_text(json.dumps({**metadata, **changes}))


def test_a_loaded_bundle_embeds_as_the_saved_one(
    encoder: Encoder, head: RetrievalHead, tmp_path: Path
) -> None:
    saved = save_bundle(
        tmp_path / "b", encoder, head, corpus={"digest": "c"}, figures={"val/transfer_regret@1": 0.1}, seed=3
    )
    loaded = load_bundle(tmp_path / "b")
    assert loaded.metadata == saved.metadata
    assert loaded.encoder_id == encoder_id(encoder)
    assert loaded.metadata.seed == 3
    embedding = loaded.embed(GRAPHS)
    assert embedding.shape == (2, 8)
    assert embedding.dtype == np.float32
    np.testing.assert_array_equal(embedding, saved.embed(GRAPHS))
    scores = loaded.score(GRAPHS, DEFAULTS)
    assert scores.shape == (2, len(DEFAULTS))
    np.testing.assert_array_equal(scores, saved.score(GRAPHS, DEFAULTS))
    np.testing.assert_allclose(scores[1, 2], loaded.score(GRAPHS[1:], DEFAULTS[2:3])[0, 0], rtol=1e-4)


def test_profiles_are_used_only_when_asked_for(encoder: Encoder, head: RetrievalHead, tmp_path: Path) -> None:
    bundle = save_bundle(tmp_path, encoder, head)
    np.testing.assert_allclose(bundle.embed(GRAPHS, with_profiles=True), bundle.embed(GRAPHS), atol=1e-6)


def test_the_encoder_id_follows_the_weights(encoder: Encoder) -> None:
    before = encoder_id(encoder)
    assert encoder_id(encoder) == before
    with torch.no_grad():
        encoder.graph_values.bias.add_(1e-3)
    assert encoder_id(encoder) != before


@pytest.mark.parametrize(
    "name", ["schema_digest", "bundle_version", "profile_fields", "effect_fields", "encoder_id"]
)
def test_a_mismatch_says_what_was_got_and_expected(
    encoder: Encoder, head: RetrievalHead, tmp_path: Path, name: str
) -> None:
    save_bundle(tmp_path, encoder, head)
    edit(tmp_path, **{name: ["other"] if name.endswith("_fields") else "other"})
    with pytest.raises(InputError, match=f"{name} is .*, expected .*; use a bundle trained with"):
        load_bundle(tmp_path)


def test_recipes_may_gain_fields_but_not_lose_those_that_the_head_reads(
    encoder: Encoder, head: RetrievalHead, tmp_path: Path
) -> None:
    fewer = [name for name in recipe_fields() if not name.startswith("combine=")]
    narrow = RetrievalHead(16, len(fewer), len(effect_fields()), HeadConfig(width=8))
    save_bundle(tmp_path, encoder, narrow)
    edit(tmp_path, schedule_fields=fewer)
    assert load_bundle(tmp_path).score(GRAPHS, DEFAULTS).shape == (2, len(DEFAULTS))
    edit(tmp_path, schedule_fields=[*fewer[1:], "tile_of_old"])
    with pytest.raises(InputError, match=r"unknown schedule fields is \['tile_of_old'\], expected \[\]"):
        load_bundle(tmp_path)


def test_a_folder_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a bundle folder with metadata.json and weights.pt, got"):
        load_bundle(tmp_path)


def test_damaged_weights(encoder: Encoder, head: RetrievalHead, tmp_path: Path) -> None:
    save_bundle(tmp_path, encoder, head)
    (tmp_path / "weights.pt").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"cannot read .*weights.pt"):
        load_bundle(tmp_path)


def test_damaged_metadata(encoder: Encoder, head: RetrievalHead, tmp_path: Path) -> None:
    save_bundle(tmp_path, encoder, head)
    edit(tmp_path, encoder={"breadth": 3})
    with pytest.raises(InputError, match=r"damaged .*metadata.json"):
        load_bundle(tmp_path)


def test_a_folder_that_cannot_be_written(encoder: Encoder, head: RetrievalHead, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write the bundle"):
        save_bundle(tmp_path / "file" / "b", encoder, head)
