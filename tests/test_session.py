"""The Python API: kernels as objects, what was found, and what is refused in one line."""

# No `from __future__ import annotations`: DaCe would not see the types of arguments.

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
import torch

import gnnperf
from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT
from gnnperf.errors import GnnperfError, InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.session import Retrieval, Session
from gnnperf.store import Store

N, M = dace.symbol("N"), dace.symbol("M")


@dace.program
def row_sums(a: dace.float32[N, M], b: dace.float32[M], out: dace.float32[N]):
    out[:] = np.add.reduce(a * b, axis=1)


@pytest.fixture(scope="module")
def product() -> Any:
    """A PrimFunc: c = a @ b."""
    import_tvm()
    from tvm import te

    a, b = te.placeholder((40, 72), name="a"), te.placeholder((72, 56), name="b")
    k = te.reduce_axis((0, 72), name="k")
    c = te.compute((40, 56), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", "product")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM's threads are set in it."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return gnnperf.load(store=tmp_path_factory.mktemp("home") / "store")


def vectors(n: int = 300, m: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {"a": rng.random((n, m)), "b": rng.random(m), "out": np.zeros(n)}
    return {name: value.astype(np.float32) for name, value in made.items()}


def records(session: Session) -> int:
    return Store.open(str(session.store)).info().records


def check_found(found: Retrieval, folder: Path) -> None:
    """What every retrieval offers."""
    assert found.verified and found.speedup is not None and found.speedup >= 1
    document = json.loads(found.to_json())
    assert document["speedup"] == found.speedup and document["kernel"] == found.kernel
    accepted = {nest["name"]: nest["accepted"] for nest in document["nests"] if nest["accepted"]}
    assert json.loads(json.dumps(dict(found.schedules))) == accepted
    html = found._repr_html_()
    assert html.startswith("<!doctype html>") and found.kernel in html
    assert found.save(folder) == folder
    assert {LIBRARY, SCRIPT, REPORT} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / REPORT).read_text()) == document


def test_a_dace_program_with_sizes_and_with_arrays(session: Session, tmp_path: Path) -> None:
    given = vectors()
    found = session.retrieve(row_sums, k=1, **given)
    assert (found.kernel, found.baseline_name, found.candidates_measured) == ("row_sums", "dace-auto", 1)
    check_found(found, tmp_path / "tuned")
    found.call(**given)
    np.testing.assert_allclose(given["out"], given["a"] @ given["b"], rtol=1e-4)
    with pytest.raises(TypeError, match=r"b: expected float32\[400\]"):
        found.call(**{**given, "b": given["b"][:5]})
    with pytest.raises(TypeError, match=r"all arguments by name \(a, b, out\), got 2 without one"):
        found.call(given["a"], given["b"], out=given["out"])
    assert records(session) == 1
    again = session.retrieve(row_sums, k=1, N=300, M=400, model_only=True)
    assert again.nests[0].digest == found.nests[0].digest and again.speedup is None
    assert again.nests[0].neighbours[0]["distance"] == pytest.approx(0, abs=1e-5)
    assert records(session) == 1, "nothing was measured"
    with pytest.raises(GnnperfError, match="there is nothing to save: nothing was measured"):
        again.save(tmp_path / "nothing")


def test_a_search_of_a_dace_program(session: Session) -> None:
    told: list[int] = []

    class Bar:
        def __enter__(self) -> Callable[[int, str], None]:
            return lambda count, _doing: told.append(count)

        def __exit__(self, *_: object) -> None:
            told.append(0)

    found = session.tune(row_sums, trials=4, sizes={"N": 310, "M": 410}, advance=lambda _total: Bar())
    (nest,) = found.nests
    assert nest.search is not None and nest.search["trials"] == 4
    assert sum(told) == 4 and told[-1] == 0


