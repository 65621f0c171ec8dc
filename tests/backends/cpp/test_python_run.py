"""What DaCe makes of a program is compared with what Python makes of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.backends.cpp import python_run
from gnnperf.backends.cpp.python_run import PythonRun, difference
from gnnperf.frontends.dace import DaceKernel, load_kernel
from gnnperf.measure.verification import AGREES

HEADER = "import dace\nimport numpy as np\nN = dace.symbol('N')\nKIND = dace.float64\n"
X = np.arange(1.0, 7.0)


def loaded(folder: Path, text: str, inputs: Mapping[str, Any] | None = None) -> DaceKernel:
    path = folder / "programs.py"
    path.write_text(HEADER + text)
    return load_kernel(f"{path}:f", {"N": 6}, {"x": X, **(inputs or {})})


def computed(kernel: DaceKernel, patience_s: float = 30.0) -> Mapping[str, Any] | None:
    return PythonRun(kernel, kernel.data).found(patience_s)


PROGRAMS = {
    "def f(x: dace.float64[N], y: dace.float64[N]):\n    for i in dace.map[0:N]:\n        y[i] = x[i] * N\n":
        {"y": 6 * X},
    "def f(x: dace.float64[N]):\n    x[1:] = x[:-1] + 1.0\n": {"x": np.array([1, 2, 3, 4, 5, 6.0])},
    "def f(x: dace.float64[N]):\n    return x + 1.0\n": {"__return": X + 1},
    "def f(x: dace.float64[N], a: dace.float64 = 3.0):\n    x[:] = a * x\n": {"x": 3 * X},
    "def f(x: dace.float64[N]):\n    return np.sum(x), 2.0 * x\n":
        {"__return_0": np.array([21.0]), "__return_1": 2 * X},
    "def f(x: dace.float64[N], m: dace.float64[1]):\n"
    "    dace.reduce(lambda a, b: max(a, b), x, m, identity=0)\n":
        {"m": np.array([6.0])},
    "def f(x: dace.float64[N]):\n    y = np.zeros((N,), dtype=dace.int64)\n    y[:] = x + 0.5\n"
    "    return y + np.ones((N,), KIND)\n": {"__return": X + 1.0},
    "def f(x: dace.float64[N], s: dace.float64[1]):\n    s[0] = 2.0\n"
    "    dace.reduce(lambda a, b: a + b, x, s, axis=0)\n": {"s": np.array([23.0])},
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS)
def test_python_computes_all_outputs_and_changes_nothing(tmp_path: Path, text: str) -> None:
    kernel = loaded(tmp_path, "@dace.program\n" + text)
    before = {name: np.copy(value) for name, value in kernel.data.items()}
    found = computed(kernel)
    assert found is not None
    assert {*found} == {*PROGRAMS[text]} == {*kernel.outputs}
    for name, expected in PROGRAMS[text].items():
        np.testing.assert_array_equal(found[name], expected)
    for name, value in kernel.data.items():
        np.testing.assert_array_equal(value, before[name])


CALLS = """
@dace.program
def innermost(x: dace.float64[N]):
    x[:] = x + {one}

@dace.program
def inner(x: dace.float64[N]):
    innermost(x)

@dace.program
def f(x: dace.float64[N]):
    inner(x)
