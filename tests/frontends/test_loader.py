"""What users get wrong, and what they are told."""

from __future__ import annotations

from pathlib import Path

import dace
import numpy as np
import pytest
from dace.libraries.standard.nodes import Transpose
from dace.transformation.passes.fusion_inline import FuseStates
from frontends.kit import KERNELS, interpret_program, load

from gnnperf.errors import GnnperfError, InputError
from gnnperf.frontends.dace import kernel_of, load_kernel
from gnnperf.frontends.dace.normal_form import expand_libraries
from gnnperf.measure import Compiler, Runner

HEADER = "import dace\nimport numpy as np\nN = dace.symbol('N')\nM = dace.symbol('M')\n"
ADD = "@dace.program\ndef add(A: dace.float64[N, M], B: dace.float64[N, M]):\n    B[:] = A + 1.0\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "user.py"
    path.write_text(HEADER + ADD)
    return path


def write(path: Path, text: str) -> str:
    path.write_text(HEADER + text)
    return str(path)


def message(spec: str, symbols: dict[str, float] | None = None, inputs: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load_kernel(spec, symbols, inputs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


USES = {
    "B[:] = A + 1.0": ([], []),
    "B[1:-1] = A[1:-1] + 1.0": (["B"], []),
    "B[:] += A": (["B"], ["B"]),
    "B[:] = A\n    A[:] = B * 2.0": (["A"], ["A"]),
    "B[1:-1] = A[1:-1]\n    A[:] = B * 2.0": (["A", "B"], ["A", "B"]),
    "B[:] = 0.0\n    for t in range(3):\n        B[:] += A": ([], []),
    "for t in range(3):\n        B[:] = A * t": ([], []),
    "if A[0, 0] > 0.5:\n        B[:] = A": (["B"], []),
}
"""Bodies of a kernel, which outputs are read or may be left in part, and which are read."""


@pytest.mark.parametrize("body", USES)
def test_outputs_that_are_read_or_written_in_part(tmp_path: Path, body: str) -> None:
    head = "@dace.program\ndef f(A: dace.float64[N, M], B: dace.float64[N, M]):\n    "
    kernel = load_kernel(write(tmp_path / "user.py", head + body + "\n") + ":f", {"N": 6, "M": 5})
    assert (kernel.inouts, kernel.updated) == USES[body]


def test_library_nodes_are_expanded_however_many_there_are() -> None:
    sdfg = dace.SDFG("transpositions")
    sdfg.add_array("A", [4, 4], dace.float64)
    for number in range(12):
        state = sdfg.add_state_after(sdfg.sink_nodes()[0], "s") if number else sdfg.add_state("s")
        node = Transpose("t", dace.float64)
        state.add_edge(state.add_read("A"), None, node, "_inp", dace.Memlet("A[0:4, 0:4]"))
        state.add_edge(node, "_out", state.add_write("A"), None, dace.Memlet("A[0:4, 0:4]"))
    expand_libraries(sdfg)
    assert not any(isinstance(node, dace.nodes.LibraryNode) for node, _ in sdfg.all_nodes_recursive())


def test_where_dace_fails_inside(tmp_path: Path) -> None:
    """Its own exception says `'numpy'` and no more."""
    body = "    for i in dace.map[0:N]:\n        s = A[i] + 1.0\n"
    body += "        B[i] = s / np.sum(s)[np.newaxis, np.newaxis]\n"
    head = "@dace.program\ndef f(A: dace.float64[N, M], B: dace.float64[N, M]):\n"
    found = message(write(tmp_path / "user.py", head + body) + ":f")
    assert found.startswith(
        "kernel: DaCe cannot parse 'f': KeyError: 'numpy', at line 9: B[i] = s / np.sum(s)"
    )


# --------------------------------------------------------------------------- files and names


def test_spec_without_name(module: Path) -> None:
    assert "path/to/file.py:name" in message(str(module))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no file" in message(f"{tmp_path}/none.py:add")


def test_syntax_error_names_the_line(module: Path) -> None:
    module.write_text("x = 1\ndef add(:\n")
    assert f"{module}:2: syntax error" in message(f"{module}:add")


def test_failing_import(module: Path) -> None:
    module.write_text("raise RuntimeError('no luck')\n")
    assert "RuntimeError: no luck" in message(f"{module}:add")


def test_exit_at_import(module: Path) -> None:
    module.write_text("import sys\nsys.exit(3)\n")
    assert "SystemExit" in message(f"{module}:add")


def test_name_that_does_not_exist_lists_the_programs(module: Path) -> None:
    assert "has no 'ad'; it has add" in message(f"{module}:ad")


def test_name_that_is_no_program(module: Path) -> None:
    assert "expected 'N' to be a @dace.program, got symbol" in message(f"{module}:N")


def test_prints_of_user_code_stay_off_standard_output(
    module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.write_text("print('hello')\n" + HEADER + ADD)
    load_kernel(f"{module}:add", {"N": 3, "M": 4})
    assert capsys.readouterr().out == ""


def test_modules_next_to_the_file_can_be_imported(module: Path) -> None:
    (module.parent / "shared_sizes.py").write_text("STEP = 2.0\n")
    module.write_text("from shared_sizes import STEP\n" + HEADER + ADD.replace("1.0", "STEP"))
    assert load_kernel(f"{module}:add", {"N": 3, "M": 4}).units


# --------------------------------------------------------------------------- parsing


def test_what_dace_cannot_parse(tmp_path: Path) -> None:
    spec = write(
        tmp_path / "user.py",
        "@dace.program\ndef f(A: dace.float64[N]):\n    A[:] = sorted(A)\n",
    )
    assert "DaCe cannot" in message(f"{spec}:f", {"N": 4})


@pytest.mark.parametrize("given", [{"N": 7}, {}])
def test_a_size_that_is_an_argument_and_a_symbol(tmp_path: Path, given: dict[str, float]) -> None:
    body = (
        "@dace.program\ndef f(N: dace.int32, x: dace.float64[N], y: dace.float64[N]):\n    y[:] = x * N\n"
        "def inputs():\n    return dict(N=7, x=np.ones(7), y=np.zeros(7))\n"
    )
    spec = write(tmp_path / "user.py", body)
    kernel = load_kernel(f"{spec}:f", given, None if given else f"{spec}:inputs")
    assert interpret_program(kernel)["y"] == pytest.approx(7.0 * kernel.data["x"])


def test_untyped_arguments_need_inputs(tmp_path: Path) -> None:
    spec = write(tmp_path / "user.py", "@dace.program\ndef f(A):\n    A[:] = A + 1.0\n")
    assert "annotate its arguments, or give --inputs" in message(f"{spec}:f")


def test_untyped_arguments_take_their_types_from_inputs(tmp_path: Path) -> None:
    text = "@dace.program\ndef f(A):\n    A[:] = A + 1.0\n\ndef make():\n    return {'A': np.ones(5)}\n"
    spec = write(tmp_path / "user.py", text)
    kernel = load_kernel(f"{spec}:f", inputs=f"{spec}:make")
    assert kernel.data["A"].shape == (5,)


def test_annotation_without_meaning(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(
        "from __future__ import annotations\n" + HEADER + ADD.replace("B: dace.float64[N, M]", "B: nope")
    )
    assert "the annotation B: nope" in message(f"{path}:add", {"N": 3, "M": 4})


# --------------------------------------------------------------------------- symbols


def test_missing_symbols_are_named(module: Path) -> None:
    assert message(f"{module}:add") == ("kernel: no value for the symbols M, N; give --set M=512 --set N=512")


def test_unknown_symbol(module: Path) -> None:
    assert "no symbol or scalar K; it has M, N" in message(f"{module}:add", {"N": 3, "M": 4, "K": 5})


def test_symbol_that_is_no_integer(module: Path) -> None:
    assert "expected an integer for the symbol N, got 3.5" in message(f"{module}:add", {"N": 3.5, "M": 4})


def test_impossible_extent(tmp_path: Path) -> None:
    spec = write(tmp_path / "user.py", ADD.replace("N, M]", "N - 8, M]"))
    assert "extents must be positive" in message(f"{spec}:add", {"N": 3, "M": 4})


def test_symbols_come_from_the_shapes_of_inputs(tmp_path: Path) -> None:
    text = ADD.replace("A: dace.float64[N, M]", "A: dace.float64[2 * N + 1, M]").replace(
        "A + 1.0", "A[:N] + 1.0"
    )
    make = "def make():\n    return {'A': np.ones((7, 4))}\n"
    spec = write(tmp_path / "user.py", text + make)
    kernel = load_kernel(f"{spec}:add", inputs=f"{spec}:make")
    assert kernel.sizes == {"N": 3, "M": 4}


def test_sizes_that_one_array_leaves_open_come_from_another(tmp_path: Path) -> None:
    body = (
        "\n@dace.program\ndef f(half: dace.float64[N // 2], x: dace.float64[N]):\n    x[: N // 2] += half\n"
    )
    spec = write(tmp_path / "user.py", body)
    assert load_kernel(f"{spec}:f", inputs={"half": np.ones(5), "x": np.ones(11)}).sizes == {"N": 11}
    assert load_kernel(f"{spec}:f", inputs={"half": np.ones(5), "x": np.ones((1, 11))}).sizes == {"N": 11}


# --------------------------------------------------------------------------- inputs


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("{'A': np.ones((3, 5))}", "A: expected shape (3, 4), got (3, 5)"),
        ("{'A': np.ones((3, 4), np.float32)}", "A: expected float64 elements, got float32; use .astype"),
        ("{'C': np.ones(3)}", "the kernel has no argument C; it takes A, B"),
        ("{'aplha': 2.0}", "the kernel has no argument aplha; it takes A, B"),
        ("[1, 2]", "to return a dict of arrays and scalars"),
        ("1 / 0", "'make' failed: ZeroDivisionError: division by zero"),
    ],
)
def test_wrong_inputs(module: Path, returned: str, expected: str) -> None:
    module.write_text(HEADER + ADD + f"def make():\n    return {returned}\n")
    assert expected in message(f"{module}:add", {"N": 3, "M": 4}, f"{module}:make")


def test_inputs_function_gets_symbols_and_seed_by_name(module: Path) -> None:
    module.write_text(
        HEADER + ADD + "def make(N, M, seed, scale=2.0):\n    return {'A': np.full((N, M), scale + seed)}\n"
    )
    kernel = load_kernel(f"{module}:add", {"N": 3, "M": 4}, f"{module}:make", seed=5)
    assert (kernel.data["A"] == 7.0).all()


def test_inputs_function_with_a_parameter_nobody_knows(module: Path) -> None:
    module.write_text(HEADER + ADD + "def make(density):\n    return {}\n")
    assert "'make' needs 'density'; give it with --set density=" in message(
        f"{module}:add", {"N": 3, "M": 4}, f"{module}:make"
    )


def test_data_dependent_loops_need_real_inputs() -> None:
    sizes = {"N": 4, "M": 5, "F": 2, "NNZ": 6}
    assert "loops depend on the contents of indptr; give real inputs with --inputs" in message(
        f"{KERNELS}:spmm", sizes
    )


def test_generated_inputs_are_positive_aligned_and_repeatable() -> None:
    one, two = load("gather"), load("gather")
    for name, value in one.data.items():
        np.testing.assert_array_equal(value, two.data[name])
        assert value.ctypes.data % 64 == 0
    assert one.data["index"].max() < one.sizes["M"]
    assert one.data["index"].min() >= 0
    assert (one.data["table"] > 0).all()


@pytest.mark.parametrize(("dtype", "value"), [("int32", 5_000_000_000), ("uint8", -1)])
def test_integers_that_an_argument_cannot_hold(tmp_path: Path, dtype: str, value: int) -> None:
    body = f"\n@dace.program\ndef f(x: dace.float64[N], n: dace.{dtype}):\n    x += n\n"
    spec = write(tmp_path / "user.py", body)
    assert f"n: expected a number that {dtype} holds, got {value}" in message(
        f"{spec}:f", {"N": 4, "n": value}
    )


def test_scalar_arguments_are_set_like_symbols() -> None:
    kernel = load("gemm")
    assert kernel.data["alpha"] == 1.5
    assert kernel.data["alpha"].dtype == np.float64


def test_closures_are_inputs() -> None:
    kernel = load("closure")
    (captured,) = (v for n, v in kernel.data.items() if n not in ("A", "B"))
    np.testing.assert_array_equal(captured, [1.0, 2.0, 3.0])


# --------------------------------------------------------------------------- saved SDFGs


def test_saved_sdfg(tmp_path: Path) -> None:
    sdfg = load("jacobi_2d").simplified
    for name in ("kernel.sdfg", "kernel.sdfgz"):
        path = tmp_path / name
        sdfg.save(str(path), compress=name.endswith("z"))
        kernel = load_kernel(str(path))
        assert kernel.name == "kernel"
        assert len(kernel.units) == 1


def test_corrupt_sdfg(tmp_path: Path) -> None:
    path = tmp_path / "kernel.sdfgz"
    path.write_bytes(b"not an SDFG")
    assert "is not a readable SDFG" in message(str(path))


def test_sdfg_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no file" in message(str(tmp_path / "none.sdfg"))


def test_loading_does_not_change_the_sdfg() -> None:
    sdfg = load("jacobi_1d").simplified
    before = sdfg.to_json()["nodes"]
    kernel_of(sdfg)
    assert sdfg.to_json()["nodes"] == before


def test_nothing_is_written_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load("softmax")
    assert list(tmp_path.iterdir()) == []


def test_kernel_that_calls_back_into_python(tmp_path: Path) -> None:
    spec = write(
        tmp_path / "user.py",
        "@dace.program\ndef f(A: dace.float64[N], B: dace.float64[N, N]):\n    B[:] = np.kron(A, A)\n",
    )
    with pytest.raises(GnnperfError, match=r"numpy_kron|cannot parse"):
        load_kernel(f"{spec}:f", {"N": 4})


def test_arrays_that_share_a_part_are_refused_where_one_is_written(module: Path) -> None:
    both = np.zeros((5, 4))
    with pytest.raises(InputError, match=r"A and B share memory, and one of them is written.*give a copy"):
        load_kernel(f"{module}:add", None, {"A": both[:4], "B": both[1:]})
    load_kernel(f"{module}:add", None, {"A": both[:2], "B": both[2:4]})


SHARED = """
@dace.program
def chain(a: dace.float64, A: dace.float64[N], B: dace.float64[N], C: dace.float64[N]):
    for i in dace.map[0:N]:
        C[i] = a * A[i] + B[i]

@dace.program
def sweeps(A: dace.float64[N], B: dace.float64[N]):
    for _ in range(3):
        B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3
        A[1:-1] = 0.5 * B[1:-1]

@dace.program
def shifted(A: dace.float64[N], B: dace.float64[N]):
    B[1:] = A[:-1]

@dace.program
def moved(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[1:N]:
        B[i] = A[i - 1] + 1.0

@dace.program
def product(A: dace.float64[N, N], B: dace.float64[N, N]):
    B[:] = A @ A
"""


def test_one_array_for_two_arguments_is_one_array(tmp_path: Path) -> None:
    """What NumPy computes of the same call, which evaluates a right side before it writes."""
    spec, start = write(tmp_path / "user.py", SHARED), np.random.default_rng(0).random(40)
    chain = load_kernel(f"{spec}:chain", {"a": 3.0}, {"A": start, "B": start + 1, "C": start})
    sweeps = load_kernel(f"{spec}:sweeps", None, {"A": start, "B": start})
    assert chain.same == {"C": "A"} and list(chain.data) == ["A", "B", "a"] and chain.outputs == ["A"]
    assert sweeps.notes == ["B and A are one array: the kernel is taken so"]
    expected = start.copy()
    for _ in range(3):
        expected[1:-1] = (expected[:-2] + expected[1:-1] + expected[2:]) / 3
        expected[1:-1] = 0.5 * expected[1:-1]
    square = start[:36].reshape(6, 6)
    product = load_kernel(f"{spec}:product", None, {"A": square, "B": square})
    for kernel, truth in ((chain, 4 * start + 1), (sweeps, expected), (product, square @ square)):
        with Runner(1) as runner:
            library = Compiler(tmp_path).build(kernel.plain_source())
            found = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts)
        np.testing.assert_allclose(found["A"], truth, rtol=1e-14)


@pytest.mark.parametrize("name", ["shifted", "moved"])
def test_what_reads_other_elements_than_it_writes_is_refused_one_array(tmp_path: Path, name: str) -> None:
    both = np.ones(8)
    with pytest.raises(InputError, match="element by element: give a copy of one"):
        load_kernel(f"{write(tmp_path / 'user.py', SHARED)}:{name}", None, {"A": both, "B": both})


def test_a_state_whose_order_is_open_is_refused_one_array() -> None:
    """The program counts A and overwrites B in one state: of one array, either could come first."""
    sdfg = dace.SDFG("unordered")
    for name in "ABC":
        sdfg.add_array(name, [4], dace.float64)
    state = sdfg.add_state()
    for source, target in (("A", "C"), ("C", "B")):
        state.add_mapped_tasklet(
            f"to_{target}", {"i": "0:4"}, {"x": dace.Memlet(f"{source}[i]")}, "y = x + 1",
            {"y": dace.Memlet(f"{target}[i]")}, external_edges=True,
        )  # fmt: skip
    both = np.zeros(4)
    with pytest.raises(InputError, match="share memory"):
        kernel_of(sdfg, None, {"A": both, "B": both, "C": np.zeros(4)})


def test_axes_of_length_one_make_no_difference(module: Path) -> None:
    kernel = load_kernel(f"{module}:add", {"N": 5, "M": 1}, {"A": np.arange(5.0), "B": np.zeros((1, 5, 1))})
    assert kernel.data["A"].shape == kernel.data["B"].shape == (5, 1)
    np.testing.assert_array_equal(kernel.data["A"][:, 0], np.arange(5.0))
    assert kernel.notes == ["A: [5] was taken for [5, 1]", "B: [1, 5, 1] was taken for [5, 1]"]
    with pytest.raises(InputError, match=r"A: expected shape \(5, 1\), got \(6,\)"):
        load_kernel(f"{module}:add", {"N": 5, "M": 1}, {"A": np.arange(6.0)})


def test_what_dace_fails_at_is_left_out_of_simplification(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object, sdfg: dace.SDFG, *__: object) -> None:
        for state in list(sdfg.states()):  # it fails when it has done half of its work
            sdfg.remove_node(state)
        raise IndexError("list index out of range")

    monkeypatch.setattr(FuseStates, "apply_pass", broken)
    kernel = load_kernel(f"{module}:add", {"N": 5, "M": 7})
    (note,) = kernel.notes
    assert note == "DaCe's pass FuseStates fails on the kernel (list index out of range): it is left out"
    assert kernel.tasks and kernel.outputs == ["B"]
    with Compiler() as compiler, Runner() as runner:
        library = compiler.build(kernel.plain_source())
        found = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts)
    np.testing.assert_allclose(found["B"], kernel.data["A"] + 1.0)


