"""Functions of NumPy that DaCe 1.0 does not know, for programs that call them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dace
import numpy as np
from dace.frontend.common import op_repository
from dace.frontend.python.nested_call import NestedCall
from dace.frontend.python.replacements import _mean, _reduce, _sum

ROOT = "sqrt({})"


def _roll(visitor: Any, sdfg: Any, state: Any, a: str, shift: Any, axis: Any = None) -> Any:
    """Shifts shorter than the array, known when the program is read."""
    dimensions = len(sdfg.arrays[a].shape)
    if axis is None and dimensions > 1:
        raise NotImplementedError("np.roll of an array of several axes: say which axis")
    axes = _each(0 if axis is None else axis)
    shifts = _each(shift) * (len(axes) if not isinstance(shift, tuple | list) else 1)
    if len(shifts) != len(axes) or not all(isinstance(by, int | np.integer) for by in shifts):
        raise NotImplementedError("np.roll: shifts must be integers, one for every axis")
    calls = NestedCall(visitor, sdfg, state)
    for by, along in zip(shifts, axes, strict=True):
        if by:
            a = calls(_rolled)(a, int(by), along % dimensions)
    return calls, a


def _rolled(visitor: Any, sdfg: Any, state: Any, a: str, shift: int, axis: int) -> str:
    descriptor = sdfg.arrays[a]
    name, _ = sdfg.add_temp_transient(descriptor.shape, descriptor.dtype)
    size = descriptor.shape[axis]
    ahead = shift if shift > 0 else size + shift  # where the first element goes
    source, target = state.add_read(a), state.add_write(name)
    for first, last, moved in ((0, size - ahead, ahead), (size - ahead, size, ahead - size)):
        taken, put = ([f"0:{s}" for s in descriptor.shape] for _ in range(2))
        taken[axis], put[axis] = f"{first}:{last}", f"{first + moved}:{last + moved}"
        memlet = dace.Memlet(data=a, subset=",".join(taken), other_subset=",".join(put))
        state.add_edge(source, None, target, None, memlet)
    return name


def _diff(visitor: Any, sdfg: Any, state: Any, a: str, n: int = 1, axis: int = -1) -> Any:
    descriptor = sdfg.arrays[a]
    axis %= len(descriptor.shape)
    if n != 1:
        raise NotImplementedError("np.diff: first differences alone")
    shape = [s - 1 if d == axis else s for d, s in enumerate(descriptor.shape)]
    at = _subscripts(len(shape))
    after = [f"{i} + 1" if d == axis else i for d, i in enumerate(at)]
    return _pointwise(sdfg, state, shape, descriptor.dtype, "__x - __y", {"__x": (a, after), "__y": (a, at)})


def _outer(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> str:
    one, two = sdfg.arrays[a], sdfg.arrays[b]
    if len(one.shape) != 1 or len(two.shape) != 1:
        raise NotImplementedError("np.outer: arrays of one axis alone")
    dtype = dace.dtypes.result_type_of(one.dtype, two.dtype)
    i, j = _subscripts(2)
    return _pointwise(
        sdfg, state, [*one.shape, *two.shape], dtype, "__x * __y", {"__x": (a, [i]), "__y": (b, [j])}
    )


def _prod(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
    return _reduce(visitor, sdfg, state, "lambda x, y: x * y", a, axis=axis, identity=1)


def _var(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None, ddof: int = 0) -> Any:
    return _spread(visitor, sdfg, state, a, axis, ddof, "{}")


def _std(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None, ddof: int = 0) -> Any:
    return _spread(visitor, sdfg, state, a, axis, ddof, ROOT)


def _norm(visitor: Any, sdfg: Any, state: Any, x: str, ord: Any = None, axis: Any = None) -> Any:
    """Euclidean, of all elements or along axes."""
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and len(sdfg.arrays[x].shape) > 1):
        raise NotImplementedError("np.linalg.norm: the Euclidean norm alone")
    calls = NestedCall(visitor, sdfg, state)
    total = calls(_sum)(calls(_squares)(x, None, []), axis=axis)
    return calls, calls(_mapped)(total, ROOT)


def _spread(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any, ddof: int, form: str) -> tuple[Any, str]:
    """`form` of the mean square distance from the mean."""
    shape = sdfg.arrays[a].shape
    axes = [*range(len(shape))] if axis is None else [d % len(shape) for d in _each(axis)]
    calls = NestedCall(visitor, sdfg, state)
    mean = calls(_mean)(a, axis=axis)
    found = calls(_mean)(calls(_squares)(a, mean, axes), axis=axis)
    count = math.prod(shape[d] for d in axes)
    return calls, calls(_mapped)(
        found, form.format(f"{{}} * ({count}) / ({count} - {ddof})" if ddof else "{}")
    )


def _squares(visitor: Any, sdfg: Any, state: Any, a: str, mean: str | None, axes: Sequence[int]) -> str:
    """Squares of what an array has, or of its distance from a mean along axes."""
    descriptor = sdfg.arrays[a]
    if descriptor.dtype.as_numpy_dtype().kind == "c":
        raise NotImplementedError("np.var, np.std, np.linalg.norm: real numbers alone")
    at = _subscripts(len(descriptor.shape))
    inputs = {"__x": (a, at)}
    if mean is not None:
        kept = [i for d, i in enumerate(at) if d not in axes]
        inputs["__m"] = (mean, kept or ["0"])
    dtype = descriptor.dtype if descriptor.dtype in (dace.float32, dace.float64) else dace.float64
    code = "(__x - __m) * (__x - __m)" if mean is not None else "__x * __x"
    return _pointwise(sdfg, state, descriptor.shape, dtype, code, inputs)


def _mapped(visitor: Any, sdfg: Any, state: Any, a: str, form: str) -> str:
    descriptor = sdfg.arrays[a]
    inputs = {"__x": (a, _subscripts(len(descriptor.shape)))}
    return _pointwise(sdfg, state, descriptor.shape, descriptor.dtype, form.format("__x"), inputs)


def _pointwise(
    sdfg: Any,
    state: Any,
    shape: Sequence[Any],
    dtype: Any,
    code: str,
    inputs: dict[str, tuple[str, list[str]]],
) -> str:
    """A new array, every element by the same expression of elements of others."""
    name, _ = sdfg.add_temp_transient(shape, dtype)
    at = _subscripts(len(shape))
    state.add_mapped_tasklet(
        "pointwise",
        {i: f"0:{s}" for i, s in zip(at, shape, strict=True)},
        {c: dace.Memlet(f"{array}[{', '.join(i)}]") for c, (array, i) in inputs.items()},
        f"__out = {code}",
        {"__out": dace.Memlet(f"{name}[{', '.join(at)}]")},
        external_edges=True,
    )
    return name


def _subscripts(count: int) -> list[str]:
    return [f"__i{d}" for d in range(count)]


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


for _name, _function in {
    "roll": _roll, "diff": _diff, "outer": _outer, "prod": _prod, "var": _var, "std": _std,
    "linalg.norm": _norm,
}.items():  # fmt: skip
    op_repository.replaces(f"numpy.{_name}")(_function)
