"""Whole programs through relax: legalised, fused, and split into tasks as MetaSchedule splits them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.tasks import TvmTask, single
from gnnperf.frontends.user_files import first_line


def exported_tasks(path: Path, target: Any = None) -> tuple[TvmTask, ...]:
    """Tasks of a program saved by `torch.export.save`. Raises InputError."""
    if not path.is_file():
        raise InputError(f"kernel: there is no file {str(path)!r}")
    import torch

    try:
        program = torch.export.load(path)
    except Exception as error:  # anything may be wrong with a file
        raise InputError(
            f"kernel: {str(path)!r} is no program saved by torch.export.save "
            f"({type(error).__name__}: {first_line(error)})"
        ) from None
    return program_tasks(program, path.stem, target)


def program_tasks(program: Any, name: str, target: Any = None) -> tuple[TvmTask, ...]:
    """Tasks of a `torch.export.ExportedProgram`. Raises InputError for what relax cannot import."""
    import_tvm()
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the importer's own use of torch
            module = from_exported_program(program, keep_params_as_input=True)
        module, _ = relax.frontend.detach_params(module)
    except Exception as error:  # the importer raises anything
        raise InputError(f"kernel: relax cannot import {name!r}: {first_line(error)}") from None
    return relax_tasks(module, name, target)


def relax_tasks(module: Any, name: str, target: Any = None) -> tuple[TvmTask, ...]:
    """Tasks of an IRModule with relax functions, after operators became loops and were fused.

    Tasks that are the same function count as one, with all its calls. Raises InputError.
    """
    tvm = import_tvm()
    from tvm import relax
    from tvm.s_tir import meta_schedule

    target = target or tvm.target.Target({"kind": "llvm", "num-cores": 1})
    passes = relax.transform
    try:
        with target:
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
            )(_without_weights(legal, passes))  # fmt: skip
        found = meta_schedule.relax_integration.extract_tasks(fused, target)
    except Exception as error:  # passes raise anything
        raise InputError(f"kernel: relax cannot split {name!r} into tasks: {first_line(error)}") from None
    if not found:
        raise InputError(f"kernel: {name!r} has no operator that becomes a loop nest")
    names = _unique([re.sub(r"\W", "_", f"{name}_{t.task_name}") for t in found])
    return tuple(
        TvmTask(own, _single(task.dispatched[0]), int(task.weight))
        for own, task in zip(names, found, strict=True)
    )


def _single(module: Any) -> Any:
    """The module with its one function called `main`."""
    (function,) = module.functions.values()
    return single(function)


def _without_weights(module: Any, passes: Any) -> Any:
    """The module without what depends on weights alone (transposing them, say), which is computed once,
    before the program runs."""
    if not any("num_input" in (f.attrs or {}) for f in module.functions.values()):
        return module
    lifted = passes.LiftTransformParams()(module)
    for variable in list(lifted.functions):
        if variable.name_hint.endswith("_transform_params"):
            del lifted[variable]
    return lifted


def _unique(names: list[str]) -> list[str]:
    """Names with a number where one occurs again."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result
