"""`gnnperf tune`: a search that can be interrupted, goes on, and leaves what it measured in the store."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell

from gnnperf.cli.main import run
from gnnperf.errors import InputError
from gnnperf.store import Store

PRODUCT = """
from tvm import te


def product(m=24, n=40, k=16):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]
"""

SIZES = ("--set", "N=60", "--set", "M=50", "--set", "K=40")


@pytest.fixture(scope="module")
def kernels(shell: Shell) -> Path:
    path = shell.folder / "kernels_tvm.py"
    path.write_text(PRODUCT)
    return path


def records(shell: Shell) -> int:
    try:
        return Store.open(shell.user_store).info().records
    except InputError:  # there is none yet, or it is being made
        return 0


def interrupt(shell: Shell, *command: object) -> int:
    """Start a search, stop it when it has measured something; how many records are in the store."""
    before = records(shell)
    with shell.start(*command, "--trials", 5000) as process:
        try:
            deadline = time.monotonic() + 300
            while records(shell) == before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()  # nothing if it has ended; a failed test leaves no search behind
    kept = records(shell)
    assert (process.returncode, stdout) == (130, ""), stderr
    said = f"interrupted after {kept - before} trials; what was measured is kept in {shell.user_store}"
    assert said in stderr
    assert shell.processes() == []
    return kept


@pytest.mark.slow
def test_interrupted_it_goes_on_and_retrieval_finds_the_result(
    shell: Shell, kernels: Path, tensor_checkpoint: Path
) -> None:
    command = ["tune", f"{kernels}:product", "--checkpoint", tensor_checkpoint, "--json"]
    kept = interrupt(shell, *command)
    answer = shell.gnnperf(*command, "--trials", kept + 4, "--output", "out").document
    (nest,) = answer["nests"]
    found = nest["search"]
    assert (found["known"], found["trials"]) == (kept, 4) and found["after"][-1] == kept + 4
    assert found["best_s"] == sorted(found["best_s"], reverse=True)
    assert answer["candidates_measured"] == 4 and answer["verified"] is True
    assert records(shell) == kept + 4 + min(3, len(nest["candidates"]))  # the best once more, in turn
    times = [candidate["runtime_s"] for candidate in nest["candidates"]]
    assert len(times) == 8 and answer["tuned"]["runtime_s"] <= answer["baseline"]["runtime_s"]
    schedules = json.loads((shell.folder / "out" / "schedules.json").read_text())
    assert (nest["accepted"] is not None) == ("product" in schedules)

    retrieved = shell.gnnperf(
        "retrieve", f"{kernels}:product", "--checkpoint", tensor_checkpoint, "--model-only", "--json"
    ).document
    assert retrieved["nests"][0]["neighbours"][0]["distance"] == pytest.approx(0, abs=1e-5)


def test_nests_of_dace_programs(shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["tune", f"{KERNELS}:scores", *SIZES, "--json"]
    before = records(shell)
    kept = interrupt(shell, *command) - before
    answer = shell.here(capfd, *command, "--trials", kept + 4).document
    (nest,) = answer["nests"]
    found = nest["search"]
    assert found["known"] + found["trials"] == kept + 4
    assert found["best_s"] == sorted(found["best_s"], reverse=True)
    assert answer["verified"] is True and answer["speedup"] >= 1
    assert records(shell) == before + kept + found["trials"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{dace}:scores", *SIZES, "--beside", "cublas"], "--beside: expected numpy, numba, torch,"),
        (["{dace}:scores", *SIZES, "--weights", "constant"], "--weights: 'scores', which is no TVM kernel"),
        (["{file}:product", "--seed", "3"], "--seed: a TVM kernel takes none"),
        (["{file}:product", "--trials", "0"], "--trials"),
        (["{file}:product", "--beside", "cublas"], "--beside"),
        (["{file}:product", "--output", "{file}"], "--output: expected a folder"),
    ],
)
def test_mistakes(arguments: list[str], said: str, kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [a.format(file=kernels, dace=KERNELS) for a in arguments]
    assert run(["tune", *given, "--no-store"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
