from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gnnperf.cli.main import run
from gnnperf.errors import InputError
from gnnperf.evaluation.gpu import models
from gnnperf.evaluation.gpu.models import ModelSettings, evaluate_models
from gnnperf.nn.runtime.model_table import _fused, _merged, _operator
from gnnperf.training.runtime import RuntimeFitSettings


def test_operators_of_the_graphs() -> None:
    linear = _operator(("Linear", (4096, 1280, 5120)), [(4, 1024, 1280)])
    assert linear is not None
    assert (linear["M"], linear["K"], linear["N"]) == (4096, 1280, 5120)
    product = _operator(("BMM", (80, 1024, 64, 512)), [])
    assert product is not None
    assert [product[name] for name in "BMKN"] == [80, 1024, 64, 512]
    add, scale = (_operator(("VECadd", (8, 16)), [(8, 16), other]) for other in ((8, 16), (1, 16)))
    assert add is not None and scale is not None
    assert (add["op"], scale["op"]) == ("add", "addu")
    copied = _operator(("MEM", ((4, 8), (8, 4))), [])
    assert copied is not None
    assert copied["H"] == 32
    assert _operator(("MEM", ((1,), (1,))), []) is None
    assert _operator(("ALLREDUCE", (8,)), []) is None


def test_fused_operators_are_one() -> None:
    listed = [("VECadd", (8, 16)), ("VECsoftmax", (8, 16)), ("VECmul", (8, 16))]
    assert _fused(listed) == [listed[1]]
    assert _fused([("VECadd", (8, 16)), ("VECmul", (64, 16))]) == [("VECmul", (64, 16))]


def test_a_compiler_merges_what_comes_before_a_softmax() -> None:
    kinds = ("BMM", (80, 64, 64, 64)), ("VECdivu", (8, 16)), ("MEM", ((8, 16),)), ("VECsoftmax", (8, 16))
    rows = [_operator(kind, []) for kind in (*kinds, ("VECadd", (8, 16)))]
    graph = [([row], True) for row in rows if row is not None]
    assert [listed[0]["op_family"] for listed, _ in _merged(graph)] == ["bmm", "softmax", "elementwise"]
    other = _operator(("VECadd", (4, 4)), [])
    assert other is not None
    assert len(_merged([([other], True), graph[3]])) == 2


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two GPUs, one model of one repeated operator and one view."""
    sizes = {"op_family": "elementwise", "op": "add", "M": None, "N": None, "K": None, "split": "train"}
    rows = [
        {**sizes, "device": device, "B": 1 << 12, "H": h, "latency_ms": 12 * 4096 * h / rate / 1e6}
        for device, rate in (("Tesla T4", 240.0), ("NVIDIA L4", 230.0))
        for h in (1024, 2048, 4096, 8192)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "gpu_operators.parquet")
    node = {"desc": "m", "BwOps": "[]", "AccOps": "[]", "InputShapes": "[(16384, 4096), (16384, 4096)]"}
    add = {**node, "OpName": "VECadd", "FwOps": "[['VECadd', (16384, 4096)]]", "in_repeated_layer": True}
    view = {**node, "OpName": "getitem", "FwOps": "[['MEM', ((4096, 1024),)]]", "in_repeated_layer": False}
    pq.write_table(pa.Table.from_pylist([add, view]), tmp_path / "gpu_models_opgraphs.parquet")
    whole = {"device": "NVIDIA_L4", "desc": "m", "mode": "inf", "num_layer": 100}
    wholes = [{**whole, "measured_e2e_ms": 350.0}, {**whole, "desc": "other", "measured_e2e_ms": 1.0}]
    pq.write_table(pa.Table.from_pylist(wholes), tmp_path / "gpu_models_end_to_end.parquet")
    return tmp_path


def test_models_on_a_gpu_that_is_left_out(data: Path) -> None:
    settings = ModelSettings(data, seeds=(0,), config=RuntimeFitSettings(light_steps=60))
    result = evaluate_models(settings, lambda count, doing: None)
    (row,) = result.rows
    assert (row["device"], row["model"]) == ("NVIDIA_L4", "m")
    assert row["roofline_ms"] == pytest.approx(100 * 12 * 16384 * 4096 / 300e6)
    assert row["roofline_ms"] < row["predicted_ms"] < row["sum_ms"]  # no launches in between
    assert result.figures["l4_inference_mape"] == result.figures["mean_unseen_mape"] < 30
    with pytest.raises(InputError, match="expected measurements in"):
        evaluate_models(ModelSettings(data / "nowhere"), lambda count, doing: None)
    (data / "gpu_models_end_to_end.parquet").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"cannot read \S+end_to_end.parquet as Parquet"):
        evaluate_models(settings, lambda count, doing: None)


def test_the_command(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = partial(ModelSettings, config=RuntimeFitSettings(light_steps=10))
    monkeypatch.setattr(models, "ModelSettings", quick)
    command = ["eval", "gpu-models", "--data", str(data), "--fit-on", "train", "--seeds", "2"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["benchmark"] == "gpu-models"
    assert (found["settings"]["fit_on"], found["settings"]["seeds"]) == (["train"], [0, 1])
    assert [row["model"] for row in found["rows"]] == ["m"]
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    assert run(["eval", "gpu-models"]) == 2
    assert "Missing option '--data'" in capfd.readouterr().err
    monkeypatch.setenv("GNNPERF_DATA", str(tmp_path / "nowhere"))
    assert run(["eval", "gpu-models"]) == 2
    assert "give --data, or set GNNPERF_DATA" in capfd.readouterr().err
