"""A model of loop nests: it is what was saved, and says what it reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.scheduled import programs_of
from helpers.synthetic import lonely, nest_like

from gnnperf.errors import InputError
from gnnperf.nn import (
    Bundle,
    Encoder,
    EncoderConfig,
    HeadConfig,
    ModelProvenance,
    ScheduleHead,
    collate_programs,
    encoder_id,
    load_checkpoint,
    save_checkpoint,
)
from gnnperf.schedules.recipes import fact_fields

GRAPHS = [nest_like([8, 16]), lonely()]
PROGRAMS = programs_of()


def small(layers: int = 1) -> Bundle:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=layers, embedding_width=8))
    head = ScheduleHead(16, len(fact_fields()), HeadConfig(width=8, numbers_width=12))
    graphs, node_costs, facts = collate_programs(PROGRAMS)
    encoder.fit_scales(graphs, node_costs, graphs)
    head.fit_scales(graphs.node_kind, node_costs, graphs.batch, facts)
    return Bundle(encoder.eval(), head.eval())


@pytest.mark.parametrize("layers", [0, 2])
def test_a_loaded_bundle_embeds_and_scores_as_the_saved_one(layers: int, tmp_path: Path) -> None:
    provenance = ModelProvenance({"digest": "c"}, {"val/transfer_regret@1": 0.1}, [3])
    saved = replace(small(layers), provenance=provenance, calibration={"confidence": {"limit": 0.5}})
    save_checkpoint(tmp_path, saved)
    loaded = load_checkpoint(tmp_path, Bundle)
    assert (loaded.provenance, loaded.calibration) == (provenance, {"confidence": {"limit": 0.5}})
    assert (loaded.encoder.config, loaded.head.config) == (saved.encoder.config, saved.head.config)
    assert loaded.encoder_id == saved.encoder_id
    embedding = loaded.embed(GRAPHS)
    assert embedding.shape == (2, loaded.embedding_width) == (2, 8)
    assert embedding.dtype == np.float32
    # What was saved is the network that is trained, what is loaded the lean one.
    np.testing.assert_allclose(embedding, saved.embed(GRAPHS), atol=1e-6)
    scores = loaded.score(PROGRAMS)
    assert (scores.shape, scores.dtype) == ((len(PROGRAMS),), np.float32)
    np.testing.assert_allclose(scores, saved.score(PROGRAMS), atol=1e-6)
    # All weights and statistics, whether they are learned or fitted.
    for old, new in ((saved.encoder, loaded.encoder), (saved.head, loaded.head)):
        for (name, expected), (found, got) in zip(
            sorted(old.state_dict().items()), sorted(new.state_dict().items()), strict=True
        ):
            assert name == found and torch.equal(got, expected)


def test_the_encoder_id_follows_the_weights() -> None:
    encoder = small().encoder
    before = encoder_id(encoder)
    assert encoder_id(encoder) == before
    with torch.no_grad():
        encoder.graph_values.bias.add_(1e-3)
    assert encoder_id(encoder) != before


def test_the_head_does_not_change_where_nests_lie() -> None:
    """Another head: the same encoder, whose store may be kept."""
    bundle = small()
    other = replace(bundle, head=ScheduleHead(16, len(fact_fields())).eval())
    assert other.encoder_id == bundle.encoder_id
    assert (other.score(PROGRAMS) != bundle.score(PROGRAMS)).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fact_fields", lambda fields: [*fields, "made_up"]),
        ("cost_fields", lambda fields: fields[::-1]),
    ],
)
def test_a_head_of_other_numbers_is_refused(name: str, change: object, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, small())
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert callable(change)
    metadata["reads"][name] = change(metadata["reads"][name])
    del metadata["sha256"]
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match=rf"{name}: got .*train release loop-nests") as error:
        load_checkpoint(tmp_path, Bundle)
    assert "\n" not in str(error.value)
