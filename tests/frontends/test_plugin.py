"""A frontend of another package: installed beside gnnperf, it has retrieval, search and embeddings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from e2e.conftest import REPO, Shell

from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT, load_script
from gnnperf.frontends.nest_program import NestProgram

PACKAGE = Path(__file__).with_name("einsum_frontend")
KERNEL = "einsum:mk,kn->mn"
SIZES = {"m": 64, "k": 96, "n": 80}
SET = [word for axis, size in SIZES.items() for word in ("--set", f"{axis}={size}")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, and what is known of its entry points."""
    source, site = tmp_path_factory.mktemp("source") / PACKAGE.name, tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, source)  # where it is built
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "-q", *options, "--target", site, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, installed: Path) -> Shell:
    """Commands that find the package."""
    return Shell(tmp_path_factory.mktemp("home"), {"PYTHONPATH": f"{installed}{os.pathsep}{REPO}"})


@pytest.fixture(scope="module")
def plugin(installed: Path) -> ModuleType:
    return load_script(installed, "einsum_frontend.py")


def measured(answer: Any) -> list[str]:
    """The statuses of what was tried on the only nest."""
    assert (answer["kernel"], answer["verified"]) == ("contraction", True)
    assert answer["baseline"]["name"] == "plain-c++" and answer["speedup"] >= 1
    (nest,) = answer["nests"]
    return [candidate["status"] for candidate in nest["candidates"]]


def check_folder(folder: Path, answer: Any) -> None:
    """The saved library computes the contraction."""
    names = {p.name for p in folder.iterdir()} - {"libscipy_openblas.so"}  # if the winner calls it
    assert names == {"kernel.cpp", LIBRARY, SCRIPT, REPORT}
    assert json.loads((folder / REPORT).read_text()) == answer
    rng = np.random.default_rng(1)
    a, b = (rng.random((SIZES[x], SIZES[y]), dtype=np.float32) for x, y in ("mk", "kn"))
    out = np.full((SIZES["m"], SIZES["n"]), np.nan, np.float32)
    load_script(folder).call(a=a, b=b, out=out)
    np.testing.assert_allclose(out, np.einsum("mk,kn->mn", a, b), rtol=1e-4)
    done = subprocess.run([sys.executable, "-I", folder / SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("contraction: ") and done.stderr == ""


def test_retrieve(there: Shell) -> None:
    answer = there.gnnperf("retrieve", KERNEL, *SET, "-k", 2, "--json", "--output", "retrieved").document
    assert measured(answer).count("ok") >= 1 and answer["candidates_measured"] == 2
    check_folder(there.folder / "retrieved", answer)
    info = there.gnnperf("store", "info", there.user_store, "--json").document
    assert (info["nests"], info["records"]) == (1, 2), "what was measured is remembered"


def test_tune(there: Shell) -> None:
    command = ["tune", KERNEL, *SET, "--trials", 6, "--no-store", "--json", "--output", "tuned"]
    answer = there.gnnperf(*command).document
    assert "ok" in measured(answer) and answer["candidates_measured"] == 6
    check_folder(there.folder / "tuned", answer)


def test_embed(there: Shell, plugin: ModuleType) -> None:
    answer = there.gnnperf("embed", KERNEL, *SET, "--json").document
    (nest,) = answer["nests"]
    program = NestProgram("other", "einsum", plugin.contraction("ik,kj->ij", {"i": 64, "j": 80, "k": 96}), {})
    assert nest["kernel"] == KERNEL
    assert nest["digest"] == program.whole.graph.digest, "names do not matter"
    assert np.linalg.norm(nest["embedding"]) == pytest.approx(1, abs=1e-5)


def test_the_seed_makes_the_inputs(plugin: ModuleType) -> None:
    from gnnperf.frontends.base import Given

    def inputs(seed: int | None) -> Any:
        return plugin.EinsumFrontend().load(KERNEL, Given(SIZES, seed=seed)).data["a"]

    np.testing.assert_array_equal(inputs(None), inputs(0))
    assert not np.array_equal(inputs(0), inputs(1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([KERNEL, "--set", "m=64"], "expected a size for each axis, and no other: give --set k=64"),
        (["einsum:mk", *SET], "expected axes as in einsum:mk,kn->mn"),
        ([KERNEL, *SET, "--inputs", "x.py:f"], "--inputs: a contraction takes none"),
        ([KERNEL, *SET, "--baseline", "auto"], "--baseline: expected one of plain, got 'auto'"),
    ],
)
def test_mistakes(there: Shell, arguments: list[str], said: str) -> None:
    done = there.gnnperf("retrieve", *arguments, "--no-store")
    assert (done.exit_code, done.stdout) == (2, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("gnnperf: ") and said in line and "Traceback" not in done.stderr


def test_it_is_small() -> None:
    """What another frontend takes is worth keeping small: at most 80 lines of code."""
    text = (PACKAGE / "einsum_frontend.py").read_text()
    assert sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines()) <= 80
