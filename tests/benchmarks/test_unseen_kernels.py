"""The kernels that no corpus holds: their table, their versions, and what the study makes of a run."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import dace
import numpy as np
import pytest
from benchmarks.options import REPO
from benchmarks.unseen import KERNELS, UnseenKernel, functions
from benchmarks.unseen_kernels import UnseenStudy, as_markdown, figures, told

from gnnperf.backends.cpp.cases import WholeKernel
from gnnperf.backends.cpp.competitors import competitors_of
from gnnperf.frontends.dace import load_kernel
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.competitors import Effort, measure_side_by_side
from gnnperf.shipped import shipped_bundle

NAMES = [*KERNELS]
IN_PYTHON = [name for name, kernel in KERNELS.items() if kernel.competitors.get("numpy") != "numpy"]
"""Kernels that have a version in NumPy of their own."""
SMALL = {"NNZ": 40, "STEPS": 3, "E": 9, "N": 12}


def small(kernel: UnseenKernel) -> dict[str, int]:
    """Distinct small sizes, so that exchanged axes do not go unnoticed."""
    return {name: SMALL.get(name, 13 + 2 * i) for i, name in enumerate(kernel.cache)}


@cache
def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"unseen_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --------------------------------------------------------------------------- the table


def test_three_kernels_of_each_of_twenty_kinds() -> None:
    assert len(KERNELS) == 60
    assert [*Counter(kernel.kind for kernel in KERNELS.values()).values()] == [3] * 20


def test_none_is_in_a_corpus() -> None:
    for path in (REPO / "configs" / "corpus").glob("*.yaml"):
        seen = {name.removesuffix("_f32") for name in re.findall(r"\.py:(\w+)", path.read_text())}
        assert not seen & KERNELS.keys(), path


def test_none_is_written_as_something_in_a_corpus() -> None:
    collected = set[tuple[str, ...]]()
    for path in (REPO / "configs" / "corpus" / "kernels").glob("*.py"):
        collected |= lines_in_a_row(path)
    for path in {kernel.path for kernel in KERNELS.values()}:
        assert not lines_in_a_row(path) & collected, path


def lines_in_a_row(path: Path, count: int = 4) -> set[tuple[str, ...]]:
    lines = [line for text in path.read_text(encoding="utf-8").splitlines() if (line := text.strip())]
    return {tuple(lines[at : at + count]) for at in range(len(lines) - count + 1)}


@pytest.mark.parametrize("name", NAMES)
def test_versions_take_what_the_program_takes(name: str) -> None:
    """Checked on the text, as Numba need not be installed."""
    kernel = KERNELS[name]
    assert kernel.cache.keys() == kernel.memory.keys()
    program = parameters(functions(kernel.path)[name])
    assert kernel.competitors.keys() >= {"numpy", "numba"}
    for version in kernel.competitors.values():
        path, _, function = version.rpartition(":")
        if path:
            assert parameters(functions(Path(path))[function]) <= program | kernel.cache.keys()


def parameters(text: str) -> set[str]:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return {argument.arg for argument in function.args.args}


# --------------------------------------------------------------------------- what they compute


@pytest.mark.parametrize("name", IN_PYTHON)
def test_numpy_computes_what_the_program_does(name: str) -> None:
    """Nothing is compiled: a `@dace.program` is also a Python function, and `dace.map` iterates in Python."""
    kernel = KERNELS[name]
    sizes, rng = small(kernel), np.random.default_rng(0)
    program = getattr(load(kernel.path), name).f
    version = getattr(load(kernel.path.with_name(f"{kernel.file}_numpy.py")), name)
    values: dict[str, Any] = {}
    if kernel.inputs is not None:
        make = getattr(load(kernel.path), f"inputs_{name}")
        known = {**sizes, "seed": 0}
        values = make(**{each: known[each] for each in inspect.signature(make).parameters})
    for argument, parameter in inspect.signature(program).parameters.items():
        if isinstance(parameter.annotation, dace.data.Array):
            shape = tuple(int(dace.symbolic.evaluate(extent, sizes)) for extent in parameter.annotation.shape)
            drawn = (rng.random(shape) + 0.1).astype(parameter.annotation.dtype.as_numpy_dtype())
            assert np.shape(values.setdefault(argument, drawn)) == shape
        else:
            values.setdefault(argument, rng.random() + 0.1)
    plain = FunctionType(program.__code__, {**program.__globals__, **sizes}, closure=program.__closure__)
    before, expected = ({n: np.copy(v) for n, v in values.items()} for _ in "ab")
    returned = [
        call(**{n: v for n, v in {**sizes, **data}.items() if n in inspect.signature(call).parameters})
        for call, data in ((plain, values), (version, expected))
    ]
    changed = [n for n in values if not np.array_equal(before[n], values[n])]
    assert changed or returned[0] is not None, "the kernel computes something"
    for n in changed:
        np.testing.assert_allclose(expected[n], values[n], rtol=1e-4, atol=1e-5, err_msg=n)
    if returned[0] is not None:
        np.testing.assert_allclose(*reversed(returned), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[::6])
def test_numpy_agrees_with_dace(name: str) -> None:
    """One of every other kind: the benchmark verifies all versions whenever it runs."""
    kernel = KERNELS[name]
    loaded = load_kernel(kernel.program, small(kernel), kernel.inputs)
    with Compiler() as compiler, Runner() as runner:
        whole = WholeKernel.prepare(loaded, "simplify", compiler, runner)
        problem = whole.built.problem
        problem = replace(problem, inputs={**problem.inputs, **loaded.sizes})
        versions = competitors_of(loaded, [kernel.competitors["numpy"]])
        (found,) = measure_side_by_side(versions, problem, Effort(1, rounds=1, budget_s=0.0)).values()
    assert found.status == "ok", found.detail


# --------------------------------------------------------------------------- the study


@pytest.mark.slow
def test_a_kernel_is_retrieved_beside_its_versions() -> None:
    kernel = UnseenKernel("stencils", "chip_temperature", "2-d stencil", {"M": 40, "N": 50}, {})
    study = UnseenStudy([kernel], ["cache"], shipped_bundle(), k=1)
    (work,) = study.work().values()
    row = work(lambda _: None)
    assert row["verified"] and row["failures"] == []
    assert row["vs_numpy"] > 0 and row["ratio"] <= row["vs_numpy"]
    assert study.shown(row)["best other"].startswith(row["best"])
    found = study.figures([row])
    assert found["kernels_cache"] == found["ran_cache"] == found["verified_cache"] == 1
    assert "kernels_memory" not in found


def document(**changes: Any) -> dict[str, Any]:
    """What `gnnperf retrieve --json` prints of a kernel that became twice as fast as its baseline."""
    found: dict[str, Any] = {
        "kernel": "k", "verified": True, "kept_baseline": False, "note": "", "skipped": [], "stages_s": {},
        "baseline": {"name": "dace-auto", "runtime_s": 2.0}, "tuned": {"runtime_s": 1.0}, "speedup": 2.0,
        "speedup_interval": [1.9, 2.1], "nests": [], "beside": [],
    }  # fmt: skip
    return {**found, **changes}


def other(library: str, speedup: float | None, status: str = "ok", detail: str = "") -> dict[str, Any]:
    timing = speedup and {"runtime_s": speedup, "interval_s": [speedup, speedup]}
    interval = speedup and [0.98 * speedup, 1.02 * speedup]
    return {
        "library": library, "status": status, "timing": timing or None, "speedup": speedup,
        "speedup_interval": interval, "detail": detail,
    }  # fmt: skip


VERSIONS = {"numpy": "numpy", "numba": "f_numba.py:k"}


def test_the_best_other_is_what_is_compared_with() -> None:
    row = told(document(beside=[other("numpy", 4.0), other("f_numba.py:k", 0.8)]), VERSIONS)
    assert (row["best"], row["ratio"], row["ours_s"]) == ("numba", 0.8, 1.0)
    told_of = {**row, "size": "cache", "wall_s": 3.0}
    assert figures([told_of])["lost"] == 1
    assert figures([told_of])["geomean_vs_numpy"] == pytest.approx(4.0)


def test_the_tables_of_the_page() -> None:
    rows = [
        {
            **told(document(beside=[other("numpy", 4.0)]), VERSIONS),
            "kernel": kernel,
            "size": size,
            "wall_s": 3.0,
        }
        for kernel, size in (("f", "cache"), ("g", "cache"), ("g", "memory"))
    ]
    lines = as_markdown(rows).splitlines()
    assert lines[2:4] == [
        "| cache | 2 | 2 | 0 | 2.00 (2.00) | 2.00 | 4.00 | nan | nan | 3.0 s |",
        "| memory | 1 | 1 | 0 | 2.00 (2.00) | 2.00 | 4.00 | nan | nan | 3.0 s |",
    ]
    assert lines[-2:] == [
        "| f | 1.00 s | auto | 2.00 [1.90, 2.10] | 3 s | | | | |",
        "| g | 1.00 s | auto | 2.00 [1.90, 2.10] | 3 s | 1.00 s | auto | 2.00 [1.90, 2.10] | 3 s |",
    ]
    assert len({line.count("|") for line in lines[5:]}) == 1


def test_a_version_that_cannot_run_is_left_out_with_its_reason() -> None:
    row = told(document(beside=[other("f_numba.py:k", None, "run_error", "no module numba")]), VERSIONS)
    assert (row["best"], row["absent"]) == ("auto", {"numba": "run_error: no module numba"})
    assert row["failures"] == []


def test_a_version_that_computes_something_else_is_a_failure() -> None:
    row = told(document(beside=[other("numpy", None, "wrong_result", "y: 1 of 9 differ")]), VERSIONS)
    assert row["failures"] == ["k: numpy computes something else: y: 1 of 9 differ"]
