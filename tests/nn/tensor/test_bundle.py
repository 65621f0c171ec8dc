"""The bundle of the cost model: what is written is what is read, and only by who can use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_up_products import product

from gnnperf.errors import InputError
from gnnperf.nn.tensor import (
    CostModel,
    CostModelConfig,
    TensorBundle,
    load_tensor_bundle,
    save_tensor_bundle,
)

GRAPHS = [product(t, 64 // t, 16, 32, order=o) for t in (1, 2, 8) for o in ("tikj", "tkij")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    models = [CostModel(CostModelConfig(width=8, statement_width=8)).eval() for _ in range(2)]
    save_tensor_bundle(tmp_path / "b", TensorBundle(models, {"schedules": 7}, {"top1": 0.5}))
    return tmp_path / "b"


def edit(folder: Path, **values: Any) -> None:
    path = folder / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_round_trip(folder: Path) -> None:
    bundle = load_tensor_bundle(folder)
    assert (bundle.corpus, bundle.figures) == ({"schedules": 7}, {"top1": 0.5})
    torch.manual_seed(1)
    models = [CostModel(CostModelConfig(width=8, statement_width=8)).eval() for _ in range(2)]
    scores = bundle.score(GRAPHS)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(TensorBundle(models, {}, {}).score(GRAPHS).tolist())
    assert np.ptp(scores) > 0


def test_scores_do_not_depend_on_the_company(folder: Path) -> None:
    bundle = load_tensor_bundle(folder)
    alone = [float(bundle.score([graph])[0]) for graph in GRAPHS]
    assert bundle.score(GRAPHS * 50)[-len(GRAPHS) :].tolist() == pytest.approx(alone, abs=1e-4)
    assert bundle.score([]).shape == (0,)


@pytest.mark.parametrize("field", ["version", "schema_digest", "numbers"])
def test_what_was_made_for_other_graphs_is_refused(folder: Path, field: str) -> None:
    edit(folder, **{field: "other"})
    with pytest.raises(InputError, match=rf"{field}: got other, expected .*; train it anew"):
        load_tensor_bundle(folder)


def test_damage_and_absence_are_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a cost model of tensor programs"):
        load_tensor_bundle(tmp_path)
    edit(folder, models=[{"width": 16}, {"width": 16}])
    with pytest.raises(InputError, match="damaged"):
        load_tensor_bundle(folder)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="heads that divide width=10"):
        CostModelConfig(width=10)
    with pytest.raises(InputError, match="threads of at least 1, got threads=0"):
        CostModelConfig(threads=0)
