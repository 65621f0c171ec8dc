"""The bundle of the cost model: what is written is what is read, and only by who can use it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.made_up_products import made_up_pool, product

from gnnperf.errors import InputError
from gnnperf.graph import encode
from gnnperf.nn.traces import (
    CostModel,
    CostModelConfig,
    TensorBundle,
    load_tensor_bundle,
    save_tensor_bundle,
)
from gnnperf.training.traces.data import RankingData
from gnnperf.training.traces.fit import FitSettings, fit_trees

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


def test_trees_are_a_third_judge(folder: Path) -> None:
    data = RankingData([made_up_pool("w", 0)], threads=2)
    trees = fit_trees(data, FitSettings(trees=5))
    bundle = replace(load_tensor_bundle(folder), trees=trees)
    graphs = [encode(graph) for graph in GRAPHS]
    found = bundle.describe(graphs)
    assert bundle.judges == ("graph", "statements", "trees") and found.judgements.shape == (3, len(graphs))
    assert found.scores.tolist() == found.judgements.mean(0).tolist()
    without = load_tensor_bundle(folder).describe(graphs)
    assert without.judgements.tolist() == found.judgements[:2].tolist()
    assert found.features.tolist() == without.features.tolist()
    save_tensor_bundle(folder, bundle)
    assert load_tensor_bundle(folder).score(GRAPHS).tolist() == found.scores.tolist()
    (folder / "trees.ubj").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"damaged .*: not boosted trees"):
        load_tensor_bundle(folder)
    (folder / "trees.ubj").unlink()
    with pytest.raises(InputError, match=r"damaged .*: .*No such file"):
        load_tensor_bundle(folder)


@pytest.mark.parametrize("field", ["version", "schema_digest", "numbers"])
def test_what_was_made_for_other_graphs_is_refused(folder: Path, field: str) -> None:
    edit(folder, **{field: "other"})
    with pytest.raises(InputError, match=rf"{field}: got other, expected .*; train it anew"):
        load_tensor_bundle(folder)


def test_damage_and_absence_are_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a cost model of tensor programs"):
        load_tensor_bundle(tmp_path)
    edit(folder, models=[{"width": 16}, {"width": 16}])
    with pytest.raises(InputError, match=r"damaged"):
        load_tensor_bundle(folder)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="heads that divide width=10"):
        CostModelConfig(width=10)
    with pytest.raises(InputError, match="threads of at least 1, got threads=0"):
        CostModelConfig(threads=0)
