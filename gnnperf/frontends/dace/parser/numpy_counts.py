"""Functions of NumPy that DaCe 1.0 lacks: they count how often numbers are met."""

from __future__ import annotations

import ast
from typing import Any

import dace
from dace.frontend.common import op_repository
from dace.frontend.python import replacements
from dace.frontend.python.nested_call import NestedCall

from gnnperf.frontends.dace.parser.numpy_functions import computed, reshaped, subscripts


def _bincount(visitor: Any, sdfg: Any, state: Any, x: str, weights: Any = None, minlength: Any = 0) -> str:
    """As many counts as are asked for: of the places above, NumPy would make more."""
    if minlength == 0:
        raise NotImplementedError("np.bincount: expected minlength, which says how many counts there are")
    if weights is None:
        return _added(visitor, sdfg, x, "1", minlength)
    return _added(visitor, sdfg, x, weights, minlength, "float64")


def _added(visitor: Any, sdfg: Any, places: str, term: str, count: Any, dtype: str = "int64") -> str:
    """So many sums, each of the terms (an array, or a number in the text) that have its place."""
    name = f"{sdfg.temp_data_name()}_counts"
    for array in {places, term} & sdfg.arrays.keys():
        visitor.variables[array] = array
    text = f"{name} = numpy.zeros(({count},), dtype=numpy.{dtype})\nnumpy.add.at({name}, {places}, {term})"
    for statement in ast.parse(text).body:
        visitor.visit(statement)
    return str(visitor.variables[name])


def _histogram(
    visitor: Any, sdfg: Any, state: Any, a: str, bins: Any = 10, range: Any = None, density: Any = None,
    weights: Any = None,
) -> tuple[Any, list[str]]:  # fmt: skip
    """Counts, or sums of weights, of bins of one width, and their edges. As in NumPy, a number goes to the
    bin whose edges hold it, however the quotient is rounded that finds it; the last bin holds its right edge,
    too."""
    if isinstance(bins, str) or density:
        raise NotImplementedError("np.histogram: a number of bins, without density")
    calls = NestedCall(visitor, sdfg, state)
    (i,) = subscripts(1)
    low, high, ends = "__low", "__high", {}
    if range is None:
        of_all = [calls(extreme)(a) for extreme in (replacements._min, replacements._max)]
        ends = {name: (end, ["0"]) for name, end in zip((low, high), of_all, strict=True)}
    else:
        low, high = (str(end) for end in range)
    width = f"((1.0 * {high} - {low}) / {bins})"
    edges = calls(computed)([bins + 1], dace.float64, f"{i} * {width} + {low}", ends)

    values = {"__x": (calls(reshaped)(a, -1), [i])}
    count = sdfg.arrays[values["__x"][0]].shape
    place = calls(computed)(
        count, dace.int64, f"min(max(dace.int64((__x - {low}) / {width}), 0), {bins} - 1)", {**values, **ends}
    )
    left = f"(1 if __k > 0 and __x < __k * {width} + {low} else 0)"
    right = f"(1 if __k < {bins} - 1 and __x >= (__k + 1) * {width} + {low} else 0)"
    place = calls(computed)(
        count, dace.int64, f"__k - {left} + {right}", {"__k": (place, [i]), **values, **ends}
    )

    term, dtype = ("1", "int64") if weights is None else (calls(reshaped)(weights, -1), "float64")
    if range is not None:
        terms = {} if weights is None else {"__w": (term, [i])}
        code = f"{'__w' if terms else 1} if __x >= {low} and __x <= {high} else 0"
        term = calls(computed)(count, getattr(dace, dtype), code, {**values, **terms})
    visitor.last_block = calls.last_state
    counts = _added(visitor, sdfg, place, term, bins, dtype)
    calls.last_state = visitor.last_block
    return calls, [counts, edges]


op_repository.replaces("numpy.bincount")(_bincount)
op_repository.replaces("numpy.histogram")(_histogram)
