"""Collecting two tiny workloads; going on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnnperf.corpus.config import WorkloadConfig, load_config
from gnnperf.corpus.traces import TraceCollector
from gnnperf.errors import InputError
from gnnperf.measure.record_log import RecordLog

CONFIG = """
name: tiny
kind: workloads
passes: [4, 10]
random_share: 0.5
batch: 4
workloads:
  - {kind: matmul, m: 32, n: 48, k: 16}
  - {kind: softmax, m: 8, n: 64, split: held_out}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG)
    return path


def command(config: Path, folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "gnnperf", "collect", str(config), "-o", str(folder), *options]


def lines(folder: Path) -> list[dict[str, object]]:
    path = folder / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.slow
def test_goes_on_after_a_kill_and_seals(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    with subprocess.Popen(
        command(config, folder), stderr=subprocess.DEVNULL, start_new_session=True
    ) as first:
        deadline = time.monotonic() + 60
        while len(lines(folder)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
    before = lines(folder)
    assert 4 <= len(before) < 20
    with (folder / "records.jsonl").open("a") as torn:
        torn.write('{"task": "matm')
    done = subprocess.run(command(config, folder), capture_output=True, text=True, timeout=120, check=True)
    after = lines(folder)
    assert after[: len(before)] == before, done.stderr
    names = {"matmul-m_32-n_48-k_16", "softmax-m_8-n_64"}
    of = {name: [line for line in after if line["task"] == name] for name in names}
    for found in of.values():
        assert [line["schedule_id"] for line in found] == list(map(str, range(10)))
        assert {line["origin"] for line in found} == {"random", "search"}
        assert sum(line["origin"] == "random" for line in found) == 5
        assert all(line["status"] == "ok" and line["samples_s"] for line in found)
        assert len({json.dumps(line["schedule"]) for line in found}) == 10
    sealed = subprocess.run(command(config, folder, "--seal", "--json"), capture_output=True, check=True)
    assert json.loads(sealed.stdout)["measurements"] == 20
    assert not (folder / "records.jsonl").exists()
    log = RecordLog(folder)
    assert set(log.tasks) == names
    assert sum(map(len, log.records.values())) == 20
    assert log.tasks["softmax-m_8-n_64"]["split"] == "held_out"
    assert len(log.tasks["softmax-m_8-n_64"]["baseline"]["samples_s"]) >= 3
    log.close()


def test_a_workload_that_cannot_be_built_is_left_out(config: Path, tmp_path: Path) -> None:
    config.write_text(CONFIG[: CONFIG.index("  - ")] + "  - {kind: elementwise, m: 8, n: 8, chain: foo}\n")
    done = subprocess.run(command(config, tmp_path / "corpus"), capture_output=True, text=True, check=True)
    assert "chain_foo: expected parameters that make a function, got KeyError: 'foo'" in done.stderr
    assert "Traceback" not in done.stderr and lines(tmp_path / "corpus") == []


def test_a_log_of_another_machine_is_refused(config: Path, tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log")
    log.add("tasks", {"task": "x", "device": {"fingerprint": "cpu/other/none", "name": "other"}})
    with pytest.raises(InputError, match=r"this machine, got .* with some of cpu/other/none; give another"):
        TraceCollector(load(config), log).run()
    log.close()


def load(path: Path) -> WorkloadConfig:
    found = load_config(path)
    assert isinstance(found, WorkloadConfig)
    return found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: matmul", "kind: matmull", "workload 1: expected a kind"),
        ("k: 16", "kk: 16", "matmul: missing a required argument: 'k'; expected m, n, k, layout"),
        ("split: held_out", "split: hidden", "workload 2: split: expected one of training, held_out"),
        ("batch: 4", "batch: 0", "batch: expected an integer from 1 to 1024, got 0"),
        ("[4, 10]", "[10, 4]", "passes: expected growing numbers"),
        ("name: tiny", "nam: tiny", "unknown setting 'nam'"),
        ("kind: workloads", "kind: [nests]", "kind: expected one of nests, .* got ['nests']"),
        ("kind: workloads", "kind: shapes", "kind: expected one of nests, workloads, pack, configurations"),
    ],
)
def test_configurations_say_what_is_wrong(config: Path, old: str, new: str, message: str) -> None:
    config.write_text(CONFIG.replace(old, new))
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        load(config)


def test_unknown_names_are_refused(config: Path) -> None:
    with pytest.raises(InputError, match="no workload or kind 'conv'"):
        load(config).only(["conv"])
    assert [w.kind for w in load(config).only(["softmax"]).workloads] == ["softmax"]
    assert load(config).up_to(6).passes == (4, 6)
