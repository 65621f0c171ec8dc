"""The benchmark of TVM transfer: one workload from end to end, PyTorch's operators, and the table."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import models_without_kinds
from benchmarks.metaschedule import SearchTrial, best_of, trials_to_reach
from benchmarks.models_without_kinds import ModelsWithoutKinds
from benchmarks.options import held_out_workloads, scattered
from benchmarks.run import benchmarks
from benchmarks.tensor_transfer import TensorTransferStudy
from helpers.tensor_world import SOFTMAX, write_checkpoint, write_corpus

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import solved
from gnnperf.backends.tvm.torch_operators import OPERATORS
from gnnperf.cli.main import run
from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.errors import InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.outcome import Outcome
from gnnperf.nn.traces import TensorBundle
from gnnperf.retrieval.traces.proposer import TraceProposer
from gnnperf.training.traces.bundle import fit_bundle
from gnnperf.training.traces.data import SchedulePool
from gnnperf.training.traces.fit import QUICK_FIT

WORKLOADS = [
    ("matmul", {"m": 5, "n": 6, "k": 7, "layout": "tt"}),
    ("batch_matmul", {"batch": 2, "m": 3, "n": 4, "k": 5, "layout": "nt"}),
    ("dense", {"m": 3, "n": 4, "k": 5, "activation": "gelu"}),
    ("dense", {"m": 3, "n": 4, "k": 5, "activation": "none"}),
    ("attention_scores", {"heads": 2, "queries": 3, "keys": 4, "depth": 5}),
    ("attention_values", {"heads": 2, "queries": 3, "keys": 4, "depth": 5}),
    ("conv1d", {"length": 9, "ci": 2, "co": 3, "kernel": 3, "padding": 1}),
    ("conv1d", {"length": 9, "ci": 2, "co": 3, "kernel": 3, "stride": 2, "layout": "NCW"}),
    ("conv2d", {"h": 7, "w": 6, "ci": 2, "co": 3, "kernel": 3, "padding": 1}),
    ("conv2d", {"h": 7, "w": 6, "ci": 2, "co": 3, "kernel": 3, "stride": 2, "layout": "NCHW"}),
    ("conv3d", {"d": 4, "h": 5, "w": 6, "ci": 2, "co": 3, "kernel": 3, "padding": 1}),
    ("conv3d", {"d": 4, "h": 5, "w": 6, "ci": 2, "co": 3, "kernel": 3, "layout": "NCDHW"}),
    ("group_conv2d", {"h": 5, "w": 5, "ci": 4, "co": 6, "kernel": 3, "groups": 2, "padding": 1}),
    ("group_conv2d", {"h": 5, "w": 5, "ci": 4, "co": 6, "kernel": 3, "groups": 2, "layout": "NHWC"}),
    ("depthwise_conv2d", {"h": 6, "w": 5, "c": 3, "kernel": 3, "padding": 1}),
    ("depthwise_conv2d", {"h": 6, "w": 5, "c": 3, "kernel": 3, "stride": 2, "layout": "NCHW"}),
    ("conv2d_transpose", {"h": 3, "w": 3, "ci": 2, "co": 3, "kernel": 4, "stride": 2, "padding": 1}),
    ("reduce", {"m": 4, "n": 5, "op": "mean_square", "axis": 0}),
    ("reduce", {"m": 4, "n": 5, "op": "max", "axis": 1}),
    ("softmax", {"m": 4, "n": 5, "axis": 0}),
    ("layer_norm", {"m": 4, "n": 8}),
    ("rms_norm", {"m": 4, "n": 8}),
    ("group_norm", {"c": 4, "h": 3, "w": 3, "groups": 2}),
    ("pool2d", {"c": 2, "h": 6, "w": 6, "kernel": 3, "stride": 2, "op": "max", "padding": 1}),
    ("pool2d", {"c": 2, "h": 6, "w": 6, "kernel": 2, "stride": 2, "op": "avg", "layout": "NHWC"}),
    ("pool2d", {"c": 2, "h": 5, "w": 5, "kernel": 3, "stride": 1, "op": "avg", "padding": 1}),
    ("global_pool", {"c": 3, "h": 4, "w": 4, "op": "avg"}),
    ("global_pool", {"c": 3, "h": 4, "w": 4, "op": "max", "layout": "NHWC"}),
    *(
        ("elementwise", {"m": 4, "n": 5, "chain": chain})
        for chain in ("add_relu", "bias_gelu", "silu_mul", "scale_shift", "residual", "tanh_gate")
    ),
    ("transpose", {"shape": [3, 4, 5], "order": [2, 0, 1]}),
]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    import_tvm()
    set_runtime_threads(1)


@pytest.mark.parametrize(("kind", "params"), WORKLOADS, ids=str)
def test_pytorch_computes_what_the_workload_does(kind: str, params: dict[str, Any]) -> None:
    module = TvmWorkload(kind, params).build()
    problem = solved(module, build_kernel(module, host_target(1)))
    found = OPERATORS[kind](*map(torch.from_numpy, problem.inputs.values()), **params)()
    assert problem.verify({"out": np.ascontiguousarray(found.numpy())}) is None


CONFIG = """
workloads:
  - {kind: matmul, m: 96, n: 128, k: 160, split: held_out}
  - {kind: matmul, m: 1024, n: 1024, k: 16}
