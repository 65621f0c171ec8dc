"""Units in loops, branches and nested programs: captured inputs, cut-outs, tuned kernels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dace
import numpy as np
import pytest
from frontends.kit import assert_same, build, interpret_unit, load, reference_source, run

from gnnperf.errors import GnnperfError
from gnnperf.frontends.dace import DaceKernel, capture_inputs, dace_source, finish, load_kernel, splice
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.native import native_function
from gnnperf.measure import Compiler, Runner, Source
from gnnperf.nests.combine import combine
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, apply, emit

NAMES = (
    "jacobi_1d", "gramschmidt", "trsv", "converge", "early_exit", "nested_relax", "top_branch",
    "running_symbol", "spmm", "gemm", "batched", "best_paths",
)  # fmt: skip


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler(batch=16) as compiler, Runner(threads=2) as runner:
        yield compiler, runner


@pytest.fixture(scope="module")
def kernels(tools: tuple[Compiler, Runner]) -> dict[str, DaceKernel]:
    """Kernels whose sequential loops are never part of a unit, with captured inputs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finish, "SMALL_ITERATION", 0)
        patch.setattr(finish, "CACHED_BYTES", 0)
        patch.setattr(finish, "is_time_loop", lambda *_: False)
        loaded = {name: load(name) for name in NAMES}
    for kernel in loaded.values():
        capture_inputs(kernel, *tools)
    return loaded


def emitted(kernel: DaceKernel) -> dict[int, CppFunction]:
    """Every executed unit with the first default recipe."""
    units = [u for u in kernel.units if u.objection is None]
    return {u.index: emit(apply(DEFAULTS[0], u.nest), f"{u.name}_tuned") for u in units}


@pytest.mark.slow
def test_units_compute_what_their_cutouts_compute(
    tools: tuple[Compiler, Runner], kernels: dict[str, DaceKernel]
) -> None:
    compiler, runner = tools
    units = [u for k in kernels.values() for u in k.units if u.objection is None]
    libraries = build(compiler, [dace_source(u.cutout(), f"{u.name}_cutout") for u in units])
    for unit, library in zip(units, libraries, strict=True):
        expected = runner.reference(library, unit.data, unit.outputs, unit.inouts)
        assert_same(expected, interpret_unit(unit), unit.name)
        assert_same(expected, interpret_unit(unit, reverse=True), f"{unit.name} backwards")


def test_arrays_whose_size_a_loop_decides_keep_what_they_hold(tools: tuple[Compiler, Runner]) -> None:
    """DaCe would allocate such an array again where a later state looks at it in another shape."""
    compiler, runner = tools
    kernel = load_kernel(f"{Path(__file__).with_name('misread.py')}:in_stages")
    kernel.capture(compiler, runner)
    *_, unit = kernel.units
    expected = kernel.data["x"]
    for i in range(6):
        pairs = expected.reshape(2**i, 2, 2 ** (5 - i)).transpose(1, 0, 2).ravel()
        expected = 2.0 * pairs + pairs[::-1]
    for source in (unit.plain_source(), Source.of(native_function(DEFAULTS[0], unit.nest, "in_stages"))):
        found = runner.reference(compiler.build(source), unit.data, unit.outputs, unit.inouts)
        np.testing.assert_allclose(found["y"], expected)


@pytest.mark.slow
def test_what_a_kernel_does_not_read_does_not_matter(
    tools: tuple[Compiler, Runner], kernels: dict[str, DaceKernel]
) -> None:
    """Outputs that are not `updated` end as they would whatever they hold before, but for what stays."""
    compiler, runner = tools
    found = list(kernels.values())
    for kernel, library in zip(found, build(compiler, map(reference_source, found)), strict=True):
        assert set(kernel.updated) <= set(kernel.inouts) <= set(kernel.outputs)
        free = set(kernel.outputs) - set(kernel.updated)
        other = {n: v + np.ones_like(v) if n in free else v for n, v in kernel.data.items()}
        first = run(runner, kernel, library)
        second = runner.reference(library, other, kernel.outputs, kernel.inouts)
        for name in kernel.outputs:
            stays = ~np.isclose(second[name], first[name], equal_nan=True)
            np.testing.assert_array_equal(first[name][stays], kernel.data[name][stays])
            np.testing.assert_array_equal(second[name][stays], other[name][stays])
            assert not stays.any() or name in kernel.inouts


