"""The user's files: Python modules with `@dace.program`s or input functions, and saved SDFGs."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import dace
from dace.frontend.python.parser import DaceProgram

from gnnperf.errors import InputError
from gnnperf.frontends.dace.codegen import first_line
from gnnperf.frontends.dace.quiet import quiet_dace


def split_spec(spec: str, what: str) -> tuple[Path, str]:
    """`path/to/file.py:name` as its two parts."""
    text, separator, name = spec.rpartition(":")
    if not separator or not name.isidentifier():
        raise InputError(f"{what}: expected path/to/file.py:name, got {spec!r}")
    return Path(text), name


def load_attribute(path: Path, name: str, what: str) -> Any:
    """`name` of the Python file at `path`; the file is run as a module of its own."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {str(path)!r}")
    unique = _module_name(path)
    specification = importlib.util.spec_from_file_location(unique, path.resolve())
    if specification is None or specification.loader is None:
        raise InputError(f"{what}: {str(path)!r} is not a Python file (expected file.py:name)")
    module = importlib.util.module_from_spec(specification)
    folder = str(path.resolve().parent)
    sys.modules[unique] = module  # DaCe looks up a function's globals through its module
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):  # standard output may be a JSON document
            specification.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.filename else str(path)
        raise InputError(f"{what}: {where}: syntax error: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the file is the user's
        raise InputError(
            f"{what}: importing {str(path)!r} failed: {type(error).__name__}: {first_line(error)}"
        ) from None
    finally:
        sys.path.remove(folder)
    if not hasattr(module, name):
        have = sorted(k for k, v in vars(module).items() if isinstance(v, DaceProgram))
        hint = f"; it has {', '.join(have)}" if have else ""
        raise InputError(f"{what}: {str(path)!r} has no {name!r}{hint}")
    return getattr(module, name)


def _module_name(path: Path) -> str:
    """A name of its own for the user's module (DaCe makes it part of labels)."""
    name = "user_" + re.sub(r"\W", "_", path.stem)
    return next(n for k in itertools.count() if (n := f"{name}_{k}" if k else name) not in sys.modules)


def load_program(spec: str) -> DaceProgram:
    path, name = split_spec(spec, "kernel")
    program = load_attribute(path, name, "kernel")
    if not isinstance(program, DaceProgram):
        raise InputError(
            f"kernel: expected {name!r} to be a @dace.program, got {type(program).__name__}; "
            "decorate the function with @dace.program"
        )
    return program


def parse_program(program: DaceProgram, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The SDFG of a program, not simplified, and the arrays of its closure (global arrays it uses).

    Arguments without type annotations take the types of the `given` arrays.
    """
    arguments = {k: v for k, v in given.items() if k in program.argnames}
    annotated = all(k in program.f.__annotations__ for k in program.argnames)
    _evaluate_annotations(program)
    with quiet_dace():
        try:
            sdfg = (
                program.to_sdfg(simplify=False) if annotated else program.to_sdfg(simplify=False, **arguments)
            )
            closure = program.__sdfg_closure__()
        except KeyboardInterrupt:
            raise
        except Exception as error:  # DaCe's parser raises anything
            hint = "" if annotated else "; annotate its arguments, or give --inputs file.py:function"
            raise InputError(
                f"kernel: DaCe cannot parse {program.f.__name__!r}: {_reason(error)}{hint}"
            ) from None
    arrays = {k: v for k, v in closure.items() if k in sdfg.arrays}
    return sdfg, arrays


def _evaluate_annotations(program: DaceProgram) -> None:
    """DaCe does not read the text that `from __future__ import annotations` makes of annotations, in
    the program or in others that it may call."""
    called = [v for v in program.f.__globals__.values() if isinstance(v, DaceProgram)]
    for one in [*called, program]:
        try:
            parameters = [_evaluated(one, p) for p in one.signature.parameters.values()]
        except InputError:
            if one is program:
                raise
            continue
        one.signature = one.signature.replace(parameters=parameters)


def _evaluated(program: DaceProgram, parameter: inspect.Parameter) -> inspect.Parameter:
    text = parameter.annotation
    if not isinstance(text, str):
        return parameter
    try:
        annotation = eval(text, program.f.__globals__)
    except Exception as error:
        raise InputError(
            f"kernel: the annotation {parameter.name}: {text} of {program.f.__name__!r} "
            f"has no meaning: {first_line(error)}"
        ) from None
    program.f.__annotations__[parameter.name] = annotation
    return parameter.replace(annotation=annotation)


def _reason(error: BaseException) -> str:
    """DaCe appends the place to its messages, on lines of their own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ", ".join(lines[:2])[:300] or type(error).__name__


def load_sdfg(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"kernel: there is no file {str(path)!r}")
    absolute = str(path.resolve())  # DaCe runs in a folder of its own
    with quiet_dace():
        try:
            return dace.SDFG.from_file(absolute)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            raise InputError(
                f"kernel: {str(path)!r} is not a readable SDFG ({type(error).__name__}: {first_line(error)})"
            ) from None
