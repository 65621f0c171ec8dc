"""A DaCe program's own Python function, run by Python: by NumPy, or by what compiles it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

RETURNED = "__return"
"""Name that DaCe gives to what a program returns; several are numbered."""


def in_order(returned: str) -> tuple[int, str]:
    """By which the names of several results are as the program returns these."""
    return len(returned), returned


def python_function(found: Any, values: Mapping[str, Any]) -> Any:
    """The function behind a DaCe program, and behind those that it calls, with numbers for their symbols; any
    other function as it is. Changes DaCe: call it in a process of its own.

    values: of the symbols, by name.
    """
    if not _is_of_dace(found):
        return found
    dace: Any = sys.modules["dace"]
    dace.reduce = reduced
    # Of NumPy's functions, `dtype=dace.float64`: what a type has there by default is itself, without an end.
    dace.typeclass.dtype = property(lambda kind: np.dtype(kind.type), lambda kind, itself: None)
    return _plain(found, values)


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


@dataclass(frozen=True)
class _Called:
    """A program that another one calls, whose symbols are what its caller's are, or says (`f(A, n=3)`), or as
    the shapes of its arguments have it."""

    program: Any
    values: Mapping[str, Any]
    known: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    """By shapes, and by what is said: its function."""

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.program.f, eval_str=True)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        own = self.signature.parameters
        said = {name: value for name, value in named.items() if name not in own}
        bound = self.signature.bind(*arguments, **{n: v for n, v in named.items() if n in own}).arguments
        shapes = {name: np.shape(value) for name, value in bound.items()}
        key = (*shapes.items(), *said.items())
        if key not in self.known:
            by_shape = {
                symbol: found
                for name, shape in shapes.items()
                for size, length in zip(getattr(own[name].annotation, "shape", ()), shape, strict=False)
                for symbol, found in _solved(size, length)
            }
            self.known[key] = _plain(self.program, {**self.values, **by_shape, **said})
        return self.known[key](**bound)


def _solved(size: Any, length: int) -> Iterator[tuple[str, int]]:
    """The one symbol of a size, where it has one, and what makes the size so long."""
    free: Any = getattr(size, "free_symbols", ())
    if len(free) == 1:
        import sympy  # by which DaCe's symbols are

        (symbol,) = free
        for found in sympy.solve(size - length, symbol)[:1]:
            yield str(symbol), int(found)


def _plain(program: Any, values: Mapping[str, Any]) -> Callable[..., Any]:
    """A copy of a program's function, in whose globals and closure are numbers for symbols."""

    def plain(value: Any) -> Any:
        if not _is_of_dace(value):
            return value
        return _Called(value, values) if hasattr(value, "f") else values.get(str(value), value)

    return rebound(program.f, plain)


def rebound(function: FunctionType, changed: Callable[[Any], Any]) -> FunctionType:
    """A copy of a function, with other values in its globals and its closure."""
    names = {name: changed(value) for name, value in function.__globals__.items()}
    closure = tuple(CellType(changed(cell.cell_contents)) for cell in function.__closure__ or ())
    found = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
    found.__kwdefaults__ = function.__kwdefaults__
    return found


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