def test_spliced_kernels_compute_what_dace_computes(
    tools: tuple[Compiler, Runner], kernels: dict[str, DaceKernel], tmp_path: Path
) -> None:
    compiler, runner = tools
    sources = []
    for kernel in kernels.values():
        path = tmp_path / f"{kernel.name}.sdfgz"
        splice(kernel, emitted(kernel)).save(str(path), compress=True)
        with quiet_dace():
            loaded = dace.SDFG.from_file(str(path))
        sources += [reference_source(kernel), dace_source(loaded, f"{kernel.name}_spliced")]
    libraries = build(compiler, sources)
    for i, kernel in enumerate(kernels.values()):
        expected, got = (run(runner, kernel, lib) for lib in libraries[2 * i : 2 * i + 2])
        assert_same(expected, got, kernel.name)


def test_a_tuned_kernel_compiles_with_plain_dace(kernels: dict[str, DaceKernel], tmp_path: Path) -> None:
    """In a process of its own: what DaCe compiles makes its process flush subnormal numbers to zero."""
    kernel = kernels["gemm"]
    data = {k: np.array(v) for k, v in kernel.data.items()}
    splice(kernel, emitted(kernel)).save(str(tmp_path / "tuned.sdfgz"), compress=True)
    np.savez(tmp_path / "data.npz", **data)
    subprocess.run([sys.executable, "-c", PLAIN_DACE], cwd=tmp_path, check=True, capture_output=True)
    expected = data["alpha"] * data["A"] @ data["B"] + data["beta"] * data["C"]
    np.testing.assert_allclose(np.load(tmp_path / "result.npz")["C"], expected)


PLAIN_DACE = """
import dace, numpy
data = dict(numpy.load("data.npz"))
dace.SDFG.from_file("tuned.sdfgz").compile()(**data)
numpy.savez("result.npz", C=data["C"])
"""


def test_scalars_that_dace_writes_as_literals_keep_their_type(tools: tuple[Compiler, Runner]) -> None:
    """DaCe makes an `int` of an `int64` that is 0; a pointer to it would read what lies behind."""
    kernel = load("numbered_rows")
    capture_inputs(kernel, *tools)
    last = kernel.units[-1].index
    tuned, _ = kernel.tuned({last: emitted(kernel)[last]})
    text = tuned.source("numbered_rows_tuned").text
    assert "auto to = 0;" in text and "int64_t gp_to = to;" in text


def test_results_that_nothing_reads_any_more_are_given_to_the_function(
    tools: tuple[Compiler, Runner],
) -> None:
    """The last of two units updates a scalar and an array that end there."""
    compiler, runner = tools
    kernel = load("descent")
    capture_inputs(kernel, *tools)
    assert {"r", "rest"} < set(kernel.units[-1].outputs)
    forms = [form.source(f"descent_{i}") for i, form in enumerate(kernel.tuned(emitted(kernel)))]
    reference, *tuned = build(compiler, [reference_source(kernel), *forms])
    expected = run(runner, kernel, reference)
    for library in tuned:
        assert_same(expected, run(runner, kernel, library), "descent")


def test_captured_execution_is_the_middle_one(kernels: dict[str, DaceKernel]) -> None:
    for unit in kernels["jacobi_1d"].units:
        assert unit.calls == 3
    (first, *_) = (u for u in kernels["gramschmidt"].units if u.nest.parameters)
    assert first.calls == 4
    assert first.nest.parameters == {"k": 2}
    assert first.data["k"] == 2


