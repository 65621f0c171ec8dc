"""What the loader makes of files, and what unscheduled functions become: nests, as from other frontends."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from e2e.conftest import Shell
from helpers.tvm_units import units_of
from hypothesis import given, settings
from hypothesis import strategies as st
from nests.test_to_graph import dump

from gnnperf.errors import InputError, UnsupportedConstruct
from gnnperf.frontends.base import Given
from gnnperf.frontends.dace import kernel_of
from gnnperf.frontends.tvm import TvmTask, is_tvm_kernel, load_tasks, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.program import tvm_program
from gnnperf.frontends.tvm.relax_programs import exported_program
from gnnperf.nests import nest_graph

tvm = import_tvm()
from frontends.tvm import functions, kernels_dace  # noqa: E402

FILE = Path(functions.__file__)


def task(thing: Any, name: str = "f") -> TvmTask:
    (found,) = tasks_of(thing, name)
    return found


def digests(thing: Any) -> list[str]:
    return [nest_graph(n).digest for n in units_of(task(thing))]


# --------------------------------------------------------------------------- the same nests as DaCe's


@pytest.mark.parametrize(
    ("program", "function"),
    [
        ("matmul", functions.matmul),
        ("matmul_int8", lambda: functions.matmul(dtype="int8", acc="int32")),
        ("softmax", functions.softmax),
        ("stencil", functions.stencil),
        ("conv2d", functions.conv2d),
    ],
)
def test_dace_and_tvm_meet_at_one_graph(program: str, function: Callable[[], Any]) -> None:
    kernel = kernel_of(getattr(kernels_dace, program).to_sdfg(simplify=False))
    assert [nest_graph(u.nest).digest for u in kernel.units] == digests(function())


def test_padding_is_a_nest_of_its_own_that_leaves_the_convolution_alone() -> None:
    padding, convolution = digests(functions.conv2d(14, padding=1))
    assert [convolution] == digests(functions.conv2d())
    assert padding != convolution


# --------------------------------------------------------------------------- invariances


@settings(max_examples=15)
@given(st.permutations("ABCijkPQxyz"))
def test_names_do_not_matter(letters: list[str]) -> None:
    assert digests(functions.matmul(names="".join(letters[:6]))) == digests(functions.matmul())


@settings(max_examples=6)
@given(st.permutations(range(3)))
def test_the_order_of_loops_does_not_matter(order: list[int]) -> None:
    schedule = tvm.s_tir.Schedule(functions.matmul())
    loops = schedule.get_loops(schedule.get_sblock("C"))
    schedule.reorder(*(loops[i] for i in order))
    assert digests(schedule.mod["main"]) == digests(functions.matmul())


def test_what_is_computed_does_matter() -> None:
    made = [
        functions.matmul(), functions.matmul(k=32), functions.matmul(dtype="float16"), functions.softmax(),
        functions.stencil(), functions.conv2d(), functions.dense_chain(), functions.gather(),
        functions.gelu(),
    ]  # fmt: skip
    assert len({task(m).graph.digest for m in made}) == len(made)


@pytest.mark.parametrize("name", ["matmul", "dense_chain", "conv2d", "softmax"])
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"graphs/tvm_{name}.json", dump(task(getattr(functions, name)(), name).graph))


def test_sums_found_together_are_sums() -> None:
    graph = task(functions.moments()).graph
    reductions = [n for n in graph.nodes if n.kind == "compute"]
    assert [n["reduction"] for n in reductions] == ["add", "add"]
    assert graph.values["total_flops"] == 32 * 64 * 3


def test_a_reduction_of_several_values_is_done_in_order() -> None:
    """Rows beside one another; each from left to right, from initial values on."""
    found = task(functions.argmax())
    assert found.objection is None
    rows, columns, *_ = [n for n in found.graph.nodes if n.kind == "loop"]
    assert not rows["ordered"] and columns["ordered"]
    assert sum(bool(n["guarded"]) for n in found.graph.nodes if n.kind == "compute") == 2


def test_a_gather_is_an_indirect_access() -> None:
    graph = task(functions.gather()).graph
    assert sum(bool(n["indirect"]) for n in graph.nodes if n.kind == "access") == 1


# --------------------------------------------------------------------------- what has no nest


def test_what_the_nests_cannot_express_is_said() -> None:
    found = task(functions.complex_products())
    assert found.unsupported is not None
    assert "several values that need one another" in found.unsupported
    with pytest.raises(UnsupportedConstruct, match="block"):
        _ = found.graph
    assert "shape is not constant" in str(task(functions.symbolic()).unsupported)
    assert task(functions.gelu()).unsupported is None


SYMBOLIC = (
    r"the array a, whose shape is not constant \(n\): bind its sizes to numbers, by .*BindSymbolicVars.*"
)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (functions.symbolic, SYMBOLIC),
        (functions.symbolic_dense, SYMBOLIC),
        (functions.shifted, "the scalar argument n"),
        (lambda: [functions.placeholder("a", 8)], "it has no results: .*"),
    ],
)
def test_a_function_without_a_nest_is_left_as_it_is(function: Callable[[], Any], said: str) -> None:
    (found,) = tvm_program(function(), Given()).tasks
    assert re.fullmatch(said, found.objection or "")


def test_a_function_of_any_size_is_bound_to_one() -> None:
    function = functions.symbolic()
    size = {function.params[0]: tvm.tirx.decl_buffer((32,))}
    assert task(function.specialize(size)).objection is None


# --------------------------------------------------------------------------- kernels that users name


@pytest.mark.parametrize("name", ["matmul", "softmax", "SAVED"])
def test_functions_tensors_and_modules_load(name: str) -> None:
    (found,) = load_tasks(f"{FILE}:{name}")
    assert found.name == name
    assert found.graph.values


def test_arguments_of_a_function_are_set() -> None:
    (found,) = load_tasks(f"{FILE}:matmul", {"n": 32, "m": 16, "k": 8})
    assert [list(p.shape) for p in found.function.params] == [[32, 8], [8, 16], [32, 16]]


def test_every_function_of_a_module_is_a_task() -> None:
    assert [t.name for t in load_tasks(f"{FILE}:both")] == ["both_product", "both_rows"]


def test_names_that_are_one_as_identifiers_are_told_apart() -> None:
    module = tvm.IRModule({"f.a": functions.matmul(), "f_a": functions.matmul(k=32)})
    assert [t.name for t in tasks_of(module, "m")] == ["m_f_a", "m_f_a_1"]


def test_tasks_of_programs_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever relax calls what it fused."""
    from tvm import relax
    from tvm.s_tir.meta_schedule import relax_integration

    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType([16], "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(x)
    product = tvm.IRModule({"main": functions.matmul()})
    found = [SimpleNamespace(task_name=name, dispatched=[product], weight=1) for name in ("a", "a", "a_2")]
    monkeypatch.setattr(relax_integration, "extract_tasks", lambda *_: found)
    assert [t.name for t in tasks_of(builder.get(), "m")] == ["m_a", "m_a_1", "m_a_2"]


def test_a_saved_module_is_the_module(tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    path.write_text(tvm.ir.save_json(functions.both()), encoding="utf-8")
    with pytest.raises(InputError, match=r"--set: 'both\.json' takes no arguments, got N"):
        tvm_program(str(path), Given({"N": 512}))
    loaded = load_tasks(str(path))
    assert [t.graph.digest for t in loaded] == [t.graph.digest for t in load_tasks(f"{FILE}:both")]


def test_an_exported_program_is_split_into_tasks(tmp_path: Path) -> None:
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = torch.relu(layer(x))
            return torch.softmax(x, dim=-1)

    path = tmp_path / "block.pt2"
    torch.export.save(torch.export.export(Block(), (torch.randn(8, 16),)), path)
    tasks = exported_program(path).tasks
    assert sorted(t.calls for t in tasks) == [1, 3]  # weights are transposed before the program runs
    assert all(t.unsupported is None for t in tasks)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere.json", "no file"),
        ("nowhere.py:f", "no file"),
        (f"{FILE}:nothing", "has no 'nothing'"),
        (f"{FILE}:NUMBER", "expected 'NUMBER' to be a PrimFunc, an IRModule.*got int"),
        (f"{FILE}:EMPTY", "the module 'EMPTY' has no PrimFunc to tune"),
        (f"{FILE}:broken", "calling 'broken' failed: RuntimeError: no such device"),
        (f"{FILE}:placeholder", "calling 'placeholder' failed"),
        (str(FILE), r"expected path/to/file.py:name"),
    ],
)
def test_bad_kernels_are_one_clear_line(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load_tasks(spec)
    assert "\n" not in str(raised.value)


def of_short_floats() -> Any:
    """A relax module with a layer norm that relax has for other types alone."""
    from tvm import relax

    builder = relax.BlockBuilder()
    shapes = {"x": [4, 8], "g": [8], "b": [8]}
    x, *scales = (relax.Var(n, relax.TensorType(s, "bfloat16")) for n, s in shapes.items())
    with builder.function("main", [x, *scales]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.layer_norm(x, *scales, axes=[-1]))
        builder.emit_func_output(y)
    return builder.get()


def of_what_is_not_given() -> list[Any]:
    given, missing = functions.placeholder("a", 8), functions.placeholder("b", 8)
    return [given, tvm.te.compute((8,), lambda i: given[i] + missing[i])]


@pytest.mark.parametrize("made", [of_short_floats, of_what_is_not_given])
def test_what_tvm_says_of_a_failure_is_in_the_error_alone(
    made: Callable[[], Any], capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = made()
    with pytest.raises(InputError, match=r"relax cannot split|TVM makes no function") as raised:
        tasks_of(kernel, "f")
    assert "\n" not in str(raised.value)
    del raised
    gc.collect()
    assert capfd.readouterr() == ("", "")


def test_an_exported_program_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(InputError, match=r"there is no file 'nowhere\.pt2'"):
        exported_program(Path("nowhere.pt2"))


def test_arguments_of_what_takes_none_are_refused() -> None:
    with pytest.raises(InputError, match="--set: 'SAVED' takes no arguments, got k, n"):
        load_tasks(f"{FILE}:SAVED", {"n": 32, "k": 8})


TORCH_FILE = """
import torch

layer = torch.nn.Linear(16, 8)
inputs = (torch.randn(4, 16),)
saved = torch.export.export(layer, inputs)
number = 3

class Wrong(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no such head")

def net(width=8):
    return torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU()), inputs

def wrong():
    return Wrong(), inputs

def twice():
    return saved, inputs
"""


@pytest.mark.parametrize("wrong", ["torch.nn.Linear(8, 8), (x.T,)", "Branch(), (x,)"])
def test_what_torch_says_of_a_module_is_one_line(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "import torch\nx = torch.randn(4, 8)\nclass Branch(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x if x.sum() > 0 else -x\n"
        f"def net():\n    return {wrong}\n"
    )
    done = Shell(tmp_path).gnnperf("retrieve", "models.py:net", "--no-store", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = [text for text in done.stderr.splitlines() if not text.startswith("gnnperf: reading")]
    assert line.startswith("gnnperf: kernel: torch cannot export 'net': ")


def test_torch_models_of_python_files(tmp_path: Path) -> None:
    path = tmp_path / "models.py"
    path.write_text(TORCH_FILE)
    assert is_tvm_kernel(f"{path}:net")
    for width in (8, 24):
        program = tvm_program(f"{path}:net", Given({"width": width}))
        assert program.name == "net" and program.whole is not None
        assert [4, width] in [[int(n) for n in task.function.params[-1].shape] for task in program.tasks]
    assert tvm_program(f"{path}:saved", Given()).name == "saved"
    for name, said in {
        "layer": r"expected example inputs beside the torch module layer: .* that returns \(module, \(x,\)\)",
        "wrong": "torch cannot export 'wrong': no such head",
        "twice": "an exported program takes none",
        "inputs": r"expected 'inputs' to be .* \(torch module, example inputs\).* got tuple",
        "number": "got int",
    }.items():
        with pytest.raises(InputError, match=said) as raised:
            tvm_program(f"{path}:{name}", Given())
        assert "\n" not in str(raised.value)
    path.write_text("import dace\nimport torch\n")
    assert not is_tvm_kernel(f"{path}:net")


@pytest.mark.parametrize("value", ["text", 3])
def test_results_that_are_no_tensors_are_named(value: Any) -> None:
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"doubled": 2 * x, "nothing": None, "value": value}

    with pytest.raises(
        InputError, match=f"expected 'Model' to return tensors, got {value!r} among its results"
    ):
        tvm_program(Model(), Given(inputs=(torch.ones(4, 8),)))


def test_a_file_that_torch_saved_otherwise_is_told_how_to_save(tmp_path: Path) -> None:
    import torch

    torch.save({"weight": torch.ones(3)}, path := tmp_path / "weights.pt2")
    with pytest.raises(InputError, match=r"expected what torch\.export\.save\(.* writes") as raised:
        tvm_program(str(path), Given())
    assert "warnings" not in str(raised.value)


@pytest.mark.parametrize("suffix", [".json", ".pt2"])
def test_bad_files_are_one_clear_line(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="is no") as raised:
        tvm_program(str(path), Given())
    assert "\n" not in str(raised.value)


def test_kernels_of_tvm_are_recognised_without_running_them() -> None:
    assert is_tvm_kernel(f"{FILE}:broken")
    assert is_tvm_kernel("x.json")
    assert not is_tvm_kernel(f"{kernels_dace.__file__}:matmul")
    assert not is_tvm_kernel("nowhere.py:f")
