"""Whole programs through relax: legalised, fused, and split into tasks as MetaSchedule splits them."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError, first_line
from gnnperf.frontends.torch_modules import quiet_torch
from gnnperf.frontends.tvm import torch_missing, torch_scatter
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.quiet import quiet
from gnnperf.frontends.tvm.tasks import TvmTask, free_identifier, single
from gnnperf.frontends.tvm.torch_indices import counted_from_start
from gnnperf.frontends.tvm.torch_kept import Converter, or_kept
from gnnperf.frontends.tvm.weights import with_constant_weights
from gnnperf.frontends.tvm.whole_program import MAIN, WholeProgram
from gnnperf.schedules.traces.document import program_key


def exported_program(path: Path, target: Any = None) -> WholeProgram:
    """A program saved by `torch.export.save`, split into tasks. Raises InputError."""
    if not path.is_file():
        raise InputError(f"kernel: there is no file {str(path)!r}")
    import torch

    try:
        with quiet_torch():
            program = torch.export.load(path)
    except Exception as error:  # anything may be wrong with a file
        # What torch raises where the file is of another kind points to warnings that it logs.
        said = "" if isinstance(error, RuntimeError) else f" ({type(error).__name__}: {first_line(error)})"
        raise InputError(
            f"kernel: {str(path)!r} is no program saved by torch.export.save{said}: expected what "
            "torch.export.save(torch.export.export(module, inputs), path) writes"
        ) from None
    return torch_program(program, path.stem, target)


def torch_program(program: Any, name: str, target: Any = None) -> WholeProgram:
    """A `torch.export.ExportedProgram`, split into tasks. Raises InputError for what relax cannot import."""
    import_tvm()
    from tvm import relax

    try:
        imported, kept = _imported(program, weights_apart=True)
        module, weights = relax.frontend.detach_params(imported)
    except Exception as error:  # the importer raises anything
        raise InputError(f"kernel: relax cannot import {name!r}: {first_line(error)}") from None
    found = relax_program(module, name, target)
    if not found.computes:
        what = (
            f"TVM imports none of its operators ({', '.join(dict.fromkeys(kept))})"
            if kept
            else "it computes nothing"
        )
        raise InputError(f"kernel: {name!r} stays with PyTorch: {what}")
    return replace(found, weights=[weight.numpy() for weight in weights[MAIN]], kept=kept)


def plain_program(program: Any, target: Any) -> WholeProgram:
    """A `torch.export.ExportedProgram` as TVM compiles it by itself: operators one by one, weights inside."""
    module, kept = _imported(program, weights_apart=False)
    return WholeProgram(module, target, kept=kept)


def relax_program(module: Any, name: str, target: Any = None) -> WholeProgram:
    """An IRModule with relax functions, after operators became loops and were fused, with its tasks.

    Tasks that are the same function count as one, with all its calls. Raises InputError.
    """
    tvm = import_tvm()
    from tvm import relax
    from tvm.s_tir import meta_schedule

    target = target or tvm.target.Target({"kind": "llvm", "num-cores": 1})
    passes = relax.transform
    try:
        with target, quiet():
            legal = tvm.transform.Sequential(
                [
                    passes.DecomposeOpsForInference(), passes.CanonicalizeBindings(), passes.LegalizeOps(),
                    passes.AnnotateTIROpPattern(),
                ]
            )(module)  # fmt: skip
            fused = tvm.transform.Sequential(
                [
                    passes.DeadCodeElimination(), passes.FoldConstant(), passes.FuseOps(), passes.FuseTIR(),
                    passes.RewriteDataflowReshape(),  # reshapes that are views run nothing
                ]
            )(_with_weights_apart(legal, passes))  # fmt: skip
            plain = {variable.name_hint for variable in fused.functions}
            if _has_weights(fused):
                fused = passes.AttachAttrLayoutFreeBuffers()(fused)
        found = meta_schedule.relax_integration.extract_tasks(_without_preparation(fused), target)
    except Exception as error:  # passes raise anything
        _end_blocks(error)
        raise InputError(f"kernel: relax cannot split {name!r} into tasks: {first_line(error)}") from None
    tasks: dict[str, TvmTask] = {}
    for task in found:
        own = free_identifier(f"{name}_{_original(task.task_name, plain)}", tasks)
        tasks[own] = TvmTask(own, with_constant_weights(_single(task.dispatched[0])), int(task.weight))
    return WholeProgram(fused, target, (), tuple(tasks.values()), _sites(fused, tasks.values()))


def _imported(program: Any, weights_apart: bool) -> tuple[Any, list[str]]:
    """The IRModule of a program, and the operators in it that stay with PyTorch. weights_apart: they are
    arguments, not constants."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    kept: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the importer's own use of torch
        program, importer = program.run_decompositions(_decompositions()), ExportedProgramImporter()
        own = {name: _of_node(convert) for name, convert in importer.convert_map.items()}
        known = {**own, **torch_missing.converters(own), **torch_scatter.converters()}
        called = {node.target.__name__ for node in program.graph.nodes if node.op == "call_function"}
        chosen = {name: or_kept(known.get(name), kept) for name in called}
        try:
            module = importer.from_exported_program(program, weights_apart, False, False, chosen)
        except Exception as error:
            _end_blocks(error)
            raise
        return counted_from_start(module), kept


