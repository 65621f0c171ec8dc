"""`gnnperf retrieve` on TVM kernels: from the command line to the files it leaves."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from e2e.conftest import Shell

from gnnperf.cli.main import run
from gnnperf.measure.measurement import STATUSES

PRODUCT = """
from tvm import te, topi


def product(m=40, n=96, k=72):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def layer():
    x, w = te.placeholder((32, 48), name="x"), te.placeholder((40, 48), name="w")
    return [x, w, topi.nn.dense(x, w)]


def both():
    x = te.placeholder((64, 48), name="x")
    y = topi.exp(x)
    return [x, y, topi.sum(y, 1)]


def broken():
    raise ValueError("no such size")


def number():
    return 3
"""
CHECK = """
import numpy as np, run
rng = np.random.default_rng(1)
a, b = rng.random((40, 72), np.float32), rng.random((72, 96), np.float32)
c = np.empty((40, 96), np.float32)
run.call("product", a, b, c)
assert np.allclose(c, a @ b, rtol=1e-4)
import kernel
assert [v.name_hint for v in kernel.Module.functions] == ["product"]
"""


@pytest.fixture(scope="module")
def kernels(shell: Shell) -> Path:
    path = shell.folder / "kernels_tvm.py"
    path.write_text(PRODUCT)
    return path


def test_a_product_that_is_not_in_the_store(shell: Shell, kernels: Path, tensor_checkpoint: Path) -> None:
    finished = shell.gnnperf(
        "retrieve", f"{kernels}:product", "--checkpoint", tensor_checkpoint, "-k", 4, "--json",
        "--output", "out", "--beside", "torch",
    )  # fmt: skip
    answer = finished.document
    assert answer["baseline"]["name"] == "tvm-default" and answer["verified"] is True
    assert answer["speedup"] >= 1 and answer["candidates_measured"] == 4
    (nest,) = answer["nests"]
    assert "matmul" in {neighbour["family"] for neighbour in nest["neighbours"]}
    for rank, candidate in enumerate(nest["candidates"], start=1):
        assert candidate["rank"] == rank and candidate["status"] in STATUSES
        # The small store of the test has nothing very near: recipes of DaCe nests may be tried, too.
        assert candidate["schedule"]["kind"] == "trace"
        assert "SSRSRS" in candidate["words"] or "DaCe recipe" in candidate["words"]
    (beside,) = nest["beside"]
    assert (beside["library"], beside["status"]) == ("torch", "ok")
    ratio = beside["timing"]["runtime_s"] / answer["tuned"]["runtime_s"]
    assert beside["speedup"] == pytest.approx(ratio)
    out = shell.folder / "out"
    assert json.loads((out / "report.json").read_text()) == answer
    schedules = json.loads((out / "schedules.json").read_text())
    assert (nest["accepted"] is not None) == ("product" in schedules)
    (out / "check.py").write_text(CHECK)
    checked = shell.python(out / "check.py")
    assert checked.exit_code == 0, checked.stderr
    info = shell.gnnperf("store", "info", shell.user_store, "--json").document
    assert info["records"] == 4 and info["families"] == {"user": 4}


CHECK_BOTH = """
import numpy as np, run
x = np.random.default_rng(1).random((64, 48), np.float32)
y, z = np.empty((64, 48), np.float32), np.empty(64, np.float32)
run.call("both", x, y, z)
assert np.allclose(y, np.exp(x), rtol=1e-5) and np.allclose(z, np.exp(x).sum(1), rtol=1e-4)
"""


def test_a_function_with_two_results(
    shell: Shell, kernels: Path, tensor_checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = shell.here(
        capfd, "retrieve", f"{kernels}:both", "--checkpoint", tensor_checkpoint, "-k", 2, "--no-store",
        "--json", "--output", "both",
    ).document  # fmt: skip
    (nest,) = answer["nests"]
    assert {tried["status"] for tried in nest["candidates"]} == {"ok"} and answer["skipped"] == []
    (shell.folder / "both" / "check.py").write_text(CHECK_BOTH)
    checked = shell.python(shell.folder / "both" / "check.py")
    assert checked.exit_code == 0, checked.stderr


CHECK_LAYER = """
import numpy as np, run
rng = np.random.default_rng(1)
for _ in range(2):  # other weights are packed anew
    w = rng.random((40, 48), np.float32)
    for x in rng.random((2, 32, 48), np.float32):
        y = np.empty((32, 40), np.float32)
        run.call("layer", x, w, y)
        assert np.allclose(y, x @ w.T, rtol=1e-4)