def test_a_function_of_tvm(session: Session, product: Any, tmp_path: Path) -> None:
    before = records(session) if Path(str(session.store)).exists() else 0
    found = session.retrieve(product, k=2)
    assert (found.kernel, found.baseline_name) == ("product", "tvm-default")
    check_found(found, tmp_path / "tuned")
    assert records(session) == before + 2
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape, dtype=np.float32) for shape in ((40, 72), (72, 56)))
    c = np.empty((40, 56), np.float32)
    found.call(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    with pytest.raises(TypeError, match="expected arrays in their order, got c by name"):
        found.call(a, b, c=c)


def test_nothing_is_verified_where_nothing_was_tried(session: Session, product: Any) -> None:
    found = session.retrieve(product, k=1, budget_s=1e-9)
    assert found.speedup == 1.0 and not found.verified and found.verification is None


def test_functions_that_cannot_be_tuned_cost_the_others_nothing(session: Session, tmp_path: Path) -> None:
    from frontends.tvm.functions import of_any_length

    found = session.retrieve(of_any_length(), k=1)
    assert [nest.name for nest in found.nests] == ["kernel_product"]
    assert [part["part"] for part in found.skipped] == ["kernel_shifted", "kernel_symbolic"]
    check_found(found, tmp_path / "tuned")
    found.call(*(np.ones(shape, np.float32) for shape in ((96, 64), (64, 128), (96, 128))))


@pytest.mark.slow
def test_a_torch_module(session: Session, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.ReLU()).eval()
    beside = ["torch-compile"]
    x = torch.randn(16, 48)
    found = session.retrieve(module, (x,), k=1, competitors=beside)
    assert found.kernel == "Sequential"
    assert [(one.library, one.status) for one in found.beside] == [("torch", "ok"), ("torch-compile", "ok")]
    check_found(found, tmp_path / "tuned")
    assert {"libprogram.so", "weights.npz", "model.py"} <= {p.name for p in (tmp_path / "tuned").iterdir()}
    torch.testing.assert_close(found.call(x), module(x).detach())
    torch.testing.assert_close(found.call(x.numpy()), module(x).detach())
    with pytest.raises(TypeError, match=r"expected \[\('float32', \(16, 48\)\)\], got .*\(16, 47\)"):
        found.call(x[:, :47])


def test_equal_programs_of_two_frontends_have_one_digest(session: Session, product: Any) -> None:
    @dace.program
    def matmul(x: dace.float32[40, 72], y: dace.float32[72, 56], z: dace.float32[40, 56]):
        for i, j in dace.map[0:40, 0:56]:
            z[i, j] = 0
            for k in range(72):
                z[i, j] += x[i, k] * y[k, j]

    first, second = session.embed(matmul, product)
    assert (first.kernel, second.kernel) == ("matmul", "product")
    assert first.digest == second.digest
    np.testing.assert_allclose(first.vector @ second.vector, 1, atol=1e-5)


def test_released_models_and_no_store_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("GNNPERF_STORE", raising=False)
    (one,) = gnnperf.embed(row_sums, N=64, M=64)
    assert one.name.startswith("row_sums") and np.linalg.norm(one.vector) == pytest.approx(1, abs=1e-5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no value for the symbols M, N; give --set M=512 --set N=512"),
        ({"N": 8}, "no value for the symbol M"),
        ({"N": 8, "M": "eight"}, "M: expected a number or an array, got str"),
        ({"N": 8, "M": 8, "K": 8}, "the kernel has no symbol or scalar K; it has"),
        ({"inputs": [np.ones(3)]}, "inputs: expected a dict of arrays by name, got list"),
        (
            {"inputs": "inputs.py:f", "a": np.ones(3)},
            "inputs: expected a dict where arrays are given by name",
        ),
        ({"N": 8, "M": 8, "a": np.ones((8, 8))}, "a: expected float32 elements, got float64"),
        (
            {"N": 8, "M": 8, "competitors": ["cublas"]},
            "--beside: expected numpy, numba, torch,",
        ),
        ({"N": 8, "M": 8, "baseline": "best"}, "--baseline: expected one of auto, simplify, got 'best'"),
    ],
)
def test_mistakes_with_a_dace_program(session: Session, given: dict[str, Any], said: str) -> None:
    refused(session, row_sums, given, said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"baseline": "auto"}, "--baseline: a TVM kernel takes none"),
        ({"inputs": {"a": np.ones(3)}}, "--inputs: a TVM kernel takes none"),
        ({"seed": 0}, "--seed: a TVM kernel takes none"),
        ({"seed": 1}, "--seed: a TVM kernel takes none"),
        ({"N": 3}, "takes no arguments, got N"),
        ({"competitors": ["cublas"]}, "--beside: of a TVM function, expected torch, got 'cublas'"),
    ],
)
def test_mistakes_with_a_function_of_tvm(
    session: Session, product: Any, given: dict[str, Any], said: str
) -> None:
    refused(session, product, given, said)