def _decompositions() -> Any:
    import torch

    table: Any = torch.export.default_decompositions()
    return {
        operator: taken for operator, taken in table.items() if operator._opname not in torch_missing.WHOLE
    }


def _of_node(convert: Any) -> Converter:
    return lambda node, _: convert(node)


def _end_blocks(error: Exception) -> None:
    """Ends the blocks that the importer or a pass was building when it gave up: TVM warns of those that are
    left, on standard error and whenever Python happens to collect them."""
    tvm = import_tvm()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        own = frame.f_locals
        for builder in (*own.values(), getattr(own.get("self"), "block_builder", None)):
            if isinstance(builder, tvm.relax.BlockBuilder):
                with contextlib.suppress(tvm.error.InternalError):  # "no block is being built"
                    while True:
                        builder._end_block()


def _sites(module: Any, tasks: Iterable[TvmTask]) -> dict[str, str]:
    """The task that every function of a program is, by the function's name."""
    from tvm.tirx import PrimFunc

    known = {program_key(_bare(task.function)): task.name for task in tasks}
    functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, PrimFunc)}
    found = {name: known.get(program_key(_bare(f))) for name, f in functions.items()}
    return {name: task for name, task in found.items() if task is not None}


def _bare(function: Any) -> Any:
    """A function without attributes: in these, one of a program and the task that it is differ."""
    for key in list(function.attrs.keys()) if function.attrs else ():
        function = function.without_attr(key)
    return function


def _single(module: Any) -> Any:
    """The module with its one function called `main`."""
    (function,) = module.functions.values()
    return single(function)


def _with_weights_apart(module: Any, passes: Any) -> Any:
    """The module with what depends on weights alone (transposing them, say) in a function of its own, which
    runs once, before the program runs."""
    if not _has_weights(module):
        return module
    return passes.LiftTransformParams()(module)


def _has_weights(module: Any) -> bool:
    return any("num_input" in (function.attrs or {}) for function in module.functions.values())


def _without_preparation(module: Any) -> Any:
    """The module without that function: nothing in it is tuned."""
    tvm = import_tvm()
    kept = {v: f for v, f in module.functions.items() if not v.name_hint.endswith("_transform_params")}
    return tvm.IRModule(kept, attrs=module.attrs)


def _original(name: str, known: Collection[str]) -> str:
    """Of a function that a pass made of another one: its name with a number."""
    made_of = [old for old in known if name.startswith(old) and name[len(old) :].isdecimal()]
    return name if name in known else max(made_of, key=len, default=name)
