"""Whatever the user gets wrong: exit code 2, one line that says what to do, nothing on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell

from gnnperf.cli.main import run
from gnnperf.shipped import shipped

FILES = {
    "syntax.py": "import dace\n\ndef f(:\n",
    "imports.py": "import no_such_module_anywhere\n",
    "raises.py": "raise ValueError('first line\\nsecond line')\n",
    "exits.py": "raise SystemExit(0)\n",
    "empty.py": "",
    "binary.py": "\x01\xff",
    "notes.txt": "notes",
    "broken.sdfg": "not an SDFG",
    "broken.sdfgz": "not an SDFG",
    "other.sdfg": "{}",
    "kernels.py": """
import dace
import numpy as np

N = dace.symbol("N")
number = 3

def plain(x):
    x[:] = 1

@dace.program
def good(x: dace.float64[N]):
    x[:] = 2 * x

@dace.program
def gather(x: dace.float64[N], where: dace.int32[N], y: dace.float64[N]):
    for i in dace.map[0:N]:
        y[i] = x[where[i]]

@dace.program
def unannotated(x):
    x[:] = 1

@dace.program
def prints(x: dace.float64[N]):
    print(x)

@dace.program
def unsupported(x: dace.float64[N]):
    x[:] = np.partition(x, 2)

@dace.program
def undefined(x: dace.float64[N]):
    x[:] = y

@dace.program
def shapes(x: dace.float64[N]):
    x[:] = x[0:2] + x[0:3]

@dace.program
def text(x: dace.float64[N], s: str):
    x[:] = 1

@dace.program
def generator(x: dace.float64[N]):
    yield x

@dace.program
def tries(x: dace.float64[N]):
    try:
        x[:] = 1
    except ValueError:
        x[:] = 2

@dace.program
def sparse(starts: dace.int32[N + 1], x: dace.float64[N]):
    for i in dace.map[0:N]:
        for j in range(starts[i], starts[i + 1]):
            x[i] += j
""",
    "inputs.py": """
import numpy as np

value = 3
def wrong_shape(): return {"x": np.ones((3, 3))}
def wrong_dtype(N): return {"x": np.ones(N, np.float32)}
def unknown(): return {"zz": np.ones(3)}
def not_a_dict(): return [1]
def nothing(): pass
def raises(): raise RuntimeError("no such data\\nsecond line")
def exits(): raise SystemExit(0)
def needs(size): return {}
def text(): return {"x": "abc"}
def objects(N): return {"x": np.array([None] * N)}
def scalar(): return {"x": 3.0}
def beyond(N): return {"where": np.arange(1, N + 1, dtype=np.int32)}
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="latin-1")
    (folder / "folder.sdfg").mkdir()
    return folder


