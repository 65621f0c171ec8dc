"""The user's files: Python modules with `@dace.program`s or input functions, and saved SDFGs."""

from __future__ import annotations

import inspect
import linecache
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

import dace
from dace.frontend.python.common import DaceSyntaxError
from dace.frontend.python.parser import DaceProgram

from gnnperf.errors import InputError, first_line
from gnnperf.frontends import user_files
from gnnperf.frontends.dace.parser import divided_as_in_slices, mend, repaired_parser
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.user_files import split_spec


def load_attribute(path: Path, name: str, what: str) -> Any:
    """`name` of the Python file at `path`; the message where there is none lists the file's programs."""
    return user_files.load_attribute(path, name, what, DaceProgram)


def load_program(spec: str) -> DaceProgram:
    path, name = split_spec(spec, "kernel")
    program = load_attribute(path, name, "kernel")
    if not isinstance(program, DaceProgram):
        raise InputError(
            f"kernel: expected {name!r} to be a @dace.program, got {type(program).__name__}; "
            "decorate the function with @dace.program"
        )
    return program


def parse_program(
    program: DaceProgram, given: dict[str, Any], keeps_axes: bool = True
) -> tuple[Any, dict[str, Any]]:
    """The SDFG of a program, not simplified, and the arrays of its closure (global arrays it uses).

    Arguments without type annotations take the types of the `given` arrays. keeps_axes: slices of one element
    have theirs, as in Python; to DaCe they have none.
    """
    arguments = {k: v for k, v in given.items() if k in program.argnames}
    annotated = all(k in program.f.__annotations__ for k in program.argnames)
    _evaluate_annotations(program)
    _take_sizes_for_symbols(program)
    with quiet_dace(), repaired_parser(keeps_axes):
        try:
            sdfg = (
                program.to_sdfg(simplify=False) if annotated else program.to_sdfg(simplify=False, **arguments)
            )
            closure = program.__sdfg_closure__()
            mend(sdfg)
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
    for one in _reached(program):
        try:
            parameters = [_evaluated(one, p) for p in one.signature.parameters.values()]
        except InputError:
            if one is program:
                raise
            continue
        one.signature = one.signature.replace(parameters=parameters)


def _reached(program: DaceProgram) -> list[DaceProgram]:
    """A program, and those whose names it, or one of them, mentions."""
    found = [program]
    for one in found:
        names = _names(one.f.__code__)
        known = (one.f.__globals__.get(name) for name in sorted(names))
        found += [v for v in known if isinstance(v, DaceProgram) and v not in found]
    return found


def _names(code: CodeType) -> set[str]:
    """What a function mentions that is not its own, inner functions included."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names}.union(*inner)


def _take_sizes_for_symbols(program: DaceProgram) -> None:
    """A scalar argument of the name of a symbol in the shapes of others (`N: int64, x: int64[N]`), which DaCe
    refuses, is the symbol: that is an argument anyway."""
    parameters = program.signature.parameters
    arrays = [p.annotation for p in parameters.values() if isinstance(p.annotation, dace.data.Array)]
    for array in arrays:
        divided_as_in_slices(array)
    symbols = {str(symbol) for array in arrays for symbol in array.free_symbols}
    sizes = {n for n, p in parameters.items() if n in symbols and isinstance(p.annotation, dace.typeclass)}
    program.signature = program.signature.replace(
        parameters=[p for n, p in parameters.items() if n not in sizes]
    )
    program.argnames = [n for n in program.argnames if n not in sizes]


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
    """DaCe appends the place to its own messages, on lines of their own. Of errors inside it, which say
    little, the place is where its parser was."""
    if isinstance(error, DaceSyntaxError):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return ", ".join(lines[:2])[:300]
    said = f"{type(error).__name__}: {first_line(error)}" if str(error) else type(error).__name__
    place = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "visitor" in frame.f_locals:
            place = getattr(frame.f_locals["visitor"], "current_lineinfo", place)
    if place is None:
        return said
    line = linecache.getline(place.filename, place.start_line).strip()
    return f"{said}, at line {place.start_line}: {line}"[:300]


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
