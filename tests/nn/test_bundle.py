from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.synthetic import lonely, nest_like

from gnnperf.errors import InputError
from gnnperf.nn import (
    Bundle,
    Encoder,
    EncoderConfig,
    HeadConfig,
    ModelProvenance,
    RetrievalHead,
    encoder_id,
    load_checkpoint,
    save_checkpoint,
)
from gnnperf.schedules.recipes import DEFAULTS, effect_fields, recipe_fields

GRAPHS = [nest_like([8, 16]), lonely()]


def small(schedule_fields: tuple[str, ...] = recipe_fields()) -> Bundle:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=1, embedding_width=8))
    head = RetrievalHead(16, len(schedule_fields), len(effect_fields()), HeadConfig(width=8))
    return Bundle(encoder.eval(), head.eval(), schedule_fields)


def test_a_loaded_bundle_embeds_as_the_saved_one(tmp_path: Path) -> None:
    provenance = ModelProvenance({"digest": "c"}, {"val/transfer_regret@1": 0.1}, [3])
    saved = replace(small(), provenance=provenance, calibration={"max_distance": 0.5})
    save_checkpoint(tmp_path, saved)
    loaded = load_checkpoint(tmp_path, Bundle)
    assert (loaded.provenance, loaded.calibration) == (provenance, {"max_distance": 0.5})
    assert loaded.encoder_id == saved.encoder_id
    embedding = loaded.embed(GRAPHS)
    assert embedding.shape == (2, loaded.embedding_width) == (2, 8)
    assert embedding.dtype == np.float32
    # What was saved is the network that is trained, what is loaded the lean one.
    np.testing.assert_allclose(embedding, saved.embed(GRAPHS), atol=1e-6)
    scores = loaded.score(GRAPHS, DEFAULTS)
    assert scores.shape == (2, len(DEFAULTS))
    np.testing.assert_allclose(scores, saved.score(GRAPHS, DEFAULTS), atol=1e-6)
    np.testing.assert_allclose(scores[1, 2], loaded.score(GRAPHS[1:], DEFAULTS[2:3])[0, 0], rtol=1e-4)


def test_profiles_are_used_only_when_asked_for() -> None:
    bundle = small()
    np.testing.assert_allclose(bundle.embed(GRAPHS, with_profiles=True), bundle.embed(GRAPHS), atol=1e-6)


def test_the_encoder_id_follows_the_weights() -> None:
    encoder = small().encoder
    before = encoder_id(encoder)
    assert encoder_id(encoder) == before
    with torch.no_grad():
        encoder.graph_values.bias.add_(1e-3)
    assert encoder_id(encoder) != before


def test_recipes_may_gain_fields_but_not_lose_those_that_the_head_reads(tmp_path: Path) -> None:
    fewer = tuple(name for name in recipe_fields() if not name.startswith("combine="))
    save_checkpoint(tmp_path, small(fewer))
    assert load_checkpoint(tmp_path, Bundle).score(GRAPHS, DEFAULTS).shape == (2, len(DEFAULTS))
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    metadata["hyperparameters"]["schedule_fields"][0] = "tile_of_old"
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match="schedule_fields: got 'tile_of_old', which recipes do not have"):
        load_checkpoint(tmp_path, Bundle)
