"""`gnnperf retrieve` on stores that are damaged, read-only, or of an earlier encoder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from e2e.conftest import KERNELS, Shell
from e2e.test_output_folder import bound_by_permissions
from nests.examples import gemm
from retrieval.records import make_nest, make_record, recipe

from gnnperf.cli.main import run
from gnnperf.nests import nest_graph
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store
from gnnperf.store.schema import nest_rows, record_rows

SCORES = ("retrieve", f"{KERNELS}:scores", "--set", "N=64", "--set", "M=48", "--set", "K=80")
OLD = "an earlier encoder"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's store with one measured nest, embedded by an encoder that is no longer in use."""
    graph, nest = nest_graph(gemm()), make_nest("gemm")
    store = Store.open(tmp_path / "own", create=True)
    store.add_nest(replace(nest, digest=graph.digest), graph.to_json(), np.ones(4, np.float32), OLD)
    store.add_records([replace(make_record("gemm", recipe(1), 2.0), nest_digest=graph.digest)])
    return tmp_path / "own"


def damage(store: Path) -> None:
    """What a full disk or an interrupted copy makes of it."""
    files = [*(store / "records.lance" / "data").iterdir(), *(store / "nests.lance" / "data").iterdir()]
    assert files
    for file in files:
        os.truncate(file, file.stat().st_size // 2)


def the_line(capfd: pytest.CaptureFixture[str]) -> str:
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_a_corrupt_store_of_the_user(own: Path, capfd: pytest.CaptureFixture[str]) -> None:
    damage(own)
    assert run([*SCORES, "--model-only", "--store", str(own)]) == 1
    line = the_line(capfd)
    assert f"the schedule store {own} is corrupt" in line
    assert "move it away" in line
    assert "--no-store" in line


def test_a_corrupt_released_store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(shipped_bundle(), bundle)
    damage(bundle / "store")
    assert run([*SCORES, "--model-only", "--no-store", "--checkpoint", str(bundle)]) == 1
    line = the_line(capfd)
    assert f"the schedule store {bundle / 'store'} is corrupt" in line
    assert "restore it" in line


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("store", "store"),
        ("weights.pt", "restore the checkpoint"),
        ("metadata.json", "give a folder written by `gnnperf train`"),
    ],
)
def test_a_bundle_that_lacks_a_part(
    name: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(shipped_bundle(), bundle, ignore=shutil.ignore_patterns(name))
    assert run([*SCORES, "--model-only", "--no-store", "--checkpoint", str(bundle)]) == 2
    assert message in the_line(capfd)


def test_nests_of_an_earlier_encoder_are_embedded_anew(own: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder_id = load_checkpoint(shipped_bundle(), Bundle).encoder_id
    assert len(Store.open(own).stale(encoder_id)) == 1
    assert run([*SCORES, "--model-only", "--store", str(own), "--json"]) == 0
    assert Store.open(own).stale(encoder_id) == []
    assert json.loads(capfd.readouterr().out)["nests"][0]["neighbours"]


@pytest.mark.slow
def test_a_read_only_store_is_searched_and_nothing_is_remembered(own: Path, tmp_path: Path) -> None:
    folders = [own, *(path for path in own.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    shell = Shell(tmp_path / "home")
    command, environment = shell.command(*SCORES, "-k", 1, "--json", "--store", own), shell.environment
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment,
            preexec_fn=bound_by_permissions if os.geteuid() == 0 else None,
        )  # fmt: skip
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["candidates_measured"] == 1
    assert "gnnperf: nothing was remembered: no permission to write the schedule store" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_that_strangers_wrote_to_changes_no_answer(
    own: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Schedules that are none and embeddings of another width, under the encoder that is used."""
    import lancedb

    command = [*SCORES, "--model-only", "--json", "--store", str(own)]
    assert run(command) == 0
    expected = json.loads(capfd.readouterr().out)["nests"]
    released = Store.open(shipped_bundle() / "store")
    ((encoder, width),) = released.widths().items()
    near = next(iter(released.entries(encoder))).embedding
    assert near is not None and near.shape == (width,)
    digests = ["a" * 32, "b" * 32]
    graph = [nest_graph(gemm()).to_json()]
    nests = [replace(make_nest("stranger"), digest=digest) for digest in digests]
    bad = [make_record("stranger", recipe(1), 2.0, nest_digest=digest) for digest in digests]
    database = lancedb.connect(own)
    database.open_table("nests").add(nest_rows(nests[:1], graph, near[None], encoder))
    database.open_table("nests").add(nest_rows(nests[1:], graph, np.ones((1, 3)), encoder))
    database.open_table("records").add(record_rows([replace(r, schedule='{"a":1}') for r in bad]))
    assert run(command) == 0
    told = capfd.readouterr()
    assert json.loads(told.out)["nests"] == expected
    (line,) = (line for line in told.err.splitlines() if "left out" in line)
    assert line.startswith(f"gnnperf: left out 3 entries of {own} that cannot be right: ")
    assert run(["store", "check", str(own)]) == 1
