"""Kernels of TVM and of torch as programs: what was named or given, split into tasks."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from gnnperf.errors import InputError
from gnnperf.frontends.base import Given, Skipped, is_of, kernel_type
from gnnperf.frontends.torch_modules import export_module
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.load import imported_packages, is_torch_kernel, load_named, tasks_of
from gnnperf.frontends.tvm.relax_programs import exported_program
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.tasks import TvmTask
from gnnperf.frontends.tvm.weights import (
    PACKED_AHEAD,
    has_free_weights,
    packed_where_it_pays,
    with_constant_weights,
)
from gnnperf.frontends.tvm.whole_program import WholeProgram

BASELINE = "tvm-default"
"""The unscheduled function: relax's default pipeline for CPUs legalises and fuses, but schedules nothing."""


CONSTANT_WEIGHTS = BASELINE + PACKED_AHEAD
"""The same, where what packs weights is no part of what is timed: the unscheduled function packs none."""
WEIGHTS = ("varying", "constant")


@dataclass
class TvmProgram:
    """A kernel as tasks for one target.

    whole: the program that the tasks are of, where it can be run as one. exported: the file that PyTorch
    saved it to.
    """

    name: str
    tasks: Sequence[TvmTask]
    target: Any
    whole: WholeProgram | None = None
    exported: Path | None = None
    skipped: Sequence[Skipped] = ()
    notes: Sequence[str] = ()
    frontend: ClassVar[str] = "tvm"
    schedule_kind: ClassVar[str] = "trace"


def tvm_program(kernel: Any, given: Given) -> TvmProgram:
    """The program of a TVM or torch kernel, for this machine's CPU.

    kernel: `file.py:name`, a saved module (`.json`), an exported program (`.pt2`), a PrimFunc, an IRModule, a
    list of TE tensors, a `torch.nn.Module` with example inputs, or an ExportedProgram. Raises InputError.
    """
    given.refuse("a TVM kernel", "seed")
    set_runtime_threads()
    if is_of(kernel, "torch"):
        _takes_no_sizes(given, type(kernel).__name__)
        return _of_torch(kernel, given.inputs, given, None)
    given.refuse("a TVM kernel", "inputs")
    if isinstance(kernel, str | Path):
        path = Path(kernel)
        if path.suffix in (".json", ".pt2"):
            _takes_no_sizes(given, path.name)
        if path.suffix == ".pt2":
            _keeps_weights(given)
            return _exported(path, path.stem)
        import_tvm(without_torch="torch" not in imported_packages(str(kernel)))
        kernel, name = load_named(str(kernel), given.sizes)
        if is_torch_kernel(kernel):
            kernel, inputs = kernel if isinstance(kernel, tuple) else (kernel, None)
            return _of_torch(kernel, inputs, given, name)
    else:
        import_tvm()
        name = _name_of(kernel)
        _takes_no_sizes(given, name)
    target = host_target()
    return TvmProgram(name, _with_weights(tasks_of(kernel, name, target), name, given.weights), target)


def _with_weights(tasks: Sequence[TvmTask], name: str, weights: str | None) -> Sequence[TvmTask]:
    """Tasks whose weights are as the user says. Raises InputError where there is nothing to say."""
    if weights not in (None, *WEIGHTS):
        raise InputError(f"--weights: expected {' or '.join(WEIGHTS)}, got {weights!r}")
    free = [
        task for task in tasks
        if has_free_weights(task.function) and not task.constant_weights and task.unsupported is None
    ]  # fmt: skip
    if weights is not None and not free:
        raise InputError(
            f"--weights: expected a function that leaves the layout of weights free (layout_free_buffers), "
            f"which {name!r} does not; leave it out"
        )
    if weights == "constant":
        return [replace(t, module=with_constant_weights(t.module)) if t in free else t for t in tasks]
    return [
        task if task.constant_weights or task.unsupported is not None
        else replace(task, module=packed_where_it_pays(task.module))
        for task in tasks
    ]  # fmt: skip


def _takes_no_sizes(given: Given, name: str) -> None:
    if given.sizes:
        raise InputError(f"--set: {name!r} takes no arguments, got {', '.join(sorted(given.sizes))}")


def _name_of(kernel: Any) -> str:
    """Of an object: its symbol, or a word."""
    attributes = getattr(kernel, "attrs", None) or {}
    return str(attributes.get("global_symbol", "") or "kernel")


def _keeps_weights(given: Given) -> None:
    given.refuse("a torch program, whose weights are constant,", "weights")


def _of_torch(kernel: Any, inputs: Any, given: Given, name: str | None) -> TvmProgram:
    """A module is exported with its example inputs and saved: other processes run it beside what is tuned.
    name: None: of its class."""
    import torch

    _keeps_weights(given)
    if isinstance(kernel, torch.nn.Module):
        name = name or type(kernel).__name__
        kernel = export_module(kernel, inputs, name)
    elif isinstance(kernel, torch.export.ExportedProgram):
        replace(given, inputs=inputs).refuse("an exported program", "inputs")
        name = name or "program"
    else:
        raise InputError(
            f"kernel: expected a torch.nn.Module or an ExportedProgram, got {kernel_type(kernel)}"
        )
    _returns_tensors(kernel, name)
    folder = tempfile.mkdtemp(prefix="gnnperf-torch-")
    path = Path(folder) / f"{name}.pt2"
    try:
        torch.export.save(kernel, path)
        program = _exported(path, name)
    except BaseException:
        shutil.rmtree(folder)
        raise
    weakref.finalize(program, shutil.rmtree, folder, ignore_errors=True)  # other processes load it from there
    return program


def _returns_tensors(program: Any, name: str) -> None:
    """Raises InputError for an exported program with results that are text or numbers."""
    from torch.export.graph_signature import ConstantArgument

    for spec in program.graph_signature.output_specs:
        if isinstance(spec.arg, ConstantArgument) and spec.arg.value is not None:
            raise InputError(
                f"kernel: expected {name!r} to return tensors, got {spec.arg.value!r} among its results; "
                "leave it out of what forward returns"
            )


def _exported(path: Path, name: str) -> TvmProgram:
    import_tvm()
    target = host_target()
    whole = exported_program(path, target)
    skipped = [
        Skipped(f"{count} x {operator}" if count > 1 else operator, "TVM does not import it; PyTorch runs it")
        for operator, count in Counter(whole.kept).items()
    ]
    return TvmProgram(name, whole.tasks, target, whole, path, skipped)
