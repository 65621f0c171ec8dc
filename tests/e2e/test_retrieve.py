"""`gnnperf retrieve` from the command line to the files it leaves, on small kernels of many kinds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import KERNELS, Finished, Shell
from e2e.kernels_small import scores

from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT
from gnnperf.errors import InputError
from gnnperf.frontends.dace.loader import SDFG
from gnnperf.measure.measurement import STATUSES
from gnnperf.schedules.recipes import Recipe

SIZES = ("--set", "N=64", "--set", "M=48", "--set", "K=80")
SCORES = (f"{KERNELS}:scores", *SIZES)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_schedule(schedule: dict[str, Any]) -> None:
    try:
        assert Recipe.from_dict(schedule).to_dict() == schedule
    except InputError as error:
        pytest.fail(str(error))


def check_timing(timing: dict[str, Any]) -> None:
    low, high = timing["interval_s"]
    assert 0 < low <= timing["runtime_s"] <= high


def check_candidate(candidate: dict[str, Any], rank: int) -> None:
    assert candidate["rank"] == rank
    assert isinstance(candidate["neighbour"], str) and candidate["neighbour"]
    assert -1e-6 <= candidate["distance"] <= 2
    check_schedule(candidate["schedule"])
    assert candidate["status"] in (*STATUSES, "not_measured")
    assert is_number(candidate["speedup"]) == (candidate["status"] == "ok")


def check_nest(nest: dict[str, Any]) -> None:
    assert isinstance(nest["digest"], str) and nest["digest"]
    assert isinstance(nest["abstained"], bool)
    for rank, candidate in enumerate(nest["candidates"], start=1):
        check_candidate(candidate, rank)
    measured = [c for c in nest["candidates"] if c["status"] != "not_measured"]
    assert not (nest["abstained"] and measured)
    if measured:
        assert nest["best_s"] > 0
        assert nest["baseline_s"] > 0
        assert 0 <= nest["confidence"] <= 1
        assert isinstance(nest["confident"], bool)
    else:
        assert nest["confident"] is None
    if nest["accepted"] is not None:
        check_schedule(nest["accepted"])
        assert nest["accepted"] in [c["schedule"] for c in nest["candidates"] if c["status"] == "ok"]
    else:
        assert nest["reason"] or nest["abstained"] or measured, "an answer has a reason"


def check_answer(answer: dict[str, Any]) -> None:
    """The JSON document that every measuring run prints."""
    assert isinstance(answer["kernel"], str)
    assert isinstance(answer["device"], str)
    assert answer["baseline"]["name"] in ("dace-auto", "dace-auto+openblas", "dace-simplify")
    check_timing(answer["baseline"])
    check_timing(answer["tuned"])
    assert answer["verified"] is True
    assert answer["speedup"] >= 1
    assert answer["wall_s"] > 0
    for nest in answer["nests"]:
        check_nest(nest)
    statuses = [c["status"] for n in answer["nests"] for c in n["candidates"]]
    assert answer["candidates_measured"] == len(statuses) - sum(
        statuses.count(s) for s in ("not_measured", "not_applicable")
    )
    accepted = [n for n in answer["nests"] if n["accepted"] is not None]
    if accepted:
        assert answer["speedup_interval"][0] > 1
    else:
        assert answer["speedup"] == 1
        assert answer["tuned"]["runtime_s"] == answer["baseline"]["runtime_s"]
        assert answer["note"], "why the baseline was kept"


def check_only_progress(stderr: str) -> None:
    assert all(line.startswith("gnnperf: ") for line in stderr.splitlines()), stderr
    assert "Traceback" not in stderr


@pytest.fixture(scope="module")
def first(shell: Shell) -> Finished:
    """A kernel of one nest, measured, with everything it leaves behind."""
    done = shell.gnnperf("retrieve", *SCORES, "-k", 2, "--json", "--output", "out")
    assert done.exit_code == 0, done.stderr
    return done


def test_the_answer_has_the_documented_form(first: Finished) -> None:
    answer = first.document
    check_answer(answer)
    check_only_progress(first.stderr)
    assert answer["kernel"] == "scores"
    assert answer["baseline"]["name"] in ("dace-auto", "dace-auto+openblas")
    (nest,) = answer["nests"]
    assert not nest["abstained"], nest["reason"]
    assert answer["candidates_measured"] == 2


def test_nothing_is_left_lying_about(first: Finished, shell: Shell) -> None:
    assert sorted(p.name for p in shell.folder.iterdir()) == ["data", "out", "tmp"]
    assert list(shell.temporary.iterdir()) == []


def test_output_holds_what_outlives_gnnperf(first: Finished, shell: Shell) -> None:
    out = shell.folder / "out"
    files = {path.name for path in out.iterdir()}
    assert files - {"libscipy_openblas.so"} == {SDFG, LIBRARY, SCRIPT, REPORT}  # whoever wins may call BLAS
    assert json.loads((out / REPORT).read_text()) == first.document


def test_the_script_runs_without_gnnperf(first: Finished, shell: Shell) -> None:
    done = shell.python("-I", "-W", "error", "out/run.py")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("scores: ")
    assert done.stdout.count("\n") == 1


CALL_THE_LIBRARY = """
import sys
sys.path.insert(0, "out")
import numpy as np
import run