"""


@pytest.mark.slow
def test_free_weights_are_taken_as_before(
    shell: Shell, kernels: Path, tensor_checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = {"constant": "tvm-default-constant-weights", "varying": "tvm-default"}
    for known, weights in enumerate(("constant", "varying", "constant")):
        answer = shell.here(
            capfd, "retrieve", f"{kernels}:layer", "--weights", weights, "--checkpoint", tensor_checkpoint,
            "-k", 3, "--store", shell.folder / "weights", "--json", "--output", weights,
        ).document  # fmt: skip
        (nest,) = answer["nests"]
        assert {tried["status"] for tried in nest["candidates"]} == {"ok"} and not answer["kept_baseline"]
        assert answer["baseline"]["name"] == names[weights]
        # What was timed without packing says nothing of weights that vary.
        assert ("layer" in {near["kernel"] for near in nest["neighbours"]}) == (known == 2)
        (shell.folder / weights / "check.py").write_text(CHECK_LAYER)
        checked = shell.python(shell.folder / weights / "check.py")
        assert checked.exit_code == 0, checked.stderr


CHECK_MODEL = """
import sys, numpy as np, torch
from model import model
program = torch.export.load(sys.argv[1])
(x,), _ = program.example_inputs
(found,) = model(x.numpy())
assert np.allclose(found, program.module()(x).detach().numpy(), rtol=1e-4, atol=1e-5)
"""
MODEL = """
import sys, torch
class Last(torch.nn.Module):
    def forward(self, x):
        return torch.lgamma(x.abs() + 2)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64), Last()).eval()
torch.export.save(torch.export.export(model, (torch.randn(32, 48),)), sys.argv[1])
"""


@pytest.mark.slow
def test_a_torch_model_is_timed_from_end_to_end(shell: Shell, tensor_checkpoint: Path) -> None:
    (shell.folder / "model.py").write_text(MODEL)
    path = shell.folder / "model.pt2"
    assert shell.python(shell.folder / "model.py", path).exit_code == 0
    answer = shell.gnnperf(
        "retrieve", path, "--checkpoint", tensor_checkpoint, "-k", 1, "--no-store", "--json",
        "--output", "whole",
    ).document  # fmt: skip
    assert answer["verified"] is True and answer["note"] == "" and len(answer["nests"]) == 2
    (kept,) = answer["skipped"]
    assert kept == {"part": "aten.lgamma.default", "reason": "TVM does not import it; PyTorch runs it"}
    times = [answer[name]["runtime_s"] for name in ("baseline", "tuned")]
    assert answer["kept_baseline"] is False and answer["speedup"] == pytest.approx(times[0] / times[1])
    assert {"candidates", "whole"} <= set(answer["stages_s"])
    (beside,) = answer["beside"]
    assert (beside["library"], beside["status"]) == ("torch", "ok")
    assert beside["speedup"] == pytest.approx(beside["timing"]["runtime_s"] / times[1])
    (shell.folder / "whole" / "check.py").write_text(CHECK_MODEL)
    checked = shell.python(shell.folder / "whole" / "check.py", path)
    assert checked.exit_code == 0, checked.stderr


def test_ctrl_c(shell: Shell, kernels: Path, tensor_checkpoint: Path) -> None:
    process = shell.start(
        "retrieve", f"{kernels}:product", "--set", "k=100000", "--checkpoint", tensor_checkpoint, "--no-store"
    )
    assert process.stderr is not None
    assert any("1 of 1: product" in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "gnnperf: interrupted; nothing was reported\n"
    assert shell.processes() == []


def test_what_cannot_be_tuned_is_left_as_it_is(
    kernels: Path,
    tensor_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    command = ["retrieve", f"{kernels}:product", "--set", "m=0", "--checkpoint", str(tensor_checkpoint)]
    assert run([*command, "--no-store", "--model-only"]) == 0
    assert "not tuned: product: it has an array without elements" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{file}:broken"], "no such size"),
        (["{file}:number"], "expected 'number' to be a PrimFunc"),
        (["{file}:product", "--baseline", "simplify"], "--baseline"),
        (["{file}:product", "--inputs", "x.py:f"], "--inputs"),
        (["{file}:product", "--weights", "constant"], "leaves the layout of weights free"),
        (["{file}:product", "--beside", "torch"], "--beside is about what was measured"),
        (["{folder}/nothing.json"], "there is no file"),
        (["{folder}/nothing.pt2"], "nothing.pt2"),
        (["{file}:product", "--checkpoint", "{folder}"], "expected a checkpoint folder"),
    ],
)
def test_mistakes(
    arguments: list[str],
    said: str,
    kernels: Path,
    tensor_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    given = [a.format(file=kernels, folder=tmp_path) for a in arguments]
    if "--checkpoint" not in given:
        given += ["--checkpoint", str(tensor_checkpoint)]
    assert run(["retrieve", *given, "--no-store", "--model-only"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