GOOD = "kernels.py:good --set N=8"
MISTAKES = {
    # the command line
    "": "Missing argument 'KERNEL'",
    "a b": "unexpected extra argument",
    f"{GOOD} --nonsense": "No such option '--nonsense'",
    f"{GOOD} -k 0": "Invalid value for '-k'",
    f"{GOOD} -k many": "Invalid value for '-k'",
    f"{GOOD} --budget 0": "expected a number of seconds above 0, got 0",
    f"{GOOD} --budget nan": "expected a number of seconds above 0, got nan",
    f"{GOOD} --baseline best": "--baseline: expected one of auto, simplify, got 'best'",
    f"{GOOD} --seed x": "Invalid value for '--seed'",
    f"{GOOD} --seed -1": "-1 is not in the range x>=0",
    f"{GOOD} --checkpoint nowhere": "'nowhere' does not exist",
    f"{GOOD} --checkpoint .": "expected a checkpoint folder with metadata.json and weights.pt",
    f"{GOOD} --checkpoint {shipped('checkpoints/gpu-runtime')}": "of loop-nests, got one of gpu-runtime",
    f"{GOOD} --checkpoint {shipped('checkpoints/tensor-programs')}": "got one of tensor-programs",
    f"{GOOD} --store notes.txt": "expected a folder for a schedule store, got the file notes.txt",
    f"{GOOD} --store notes.txt/store": "expected a folder for a schedule store, got the file notes.txt",
    f"{GOOD} --store here --no-store": "exclude one another",
    f"{GOOD} --output out --model-only": "leave out --model-only",
    f"{GOOD} --budget 1 --model-only": "leave out --model-only",
    f"{GOOD} --output notes.txt": "'notes.txt' is a file",
    f"{GOOD} --output notes.txt/out": "expected a folder that can be written",
    f"{GOOD} --output /proc/out": "expected a folder that can be written",
    # symbols
    "kernels.py:good": "no value for the symbol N; give --set N=512",
    "kernels.py:good --set N": "expected NAME=NUMBER, such as N=512, got 'N'",
    "kernels.py:good --set N=": "expected NAME=NUMBER",
    "kernels.py:good --set =8": "expected NAME=NUMBER",
    "kernels.py:good --set N=nan": "expected NAME=NUMBER",
    "kernels.py:good --set N=1e400": "expected NAME=NUMBER",
    "kernels.py:good --set N=99999999999999999999": "expected NAME=NUMBER",
    "kernels.py:good --set N=2.5": "expected an integer for the symbol N, got 2.5",
    "kernels.py:good --set N=-8": "extents must be positive",
    "kernels.py:good --set N=999999999999": "choose smaller sizes",
    f"{GOOD} --set M=8": "the kernel has no symbol or scalar M; it has N",
    f"{GOOD} --set x=8": "the kernel has no symbol or scalar x; it has N",
    # kernels
    "kernels.py": "expected path/to/file.py:name",
    "kernels.py:": "expected path/to/file.py:name",
    "kernels.py:not-a-name": "expected path/to/file.py:name",
    "kernels.py:nothing": "has no 'nothing'; it has",
    "kernels.py:plain": "decorate the function with @dace.program",
    "kernels.py:number": "expected 'number' to be a @dace.program, got int",
    "nowhere.py:f": "there is no file 'nowhere.py'",
    "nowhere.sdfg": "there is no file 'nowhere.sdfg'",
    ".": "expected path/to/file.py:name",
    ".:good": "there is no file",
    "folder.sdfg": "there is no file",
    "notes.txt:f": "is not a Python file",
    "broken.sdfg": "is not a readable SDFG",
    "broken.sdfgz": "is not a readable SDFG",
    "other.sdfg": "is not a readable SDFG",
    "syntax.py:f": "syntax.py:3: syntax error",
    "imports.py:f": "No module named 'no_such_module_anywhere'",
    "raises.py:f": "importing 'raises.py' failed: ValueError: first line",
    "exits.py:f": "importing 'exits.py' failed: SystemExit",
    "empty.py:f": "has no 'f'",
    "binary.py:f": "syntax error",
    # constructs
    "kernels.py:unannotated": "annotate its arguments",
    "kernels.py:prints --set N=8": "DaCe cannot compile print",
    "kernels.py:unsupported --set N=8": "DaCe cannot compile numpy_partition",
    "kernels.py:undefined --set N=8": 'Use of undefined variable "y"',
    "kernels.py:shapes --set N=8": "could not be broadcast together",
    "kernels.py:text --set N=8": "which cannot be given",
    "kernels.py:generator --set N=8": "DaCe cannot parse 'generator'",
    "kernels.py:tries --set N=8": "DaCe cannot parse 'tries'",
    # inputs
    "kernels.py:sparse --set N=8": "loops depend on the contents of starts; give real inputs with --inputs",
    f"{GOOD} --inputs inputs.py": "--inputs: expected path/to/file.py:name",
    f"{GOOD} --inputs inputs.py:missing": "has no 'missing'",
    f"{GOOD} --inputs nowhere.py:f": "there is no file 'nowhere.py'",
    f"{GOOD} --inputs syntax.py:f": "syntax.py:3: syntax error",
    f"{GOOD} --inputs inputs.py:value": "expected 'value' to be a function, got int",
    f"{GOOD} --inputs inputs.py:wrong_shape": "x: expected shape (8,), got (3, 3)",
    f"{GOOD} --inputs inputs.py:wrong_dtype": "x: expected float64 elements, got float32",
    f"{GOOD} --inputs inputs.py:unknown": "the kernel has no argument zz; it takes x",
    f"{GOOD} --inputs inputs.py:not_a_dict": "to return a dict",
    f"{GOOD} --inputs inputs.py:nothing": "to return a dict",
    f"{GOOD} --inputs inputs.py:raises": "'raises' failed: RuntimeError: no such data",
    f"{GOOD} --inputs inputs.py:exits": "'exits' failed: SystemExit",
    f"{GOOD} --inputs inputs.py:needs": "needs 'size'; give it with --set size=512",
    f"{GOOD} --inputs inputs.py:text": "x: expected shape (8,), got ()",
    f"{GOOD} --inputs inputs.py:objects": "x: expected float64 elements, got object",
    f"{GOOD} --inputs inputs.py:scalar": "x: expected shape (8,), got ()",
}
"""Arguments of `gnnperf retrieve` -> what the line must say."""


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("GNNPERF_STORE", raising=False)
    before = sorted(folder.iterdir())
    exit_code = run(["retrieve", *arguments.split()])
    captured = capfd.readouterr()
    assert (exit_code, captured.out) == (2, ""), captured.err
    (line,) = captured.err.splitlines()
    assert line.startswith("gnnperf: ")
    assert MISTAKES[arguments] in line
    assert "unexpected " not in line.removeprefix("gnnperf: Got unexpected extra")
    assert sorted(p for p in folder.iterdir() if p.name != "__pycache__") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["retrieve", f"{KERNELS}:scores"], "give --set K=512 --set M=512 --set N=512"),
        (["retrieve", f"{KERNELS}:calls_back", "--set", "N=8"], "call back into Python"),
        (["embed", "syntax.py:f"], "syntax error"),
        (["collect", "notes.txt"], "expected a mapping with `name` and a list `entries`"),
        (["collect", "nowhere.yaml"], "'nowhere.yaml' does not exist"),
        (["store", "info", "nowhere"], "nowhere"),
    ],
)
def test_as_the_shell_sees_it(arguments: list[str], message: str, folder: Path) -> None:
    shell = Shell(folder)
    done = shell.gnnperf(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gnnperf: ")
    assert message in line
    assert list(shell.temporary.iterdir()) == []


def test_a_kernel_that_fails_untuned_is_the_users_to_mend(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernel.py").write_text(
        "import dace\nN = dace.symbol('N')\n\n"
        "@dace.program\ndef beyond(x: dace.float64[N]):\n    x[N + 5] = 1\n"
    )
    done = Shell(tmp_path).here(capfd, "retrieve", "kernel.py:beyond", "--set", "N=64", "--no-store")
    assert (done.exit_code, done.stdout) == (1, "")
    *progress, line = done.stderr.splitlines()
    assert all(text.startswith("gnnperf: reading") for text in progress)
    assert "the kernel fails before anything is tuned" in line
    assert "written out of bounds" in line


def test_inputs_that_lead_a_kernel_out_of_its_arrays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    command = ["retrieve", "kernels.py:gather", "--set", "N=8", "--inputs", "inputs.py:beyond"]
    assert run([*command, "--no-store", "--output", "out"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == (
        "gnnperf: gather_0: expected x to be used within its bounds, got 1 accesses where where[i] is not"
        " from 0 to below 8 (dimension 0); correct --inputs, or the kernel"
    )
