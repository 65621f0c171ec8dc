"""cross-frontend: a small kernel from end to end, the pairs that come with it, the figures."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from benchmarks.cross_frontend import PAIRS, CrossFrontendStudy
from benchmarks.kernel_pairs import read_pairs
from benchmarks.run import benchmarks
from helpers.tensor_world import write_checkpoint

from gnnperf.cli.main import run
from gnnperf.devices import describe_host
from gnnperf.errors import InputError
from gnnperf.frontends.dace import load_kernel
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.retrieval.memory import add_to_store
from gnnperf.schedules.recipes import Recipe
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Nest, Record, Store

DACE = """
import dace
SIZES = {"product": [{"M": 24, "N": 32, "K": 40}]}
M, N, K = (dace.symbol(name) for name in "MNK")

@dace.program
def product(a: dace.float32[M, K], b: dace.float32[K, N], out: dace.float32[M, N]):
    for i, j in dace.map[0:M, 0:N]:
        out[i, j] = 0.0
        for k in range(K):
            out[i, j] += a[i, k] * b[k, j]
"""
TVM = """
from tvm import te

def product(M, N, K):
    a, b = te.placeholder((M, K), name="a"), te.placeholder((K, N), name="b")
    k = te.reduce_axis((0, K), "k")
    return [a, b, te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="out")]
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    import_tvm()
    set_runtime_threads(1)


def write_nest_checkpoint(folder: Path) -> None:
    """The released bundle with a store of one product, on which three recipes are said to be fast."""
    folder.mkdir()
    for name in ("weights.pt", "metadata.json"):
        shutil.copy(shipped_bundle() / name, folder)
    task = TvmTask("neighbour", TvmWorkload("matmul", {"m": 64, "n": 64, "k": 64}).build())
    host, digest = describe_host(), task.graph.digest
    recipes = [Recipe(library="blas"), Recipe(tile_q=8, register_q=4, register_p=1), Recipe(order="row")]
    records = [
        Record(
            nest_digest=digest, kernel="neighbour", family="gemm", frontend="dace",
            device_fingerprint=host.fingerprint, device_name=host.name, baseline="dace-auto",
            schedule=json.dumps(recipe.to_dict()), schedule_kind="recipe", status="ok", baseline_s=1e-3,
            runtime_s=1e-4 * n, interval_lo_s=1e-4 * n, interval_hi_s=1e-4 * n, samples=3, speedup=10.0 / n,
        )
        for n, recipe in enumerate(recipes, start=1)
    ]  # fmt: skip
    nest = Nest(digest, "neighbour", "gemm", "dace")
    add_to_store(
        Store.open(folder / "store", create=True),
        load_checkpoint(folder, Bundle),
        [nest],
        [task.graph],
        records,
    )


def test_the_command_carries_schedules_over_and_measures_a_row_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(DACE)
    (tmp_path / "own_tvm.py").write_text(TVM)
    write_nest_checkpoint(tmp_path / "nests")
    write_checkpoint(tmp_path / "tensor")
    command = ["cross-frontend", "--cases", tmp_path / "own.py", "-k", 3, "--json"]
    command += ["--checkpoint", tmp_path / "nests", "--tensor-checkpoint", tmp_path / "tensor"]
    command += ["--output", tmp_path / "out"]
    assert run([str(word) for word in command], benchmarks) == 0, capfd.readouterr().err
    found = json.loads(capfd.readouterr().out)
    assert json.loads((tmp_path / "out" / "cross-frontend.json").read_text()) == found
    (row,) = found["rows"]
    assert row["kernel"] == "product-M_24-N_32-K_40" and row["failures"] == [] and row["same_graph"]
    assert row["tvm_statuses"] == {"carried": ["ok"] * 2, "native": ["ok"] * 3}
    assert row["tvm_applied"] == 2 and "library: TVM schedules loops" in str(row["tvm_refused"])
    assert "(of neighbour)" in row["tvm_best"]
    assert {status for status, *_ in row["dace_speedups"]["native"]} <= {"ok", "not_applicable"}
    for name in ("tvm_default_s", "tvm_carried_s", "tvm_native_s", "dace_baseline_s"):
        assert 0 < row[name] < 1, name
    figures = found["figures"]
    assert figures["kernels"] == 1 and figures["carried_over_dace_to_tvm"] == 2
    assert figures["geomean_vs_tvm_default"] == pytest.approx(row["tvm_default_s"] / row["tvm_carried_s"])
    monkeypatch.setattr(CrossFrontendStudy, "row", lambda *_: pytest.fail("measured again"))
    assert run([str(word) for word in command], benchmarks) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == [row]


@pytest.mark.parametrize("name", ["gemm", "bmm", "conv2d", "softmax", "stencil", "row_sums"])
def test_both_forms_of_a_kernel_have_one_graph(name: str) -> None:
    pair = read_pairs(PAIRS, [name])[-1]
    (unit,) = (u for u in load_kernel(pair.program, pair.symbols).units if u.nest.has_loops)
    assert unit.graph.digest == pair.task().graph.digest


def test_bad_cases_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--kernels: expected some of gemm, .*got 'gem'"):
        read_pairs(PAIRS, ["gem"])
    (tmp_path / "own.py").write_text("SIZES = {'f': 3}")
    with pytest.raises(InputError, match="expected SIZES to be a dict of lists of dicts"):
        read_pairs(tmp_path / "own.py")


def test_figures_leave_out_what_has_nothing_to_compare_with() -> None:
    row: dict[str, Any] = {
        "kernel": "a", "failures": [], "tvm_applied": 3, "dace_applied": 2, "tvm_default_s": 8.0,
        "tvm_carried_s": 2.0, "tvm_native_s": 1.0, "dace_carried_speedup": 6.0, "dace_native_speedup": 3.0,
    }  # fmt: skip
    bare = {**row, "tvm_carried_s": None, "tvm_native_s": None, "dace_carried_speedup": None,
            "dace_native_speedup": None, "tvm_applied": 0}  # fmt: skip
    figures = CrossFrontendStudy.figures([row, bare, {"kernel": "b", "failures": ["b: broken"]}])
    assert figures == {
        "kernels": 2,
        "carried_over_dace_to_tvm": 3,
        "carried_over_tvm_to_dace": 4,
        "geomean_vs_tvm_default": pytest.approx(2.0),
        "geomean_vs_native_tvm": pytest.approx(0.5),
        "geomean_vs_auto_optimize": pytest.approx(math.sqrt(6.0)),
        "geomean_vs_native_dace": pytest.approx(2.0),
    }