"""


def test_programs_that_others_call_are_run_too(tmp_path: Path) -> None:
    found = computed(loaded(tmp_path, CALLS.format(one="1.0")))
    assert found is not None
    np.testing.assert_array_equal(found["x"], X + 1.0)


@pytest.mark.parametrize(
    ("shape", "added", "call", "expected"),
    [
        ("N", "N", "g(x)", X + 6),
        ("N", "N", "g(x[1:4])", np.array([1, 5, 6, 7, 5, 6.0])),
        ("M + 1", "M", "g(x)", X + 5),
        ("N", "M", "g(x, M=3)", X + 3),
    ],
    ids=["as the caller has it", "by the shape", "by the shape, one less", "as the caller says"],
)
def test_programs_that_others_call_have_symbols_of_their_own(
    tmp_path: Path, shape: str, added: str, call: str, expected: np.ndarray
) -> None:
    called = (
        f"M = dace.symbol('M')\n@dace.program\ndef g(x: dace.float64[{shape}]):\n    x[:] = x + {added}\n"
    )
    kernel = loaded(tmp_path, f"{called}@dace.program\ndef f(x: dace.float64[N]):\n    {call}\n")
    found = computed(kernel)
    assert found is not None
    np.testing.assert_array_equal(found["x"], expected)


def test_what_python_cannot_run_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasklets; large arrays; what never ends."""
    body = "def f(x: dace.float64[N]):\n    x[:] = x + 1.0\n"
    plain = loaded(tmp_path, "@dace.program\n" + body)
    assert plain.in_python is not None
    with monkeypatch.context() as patch:
        patch.setattr(python_run, "LARGEST_BYTES", 10)
        assert computed(plain) is None
    sdfg = load_kernel(plain.parsed, {"N": 6}, {"x": X})
    assert sdfg.in_python is None and computed(sdfg) is None

    def fails(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise TypeError("no such thing in Python")

    def hangs(_: Mapping[str, Any]) -> Mapping[str, Any]:
        time.sleep(1000)
        return {}

    for run, patience_s in ((fails, 30.0), (hangs, 0.0)):
        monkeypatch.setattr(DaceKernel, "in_python", run)
        monkeypatch.setattr(DaceKernel, "in_python", property(lambda _, run=run: run))
        started = time.monotonic()
        assert computed(plain, patience_s) is None
        assert time.monotonic() - started < 30


def test_files_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = loaded(tmp_path, "@dace.program\ndef f(x: dace.float64[N]):\n    x[:] = x + 1.0\n")

    def run(_: Mapping[str, Any]) -> Mapping[str, Any]:
        (tmp_path / "written").write_text("by the user's function")
        return kernel.data

    monkeypatch.setattr(DaceKernel, "in_python", property(lambda _: run))
    assert computed(kernel) is None
    assert not (tmp_path / "written").exists()


def test_what_is_clearly_another_is_told_from_rounding() -> None:
    right = {"y": np.linspace(1, 2, 200), "n": np.arange(200)}
    assert difference(right, {k: v.copy() for k, v in right.items()}, 1) == AGREES
    close = {"y": right["y"] * (1 + 1e-6), "n": right["n"]}
    assert difference(right, close, 1) == AGREES
    none = {"y": np.full(200, np.nan), "n": right["n"]}
    assert difference(right, none, 1).endswith(
        "Python computes nan, DaCe 1; of these inputs there may be no result: give others with --inputs"
    )
    few = {"y": right["y"].copy(), "n": right["n"].copy()}
    few["y"][3] = 7.0
    few["n"][4] = -1
    assert difference(right, few, 1) == AGREES
    few["n"][5:7] = -1
    assert difference(right, few, 1) == ("n: 3 of 200 elements differ; at [4] Python computes -1, DaCe 4")
    nan = {"y": np.array([np.nan, np.inf, 1.0]), "b": np.array([True, False, True])}
    assert difference(nan, {k: v.copy() for k, v in nan.items()}, 1) == AGREES
    assert "y: 1 of 3" in difference(nan, {**nan, "y": np.array([np.nan, 1.0, 1.0])}, 1)
    assert difference({"y": np.ones(4)}, {"y": np.full(4, 1.1)}, 1).startswith("y: 4 of 4")


def test_of_chaotic_results_nothing_is_said() -> None:
    """Where one rounding moves the results by more than a thousandth, Python's rounding may as well."""
    assert difference({"y": np.ones(4)}, {"y": np.full(4, 1.1)}, 10**15) == ""
