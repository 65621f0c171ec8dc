"""`retrieve --output DIR` of a TVM kernel: the tuned tasks in forms that outlive gnnperf.

DIR/libkernel.so     all tasks, scheduled or, where the baseline was kept, as they were; for this machine
DIR/libdnnl.so.3, .. where functions call a library: this, and libgnnperf_onednn.so, which hands it its work
DIR/schedules.json   the trace of every task that has one, and what it does in words
DIR/kernel.py        the scheduled functions as TVMScript
DIR/run.py           loads the library; `call(TASK, *arrays)` for other programs, `python run.py` to try it
DIR/report.json      the document of `--json`

Of an exported program there is also what runs it as a whole, see `program_output`.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnperf.backends.base import Trials
from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT, cannot_write
from gnnperf.backends.tvm.program_output import linked, write_program
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.frontends.tvm.tasks import uses_of
from gnnperf.frontends.tvm.vendor.functions import libraries_called
from gnnperf.frontends.tvm.vendor.library import VendorLibrary, compiled_file, installed_file, linking
from gnnperf.frontends.tvm.weights import Packing, unpacked

SCHEDULES, TVMSCRIPT = "schedules.json", "kernel.py"


def write_output(folder: Path, program: TvmProgram, trials: Sequence[Trials], report: str) -> None:
    """Write all files, each under a temporary name first: a full disk leaves no half file behind.

    report: text of report.json. Raises GnnperfError.
    """
    import tvm

    winners = {t.task.name: t.winner[0] for t in trials if t.winner}
    modules = {t.name: winners[t.name].program if t.name in winners else t.module for t in program.tasks}
    schedules = {
        task: {
            "words": candidate.words,
            "neighbour": candidate.neighbour_kernel,
            **candidate.schedule.to_dict(),
        }
        for task, candidate in winners.items()
    }
    unpacking = {name: unpacked(module) for name, module in modules.items()}
    packed = {name: packing for name, (_, packing) in unpacking.items() if packing is not None}
    try:
        combined = _combined({name: module for name, (module, _) in unpacking.items()})
        with tempfile.TemporaryDirectory(dir=folder, prefix=".gnnperf-") as scratch:
            new = Path(scratch)
            called = libraries_called(combined)
            with linked(LIBRARY):
                built = tvm.tirx.build(combined, program.target)
                built.export_library(str(new / LIBRARY), options=linking(called))
            beside = [*_copied(called, new)]
            (new / TVMSCRIPT).write_text(_readable(combined), encoding="utf-8")
            (new / SCHEDULES).write_text(json.dumps(schedules, indent=1) + "\n", encoding="utf-8")
            (new / SCRIPT).write_text(_script(program.name, program.tasks, packed), encoding="utf-8")
            (new / REPORT).write_text(report + "\n", encoding="utf-8")
            whole: tuple[str, ...] = ()
            if program.whole is not None and program.exported is not None:
                scheduled = {task: candidate.program for task, candidate in winners.items()}
                whole = write_program(new, program.name, program.whole, scheduled, linking(called))
            for file in (*beside, LIBRARY, TVMSCRIPT, SCHEDULES, SCRIPT, *whole, REPORT):
                (new / file).replace(folder / file)
    except OSError as error:
        raise cannot_write(folder, error) from None


def _combined(modules: dict[str, Any]) -> Any:
    """One module with a function per task, named after it; and what packs its weights, see `_packs`."""
    import tvm

    found = {}
    for task, module in modules.items():
        for variable, function in module.functions.items():
            name = task if variable.name_hint == "main" else _packs(task, variable.name_hint)
            found[name] = function.with_attr("global_symbol", name)
    return tvm.IRModule(found)


def _packs(task: str, name: str) -> str:
    """Name of a function that packs weights of a task."""
    return f"{task}_{name}"


def _readable(module: Any) -> str:
    """TVMScript that Python can import: TVM comments its imports out."""
    lines = module.script(show_meta=True).splitlines()
    return "\n".join(line.removeprefix("# ") if line.startswith("# from ") else line for line in lines) + "\n"


def _copied(called: Sequence[VendorLibrary], folder: Path) -> Iterator[str]:
    """Put libraries that functions call beside them; their file names."""
    for library in called:
        for file, name in (
            (compiled_file(library), library.compiled),
            (installed_file(library), library.file),
        ):
            shutil.copyfile(file, folder / name)
            yield name


_TEMPLATE = '''"""{name}: compiled by gnnperf. Needs apache-tvm and NumPy.

