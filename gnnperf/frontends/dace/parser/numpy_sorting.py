"""Functions of NumPy that DaCe 1.0 lacks: they put numbers in order. The ordering itself is C++'s, and stays
as it is when a program is tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dace
from dace.codegen.targets.cpp import sym2cpp
from dace.frontend.common import op_repository
from dace.frontend.python.nested_call import NestedCall

from gnnperf.frontends.dace.parser.numpy_functions import (
    as_method,
    each,
    mapped,
    real_of,
    reshaped,
    subscripts,
    with_axes,
)
from gnnperf.frontends.dace.parser.numpy_places import moveaxis

_SORTED = """
std::copy(__x, __x + {count}, __out);
std::stable_sort(__out, __out + {count});
"""
_PLACES = """
std::iota(__out, __out + {count}, 0);
std::stable_sort(__out, __out + {count}, [&](auto a, auto b) {{ return __x[a] < __x[b]; }});
"""
"""Stable, which is never out of bounds where numbers are not ordered, as NaN is not."""


def _sort(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = -1, kind: Any = None) -> Any:
    return _along(visitor, sdfg, state, a, axis, _SORTED, sdfg.arrays[a].dtype)


def _argsort(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = -1, kind: Any = None) -> Any:
    return _along(visitor, sdfg, state, a, axis, _PLACES, dace.int64)


def _along(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any, code: str, dtype: Any) -> Any:
    """An array as `a`, its lines along an axis put in order."""
    calls = NestedCall(visitor, sdfg, state)
    if axis is None:
        a, axis = calls(reshaped)(a, -1), 0
    last = len(sdfg.arrays[a].shape) - 1
    along = axis % (last + 1)
    lines = calls(moveaxis)(a, along, last) if along != last else a
    # Of its own, without gaps: what is sorted is read as a pointer.
    found = calls(_ordered)(calls(mapped)(lines, "{}"), code, dtype)
    return calls, calls(moveaxis)(found, last, along) if along != last else found


def _ordered(visitor: Any, sdfg: Any, state: Any, lines: str, code: str, dtype: Any) -> str:
    """Along the last axis, of a C-contiguous array."""
    *others, length = sdfg.arrays[lines].shape
    name, _ = sdfg.add_temp_transient([*others, length], dtype)
    at = subscripts(len(others))
    line = ", ".join([*at, f"0:{length}"])
    state.add_mapped_tasklet(
        "ordered",
        {i: f"0:{size}" for i, size in zip(at, others, strict=True)} or {"__once": "0:1"},
        {"__x": dace.Memlet(f"{lines}[{line}]")},
        code.format(count=f"({sym2cpp(length)})"),
        {"__out": dace.Memlet(f"{name}[{line}]")},
        language=dace.Language.CPP,
        external_edges=True,
    )
    return name


_BETWEEN = """
__at = {place}
__left = dace.int64(__at)
__right = min(__left + 1, {length} - 1)
__out = __line[__left] + (__at - __left) * (__line[__right] - __line[__left])
"""


def _quantiles(whole: float) -> Callable[..., Any]:
    """Shares of `whole`: between the two numbers of a line that are nearest in rank."""

    def call(
        visitor: Any, sdfg: Any, state: Any, a: str, q: Any, axis: int | None = None, keepdims: bool = False
    ) -> Any:
        shares = [float(share) / whole for share in each(q) if not isinstance(share, str)]
        if len(shares) != len(each(q)):
            raise NotImplementedError("np.quantile, np.percentile: of shares that are numbers in the text")
        calls = NestedCall(visitor, sdfg, state)
        shape, axes = sdfg.arrays[a].shape, axis
        if axis is None:
            a, axis = calls(reshaped)(a, -1), 0
        ordered = calls(_sort)(a, axis)
        several = [len(shares)] if isinstance(q, tuple | list) else []
        found = calls(_ranked)(ordered, axis, shares, several)
        return calls, calls(with_axes)(found, shape, axes) if keepdims and not several else found

    return call


def _ranked(
    visitor: Any, sdfg: Any, state: Any, ordered: str, axis: int, shares: Sequence[float], several: list[int]
) -> str:
    """For every share, the number at that share of the lines of an array in order along an axis. several: the
    axis of the shares, where they have one."""
    shape = sdfg.arrays[ordered].shape
    at, which = subscripts(len(shape)), "__share"
    others = {i: n for d, (i, n) in enumerate(zip(at, shape, strict=True)) if d != axis % len(shape)}
    points = dict.fromkeys([which] if several else [], len(shares)) | others
    length = shape[axis % len(shape)]
    line = [i if i in others else f"0:{length}" for i in at]
    place = repr(shares[-1])
    for number, share in reversed([*enumerate(shares[:-1])]):
        place = f"({share!r} if {which} == {number} else {place})"
    name, _ = sdfg.add_temp_transient([*points.values()] or [1], real_of(sdfg, ordered))
    state.add_mapped_tasklet(
        "ranked",
        {i: f"0:{n}" for i, n in points.items()} or {"__once": "0:1"},
        {"__line": dace.Memlet(f"{ordered}[{', '.join(line)}]")},
        _BETWEEN.format(place=f"{place} * ({length} - 1)", length=length),
        {"__out": dace.Memlet(f"{name}[{', '.join(points) or '0'}]")},
        external_edges=True,
    )
    return name


def _median(
    visitor: Any, sdfg: Any, state: Any, a: str, axis: int | None = None, keepdims: bool = False
) -> Any:
    return _quantiles(1.0)(visitor, sdfg, state, a, 0.5, axis, keepdims)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sort": _sort, "argsort": _argsort, "median": _median, "quantile": _quantiles(1.0),
    "percentile": _quantiles(100.0),
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.{_name}")(_function)
as_method("argsort", _argsort)
