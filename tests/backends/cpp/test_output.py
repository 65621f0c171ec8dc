"""The files of `--output`: a tuned kernel with arguments of many types, and disks that are full."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gnnperf.backends.cpp.output import GLOBALS, write_output
from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT, check_output
from gnnperf.errors import GnnperfError, InputError
from gnnperf.frontends.dace import DaceKernel, DaceProgram, load_kernel, splice
from gnnperf.frontends.dace.loader import SDFG
from gnnperf.measure import Compiler
from gnnperf.schedules.recipes import Recipe, apply, emit

KERNEL = """
import dace
import numpy as np

N, M = dace.symbol("N"), dace.symbol("M")

i8, f32, c64, c128 = dace.int8, dace.float32, dace.complex64, dace.complex128
WEIGHTS = np.linspace(0.5, 1.5, 40).astype(np.float32)

@dace.program
def odd(
    x: i8[N, M], shift: i8, scale: f32, mask: dace.bool[N, M], y: f32[N, M], z: c128[N], turn: c128, half: c64
):
    z[:] = z * turn + half
    y[:] = np.where(mask, (x + shift) * scale, 0)
    return np.sum(y, axis=1), np.sum(y) * np.sum(WEIGHTS)
"""

CALL = """
import json
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import run

N, M = 12, 40
rng = np.random.default_rng(0)
x, mask = rng.integers(-50, 50, (N, M)).astype(np.int8), rng.random((N, M)) < 0.5
y, weights = np.full((N, M), np.nan, np.float32), np.linspace(0.5, 1.5, 40).astype(np.float32)
z = rng.random(N) + 1j * rng.random(N)
turned = z * (0.6 - 0.8j) + (0.5 + 2j)
given = dict(x=x, shift=-3, scale=0.25, mask=mask, y=y, z=z, turn=0.6 - 0.8j, half=0.5 + 2j)
total, weighted = run.call(**given)
np.testing.assert_allclose(z, turned, rtol=1e-6)
expected = np.where(mask, (x - np.int8(3)) * np.float32(0.25), 0)
np.testing.assert_allclose(y, expected, rtol=1e-5)
np.testing.assert_allclose(total, expected.sum(axis=1), rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(weighted, expected.sum() * weights.sum(), rtol=1e-4, atol=1e-4)
total[:] = 0
again, _ = run.call(**given, __return_0=total, __g_WEIGHTS=weights * 2)
assert again is total and total.any()

def refused(**other):
    try:
        run.call(**{**given, **other})
    except TypeError as error:
        return str(error)

read_only = y.copy()
read_only.flags.writeable = False
assert refused(y=read_only) == "y: expected an array that can be written, got one that is read-only"
for name, given_so in (("x", np.asfortranarray(x)), ("mask", np.repeat(mask, 2, axis=1)[:, ::2])):
    y[:] = np.nan
    run.call(**{**given, name: given_so})
    np.testing.assert_allclose(y, expected, rtol=1e-5)
told = refused(y=np.asfortranarray(y))
assert told.endswith("it is written: make an array in this order (np.ascontiguousarray), and read that"), told
assert refused(shift=0.5) == "shift: expected a number for int8, got 0.5", refused(shift=0.5)
del given["z"]
names = "mask, x, y, z, half, scale, shift, turn"
assert refused() == f"z: expected a value, got none; the arguments are {names}", refused()
assert run.example()["scale"] == np.inf
assert json.load(open(sys.argv[1] + "/report.json")) == {"answer": 42}
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> DaceKernel:
    path = tmp_path_factory.mktemp("kernel") / "kernel.py"
    path.write_text(KERNEL)
    return load_kernel(f"{path}:odd", {"N": 12, "M": 40, "shift": -3, "scale": float("inf")})


@pytest.fixture(scope="module")
def tuned(kernel: DaceKernel) -> DaceProgram:
    """Every nest under some schedule."""
    recipe = Recipe(order="row", register_p=2, fuse=1)
    functions = {u.index: emit(apply(recipe, u.nest), f"unit_{u.index}") for u in kernel.units}
    return DaceProgram(splice(kernel, functions))


@pytest.mark.parametrize("which", ["tuned", "dace-auto", "dace-simplify"])
def test_what_is_written_computes_the_kernel(
    which: str, kernel: DaceKernel, tuned: DaceProgram, compiler: Compiler, tmp_path: Path
) -> None:
    program = tuned if which == "tuned" else kernel.kept(which)
    check_output(tmp_path / "out")
    write_output(tmp_path / "out", kernel, program, '{"answer": 42}', compiler)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        [SDFG, LIBRARY, SCRIPT, REPORT, GLOBALS]
    )
    command = [sys.executable, "-I", "-W", "error", "-c", CALL, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_older_results_are_replaced(
    kernel: DaceKernel, tuned: DaceProgram, compiler: Compiler, tmp_path: Path
) -> None:
    (tmp_path / REPORT).write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    write_output(tmp_path, kernel, tuned, "new", compiler)
    assert (tmp_path / REPORT).read_text() == "new\n"
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_full_disk_leaves_no_half_file(
    kernel: DaceKernel, tuned: DaceProgram, compiler: Compiler, tmp_path: Path
) -> None:
    write_output(tmp_path / ".", kernel, tuned, "first", compiler)  # compiled now
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal_before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
    try:
        with pytest.raises(GnnperfError, match=r"cannot write the results to .*: File too large; make room"):
            write_output(tmp_path, kernel, tuned, "second", compiler)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, signal_before)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_folders_that_cannot_be_written_are_refused_early(tmp_path: Path) -> None:
    check_output(tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder").is_dir()
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match=r"--output: expected a folder.* .*file"):
            check_output(bad)