def test_branches_on_arrays_of_one_read_their_element(kernels: dict[str, DaceKernel]) -> None:
    """What DaCe generates of their names compares pointers, and does not compile."""
    kernel = kernels["best_paths"]
    programs = list(kernel.sdfg.all_sdfgs_recursive())
    said = [edge.data.condition.as_string for program in programs for edge in program.edges()]
    assert "(s[0] > best)" in said
    assert [unit.calls for unit in kernel.units] == [4]


@pytest.mark.parametrize(("name", "units"), [("jacobi_1d", 1), ("fdtd", 1), ("ring", 1), ("gramschmidt", 4)])
def test_a_loop_over_time_is_one_unit_however_large_its_arrays(
    name: str, units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "SMALL_ITERATION", 0)
    monkeypatch.setattr(finish, "CACHED_BYTES", 0)
    assert len(load(name).units) == units


def test_units_that_are_never_executed_say_so(kernels: dict[str, DaceKernel]) -> None:
    skipped = [u for u in kernels["top_branch"].units if u.objection]
    assert [u.objection for u in skipped] == ["never executed with these inputs"]


def test_parts_without_translation_are_reported(kernels: dict[str, DaceKernel]) -> None:
    assert "break" in kernels["early_exit"].skipped[0].reason


def test_captured_arrays_are_aligned(kernels: dict[str, DaceKernel]) -> None:
    arrays = [v for u in kernels["jacobi_1d"].units for v in u.data.values() if np.ndim(v)]
    assert arrays
    assert all(a.ctypes.data % 64 == 0 for a in arrays)


def test_two_functions_of_one_name_cannot_be_spliced(kernels: dict[str, DaceKernel]) -> None:
    kernel = kernels["jacobi_1d"]
    functions = {u.index: emit(apply(DEFAULTS[0], u.nest), "same") for u in kernel.units}
    with pytest.raises(GnnperfError, match="one name"):
        splice(kernel, functions)


def test_splicing_leaves_the_kernel_alone(kernels: dict[str, DaceKernel]) -> None:
    kernel = kernels["spmm"]
    states = kernel.sdfg.nodes()
    splice(kernel, emitted(kernel))
    assert kernel.sdfg.nodes() == states


def test_scratch_that_is_used_again_ties_nothing_together() -> None:
    """One array as two: neither is needed where both are computed again for every element."""
    kernel = load("reused_scratch")
    assert [sorted(unit.outputs) for unit in kernel.units] == [["C"], ["D"]]
    assert [len(combine("inline", unit.nest).body) for unit in kernel.units] == [1, 1]


def test_what_nothing_ever_reads_is_no_unit_and_is_not_done(tmp_path: Path) -> None:
    """Zeros around what is filled in, where the borders are not read."""
    (tmp_path / "twice.py").write_text(
        "import dace\nimport numpy as np\n\nN = dace.symbol('N')\n\n@dace.program\n"
        "def twice(x: dace.float64[N, N], y: dace.float64[N, N]):\n    t = np.zeros_like(x)\n"
        "    t[:, 1:-1] = x[:, :-2] + 2.0 * x[:, 1:-1] + x[:, 2:]\n"
        "    y[1:-1, 1:-1] = t[:-2, 1:-1] + 2.0 * t[1:-1, 1:-1] + t[2:, 1:-1]\n"
    )
    kernel = load_kernel(f"{tmp_path}/twice.py:twice", {"N": 9})
    (unit,) = kernel.units
    assert unit.outputs == ["y"] and unit.name == "twice_0"
    spliced = splice(kernel, emitted(kernel))
    assert not [n for n, _ in spliced.all_nodes_recursive() if isinstance(n, dace.nodes.MapEntry)]
    assert [name for name, array in spliced.arrays.items() if array.transient] == []
