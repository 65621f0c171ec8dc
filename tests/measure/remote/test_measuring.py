"""Packs are measured by processes that may crash or hang; here on the CPU, whose runtime is the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gnnperf.backends.tvm.problem import reduction_length
from gnnperf.corpus.remote.build import HOST, build_library
from gnnperf.corpus.remote.writer import copy_runtime
from gnnperf.devices import FoundGpu, load_device
from gnnperf.errors import InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.record_log import RecordLog
from gnnperf.measure.remote import Pack, PackLimits, measure_pack
from gnnperf.measure.remote.measuring import machine_of
from gnnperf.measure.remote.pack import FORMAT
from gnnperf.training.traces.corpus import load_tensor_corpus

tvm = import_tvm()
EMPTY = {"kind": "trace", "trace": [[], []]}
LIMITS = PackLimits(run_s=3.0, repeats=3, sample_s=0.0005)
MACHINE = {"device": {"fingerprint": "cuda/sm_90/a-gpu", "name": "A GPU"}, "threads": 64}
SQUARE = TvmWorkload("matmul", {"m": 16, "n": 16, "k": 16})


def calling(name: str, *arguments: int) -> Any:
    """A function of three arrays that calls one of the C library and computes nothing."""
    arrays = [tvm.tirx.decl_buffer((16, 16), "float32", name=n) for n in "abc"]
    return tvm.tirx.PrimFunc(arrays, tvm.tirx.Evaluate(tvm.tirx.call_extern("int32", name, *arguments)))


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "good": lambda: SQUARE.build()["main"],
    "other": lambda: TvmWorkload("matmul", {**SQUARE.params, "layout": "nt"}).build()["main"],
    "aborts": lambda: calling("abort"),
    "sleeps": lambda: calling("sleep", 60),
}


def write_pack(folder: Path, schedules: Sequence[str], baseline: str = "good") -> Path:
    """A pack for this CPU, of schedules by their name in FUNCTIONS; "" did not build."""
    module, target = SQUARE.build(), tvm.target.Target(HOST)
    copy_runtime(folder / "runtime")
    build_library({"main": FUNCTIONS["good"]()}, target, folder, "reference.so")
    build_library({"main": FUNCTIONS[baseline]()}, target, folder, "baseline.so")
    names = sorted({name for name in schedules if name})
    build_library({name: FUNCTIONS[name]() for name in names}, target, folder, "schedules.so")
    about = {
        "task": SQUARE.name, "name": SQUARE.name, "family": SQUARE.kind, "frontend": "tvm",
        "parameters": dict(SQUARE.params), "split": SQUARE.split,
        "arguments": [[[16, 16], "float32"]] * 3, "reduction_length": reduction_length(module), "seed": 0,
        "reference": "reference.so", "baseline": {"name": "as written"}, "baseline_library": "baseline.so",
    }  # fmt: skip
    lines = [
        {"task": SQUARE.name, "schedule_id": str(n), "schedule": EMPTY, "origin": "cuda"}
        | ({"library": "schedules.so", "function": name} if name else {"status": "build_error"})
        for n, name in enumerate(schedules)
    ]
    (folder / "pack.json").write_text(json.dumps({"format": FORMAT, "arch": "sm_90a"}))
    (folder / "tasks.jsonl").write_text(json.dumps(about) + "\n")
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def measure(pack: Path, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Lines of the log about schedules, and what was reported."""
    log, said = RecordLog(folder), list[str]()
    try:
        measure_pack(Pack.read(pack), log, "cpu", MACHINE, LIMITS, said.append)
        return list(log.records.get(SQUARE.name, {}).values()), said
    finally:
        log.close()


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack(tmp_path_factory.mktemp("pack"), ["good", "other", "aborts", "", "sleeps", "good"])