rng = np.random.default_rng(1)
A, B = (rng.random(shape, np.float32) - np.float32(0.5) for shape in ((64, 80), (48, 80)))
for _ in range(2):
    C = np.full((64, 48), np.nan, np.float32)
    run.call(A=A, B=B, C=C)
    np.testing.assert_allclose(C, np.maximum(A @ B.T, 0), rtol=1e-4, atol=1e-5)
for wrong in (C.astype(np.float64), C[:5], np.asfortranarray(C)):
    try:
        run.call(A=A, B=B, C=wrong)
    except TypeError as error:
        assert "C: expected float32[64, 48]" in str(error), error
    else:
        raise AssertionError("a wrong array was accepted")
assert not [m for m in sys.modules if m.startswith(("gnnperf", "dace", "torch"))]
"""


def test_the_library_computes_what_the_kernel_says(first: Finished, shell: Shell) -> None:
    done = shell.python("-I", "-c", CALL_THE_LIBRARY)
    assert done.exit_code == 0, done.stderr


PLAIN_DACE = """
import sys
import dace
import numpy as np

rng = np.random.default_rng(1)
A, B = (rng.random(shape, np.float32) - np.float32(0.5) for shape in ((64, 80), (48, 80)))
C = np.full((64, 48), np.nan, np.float32)
dace.SDFG.from_file("plain/kernel.sdfgz").compile()(A=A, B=B, C=C)
np.testing.assert_allclose(C, np.maximum(A @ B.T, 0), rtol=1e-4, atol=1e-5)
assert not [m for m in sys.modules if m.startswith("gnnperf")]
"""


def test_plain_dace_loads_compiles_and_runs_the_tuned_sdfg(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The plain program is its baseline: DaCe with OpenBLAS, kept, would want a BLAS of the machine's."""
    there = Shell(tmp_path, {"DACE_default_build_folder": str(tmp_path / "build")})
    done = there.here(
        capfd, "retrieve", *SCORES, "-k", 1, "--baseline", "simplify", "--no-store", "--output", "plain"
    )
    assert done.exit_code == 0, done.stderr
    done = there.python("-I", "-c", PLAIN_DACE)
    assert done.exit_code == 0, done.stderr


def test_the_next_run_finds_what_the_first_one_measured(
    first: Finished, shell: Shell, capfd: pytest.CaptureFixture[str]
) -> None:
    assert shell.user_store.is_dir()
    done = shell.here(capfd, "retrieve", *SCORES, "-k", 1, "--explain")
    assert done.exit_code == 0, done.stderr
    check_only_progress(done.stderr)
    heading, counts, *table = done.stdout.splitlines()
    assert heading.startswith("scores on cpu/")
    assert "dace-auto" in heading and "->" in heading
    assert re.fullmatch(r"results verified on .* inputs, 1 candidates measured in .* s", counts)
    text = " ".join(" ".join(table).split())
    assert "nest share neighbour distance schedule status speedup" in text
    assert "scores_0: neighbours by distance: scores (0.000)" in text
    info = shell.here(capfd, "store", "info", shell.user_store, "--json").document
    assert info["records"] >= 3
    assert (info["nests"], info["families"]) == (1, {"user": info["records"]})


HASHED = """
import dace

N = dace.symbol("N")

@dace.program
def hashed(x: dace.float64[N], y: dace.float64[N]):
    seen = 1
    for i in range(N):
        seen = seen * 33 + 7
        y[i] = x[i] * (seen % 1000)
"""


