"""How a program is read: as it is written, else for its sizes as numbers, else as DaCe alone has it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dace
import sympy
from dace.frontend.python.parser import DaceProgram
from dace.sdfg.replace import replace_properties_dict

from gnnperf.errors import InputError
from gnnperf.frontends.dace.inputs import resolve_symbols
from gnnperf.frontends.dace.source import parse_program
from gnnperf.measure.python_function import rebound


@dataclass(frozen=True)
class Parsed:
    """A program as an SDFG, not simplified. closure: global arrays that it uses. sizes: symbols that are
    numbers in it, and that it has no more. notes: what is to be said of how it was read."""

    sdfg: Any
    closure: dict[str, Any]
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()


AS_DACE_HAS_IT = (
    "slices of one element are read without their axis, as DaCe has them: with it, as in Python, the program "
    "cannot be read ({})"
)


def parse(program: DaceProgram, given: dict[str, Any], symbols: Mapping[str, float]) -> Parsed:
    """Read a program as it is, or where DaCe refuses that, with numbers for its symbols: it does not know
    that `x[::2] + x[1::2]`, or `x[: N // 2] + x[N // 2 :]`, are of one size where N is even. At last as DaCe
    reads slices of one element: programs were written for it.

    given: values of arguments. symbols: values of symbols. Raises InputError.
    """
    try:
        return Parsed(*parse_program(program, given), {})
    except InputError as refused:
        try:
            sizes = _sizes(program, given, symbols)
        except InputError as missing:
            hint = str(missing).removeprefix("kernel: ")
            raise InputError(f"{refused}; it may read it for given sizes: {hint}") from None
        fixed = _with_sizes(program, sizes)
        if sizes:
            with contextlib.suppress(InputError):  # the first one speaks of the program as it is written
                return Parsed(*parse_program(fixed, given), sizes)
        with contextlib.suppress(InputError):
            note = AS_DACE_HAS_IT.format(str(refused).removeprefix("kernel: "))
            return Parsed(*parse_program(fixed, given, keeps_axes=False), sizes, (note,))
        raise


def _sizes(program: DaceProgram, given: Mapping[str, Any], symbols: Mapping[str, float]) -> dict[str, int]:
    """Values of the symbols of a program's arguments, and of others that it uses. Raises InputError where one
    of the former has none."""
    arguments = dace.SDFG("arguments")
    for name, parameter in program.signature.parameters.items():
        if isinstance(parameter.annotation, dace.data.Array):
            arguments.add_datadesc(name, copy.deepcopy(parameter.annotation))
    used = (program.f.__globals__.get(name) for name in program.f.__code__.co_names)
    names = {str(value) for value in used if isinstance(value, dace.symbol)} & symbols.keys()
    return {**{name: int(symbols[name]) for name in names}, **resolve_symbols(arguments, symbols, given)}


def _with_sizes(program: DaceProgram, sizes: Mapping[str, int]) -> DaceProgram:
    """A copy of a program, in whose globals, closure and annotations are numbers for symbols."""
    numbers = {dace.symbol(name): value for name, value in sizes.items()}

    def fixed(value: Any) -> Any:
        if isinstance(value, sympy.Basic):
            found = value.subs({s: sizes[str(s)] for s in value.free_symbols if str(s) in sizes})
            return int(found) if found.is_Integer else found
        if isinstance(value, dace.data.Array):
            value = copy.deepcopy(value)
            replace_properties_dict(value, {name: str(size) for name, size in sizes.items()}, numbers)
        return value

    function = rebound(program.f, fixed)
    function.__globals__.update(sizes)
    function.__annotations__ = {name: fixed(value) for name, value in program.f.__annotations__.items()}
    found = dace.program(function)
    found.argnames = program.argnames
    found.signature = program.signature.replace(
        parameters=[p.replace(annotation=fixed(p.annotation)) for p in program.signature.parameters.values()]
    )
    return found