"""
FLAT = TvmWorkload("matmul", {"m": 1024, "n": 1024, "k": 16})


def _fit_briefly(corpus: MeasuredTasks, known: Sequence[SchedulePool], *_: Any) -> TensorBundle:
    return fit_bundle(corpus, known, QUICK_FIT)


@pytest.mark.slow
def test_the_command_measures_a_row_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path, [FLAT, SOFTMAX])
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    command = ["tensor-transfer", "-c", tmp_path / "corpus.yaml", "--checkpoint", tmp_path]
    command += ["--trials", 16, "--output", tmp_path / "out", "--json"]
    command += ["--held-out-kinds", "--corpus", tmp_path / "corpus", "--cache", tmp_path / "cache"]
    monkeypatch.setattr(models_without_kinds, "fit_bundle", _fit_briefly)
    monkeypatch.setattr(TraceProposer, "FAR", 0.0)
    assert run([str(word) for word in command], benchmarks) == 0, capfd.readouterr().err
    found = json.loads(capfd.readouterr().out)
    assert json.loads((tmp_path / "out" / "tensor-transfer.json").read_text()) == found
    (row,) = found["rows"]
    assert row["workload"] == "matmul-m_96-n_128-k_160" and row["failures"] == [] and row["note"] == ""
    for name in ("ms_s", "ours_8_s", "ours_1_s", "model_only_s", "floor_8_s", "torch_s", "default_s"):
        assert 0 < row[name] < 1, name
    assert 0 < row["kind_8_s"] != row["default_s"]  # no trace of softmax fits, drawn schedules do
    assert row["ms_long_s"] is None and row["trials"] == 16
    assert list(row["ms_best_after_s"]) == ["1", "8", "16"]
    assert set(row["candidates"]) == {"ok"}
    assert len(row["neighbours"]) == 3  # DaCe nests among them: nothing in the small store is nearer
    figures = found["figures"]
    assert figures["workloads"] == 1
    assert figures["ratio_to_ms128_at_8"] == pytest.approx(row["ms_s"] / row["ours_8_s"])
    assert "ratio_to_ms1000_at_8" not in figures
    monkeypatch.setattr(TensorTransferStudy, "row", lambda *_: pytest.fail("measured again"))
    assert run([str(word) for word in command], benchmarks) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == [row]


def test_a_model_without_a_kind_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus(tmp_path / "corpus")
    trained: list[list[str]] = []

    def fit(corpus: MeasuredTasks, known: Sequence[SchedulePool], *_: Any) -> TensorBundle:
        trained.append([pool.workload.family for pool in known])
        return _fit_briefly(corpus, known)

    monkeypatch.setattr(models_without_kinds, "fit_bundle", fit)
    for _ in range(2):
        models = ModelsWithoutKinds.of(tmp_path / "corpus", tmp_path / "cache", tmp_path)
        assert models.without("matmul").provenance.corpus["kinds"] == ["softmax"]
        assert models.without("softmax").provenance.corpus["kinds"] == ["matmul"]
    assert models.without("conv2d").provenance.corpus["kinds"] == ["matmul", "softmax"]
    assert trained == [["softmax"], ["matmul"], ["matmul", "softmax"]]


def test_figures_are_geometric_means_and_medians() -> None:
    row = {
        "failures": [],
        "ours_8_s": 1.0,
        "ours_1_s": 2.0,
        "model_only_s": 2.0,
        "floor_8_s": None,
        "trials": 128,
    }
    rows = [
        {**row, "kind": "dense", "ms_s": 1.0, "torch_s": 3.0, "trials_to_match_8": 20},
        {**row, "ms_s": 4.0, "torch_s": None, "trials_to_match_8": None, "vector_math": True},
        {"failures": ["it broke"], "ms_s": 1e9},
    ]
    figures = TensorTransferStudy.figures(rows)
    assert figures == {
        "ratio_to_ms128_at_8": pytest.approx(2.0),
        "ratio_no_exp_at_8": pytest.approx(1.0),
        "ratio_no_exp_at_1": pytest.approx(0.5),
        "vs_torch_products_convs": pytest.approx(3.0),
        "min_vs_torch_products_convs": pytest.approx(3.0),
        "ratio_to_ms128_at_1": pytest.approx(1.0),
        "ratio_to_ms128_model_only": pytest.approx(1.0),
        "vs_torch_at_8": pytest.approx(3.0),
        "median_trials_to_match_8": 74.5,  # of 20 and of more than all 128
        "workloads": 2,
    }


def test_trials_to_reach() -> None:
    trials = [
        SearchTrial(None, Outcome("ok", (3.0,))),
        SearchTrial(None, Outcome("timeout")),
        SearchTrial(None, Outcome("ok", (1.0,))),
        SearchTrial(None, Outcome("ok", (2.0,))),
    ]
    assert best_of(trials) is trials[2] and best_of(trials[1:2]) is None
    assert [trials_to_reach(trials, s) for s in (5.0, 2.5, 0.5)] == [1, 3, None]


def test_the_first_workloads_stand_for_all_kinds() -> None:
    kinds = ["a", "a", "a", "b", "c", "c"]
    found = scattered([TvmWorkload(kind, {"n": n}) for n, kind in enumerate(kinds)])
    assert "".join(w.kind for w in found) == "abcaca"


def test_workloads_are_chosen_by_parts_of_their_names(tmp_path: Path) -> None:
    path = tmp_path / "corpus.yaml"
    path.write_text(CONFIG + "  - {kind: softmax, m: 32, n: 48, split: held_out}\n")

    def chosen(only: str | None, *skip: str) -> list[str]:
        return [workload.kind for workload in held_out_workloads(path, only, skip)]

    assert chosen(None) == ["matmul", "softmax"]
    assert chosen("m_32") == chosen(None, "k_160") == chosen(None, "k_160", "conv") == ["softmax"]
    with pytest.raises(InputError, match=r"got none in .*corpus.yaml --only 'm_64'$"):
        chosen("m_64")  # it is learned from
    with pytest.raises(InputError, match=r"got none in .*corpus.yaml --skip 'matmul' --skip 'soft'$"):
        chosen(None, "matmul", "soft")
