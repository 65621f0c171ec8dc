"""Values for a kernel's arguments: from the user's function, or generated from the signature."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import dace
import numpy as np
import sympy
from numpy.typing import NDArray

from gnnperf.errors import InputError, first_line
from gnnperf.frontends.dace.source import load_attribute
from gnnperf.frontends.user_files import split_spec
from gnnperf.measure.arrays import Layout, aligned_empty
from gnnperf.nests.ir import row_major

SMALL_INTEGER = 8
SHUFFLED = 1 << 14
"""Elements that change places with each other in one piece of a large array: they stay in a cache."""
COPIES = 6
"""How often the arguments are held at once: inputs, captured inputs, references, a candidate's own."""


def user_inputs(spec: str, symbols: Mapping[str, float], seed: int) -> tuple[dict[str, Any], set[str]]:
    """Call `file.py:function`: the inputs, and the names of its parameters. Those named like a symbol
    (or `seed`) get its value."""
    path, name = split_spec(spec, "--inputs")
    function = load_attribute(Path(path), name, "--inputs")
    if not callable(function):
        raise InputError(f"--inputs: expected {name!r} to be a function, got {type(function).__name__}")
    known: dict[str, Any] = {**symbols, "seed": seed}
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in known:
            arguments[parameter.name] = known[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            raise InputError(
                f"--inputs: {name!r} needs {parameter.name!r}; give it with --set {parameter.name}=512"
            )
    try:
        with redirect_stdout(sys.stderr):
            result = function(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"--inputs: {name!r} failed: {type(error).__name__}: {first_line(error)}") from None
    if not isinstance(result, Mapping) or not all(isinstance(k, str) for k in result):
        raise InputError(
            f"--inputs: expected {name!r} to return a dict of arrays and scalars by argument name"
        )
    return dict(result), set(arguments)


def resolve_symbols(sdfg: Any, symbols: Mapping[str, float], given: Mapping[str, Any]) -> dict[str, int]:
    """Integer values for all free symbols: set by the user, given as scalars, or read off array shapes."""
    callbacks = [n for n, t in sdfg.symbols.items() if isinstance(t, dace.dtypes.callback)]
    if callbacks:
        raise InputError(
            f"kernel: DaCe cannot compile {', '.join(callbacks)} (it would call back into Python); "
            "write it with operations that DaCe supports"
        )
    wanted = {str(s) for s in sdfg.free_symbols} - set(sdfg.constants) - set(sdfg.arrays)
    known: dict[str, int] = {}
    for name in wanted:
        value = symbols.get(name, given.get(name))
        if value is not None:
            known[name] = _integer(name, value)
    changed = True
    while changed:
        changed = False
        for name, array in given.items():
            sizes, shape = getattr(sdfg.arrays.get(name), "shape", ()), np.shape(array)
            if len(sizes) != len(shape):  # `shaped` takes away axes of length one
                shape = tuple(_without_ones(shape))
            for size, extent in zip(sizes, shape, strict=False):
                found = _solve(size, extent, known)
                if found is not None and found[0] in wanted:
                    known[found[0]] = found[1]
                    changed = True
    missing = sorted(wanted - known.keys())
    if missing:
        sets = " ".join(f"--set {m}=512" for m in missing)
        raise InputError(
            f"kernel: no value for the symbol{'s' * (len(missing) > 1)} {', '.join(missing)}; give {sets}"
        )
    return known


def _integer(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or int(value) != value:
        raise InputError(f"--set: expected an integer for the symbol {name}, got {value!r}")
    return int(value)


def _solve(size: Any, extent: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """(symbol, value) where `size == extent` leaves one symbol to find."""
    expression = sympy.sympify(size)
    bound = {s: known[str(s)] for s in expression.free_symbols if str(s) in known}
    expression = expression.subs(bound)
    if len(expression.free_symbols) != 1:
        return None
    (unknown,) = expression.free_symbols
    try:
        found = sympy.solve(expression - extent, unknown)
    except NotImplementedError:  # of N // 2: another array may tell
        return None
    solutions = [s for s in found if s.is_integer and s >= 0]
    return (str(unknown), int(solutions[0])) if len(solutions) == 1 else None


def make_inputs(
    sdfg: Any,
    symbols: Mapping[str, float],
    given: Mapping[str, Any],
    seed: int,
) -> tuple[dict[str, Any], set[str]]:
    """A value for every argument of a specialised SDFG, arrays 64-byte aligned, and the names of those
    that were generated. `symbols` may also hold scalar arguments.

    Floats are positive, in [0.1, 1). Integers are small and valid as indices into every dimension
    of any array.
    """
    signature = sdfg.arglist()
    unknown = sorted(given.keys() - signature.keys() - symbols.keys() - {*sdfg.arg_names})
    if unknown:
        raise InputError(
            f"--inputs: the kernel has no argument {', '.join(unknown)}; it takes {', '.join(signature)}"
        )
    generator = np.random.default_rng(seed)
    shapes = {k: _shape(k, d) for k, d in signature.items() if isinstance(d, dace.data.Array)}
    extents = [e for s in shapes.values() for e in s if e > 1]  # into others, there is one index
    bound = min(extents, default=SMALL_INTEGER)
    _check_memory(sum(math.prod(s) * signature[k].dtype.bytes for k, s in shapes.items()))
    data: dict[str, Any] = {}
    generated: set[str] = set()
    for name, descriptor in signature.items():
        dtype = _numpy_dtype(name, descriptor)
        value = given.get(name, symbols.get(name) if isinstance(descriptor, dace.data.Scalar) else None)
        if name in shapes:
            shape = shapes[name]
            if value is None:
                generated.add(name)
                value = _random(generator, shape, dtype, bound)
            data[name] = aligned(_checked(name, value, shape, dtype), _strides(descriptor))
        else:
            if value is None:
                generated.add(name)
                value = _random(generator, (), dtype, min(bound, SMALL_INTEGER))
            data[name] = _checked_scalar(name, value, dtype)
    return data, generated


def shaped(sdfg: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The given values, arrays that differ from the signature of a specialised SDFG by axes of length one in
    its shapes; and a line about each of these."""
    found, notes = dict(given), []
    for name, descriptor in sdfg.arglist().items():
        value = given.get(name)
        if isinstance(descriptor, dace.data.Array) and isinstance(value, np.ndarray):
            shape = _shape(name, descriptor)
            if value.shape != shape and _without_ones(value.shape) == _without_ones(shape):
                found[name] = value.reshape(shape)
                notes.append(f"{name}: {list(value.shape)} was taken for {list(shape)}")
    return found, notes


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [extent for extent in shape if extent != 1]


def _shape(name: str, descriptor: Any) -> tuple[int, ...]:
    shape = tuple(int(s) for s in descriptor.shape)
    if any(s < 0 for s in shape):
        raise InputError(
            f"--set: these values give the argument {name} the shape {shape}; extents must be positive"
        )
    return shape


def _check_memory(nbytes: int) -> None:
    """Better refused at once than killed in the middle."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if COPIES * nbytes > machine:
        raise InputError(
            f"--set: the arguments take {nbytes / 2**30:.3g} GiB with these values, and measuring about "
            f"{COPIES} times as much; this machine has {machine / 2**30:.3g} GiB; choose smaller sizes"
        )


def _strides(descriptor: Any) -> tuple[int, ...]:
    return tuple(int(s) for s in descriptor.strides)


def _numpy_dtype(name: str, descriptor: Any) -> np.dtype[Any]:
    try:
        return np.dtype(descriptor.dtype.as_numpy_dtype())
    except (TypeError, NotImplementedError, AttributeError):
        raise InputError(
            f"kernel: the argument {name} has the type {descriptor.dtype}, which cannot be given"
        ) from None


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], bound: int
) -> NDArray[Any]:
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        low = bound - 1 if not shape else 0
        return np.asarray(generator.integers(low, max(bound, low + 1), shape)).astype(dtype)
    values = np.asarray(0.1 + 0.9 * generator.random(shape))
    if dtype.kind == "c":
        values = values + 1j * generator.random(shape)
    return values.astype(dtype)


def other_inputs(data: Mapping[str, Any], generated: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same arguments with other values of the generated arrays, and in words what these are like.

    Integers are those that were there, in another order: they may be indices.
    """
    generator = np.random.default_rng(1)
    arrays = [name for name in sorted(generated) if isinstance(data[name], np.ndarray) and data[name].size]

    def shuffled(old: NDArray[Any]) -> NDArray[Any]:
        flat = old.reshape(-1).copy()
        order = generator.permutation(min(flat.size, SHUFFLED))
        pieces = flat[: flat.size // order.size * order.size].reshape(-1, order.size)
        pieces[...] = generator.permutation(pieces[:, order])
        return flat.reshape(old.shape)

    def magnitudes(old: NDArray[Any]) -> NDArray[Any]:
        return shuffled(old) * np.power(10.0, generator.uniform(-3.0, 3.0, old.shape))

    floats: Mapping[str, Callable[[NDArray[Any]], Any]] = {
        "another order": shuffled,
        "negative numbers": lambda old: -shuffled(old),
        "numbers of all magnitudes": magnitudes,
        "zeros": np.zeros_like,
        "ones": np.ones_like,
    }
    for words, made in floats.items() if arrays else ():
        found = dict(data)
        for name in arrays:
            old = data[name]
            values = made(old) if old.dtype.kind in "fc" else shuffled(old)
            found[name] = _in_place_of(old, values)
        yield words, found


def nearby_inputs(
    data: Mapping[str, Any], generated: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same arguments with the real numbers that were given moved a little: where all of them are alike,
    or lie on a plane, much of what a kernel computes of them is zero."""
    generator = np.random.default_rng(2)
    found = dict(data)
    for name, old in data.items():
        if isinstance(old, np.ndarray) and old.dtype.kind in "fc" and name not in generated:
            values = old * (1.0 + generator.uniform(-0.1, 0.1, old.shape))
            found[name] = _in_place_of(old, values)
    yield "numbers up to a tenth from those given", found


def _in_place_of(old: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Values of the type of an array, and laid out in memory as that is."""
    return aligned(values.astype(old.dtype, copy=False), tuple(s // old.itemsize for s in old.strides))


def make_dominant(matrix: NDArray[Any]) -> None:
    """In place: symmetric and diagonally dominant, what a solver needs to stay finite."""
    matrix[...] = (matrix + matrix.T) / 2
    matrix[np.diag_indices(len(matrix))] += len(matrix)


def _checked(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.shape != shape:
        raise InputError(f"--inputs: {name}: expected shape {shape}, got {array.shape}")
    if array.dtype != dtype:
        raise InputError(f"--inputs: {name}: expected {dtype} elements, got {array.dtype}; use .astype")
    return array


def _checked_scalar(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    if np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "biufc":
        raise InputError(f"--inputs: {name}: expected a number, got {type(value).__name__}")
    if np.iscomplexobj(value) and dtype.kind != "c":
        raise InputError(f"--inputs: {name}: expected a real number, got {value!r}")
    if dtype == np.float16:
        raise InputError(
            f"kernel: the scalar argument {name} has the type {dtype}, which cannot be passed by value; "
            "make it an array of one element"
        )
    if dtype.kind in "iu" and np.asarray(value) != int(value):
        raise InputError(f"--inputs: {name}: expected an integer, got {value!r}")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
        raise InputError(f"--inputs: {name}: expected a number that {dtype} holds, got {value!r}")
    return dtype.type(value)


def aligned(array: NDArray[Any], strides: tuple[int, ...] | None = None) -> NDArray[Any]:
    """A copy that starts at a multiple of 64 bytes; `strides` in elements (None: row-major)."""
    steps = row_major(array.shape) if strides is None else strides
    layout = Layout(array.dtype.str, array.shape, tuple(step * array.itemsize for step in steps))
    memory = aligned_empty(layout.nbytes)
    if layout.nbytes > array.nbytes:
        memory[:] = 0  # equal arrays are equal in their gaps, too
    result = layout.view(memory)
    result[...] = array
    return result
