from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from gnnperf.cli.main import run
from gnnperf.errors import InputError
from gnnperf.evaluation.gpu import operators
from gnnperf.evaluation.gpu.operators import OperatorSettings, evaluate_operators
from gnnperf.evaluation.gpu.plot import plot_operators
from gnnperf.nn import load_checkpoint
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.nn.runtime.operator_table import operator_table
from gnnperf.shipped import shipped
from gnnperf.training.runtime import RuntimeFitSettings

GPUS = ("NVIDIA L4", "Tesla T4", "NVIDIA A10", "Tesla V100-PCIE-32GB")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A few hundred runtimes that the released head gives, with 5% of noise."""
    random = np.random.default_rng(0)
    rows = []
    for device in GPUS:
        for split, count in (("train", 40), ("test", 10)):
            for _ in range(count):
                b, h = (int(2**e) for e in random.uniform(8, 12, 2))
                size = {"B": b, "H": h, "M": None, "N": None, "K": None, "split": split, "device": device}
                rows.append({"op_family": "elementwise", "op": "add", **size})
                rows.append({"op_family": "layernorm", "op": "ln", **size})
    table = pa.Table.from_pylist(rows)
    known = operator_table(table, "made up")
    x = {**known.columns, **known.device_numbers({}, known.usable)}
    noise = torch.from_numpy(random.normal(0, 0.05, len(rows)))
    seconds = torch.exp(
        load_checkpoint(shipped("checkpoints/gpu-runtime"), RuntimeHead).log_runtime(x) + noise
    ).numpy()
    pq.write_table(
        table.append_column("latency_ms", pa.array(seconds * 1e3)), tmp_path / "gpu_operators.parquet"
    )
    return tmp_path


def test_every_gpu_is_left_out_in_turn(data: Path, tmp_path: Path) -> None:
    settings = OperatorSettings(data, seeds=(0,), workers=1, config=RuntimeFitSettings(light_steps=30))
    steps = 0

    def advance(count: int, doing: str) -> None:
        nonlocal steps
        steps += count

    result, points = evaluate_operators(settings, advance)
    assert steps == len(GPUS) * (1 + 1)
    assert {(row["device"], row["family"]) for row in result.rows} == {
        (gpu, family) for gpu in GPUS for family in ("elementwise", "layernorm")
    }
    assert all(row["rows"] == 10 for row in result.rows)
    assert {"l4_ln_mape", "l4_elementwise_mape", "mean_heldout_mape", "coverage80"} <= result.figures.keys()
    assert result.figures["mean_heldout_mape"] < result.figures["roofline_mean_heldout_mape"]
    assert result.figures["gpu_without_network_mape"] == result.figures["mean_heldout_mape"]
    assert 0 <= result.figures["coverage80"] <= 1
    assert result.figures["worst_family_mape"] == max(row["mape"] for row in result.rows)
    assert len(points.predicted_s) == 2 * 10 * len(GPUS)
    plot_operators(points, result.rows, tmp_path / "plot.svg")
    assert "measured, ms" in (tmp_path / "plot.svg").read_text()


def test_no_data_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected measured operators in"):
        evaluate_operators(OperatorSettings(tmp_path), lambda count, doing: None)


def test_the_command(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = partial(OperatorSettings, config=RuntimeFitSettings(light_steps=5))
    monkeypatch.setattr(operators, "OperatorSettings", quick)
    out = tmp_path / "out"
    command = ["eval", "gpu-operators", "--data", str(data), "--seeds", "1", "--workers", "1"]
    assert run([*command, "--fit-on", "all", "--output", str(out), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["benchmark"], found["settings"]["fit_on"]) == ("gpu-operators", ["train", "test"])
    assert {row["device"] for row in found["rows"]} == set(GPUS)
    assert json.loads((out / "gpu-operators.json").read_text()) == found
    plots = [out / f"gpu-operators{suffix}" for suffix in (".png", ".svg")]
    assert plots[0].read_bytes().startswith(b"\x89PNG") and "<svg" in plots[1].read_text()
    assert run(["eval", "gpu-operators", "--data", str(tmp_path / "nowhere")]) == 2
    assert "expected measured operators in" in capfd.readouterr().err
    assert run([*command, "--output", str(out / "gpu-operators.json")]) == 2
    assert "is a file" in capfd.readouterr().err