def test_integers_made_of_real_numbers_are_known(tmp_path: Path) -> None:
    text = (
        "@dace.program\n"
        "def binned(x: dace.float64[N], grey: dace.uint8[N], copy: dace.uint8[N], count: dace.int64[256]):\n"
        "    grey[:] = (255.0 * x).astype(np.uint8)\n"
        "    copy[:] = grey\n"
        "    for i in range(N):\n"
        "        count[grey[i]] += 1\n"
    )
    kernel = load_kernel(f"{write(tmp_path / 'k.py', text)}:binned", {"N": 9})
    assert {*kernel.quantised} == {"grey", "copy"}


def test_a_while_that_ends_with_a_for_runs_again(tmp_path: Path) -> None:
    text = (
        "@dace.program\n"
        "def halving(x: dace.float64[N], y: dace.float64[N]):\n"
        "    n = N\n"
        "    while n > 1:\n"
        "        n = n // 2\n"
        "        for i in range(n):\n"
        "            y[i] += x[i]\n"
    )
    given = {"x": np.ones(8), "y": np.zeros(8)}
    kernel = load_kernel(f"{write(tmp_path / 'k.py', text)}:halving", {}, given)
    with Compiler() as compiler, Runner() as runner:
        found = runner.reference(compiler.build(kernel.plain_source()), kernel.data, ["y"], ["y"])
    assert [*found["y"]] == [3, 2, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("body", "skipped"),
    [
        ("C[b] = A[b] @ A[b]", []),
        ("t = A[b] @ A[b]; C[b] = t @ t", ["a private array of 40000 elements in every iteration"]),
    ],
)
def test_large_results_of_an_iteration(tmp_path: Path, body: str, skipped: list[str]) -> None:
    """Those that are on the way to an argument need no room; others have none on the stack of a thread."""
    text = (
        "@dace.program\ndef batches(A: dace.float64[M, N, N], C: dace.float64[M, N, N]):\n"
        f"    for b in dace.map[0:M]:\n        {body}\n"
    )
    kernel = load_kernel(f"{write(tmp_path / 'k.py', text)}:batches", {"M": 3, "N": 200})
    assert [part.reason for part in kernel.skipped] == skipped


def test_powers_of_symbols_are_sizes_and_subscripts(tmp_path: Path) -> None:
    text = (
        "@dace.program\n"
        "def stages(x: dace.float64[M**N], y: dace.float64[M**N]):\n"
        "    for i in range(N):\n"
        "        for k in range(M**i):\n"
        "            y[M**i + k] = x[M ** (i + 1) - 1 - k]\n"
    )
    given = {"x": np.arange(8.0), "y": np.zeros(8), "N": 3, "M": 2}
    kernel = load_kernel(f"{write(tmp_path / 'k.py', text)}:stages", {}, given)
    with Compiler() as compiler, Runner() as runner:
        found = runner.reference(compiler.build(kernel.plain_source()), kernel.data, ["y"], ["y"])
    assert [*found["y"]] == [0, 1, 3, 2, 7, 6, 5, 4]
