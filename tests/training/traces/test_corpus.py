"""Reading a corpus of measured schedules, and what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gnnperf.corpus.reader import read_corpus
from gnnperf.corpus.record import SINGLE_SPREAD
from gnnperf.errors import InputError
from gnnperf.training.traces.corpus import load_tensor_corpus

WORKLOAD = {
    "task": "m", "name": "m", "family": "matmul", "frontend": "tvm", "parameters": {"m": 8},
    "split": "training", "threads": 2,
    "baseline": {"name": "tvm-default", "samples_s": [7e-6, 9e-6, 8e-6]},
}  # fmt: skip
CPU = {"fingerprint": "cpu"}


def line(n: int, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"task": "m", "schedule_id": str(n), "status": "ok"}
    found["schedule"] = {"kind": "trace", "trace": [[], []]}
    return {**found, "samples_s": [3e-6, 1e-6, 2e-6], **values}


def write(folder: Path, schedules: list[dict[str, Any]], *workloads: dict[str, Any]) -> Path:
    about = workloads or ({**WORKLOAD, "device": CPU},)
    for name, lines in (("tasks", about), ("records", schedules)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    return folder


def test_medians_intervals_and_failures(tmp_path: Path) -> None:
    lines = [line(0), line(1, samples_s=[5e-6], once=True), {**line(2), "status": "timeout"}]
    corpus = load_tensor_corpus(write(tmp_path, lines))
    three, once, failed = corpus.records["m"].values()
    assert (three.runtime_s, three.interval_s) == (2e-6, (1e-6, 3e-6))
    assert once.interval_s == pytest.approx((5e-6 * (1 - SINGLE_SPREAD), 5e-6 * (1 + SINGLE_SPREAD)))
    assert (failed.status, failed.runtime_s, failed.interval_s) == ("timeout", None, None)
    assert corpus.tasks["m"].baseline_s == 8e-6


def test_sealed_lines_come_first_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, [line(1)])
    sealed = (json.dumps(line(0, samples_s=[1.0])) + "\n").encode()
    (folder / "records.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(sealed))
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"task": "m", "schedule_id": "2", "sta')
    assert [r.runtime_s for r in load_tensor_corpus(folder).records["m"].values()] == [1.0, 2e-6]


def test_workloads_in_which_nothing_ran_are_left_out(tmp_path: Path) -> None:
    other = {**WORKLOAD, "task": "x", "name": "x", "device": CPU}
    folder = write(
        tmp_path, [line(0), line(0, task="x", status="timeout")], {**WORKLOAD, "device": CPU}, other
    )
    found = load_tensor_corpus(folder)
    assert [*found.tasks] == [*found.records] == ["m"]
    assert found.digest == read_corpus(folder).digest


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"status": "fine"}, r"records.jsonl line 1: expected a status among .*, got 'fine'"),
        ({"samples_s": []}, r"line 1: not a record of this version"),
        ({"status": "timeout"}, r"holds no schedule that ran"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_tensor_corpus(write(tmp_path, [line(0, **values)]))


def test_no_corpus_two_machines_missing_keys(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a corpus folder .* got .*; give the folder"):
        load_tensor_corpus(tmp_path)
    other = {**WORKLOAD, "task": "x", "name": "x", "device": {"fingerprint": "other"}}
    write(tmp_path, [line(0), line(0, task="x")], {**WORKLOAD, "device": CPU}, other)
    with pytest.raises(InputError, match="was measured on cpu, other"):
        load_tensor_corpus(tmp_path)
    with pytest.raises(InputError, match=r"tasks.jsonl line 1: expected the key 'device', got none"):
        load_tensor_corpus(write(tmp_path, [line(0)], WORKLOAD))
