"""`--output` into folders that do not take it, and of a kernel that could not be made faster."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell

SCORES = ("retrieve", f"{KERNELS}:scores", "--set", "N=64", "--set", "M=48", "--set", "K=80", "--no-store")
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def bound_by_permissions() -> None:
    """Root may write everywhere, but for this capability."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def test_a_read_only_folder_is_refused_at_once(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    command, environment = shell.command(*SCORES, "--output", "out"), shell.environment
    (tmp_path / "out").mkdir(mode=0o555)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
        preexec_fn=bound_by_permissions if os.geteuid() == 0 else None,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    refusal = "--output: expected a folder that can be written, got out: Permission denied; choose another"
    assert done.stderr == f"gnnperf: {refusal}\n"


def test_what_cannot_be_written_does_not_take_the_answer_with_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The baseline is kept for want of time; then a folder is in the way of a file."""
    shell = Shell(tmp_path)
    (tmp_path / "out" / "run.py").mkdir(parents=True)
    done = shell.here(capfd, *SCORES, "--budget", 1e-9, "--json", "--output", "out")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["kept_baseline"]
    line = done.stderr.splitlines()[-1]
    assert line.startswith("gnnperf: cannot write the results to out: Is a directory; make room, or choose")
    assert not [p for p in (tmp_path / "out").iterdir() if p.name.startswith(".gnnperf-")]


KEPT = """
import sys
sys.path.insert(0, "out")
import numpy as np
import run

rng = np.random.default_rng(1)
A, B = (rng.random(shape, np.float32) - np.float32(0.5) for shape in ((64, 80), (48, 80)))
C = np.full((64, 48), np.nan, np.float32)
run.call(A=A, B=B, C=C)
np.testing.assert_allclose(C, np.maximum(A @ B.T, 0), rtol=1e-4, atol=1e-5)
"""


def test_a_kept_baseline_is_written_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell(tmp_path)
    done = shell.here(capfd, *SCORES, "--budget", 1e-9, "--json", "--output", "out")
    assert done.document["kept_baseline"]
    done = shell.python("-I", "-c", KEPT)
    assert done.exit_code == 0, done.stderr
