"""The other models in the table of the ablation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnnperf.errors import InputError
from gnnperf.evaluation import BenchmarkResult
from gnnperf.evaluation.ablation import add_beside, read_beside
from gnnperf.evaluation.ablation.beside import FIGURES

NESTS = BenchmarkResult(
    "ablation", {"nests_full_at_1": 0.8}, [{"model": "loop-nests", "policy": "ours"}], {"seed": 0}
)


def document(name: str, **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(FIGURES[name], 0.5)
    return {"benchmark": name, "figures": {**figures, **more}, "rows": [], "settings": {"seeds": 3}}


def written(tmp_path: Path, *documents: dict[str, Any]) -> list[Path]:
    paths = [tmp_path / f"{number}.json" for number in range(len(documents))]
    for path, content in zip(paths, documents, strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_rows_and_figures_join_those_of_nests(tmp_path: Path) -> None:
    ranking = document("tensor-ranking", tvm_network_top1=0.75, other=1.0)
    shared = {"held_out": "kind", "workload": "all", "top1": 0.6, "top5": 0.9}
    ranking["rows"] = [
        {**shared, "kind": "all", "model": "network"},
        {**shared, "kind": "matmul", "model": "network"},
        {**shared, "kind": "all", "model": "other"},
    ]
    errors = {f"{row}_mean_heldout_mape": 30.0 for row in ("trees", "roofline", "fitted_roofline")}
    operators = document("gpu-operators", **errors)
    starts = ("heldout_gpu", "portfolio", "nearest", "trees", "random")
    kernels = document("gpu-schedules", **{f"{row}_top{k}": k / 10 for row in starts for k in (1, 5)})
    result = add_beside(NESTS, read_beside(written(tmp_path, ranking, operators, kernels)))
    assert result.figures["nests_full_at_1"] == 0.8 and result.figures["tvm_network_top1"] == 0.75
    assert "other" not in result.figures
    assert {figure for figures in FIGURES.values() for figure in figures} <= result.figures.keys()
    models = [row["model"] for row in result.rows]
    assert models == [
        "loop-nests", *["tensor-programs"] * 2, *["gpu-runtime"] * 4, *["tunable-kernels"] * 10
    ]  # fmt: skip
    first, second = result.rows[1:3]
    assert (first["held_out"], first["policy"]) == ("kind", "network")
    assert [(row["k"], row["efficiency"]) for row in (first, second)] == [(1, 0.6), (5, 0.9)]
    portfolio = [row for row in result.rows if row["policy"] == "portfolio"]
    assert [(row["k"], row["efficiency"]) for row in portfolio] == [(1, 0.1), (5, 0.5)]
    assert result.settings == {"seed": 0, "beside": {name: {"seeds": 3} for name in FIGURES}}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            [{"benchmark": "transfer"}],
            r"eval tensor-ranking --json` or `gnnperf eval gpu-operators --json` or",
        ),
        (
            [{"benchmark": "gpu-operators", "figures": {"mean_heldout_mape": 1.0}}],
            r"expected gpu_without_network_mape among its figures, got none; run `gnnperf eval gpu-operators",
        ),
        (
            [document("gpu-operators")] * 2,
            r"expected one document of gpu-operators, got a second one, .*1.json",
        ),
    ],
)
def test_what_is_no_such_document_is_refused(tmp_path: Path, contents: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_beside(written(tmp_path, *contents))