@pytest.fixture(scope="module")
def log(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    measure(pack, folder)
    return folder


def test_what_crashes_hangs_or_is_wrong_costs_itself(log: Path) -> None:
    lines = [json.loads(line) for line in (log / "records.jsonl").read_text().splitlines()]
    found = {int(line["schedule_id"]): line["status"] for line in lines}
    assert found == {
        0: "ok", 1: "wrong_result", 2: "run_error", 3: "build_error", 4: "timeout", 5: "ok",
    }  # fmt: skip
    details = {int(line["schedule_id"]): line.get("detail", "") for line in lines}
    assert "SIGABRT" in details[2] and "elements differ" in details[1]
    assert not {"library", "function"} & {key for line in lines for key in line}


def test_the_log_is_a_corpus_of_schedules(log: Path) -> None:
    corpus = load_tensor_corpus(log)
    ((name, workload),) = corpus.tasks.items()
    records = corpus.records[name].values()
    assert (corpus.device, len(records), workload.threads) == ("cuda/sm_90/a-gpu", 6, 64)
    assert workload.baseline_s > 0
    assert [r.runtime_s is not None for r in records].count(True) == 2


def test_the_log_is_sealed_like_that_of_a_cpu(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    shutil.copytree(log, folder)
    RecordLog(folder).seal()
    assert sorted(path.suffix for path in folder.iterdir()) == [".zst"] * 3
    assert load_tensor_corpus(folder).digest == load_tensor_corpus(log).digest


def test_a_log_of_another_machine_is_refused(pack: Path, tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.add("tasks", {"task": "x", "device": {"fingerprint": "cuda/sm_80/other", "name": "other"}})
    log.close()
    with pytest.raises(InputError, match=r"this machine, got .* with some of cuda/sm_80/other"):
        measure(pack, tmp_path)


def test_what_was_measured_is_not_measured_again(log: Path, pack: Path, tmp_path: Path) -> None:
    lines = (log / "records.jsonl").read_text().splitlines(keepends=True)
    tmp_path.joinpath("records.jsonl").write_text("".join(lines[:-1]) + '{"task": "tor')
    tmp_path.joinpath("tasks.jsonl").write_bytes((log / "tasks.jsonl").read_bytes())
    again, said = measure(pack, tmp_path)
    known = [json.loads(line) for line in lines]
    assert again[: len(known) - 1] == known[:-1]
    assert sorted(line["schedule_id"] for line in again) == list("012345")
    assert said == [f"1/1 {SQUARE.name}: 6 schedules, 2 ok"]


def test_a_workload_whose_baseline_fails_is_left_out(tmp_path: Path) -> None:
    lines, said = measure(write_pack(tmp_path / "pack", ["good"], baseline="other"), tmp_path / "log")
    assert lines == []
    assert len(said) == 1 and "the baseline: wrong_result" in said[0]


def test_the_machine_is_named_after_the_gpu() -> None:
    gpu = FoundGpu(0, load_device("h100"), "580.1", 1980.0)
    found = machine_of(gpu, "sm_90a")
    assert found["device"]["fingerprint"] == "cuda/sm_90/nvidia-h100-80gb-hbm3"
    assert (found["threads"], found["driver"]) == (132 * 2048, "580.1")


@pytest.mark.parametrize(
    ("device", "arch", "runs"),
    [("h100", "sm_80", False), ("a100", "sm_90a", False), ("a40", "sm_80", True), ("a100", "sm_86", False)],
)
def test_code_runs_on_its_generation_only(device: str, arch: str, runs: bool) -> None:
    gpu = FoundGpu(0, load_device(device), None, 1.0)
    if runs:
        assert machine_of(gpu, arch)["device"]["fingerprint"].startswith("cuda/sm_86/")
    else:
        with pytest.raises(InputError, match=f"expected a GPU that runs {arch}.* --arch {gpu.spec.isa}"):
            machine_of(gpu, arch)


def test_what_is_no_pack_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a pack with pack\.json"):
        Pack.read(tmp_path)
    (tmp_path / "pack.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="expected format 2, got 99"):
        Pack.read(tmp_path)
    (tmp_path / "pack.json").write_text('{"format": 2, "arch": "sm_80"}')
    (tmp_path / "records.jsonl").write_text("")
    (tmp_path / "tasks.jsonl").write_text("")
    with pytest.raises(InputError, match="expected a pack with workloads"):
        Pack.read(tmp_path)
    (tmp_path / "tasks.jsonl").write_text('{"kind": "matmul"}\n')
    with pytest.raises(InputError, match="a line without 'task'"):
        Pack.read(tmp_path)


def test_without_a_gpu_there_is_one_line(pack: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gnnperf", "measure", "run", str(pack), "-o", str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gnnperf: expected an NVIDIA GPU, got none: ")
    assert not (tmp_path / "log").exists()
