"""`gnnperf propose`, whole: proposals without measurements, and a description checked against some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from e2e.conftest import Shell
from helpers import gpu_world

SCALE = """
name: scale
sizes: {N: 1048576}
parameters: {threads: [64, 128, 256], items: [1, 2, 4, 8]}
buffers: {x: {dtype: float32, shape: [N]}, y: {dtype: float32, shape: [N]}}
loops:
- {axis: i, extent: "cdiv(N, threads * items)", bind: block.x}
- {axis: i, extent: threads, bind: thread.x, step: 1}
- {axis: i, extent: items, unroll: true, step: threads}
compute: ['y[i] = 2 * x[i]']
"""


def test_a_described_kernel_is_checked_and_then_proposed_for(
    shell: Shell, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(SCALE)
    rows = [
        {
            "kernel": "scale", "space": "made_up", "device": "A4000", "valid": True,
            "params": json.dumps({"threads": threads, "items": items}),
            "time_ms": 100.0 / threads / items,
        }
        for threads in (64, 128, 256)
        for items in (1, 2, 4, 8)
    ]  # fmt: skip
    table = gpu_world.write(tmp_path / "table.parquet", rows)
    document = shell.here(capfd, "propose", "--check", tmp_path / "mine.yaml", table, "--json").document
    (checked,) = document["tables"]
    assert (checked["gpu"], checked["configurations"], checked["programs"]) == ("A4000", 12, 12)
    assert 0 < checked["random_first"] < checked["random_best"] < 1

    output = tmp_path / "start.json"
    arguments = ["propose", tmp_path / "mine.yaml", "--gpu", "l4", "--data", table, "-o", output, "--json"]
    document = shell.here(capfd, *arguments).document
    assert document["spaces"] == ["made_up"]
    best = document["configurations"][0]
    assert best["threads"] * best["items"] >= 1024
    assert json.loads(output.read_text())["start"][0] == list(best.values())