def test_what_dace_translates_wrongly_is_not_verified(
    shell: Shell, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Integers have as many bits as it takes in Python, 64 in C++."""
    (tmp_path / "hashed.py").write_text(HASHED)
    options = ("--set", "N=60", "-k", 1, "--no-store", "--json")
    answer = shell.here(capfd, "retrieve", f"{tmp_path}/hashed.py:hashed", *options).document
    assert answer["verified"] is False
    assert "elements differ; at [" in answer["verification"]["python"]
    assert answer["note"].startswith("the program as DaCe translates it")


def test_model_only_ranks_and_measures_nothing(shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    done = shell.here(capfd, "retrieve", *SCORES, "--model-only", "--no-store", "--json", "-k", 5)
    answer = done.document
    assert (answer["candidates_measured"], answer["speedup"], answer["verified"]) == (0, None, False)
    assert answer["baseline"]["runtime_s"] is answer["tuned"]["runtime_s"] is None
    (nest,) = answer["nests"]
    assert [c["rank"] for c in nest["candidates"]] == [1, 2, 3, 4, 5]
    assert {c["status"] for c in nest["candidates"]} == {"not_measured"}
    for rank, candidate in enumerate(nest["candidates"], start=1):
        check_candidate(candidate, rank)


@pytest.mark.slow
def test_several_nests_against_the_plain_program(shell: Shell, tmp_path: Path) -> None:
    alone = Shell(tmp_path)
    sizes = ("--set", "N=300", "--set", "M=280", "--set", "K=260")
    done = alone.gnnperf(
        "retrieve", f"{KERNELS}:chain", *sizes, "-k", 1, "--json", "--no-store", "--baseline", "simplify"
    )
    answer = done.document
    check_answer(answer)
    check_only_progress(done.stderr)
    assert answer["baseline"]["name"] == "dace-simplify"
    assert len(answer["nests"]) >= 3
    assert not (tmp_path / "data").exists(), "--no-store remembers nothing"


def test_nests_inside_a_sequential_loop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine"
    alone = Shell(tmp_path, {"GNNPERF_STORE": str(tmp_path / "not this one")})
    sizes = ("--set", "N=400", "--set", "STEPS=5")
    done = alone.here(capfd, "retrieve", f"{KERNELS}:power", *sizes, "-k", 1, "--json", "--store", mine)
    check_answer(done.document)
    assert done.document["nests"]
    assert mine.is_dir()
    assert not (tmp_path / "not this one").exists()


def test_sparse_kernel_with_inputs_of_the_user(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "named by the environment"
    alone = Shell(tmp_path, {"GNNPERF_STORE": str(store)})
    values = ("N=500", "M=600", "K=64", "NNZ=9000", "empty=0.25")
    sizes = [word for value in values for word in ("--set", value)]
    done = alone.here(
        capfd, "retrieve", f"{KERNELS}:spmm", *sizes, "--inputs", f"{KERNELS}:csr", "-k", 1, "--json"
    )
    check_answer(done.document)
    assert store.is_dir()


def test_time_budget_ends_the_measuring(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = Shell(tmp_path).here(capfd, "retrieve", *SCORES, "--budget", 1e-9, "--json")
    check_answer(done.document)
    assert done.document["candidates_measured"] == 0
    (nest,) = done.document["nests"]
    assert nest["abstained"]
    assert "budget" in nest["reason"]
    assert done.document["kept_baseline"]


def test_a_kernel_without_a_nest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = Shell(tmp_path).here(capfd, "retrieve", f"{KERNELS}:no_nest")
    assert done.exit_code == 0, done.stderr
    assert "no_nest on cpu/" in done.stdout
    assert "the kernel has nothing that can be tuned; the baseline is kept" in done.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`scores` as a file of DaCe's."""
    path = tmp_path_factory.mktemp("saved") / "scores.sdfgz"
    scores.to_sdfg().save(str(path), compress=True)
    return path


def test_an_sdfg_by_a_relative_path(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    there = Shell(saved.parent)
    done = there.here(capfd, "retrieve", saved.name, *SIZES, "-k", 1, "--json", "--output", "new/folder")
    check_answer(done.document)
    assert done.document["kernel"] == "scores"
    assert (saved.parent / "new" / "folder" / SDFG).is_file()


def test_an_sdfg_is_the_program_it_was_made_from(
    saved: Path, first: Finished, capfd: pytest.CaptureFixture[str]
) -> None:
    done = Shell(saved.parent).here(capfd, "embed", saved, *SIZES, "--json")
    assert [n["digest"] for n in done.document["nests"]] == [n["digest"] for n in first.document["nests"]]


def test_a_tuned_sdfg_is_a_kernel_too(
    first: Finished, shell: Shell, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was tuned is C++ now, which nobody tunes again; the answer says so. On a busy machine nothing may
    have beaten the baseline, and its program is one like others."""
    done = shell.here(capfd, "retrieve", "out/kernel.sdfgz", "--json", "--no-store")
    check_answer(done.document)
    if not first.document["kept_baseline"]:
        assert done.document["kept_baseline"]
        assert done.document["skipped"]
