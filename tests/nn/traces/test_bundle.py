"""The bundle of the cost model: what is written is what is read, and only by who can use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.made_up_products import made_up_pool, product

from gnnperf.errors import InputError
from gnnperf.graph import encode
from gnnperf.nn import ModelProvenance, load_checkpoint, save_checkpoint
from gnnperf.nn.traces import CostModel, CostModelConfig, TensorBundle
from gnnperf.training.traces.data import RankingData
from gnnperf.training.traces.fit import JudgeFitSettings, fit_trees

GRAPHS = [product(t, 64 // t, 16, 32, order=o) for t in (1, 2, 8) for o in ("tikj", "tkij")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    models = [CostModel(CostModelConfig(width=8, statement_width=8)).eval() for _ in range(2)]
    provenance = ModelProvenance({"schedules": 7}, {"top1": 0.5}, [0, 1])
    save_checkpoint(tmp_path / "b", TensorBundle(models, provenance=provenance))
    return tmp_path / "b"


def test_round_trip(folder: Path) -> None:
    bundle = load_checkpoint(folder, TensorBundle)
    assert bundle.provenance == ModelProvenance({"schedules": 7}, {"top1": 0.5}, [0, 1])
    torch.manual_seed(1)
    models = [CostModel(CostModelConfig(width=8, statement_width=8)).eval() for _ in range(2)]
    scores = bundle.score(GRAPHS)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(TensorBundle(models).score(GRAPHS).tolist())
    assert np.ptp(scores) > 0


def test_scores_do_not_depend_on_the_company(folder: Path) -> None:
    bundle = load_checkpoint(folder, TensorBundle)
    alone = [float(bundle.score([graph])[0]) for graph in GRAPHS]
    assert bundle.score(GRAPHS * 50)[-len(GRAPHS) :].tolist() == pytest.approx(alone, abs=1e-4)
    assert bundle.score([]).shape == (0,)


def test_trees_are_a_third_judge(folder: Path) -> None:
    data = RankingData([made_up_pool("w", 0)], threads=2)
    trees = fit_trees(data, JudgeFitSettings(trees=5))
    bundle = replace(load_checkpoint(folder, TensorBundle), trees=trees)
    graphs = [encode(graph) for graph in GRAPHS]
    found = bundle.describe(graphs)
    assert bundle.judges == ("network", "statements", "trees") and found.judgements.shape == (3, len(graphs))
    network, statements, by_trees = found.judgements
    assert found.scores.tolist() == pytest.approx(((3 * network + statements + by_trees) / 5).tolist())
    without = load_checkpoint(folder, TensorBundle).describe(graphs)
    assert without.judgements.tolist() == found.judgements[:2].tolist()
    assert found.features.tolist() == without.features.tolist()
    save_checkpoint(folder, bundle)
    assert load_checkpoint(folder, TensorBundle).score(GRAPHS).tolist() == found.scores.tolist()


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="heads that divide width=10"):
        CostModelConfig(width=10)
    with pytest.raises(InputError, match="threads of at least 1, got threads=0"):
        CostModelConfig(threads=0)
