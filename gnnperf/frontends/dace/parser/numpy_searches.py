"""Functions of NumPy that DaCe 1.0 lacks: they look for numbers in sorted arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dace
from dace.frontend.common import op_repository

from gnnperf.frontends.dace.parser.numpy_functions import subscripts, unboxed

_SEARCH = """
__first = 0
__last = {size}
while __first < __last:
    __middle = (__first + __last) // 2
    if __sorted[__middle] {before} __v:
        __first = __middle + 1
    else:
        __last = __middle
"""
"""Leaves in `__first` how many of the sorted numbers come before a value."""

_BETWEEN = """
if __first == 0:
    __out = {left}
elif __first == {size}:
    __out = {right} if __v > __sorted[{size} - 1] else __of[{size} - 1]
else:
    __slope = (__of[__first] - __of[__first - 1]) / (__sorted[__first] - __sorted[__first - 1])
    __out = __slope * (__v - __sorted[__first - 1]) + __of[__first - 1]
"""


def _searchsorted(visitor: Any, sdfg: Any, state: Any, a: str, v: Any, side: Any = "left") -> str:
    before = "<" if unboxed(side) == "left" else "<="
    return _looked_up(sdfg, state, v, {"__sorted": a}, dace.int64, before, "\n__out = __first")


def _digitize(visitor: Any, sdfg: Any, state: Any, x: Any, bins: str, right: bool = False) -> str:
    """Of bins that increase."""
    return _searchsorted(visitor, sdfg, state, bins, x, "left" if right else "right")


def _interp(
    visitor: Any, sdfg: Any, state: Any, x: Any, xp: str, fp: str, left: Any = None, right: Any = None
) -> str:
    """The line between the two points around a number; beyond all points the value of the last one."""
    if {left, right} & sdfg.arrays.keys():
        raise NotImplementedError("np.interp: left and right must be numbers")
    size = sdfg.arrays[xp].shape[0]
    before, after = "__of[0]" if left is None else left, f"__of[{size} - 1]" if right is None else right
    between = _BETWEEN.format(size=size, left=before, right=after)
    return _looked_up(sdfg, state, x, {"__sorted": xp, "__of": fp}, dace.float64, "<=", between)


def _looked_up(
    sdfg: Any, state: Any, values: Any, tables: Mapping[str, str], dtype: Any, before: str, then: str
) -> str:
    """An array with what `then` makes of every value, and of how many numbers come before it."""
    if any(len(sdfg.arrays[table].shape) != 1 for table in tables.values()):
        raise NotImplementedError("np.searchsorted, np.digitize, np.interp: tables of one axis alone")
    is_array = isinstance(values, str) and values in sdfg.arrays
    shape = sdfg.arrays[values].shape if is_array else [1]
    at = subscripts(len(shape))
    name, _ = sdfg.add_temp_transient(shape, dtype)
    inputs = {name: dace.Memlet.from_array(table, sdfg.arrays[table]) for name, table in tables.items()}
    if is_array:
        inputs["__v"] = dace.Memlet(f"{values}[{', '.join(at)}]")
    code = _SEARCH.format(size=sdfg.arrays[tables["__sorted"]].shape[0], before=before) + then
    state.add_mapped_tasklet(
        "looked_up",
        {i: f"0:{size}" for i, size in zip(at, shape, strict=True)},
        inputs,
        code if is_array else f"__v = {values}\n{code}",
        {"__out": dace.Memlet(f"{name}[{', '.join(at)}]")},
        external_edges=True,
    )
    return name


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "searchsorted": _searchsorted, "digitize": _digitize, "interp": _interp,
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.{_name}")(_function)