call(TASK, *arrays) runs a task in place. `python {script}` runs each once on made-up inputs.
{note}"""

import os
import pathlib
import time

os.environ.setdefault("TVM_NUM_THREADS", str(len(os.sched_getaffinity(0))))  # by itself it takes half of them

import numpy as np
import tvm

ARGUMENTS = {arguments}
"""(dtype, shape) of every argument, by task."""
RESULTS = {results}
"""By task: places of the arguments that it writes."""
PACKING = {packing}
"""Of tasks with constant weights: functions that pack, places of what they take, (dtype, shape) of what they
give, which is numbered on after the arguments; and places of what the task's function takes."""

library = tvm.runtime.load_module(str(pathlib.Path(__file__).resolve().parent / "{library}"))
weights = {{}}
"""By task: arrays, and what they were packed into."""


def taken(task, arrays, tensors):
    """What the task's function takes. Weights are packed once, as long as they are the same arrays."""
    if task not in PACKING:
        return tensors
    steps, takes = PACKING[task]
    places = sorted({{place for _, given, _ in steps for place in given}})
    mine = [arrays[place] for place in places]
    known = weights.get(task)
    if known is None or any(a is not b for a, b in zip(mine, known[0])):
        packed = []
        for name, given, results in steps:
            made = [tvm.runtime.empty(shape, dtype) for dtype, shape in results]
            library[name](*(tensors[place] for place in given), *made)
            packed += made
        known = weights[task] = mine, packed
    values = [*tensors[:-1], *known[1]]
    return [*(values[place] for place in takes), tensors[-1]]


def call(task, *arrays):
    """Run a task once on NumPy arrays in the order of its arguments; what it computes goes into these."""
    expected = ARGUMENTS[task]
    got = [(str(array.dtype), array.shape) for array in arrays]
    if got != expected:
        raise TypeError(f"{{task}}: expected {{expected}}, got {{got}}")
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    library[task](*taken(task, arrays, tensors))
    for place in RESULTS[task]:
        arrays[place][...] = tensors[place].numpy()


def example(task):
    """Arrays of the right kinds: the task runs, the values mean nothing."""
    rng = np.random.default_rng(0)
    return [rng.random(shape).astype(dtype) for dtype, shape in ARGUMENTS[task]]


if __name__ == "__main__":
    for task in ARGUMENTS:
        arrays = example(task)
        tensors = taken(task, arrays, [tvm.runtime.tensor(array) for array in arrays])
        times = []
        for _ in range(6):
            start = time.perf_counter()
            library[task](*tensors)
            times.append(time.perf_counter() - start)
        print(f"{{task}}: {{min(times) * 1e3:.3f}} ms")
'''


_PACKED = "Weights are packed at the first call, and again where a call has other arrays.\n"


def _script(name: str, tasks: Sequence[TvmTask], packed: Mapping[str, Packing]) -> str:
    lines = ""
    results: dict[str, list[int]] = {}
    for task in tasks:
        # `call` knows nothing of scalars and of shapes that vary: such a function is in the library alone.
        with contextlib.suppress(AttributeError, TypeError):
            arguments = [(str(b.dtype), tuple(int(n) for n in b.shape)) for b in task.function.params]
            results[task.name] = [n for n, use in enumerate(uses_of(task.function)) if use.written]
            lines += f"    {task.name!r}: {arguments!r},\n"
    packing = {
        task: ([(_packs(task, step), [*given], results) for step, given, results in one.steps], [*one.takes])
        for task, one in packed.items()
    }
    return _TEMPLATE.format(
        name=name, script=SCRIPT, library=LIBRARY, arguments="{\n" + lines + "}", results=results,
        packing=packing, note=_PACKED if packed else "",
    )  # fmt: skip