@pytest.mark.parametrize(
    ("kernel", "given", "said"),
    [
        (3, {}, "expected a path.py:name or a program that a frontend takes"),
        (np.ones(3), {}, "got numpy.ndarray"),
        (torch.nn.ReLU(), {}, "expected example inputs beside the torch module ReLU"),
        (torch.ones(3), {}, "expected a torch.nn.Module or an ExportedProgram, got torch.Tensor"),
        ("linear:M=8,N=8,K=8", {}, "expected a kernel that this machine runs, got one for GPUs"),
        ("linear:M=8,N=8,K=8", {"M": 8}, "--sizes: an operator takes none"),
        ("nowhere.py:f", {}, "there is no file 'nowhere.py'"),
    ],
)
def test_what_is_no_kernel(session: Session, kernel: Any, given: dict[str, Any], said: str) -> None:
    refused(session, kernel, given, said)


def test_an_exported_program_has_its_own_inputs(session: Session) -> None:
    exported = torch.export.export(torch.nn.ReLU(), (torch.ones(3),))
    refused(session, exported, {"inputs": torch.ones(3)}, "--inputs: an exported program takes none")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 0}, "k: expected at least 1, got 0"),
        ({"budget_s": 0.0}, "budget_s: expected a number of seconds above 0, got 0"),
        ({"model_only": True, "budget_s": 1.0}, "--budget is about what was measured to be fastest"),
        ({"model_only": True, "competitors": ["numpy"]}, "--beside is about what was measured to be fastest"),
    ],
)
def test_what_goes_with_no_measurement(session: Session, given: dict[str, Any], said: str) -> None:
    refused(session, row_sums, {"N": 8, "M": 8, **given}, said)


def test_a_budget_of_nothing_is_refused(session: Session) -> None:
    at_least = "k: expected at least 1, got 0"
    with pytest.raises(InputError, match="trials: expected at least 1, got 0"):
        session.tune(row_sums, trials=0, N=8, M=8)
    with pytest.raises(InputError, match="budget_s: expected a number of seconds above 0, got nan"):
        session.tune(row_sums, budget_s=math.nan, N=8, M=8)
    with pytest.raises(InputError, match=at_least):
        session.propose("gemm", "l4", k=0)
    with pytest.raises(InputError, match=at_least):
        session.check_description("gemm", "table.parquet", k=0)


def test_numbers_and_gpus_that_are_none(session: Session) -> None:
    whole = "k: expected a whole number of at least 1, got "
    with pytest.raises(InputError, match=f"{whole}2.5"):
        session.propose("gemm", "l4", k=2.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"{whole}'three'"):
        session.propose("gemm", "l4", k="three")  # type: ignore[arg-type]
    refused(session, row_sums, {"budget_s": "1"}, "budget_s: expected a number of seconds above 0, got '1'")
    for gpus, got in ((3, "3"), (None, "None"), (["l4", 3], "3"), ([["l4"]], r"\['l4'\]")):
        with pytest.raises(InputError, match=f"expected the name of a GPU, .*, got {got}; `gnnperf devices"):
            session.predict("linear:M=8,N=8,K=8", gpus)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected the name of a GPU, .*, got \['l4', 't4'\];"):
        session.propose("gemm", ["l4", "t4"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="or a YAML file that describes a kernel, got 3"):
        session.propose(3, "l4")  # type: ignore[arg-type]
    assert list(session.predict("linear:M=8,N=8,K=8", ("l4", "t4", "l4")).runtime_s) == ["l4", "t4"]


def refused(session: Session, kernel: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        session.retrieve(kernel, **{"k": 1, **given})
    message = str(error.value)
    assert said in message and "\n" not in message


def test_a_checkpoint_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checkpoint: expected the folder of a bundle, got"):
        gnnperf.load(tmp_path / "nowhere")


def test_what_cannot_be_saved_is_said(tmp_path: Path, session: Session) -> None:
    (tmp_path / "file").write_text("")
    found = session.retrieve(row_sums, k=1, N=64, M=64, budget_s=1e-9)
    assert found.kept_baseline and found.speedup == 1.0 and not found.schedules
    with pytest.raises(InputError, match=r"--output: expected a folder, but .*file' is a file"):
        found.save(tmp_path / "file")
