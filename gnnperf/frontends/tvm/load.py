"""From what the user names to tasks: Python files, saved modules, exported torch programs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError, first_line
from gnnperf.frontends.base import is_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.initial_values import with_initial_values
from gnnperf.frontends.tvm.quiet import quiet
from gnnperf.frontends.tvm.relax_programs import relax_program
from gnnperf.frontends.tvm.tasks import TvmTask, free_identifier, single
from gnnperf.frontends.user_files import load_attribute, split_spec


def is_tvm_kernel(spec: str) -> bool:
    """Does KERNEL name something of TVM's or of torch's: a saved module, an exported program, or a Python
    file that imports tvm, or torch and not dace? Imports nothing itself."""
    if Path(spec).suffix in (".json", ".pt2"):
        return True
    packages = imported_packages(spec)
    return "tvm" in packages or ("torch" in packages and "dace" not in packages)


def imported_packages(spec: str) -> set[str]:
    """What the Python file of `file.py:name` imports, as far as reading it tells."""
    path = Path(spec.rpartition(":")[0])
    if path.suffix != ".py" or not path.is_file():
        return set()
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return set()
    names = (
        [a.name for a in n.names] if isinstance(n, ast.Import) else [n.module or ""]
        for n in ast.walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
    )
    return {name.partition(".")[0] for found in names for name in found}


def load_tasks(
    spec: str, symbols: Mapping[str, float] | None = None, target: Any = None
) -> tuple[TvmTask, ...]:
    """Load `file.py:name` or a saved module (`.json`).

    `name` is a PrimFunc, an IRModule, a list of TE tensors (arguments, results last), or a function that
    returns one of these. symbols: arguments of that function (`--set`). target: a `tvm.target.Target`
    that relax programs are legalised for (default: plain llvm). Raises InputError.
    """
    return tasks_of(*load_named(spec, symbols or {}), target)


def load_named(spec: str, symbols: Mapping[str, float]) -> tuple[Any, str]:
    """What `file.py:name` is, or what that returns, or what a saved module (`.json`) holds; and its name.
    Raises InputError."""
    path = Path(spec)
    if path.suffix == ".json":
        return _saved(path), path.stem
    path, name = split_spec(spec, "kernel")
    return _called(load_attribute(path, name, "kernel"), name, symbols), name


def is_torch_kernel(thing: Any) -> bool:
    """Is it a torch module or an exported program, or a tuple of one and its example inputs?"""
    first = thing[0] if isinstance(thing, tuple) and len(thing) == 2 else thing
    return is_of(first, "torch")


def tasks_of(thing: Any, name: str, target: Any = None) -> tuple[TvmTask, ...]:
    """The tasks of a PrimFunc, an IRModule (relax functions are split), or a list of TE tensors.
    Raises InputError."""
    tvm = import_tvm()
    if isinstance(thing, list | tuple) and thing and all(isinstance(t, tvm.te.Tensor) for t in thing):
        try:
            with quiet():
                thing = tvm.te.create_prim_func(list(thing))
        except Exception as error:  # TVM raises anything
            raise InputError(f"kernel: TVM makes no function of {name!r}: {first_line(error)}") from None
    if isinstance(thing, tvm.tirx.PrimFunc):
        thing = single(thing)
    if not isinstance(thing, tvm.IRModule):
        raise InputError(
            f"kernel: expected {name!r} to be a PrimFunc, an IRModule, a list of TE tensors, (torch module, "
            f"example inputs), or a function that returns one, got {type(thing).__name__}"
        )
    functions = {
        variable: with_initial_values(function) if isinstance(function, tvm.tirx.PrimFunc) else function
        for variable, function in thing.functions.items()
    }
    if any(isinstance(f, tvm.relax.Function) for f in functions.values()):
        whole = tvm.IRModule(functions, attrs=thing.attrs)
        return tuple(relax_program(whole, name, target).tasks)
    found = {v.name_hint: f for v, f in functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    if not found:
        raise InputError(f"kernel: the module {name!r} has no PrimFunc to tune")
    tasks: dict[str, TvmTask] = {}
    for own, function in sorted(found.items()):
        task = free_identifier(name if len(found) == 1 else f"{name}_{own}", tasks)
        tasks[task] = TvmTask(task, single(function))
    return tuple(tasks.values())


def _called(thing: Any, name: str, symbols: Mapping[str, float]) -> Any:
    tvm = import_tvm()
    given = isinstance(thing, tvm.tirx.PrimFunc | tvm.IRModule | list | tuple) or is_torch_kernel(thing)
    if given or not callable(thing):
        if symbols:
            raise InputError(f"--set: {name!r} takes no arguments, got {', '.join(sorted(symbols))}")
        return thing
    try:
        return thing(**symbols)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the function is the user's
        raise InputError(
            f"kernel: calling {name!r} failed: {type(error).__name__}: {first_line(error)} "
            "(arguments are given by --set NAME=VALUE)"
        ) from None


def _saved(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"kernel: there is no file {str(path)!r}")
    try:
        return import_tvm().ir.load_json(path.read_text(encoding="utf-8"))
    except Exception as error:  # anything may be wrong with a file
        raise InputError(
            f"kernel: {str(path)!r} is no module saved by tvm.ir.save_json "
            f"({type(error).__name__}: {first_line(error)})"
        ) from None
