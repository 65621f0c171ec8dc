"""The benchmark of whole torch models: a small one from the command line to the table, and the figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import networks
from benchmarks.run import benchmarks
from benchmarks.torch_models import TorchModelsStudy
from helpers.tensor_world import write_checkpoint
from torch import nn

from gnnperf.cli.main import run
from gnnperf.measure.interleaved import Pace


def tiny() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU())


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr("benchmarks.torch_models.Pace", lambda **_: Pace(rounds=3, budget_s=0.5))
    monkeypatch.setattr(networks, "NETWORKS", {"tiny": (tiny, lambda: (torch.randn(8, 16),))})


@pytest.mark.slow
def test_the_command_measures_a_row_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path)
    command = ["torch-models", "--checkpoint", tmp_path, "-k", 2, "--trials", 16, "--only", "tiny"]
    command += ["--output", tmp_path / "out", "--json"]
    assert run([str(word) for word in command], benchmarks) == 0, capfd.readouterr().err
    found = json.loads(capfd.readouterr().out)
    assert json.loads((tmp_path / "out" / "torch-models.json").read_text()) == found
    (row,) = found["rows"]
    assert (row["network"], row["tasks"], row["calls"], row["failures"]) == ("tiny", 1, 1, [])
    for name in ("relax_s", "fused_s", "ours_s", "ms_s", "torch_s", "torch-compile_s"):
        assert 0 < row[name] < 0.1 and row["intervals_s"][name.removesuffix("_s")][0] <= row[name], name
    assert row["ours_candidates"] == 2 and row["ms_trials"] == 16
    assert set(row["ours_tasks"]) == set(row["ms_tasks_s"]) and all(row["ms_tasks_s"].values())
    figures = found["figures"]
    assert figures["networks"] == 1
    assert figures["min_vs_ms64"] == pytest.approx(row["ms_s"] / row["ours_s"])
    assert figures["time_share_of_ms64"] == pytest.approx(row["ours_tuning_s"] / row["ms_tuning_s"])
    monkeypatch.setattr(TorchModelsStudy, "row", lambda *_: pytest.fail("measured again"))
    assert run([str(word) for word in command], benchmarks) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == [row]


def test_figures_are_the_least_over_networks() -> None:
    row: dict[str, Any] = {"failures": [], "relax_s": 8.0, "fused_s": 6.0, "ours_s": 1.0, "ms_s": 2.0}
    row |= {"torch_s": 0.5, "torch-compile_s": 4.0, "ours_tuning_s": 1.0, "ms_tuning_s": 10.0}
    rows = [
        row,
        {**row, "relax_s": 24.0, "fused_s": 32.0, "ms_s": 0.5, "torch_s": 2.0, "ours_tuning_s": 4.0},
        {"failures": ["it broke"]},
    ]
    assert TorchModelsStudy.figures(rows) == {
        "networks": 2,
        "geomean_vs_torch_eager": pytest.approx(1.0),
        "min_vs_torch_eager": 0.5,
        "geomean_vs_torch_compile": pytest.approx(4.0),
        "min_vs_torch_compile": 4.0,
        "geomean_vs_ms64": pytest.approx(1.0),
        "min_vs_ms64": 0.5,
        "geomean_vs_untuned": pytest.approx(12.0),
        "min_vs_untuned": 6.0,
        "tuning_s_max": 4.0,
        "time_share_of_ms64": 0.4,
        "time_share_mean": pytest.approx(0.2),
    }
    assert TorchModelsStudy.figures(rows[2:]) == {"networks": 0}
    alone = [{name: value for name, value in row.items() if not name.startswith("ms_")} for row in rows]
    figures = TorchModelsStudy.figures(alone)
    assert figures["min_vs_torch_eager"] == 0.5 and "min_vs_ms64" not in figures


def test_a_network_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["torch-models", "--only", "resnet"], benchmarks) == 2
    out, err = capsys.readouterr()
    assert out == "" and "--only: expected part of tiny, got 'resnet'" in err and err.count("\n") == 1
