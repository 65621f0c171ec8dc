"""The matrix of operators: what it lists, what it says of an answer, and a quick part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.operator_matrix import OPERATORS, OperatorStudy, as_markdown, faults, operators, told
from benchmarks.run import benchmarks

from gnnperf.cli.main import run
from gnnperf.frontends.tvm.load import load_tasks
from gnnperf.frontends.tvm.target import host_target


def test_it_lists_operators_of_every_kind_and_way() -> None:
    listed = operators()
    assert len(listed) >= 60
    assert {way for _, way in listed.values()} == {"topi", "te", "TVMScript", "relax", "torch"}
    kinds = {kind for kind, _ in listed.values()}
    assert kinds >= {
        "product",
        "convolution",
        "winograd",
        "pooling",
        "softmax",
        "norm",
        "reduction",
        "gather",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", operators())
def test_every_operator_has_a_graph_or_an_objection(name: str) -> None:
    for task in load_tasks(f"{OPERATORS}:{name}", None, host_target()):
        assert task.objection or task.graph.digest


def answer(*statuses: str, kept: bool = True, reason: str = "every candidate failed") -> dict[str, Any]:
    candidates = [{"status": status} for status in statuses]
    accepted = None if kept else {"kind": "trace"}
    nest = {"name": "f", "accepted": accepted, "reason": reason if kept else "", "candidates": candidates}
    times = {"runtime_s": 1e-3, "interval_s": [1e-3, 1e-3]}
    return {
        "nests": [nest], "skipped": [], "note": "", "baseline": times, "tuned": times, "speedup": 1.0,
        "speedup_interval": None, "kept_baseline": kept, "candidates_measured": len(statuses),
    }  # fmt: skip


def test_an_operator_whose_candidates_all_fail_is_a_fault() -> None:
    about = {"operator": "f", "kind": "product", "made with": "te"}
    rows = [
        about | told(answer("run_error", "timeout")),
        about | told(answer("ok", "run_error", reason="none was faster")),
        about | told(answer("ok", kept=False)),
        about | told(answer(reason="no neighbour")),
    ]
    assert [row["decision"] for row in rows] == ["kept", "kept", "tuned", "left"]
    assert OperatorStudy.figures(rows) == {"operators": 4, "tuned": 1, "all_failed": 1}
    assert [len(faults(row)) for row in rows] == [1, 0, 0, 0]
    assert faults(about | told(answer("ok", reason=""))) == ["left untuned without a reason"]
    lines = as_markdown(rows).splitlines()
    assert len(lines) == 6 and lines[2].endswith("| kept: every candidate failed |")


@pytest.mark.slow
def test_a_quick_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "operator-matrix",
        "--kernels",
        "dense,argmax,cumsum",
        "-k",
        "2",
        "-o",
        str(tmp_path),
        "--json",
    ]
    assert run([*command, "--markdown", str(tmp_path / "table.md")], benchmarks) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["figures"]["operators"] == 3 and document["figures"]["all_failed"] == 0
    dense, argmax, cumsum = document["rows"]
    assert dense["decision"] == argmax["decision"] == "tuned" and dense["speedup"] > 2 < argmax["speedup"]
    assert argmax["candidates_measured"] == 2
    assert cumsum["decision"] == "left" and "inside of one" in cumsum["reason"]
    assert len((tmp_path / "table.md").read_text().splitlines()) == 5
