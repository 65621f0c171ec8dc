"""A DaCe program's own Python function, run by Python: by NumPy, or by what compiles it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

RETURNED = "__return"
"""Name that DaCe gives to what a program returns; several are numbered."""


def in_order(returned: str) -> tuple[int, str]:
    """By which the names of several results are as the program returns these."""
    return len(returned), returned


def python_function(found: Any, values: Mapping[str, Any]) -> Any:
    """The function behind a DaCe program, and behind those that it calls, with numbers for its symbols; any
    other function as it is. Changes DaCe, and the function's globals and closure: call it in a process of its
    own.

    values: of the symbols, by name.
    """
    if not _is_of_dace(found):
        return found
    dace: Any = sys.modules["dace"]
    dace.reduce = reduced
    # Of NumPy's functions, `dtype=dace.float64`: what a type has there by default is itself, without an end.
    dace.typeclass.dtype = property(lambda kind: np.dtype(kind.type), lambda kind, itself: None)
    return _plain(found, values, {})


def arguments_of(function: Callable[..., Any], values: Mapping[str, Any]) -> list[Any]:
    """Values in the order of a function's parameters, of others its own defaults. Raises TypeError for a
    parameter with neither."""
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in values and parameter.default is parameter.empty:
            raise TypeError(f"its parameter {name} is none of the kernel's arguments: {', '.join(values)}")
        arguments.append(values.get(name, parameter.default))
    return arguments


def reduced(
    op: Callable[[Any, Any], Any],
    in_array: NDArray[Any],
    out_array: NDArray[Any] | None = None,
    axis: int | Sequence[int] | None = None,
    identity: Any = None,
) -> NDArray[Any] | None:
    """What `dace.reduce` means, of which DaCe has no Python: `in_array`, of any shape, combined by `op` along
    `axis`, or along all, beginning with `identity`, or with what `out_array` holds."""
    combine = np.frompyfunc(op, 2, 1)
    axes = range(in_array.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    found: Any = in_array
    for dimension in sorted((a % in_array.ndim for a in axes), reverse=True):
        found = combine.reduce(found, axis=dimension)
    if identity is not None:
        found = combine(identity, found)
    elif out_array is not None:
        found = combine(out_array.reshape(np.shape(found)), found)
    found = np.asarray(found).astype(in_array.dtype)
    if out_array is None:
        return found
    out_array[...] = found.reshape(out_array.shape)
    return None


def calls_by_size(program: Any) -> bool:
    """Does a DaCe program call others that name symbols? There these may have other values, of which
    `python_function` knows nothing."""
    reached = [program.f]
    for function in reached:  # which grows
        named = _named(function)
        symbol = sys.modules["dace"].symbol
        if function is not program.f and any(isinstance(value, symbol) for value in named):
            return True
        called = [value.f for value in named if _is_of_dace(value) and hasattr(value, "f")]
        reached += [other for other in called if other not in reached]
    return False


def _named(function: Any) -> list[Any]:
    """What a function names of its module, and of functions around it."""
    codes = [function.__code__]
    for code in codes:  # which grows by that of lambdas and comprehensions
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    found = [function.__globals__.get(name) for code in codes for name in code.co_names]
    return found + [cell.cell_contents for cell in function.__closure__ or ()]


def _plain(program: Any, values: Mapping[str, Any], done: dict[int, Any]) -> Callable[..., Any]:
    if id(program) in done:
        return done[id(program)]
    function = done[id(program)] = program.f

    def plain(value: Any) -> Any:
        if not _is_of_dace(value):
            return value
        return _plain(value, values, done) if hasattr(value, "f") else values.get(str(value), value)

    for name, value in list(function.__globals__.items()):
        function.__globals__[name] = plain(value)
    for cell in function.__closure__ or ():
        cell.cell_contents = plain(cell.cell_contents)
    return function


def _is_of_dace(value: Any) -> bool:
    return type(value).__module__.startswith("dace.")


def by_name(returned: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """What a function returned: a mapping, or the outputs called `__return...` in their order; single numbers
    as their arrays are. shapes: of the outputs, by name."""
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        several = returned if isinstance(returned, tuple) else (returned,)
        names = sorted((name for name in shapes if name.startswith(RETURNED)), key=in_order)
        returned = dict(zip(names, several, strict=False))
    found = {name: np.asarray(value) for name, value in returned.items()}
    return {n: a.reshape(shapes.get(n, a.shape)) if a.size == 1 else a for n, a in found.items()}
