"""`gnnperf embed` from the command line to the vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gnnperf.cli.main import run
from gnnperf.nn import Bundle, load_checkpoint

KERNELS = """
import dace
import numpy as np

N, M = dace.symbol("N"), dace.symbol("M")

@dace.program
def scale(x: dace.float32[N, N], y: dace.float32[N, N]):
    y[:] = 2 * np.exp(x)

@dace.program
def renamed(source: dace.float32[M, M], target: dace.float32[M, M]):
    target[:] = 2 * np.exp(source)

@dace.program
def transposed(x: dace.float32[N, N], y: dace.float32[N, N]):
    y[:] = np.transpose(x)

@dace.program
def row_sums(starts: dace.int32[N + 1], values: dace.float32[M], sums: dace.float32[N]):
    for i in dace.map[0:N]:
        for j in range(starts[i], starts[i + 1]):
            sums[i] += values[j]

def long_rows(N, M):
    return {"starts": np.arange(N + 1, dtype=np.int32) * (M // N)}

def short_rows(N, M):
    return {"starts": np.arange(N + 1, dtype=np.int32)}
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_json_has_a_digest_and_a_unit_vector_per_nest(
    kernels: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [f"{kernels}:scale", f"{kernels}:transposed"]
    assert run(["embed", *specs, "--set", "N=64", "--checkpoint", str(checkpoint), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [nest["kernel"] for nest in document["nests"]] == specs
    assert len({nest["digest"] for nest in document["nests"]}) == 2
    vectors = np.array([nest["embedding"] for nest in document["nests"]])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert document["encoder_id"] == load_checkpoint(checkpoint, Bundle).encoder_id


def test_equal_programs_are_at_one_point(
    kernels: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nests = []
    for name, size in (("scale", "N=64"), ("renamed", "M=64")):
        assert (
            run(["embed", f"{kernels}:{name}", "--set", size, "--checkpoint", str(checkpoint), "--json"]) == 0
        )
        nests += json.loads(capsys.readouterr().out)["nests"]
    assert nests[0]["digest"] == nests[1]["digest"]
    assert nests[0]["embedding"] == nests[1]["embedding"]


def test_loops_over_data_have_the_extent_they_have_on_the_inputs(
    kernels: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = []
    for inputs in ("long_rows", "short_rows"):
        sizes = ["--set", "N=64", "--set", "M=4096", "--inputs", f"{kernels}:{inputs}"]
        assert run(["embed", f"{kernels}:row_sums", *sizes, "--checkpoint", str(checkpoint), "--json"]) == 0
        digests += [nest["digest"] for nest in json.loads(capsys.readouterr().out)["nests"]]
    assert len(digests) == len(set(digests)) == 2


def test_table_names_the_nearest_of_the_others(
    kernels: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [f"{kernels}:scale", f"{kernels}:transposed"]
    assert run(["embed", *specs, "--set", "N=64", "--checkpoint", str(checkpoint)]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["kernel", "nest", "digest"]
    assert "transposed" in first.split()[-2]
    assert "scale" in second.split()[-2]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("missing.py:f", "missing.py"),
        ("{kernels}:nothing", "it has renamed, row_sums, scale, transposed"),
        ("{kernels}:scale", "--set N="),
    ],
)
def test_bad_kernels_are_one_line_and_exit_code_2(
    kernel: str, message: str, kernels: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["embed", kernel.format(kernels=kernels), "--checkpoint", str(checkpoint)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_a_folder_that_is_no_bundle(
    kernels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["embed", f"{kernels}:scale", "--set", "N=64", "--checkpoint", str(tmp_path)]) == 2
    assert "expected a checkpoint folder" in capsys.readouterr().err
