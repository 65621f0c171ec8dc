"""Corpora of older formats are refused with the command that converts them, which loses nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.synthetic import DEVICE, nest_like

from gnnperf.cli.main import run
from gnnperf.corpus.reader import read_corpus
from gnnperf.errors import CorpusError, InputError
from gnnperf.measure.record_log import RecordLog
from gnnperf.training import load_corpus
from gnnperf.training.traces import load_tensor_corpus

GRAPH = nest_like([8, 16])
NEST = {
    "digest": GRAPH.digest, "kernel": "f", "family": "map", "frontend": "dace", "symbols": {"N": 8},
    "graph": GRAPH.to_dict(), "baseline": "dace-auto", "baseline_s": 2.0, "profile": {"gflops": 1.0},
    "device": {"fingerprint": DEVICE, "name": "a CPU"}, "threads": 2, "compiler": "g++ 12",
    "collected": "2026-01-02T03:04:05Z",
}  # fmt: skip
RECIPE = {"kind": "recipe", "version": 1, "order": "row"}
FAST = {
    "digest": GRAPH.digest, "schedule_id": "a", "schedule": RECIPE, "status": "ok", "runtime_s": 0.5,
    "interval_s": [0.4, 0.6], "samples": 7, "baseline_s": 2.0, "baseline_interval_s": [1.9, 2.1],
    "speedup": 4.0, "speedup_interval": [3.2, 5.2], "device": DEVICE, "origin": "default", "detail": "",
}  # fmt: skip
WRONG = {
    **FAST, "schedule_id": "b", "status": "wrong_result", "runtime_s": None, "interval_s": None, "samples": 0,
    "speedup": None, "speedup_interval": None, "detail": "3 elements differ",
}  # fmt: skip
WORKLOAD = {
    "workload": "m", "kind": "matmul", "params": {"m": 8}, "split": "held_out", "structural_hash": "1f",
    "flops": 8.0, "baseline": "tvm-default", "baseline_samples_s": [3e-3, 1e-3, 2e-3],
    "target": {"kind": "llvm", "mcpu": "znver4"}, "threads": 2, "device": DEVICE, "machine": "a CPU",
    "tvm": "0.27", "llvm": 22, "collected": "2026-01-02",
}  # fmt: skip
TRACE = {
    "workload": "m", "n": 0, "origin": "random", "seed": 3, "status": "ok", "samples_s": [1e-4, 2e-4, 3e-4],
    "build_s": 0.5, "trace": [[["GetSBlock", [], [], []]], []],
}  # fmt: skip
PASS = {"workload": "m", "pass": 32, "seconds": {"all": 1.0}, "exhausted": True}


def write(folder: Path, **files: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir()
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def nests(tmp_path: Path) -> Path:
    return write(tmp_path / "nests", nests=[NEST], measurements=[FAST, WRONG], done=[{"key": "search x"}])


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    return write(tmp_path / "traces", workloads=[WORKLOAD], schedules=[TRACE], done=[PASS])


def convert(old: Path, new: Path) -> int:
    return run(["corpus", "convert", str(old), "-o", str(new), "--json"])


def test_nests_keep_what_they_said(nests: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(nests, tmp_path / "new") == 0
    assert json.loads(capsys.readouterr().out)["statuses"] == {"ok": 1, "wrong_result": 1}
    corpus = load_corpus(tmp_path / "new")
    (task,) = corpus.nests
    assert (task.digest, task.kernel, task.family, task.symbols) == (GRAPH.digest, "f", "map", {"N": 8})
    assert (task.baseline, task.baseline_s, task.graph.profile) == ("dace-auto", 2.0, {"gflops": 1.0})
    fast, wrong = corpus.measurements[GRAPH.digest].values()
    assert (fast.runtime_s, fast.interval_s, fast.samples, fast.speedup) == (0.5, (0.4, 0.6), 7, 4.0)
    assert (fast.baseline_interval_s, fast.schedule, fast.origin) == ((1.9, 2.1), RECIPE, "default")
    assert (wrong.status, wrong.runtime_s, wrong.speedup) == ("wrong_result", None, None)
    log = RecordLog(tmp_path / "new")
    assert log.done == {"search x": {"key": "search x"}}
    assert log.records[GRAPH.digest]["b"]["detail"] == "3 elements differ"
    assert log.tasks[GRAPH.digest]["versions"] == {"compiler": "g++ 12"}
    log.close()


def test_workloads_keep_what_they_said(workloads: Path, tmp_path: Path) -> None:
    assert convert(workloads, tmp_path / "new") == 0
    (workload,) = load_tensor_corpus(tmp_path / "new").workloads
    assert (workload.name, workload.kind, workload.params) == ("m", "matmul", {"m": 8})
    assert (workload.split, workload.threads, workload.baseline_s) == ("held_out", 2, 2e-3)
    (schedule,) = workload.schedules
    assert (schedule.trace, schedule.runtime_s) == (TRACE["trace"], 2e-4)
    found = read_corpus(tmp_path / "new")
    assert found.tasks["m"].about["target"] == WORKLOAD["target"]
    assert found.tasks["m"].about["versions"] == {"tvm": "0.27", "llvm": 22}
    assert found.done == [
        {"key": "pass 32 m", "task": "m", "pass": 32, "seconds": {"all": 1.0}, "exhausted": True}
    ]


@pytest.mark.parametrize("name", ["nests", "workloads"])
def test_other_verbs_name_the_command(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    said = rf"older format in .*; convert it with: gnnperf corpus convert {folder} -o NEW"
    with pytest.raises(InputError, match=said):
        read_corpus(folder)
    with pytest.raises(CorpusError, match=said):
        RecordLog(folder)


def test_what_cannot_be_converted(nests: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert convert(empty, tmp_path / "new") == 2
    assert "expected a corpus with nests.jsonl or workloads.jsonl" in capsys.readouterr().err
    assert convert(nests, tmp_path / "new") == 0
    assert convert(nests, tmp_path / "new") == 2
    assert "which holds a corpus; give another" in capsys.readouterr().err
    with (nests / "measurements.jsonl").open("a") as file:
        file.write('{"status": "ok"}\n')
    assert convert(nests, tmp_path / "other") == 2
    assert "measurements.jsonl line 3: not a line of `measurements` ('digest')" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
