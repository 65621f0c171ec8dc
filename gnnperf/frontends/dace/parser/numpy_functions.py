"""Functions of NumPy that DaCe 1.0 does not know, or not with all their arguments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dace
import numpy as np
import sympy
from dace.frontend.common import op_repository
from dace.frontend.python import replacements
from dace.frontend.python.nested_call import NestedCall
from dace.frontend.python.replacements import _mean, _reduce, _sum


def _empty(visitor: Any, sdfg: Any, state: Any, shape: Any, dtype: Any = dace.float64) -> str:
    return str(replacements._define_local(visitor, sdfg, state, shape, dtype))


def roll(visitor: Any, sdfg: Any, state: Any, a: str, shift: Any, axis: Any = None) -> str:
    """By integers, or by what is made of sizes and counters of loops."""
    descriptor = sdfg.arrays[a]
    shape = descriptor.shape
    axes = each(axis) if isinstance(axis, tuple | list) else [only_axis("roll", sdfg, a, axis)]
    shifts = each(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    if len(shifts) != len(axes) or not all(isinstance(by, int | np.integer | sympy.Basic) for by in shifts):
        raise NotImplementedError("np.roll: shifts must be integers, sizes or counters, one for every axis")
    total = [0] * len(shape)
    for by, along in zip(shifts, axes, strict=True):
        total[along % len(shape)] += by if isinstance(by, sympy.Basic) else int(by)
    if any(isinstance(by, sympy.Basic) and not by.is_Integer for by in total):
        at = zip(subscripts(len(shape)), shape, total, strict=True)
        before = [f"({i} + ({n}) - ({by}) % ({n})) % ({n})" if by != 0 else i for i, n, by in at]
        return pointwise(sdfg, state, shape, descriptor.dtype, "__x", {"__x": (a, before)})
    name, _ = sdfg.add_temp_transient(shape, descriptor.dtype)
    source, target = state.add_read(a), state.add_write(name)
    for parts in itertools.product(*map(_moved, shape, total)):
        taken = ",".join(f"{first}:{last}" for first, last, _ in parts)
        put = ",".join(f"{first + by}:{last + by}" for first, last, by in parts)
        state.add_edge(source, None, target, None, dace.Memlet(data=a, subset=taken, other_subset=put))
    return name


def _moved(size: Any, shift: int) -> list[tuple[Any, Any, Any]]:
    """Parts of an axis, first and last, and how far they move."""
    ahead = shift % size  # where the first element goes
    if ahead == 0:
        return [(0, size, 0)]
    return [(0, size - ahead, ahead), (size - ahead, size, ahead - size)]


def _diff(visitor: Any, sdfg: Any, state: Any, a: str, n: int = 1, axis: int = -1) -> Any:
    descriptor = sdfg.arrays[a]
    axis %= len(descriptor.shape)
    if n != 1:
        raise NotImplementedError("np.diff: first differences alone")
    shape = [s - 1 if d == axis else s for d, s in enumerate(descriptor.shape)]
    at = subscripts(len(shape))
    after = [f"{i} + 1" if d == axis else i for d, i in enumerate(at)]
    return pointwise(sdfg, state, shape, descriptor.dtype, "__x - __y", {"__x": (a, after), "__y": (a, at)})


def _outer(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> str:
    one, two = sdfg.arrays[a], sdfg.arrays[b]
    if len(one.shape) != 1 or len(two.shape) != 1:
        raise NotImplementedError("np.outer: arrays of one axis alone")
    dtype = dace.dtypes.result_type_of(one.dtype, two.dtype)
    i, j = subscripts(2)
    return pointwise(
        sdfg, state, [*one.shape, *two.shape], dtype, "__x * __y", {"__x": (a, [i]), "__y": (b, [j])}
    )


def _dot(visitor: Any, sdfg: Any, state: Any, a: str, b: str, out: Any = None) -> Any:
    axes = [len(sdfg.arrays[x].shape) if x in sdfg.arrays else 0 for x in (a, b)]
    if axes in ([1, 2], [2, 1]) and out is None:
        return replacements._matmult(visitor, sdfg, state, a, b)
    return replacements.dot(visitor, sdfg, state, a, b, out)


def _solve(visitor: Any, sdfg: Any, state: Any, a: str, b: str) -> Any:
    """For one right side, too, which is solved for twice: DaCe does not compile a single one."""
    (n, *sides), calls, (i,) = sdfg.arrays[b].shape, NestedCall(visitor, sdfg, state), subscripts(1)
    if sides:
        return replacements._solve(visitor, sdfg, state, a, b)
    dtype = sdfg.arrays[b].dtype
    solved = calls(replacements._solve)(a, calls(computed)([n, 2], dtype, "__x", {"__x": (b, [i])}))
    return calls, calls(computed)([n], dtype, "__x", {"__x": (solved, [i, "0"])})


NEAREST = "(2 * round(0.5 * {0}) if {0} - floor({0}) == 0.5 else round({0}))"
"""Halves go to the even neighbour; C's `round` has them go away from zero."""


def _round(visitor: Any, sdfg: Any, state: Any, a: str, decimals: int = 0) -> str:
    unit = repr(10.0**decimals)
    form = NEAREST if decimals == 0 else NEAREST.format(f"({{0}} * {unit})") + f" / {unit}"
    return mapped(visitor, sdfg, state, a, "{}" if kind(sdfg, a) in "biu" else form)


def _rounded(visitor: Any, sdfg: Any, state: Any, number: Any, ndigits: int | None = None) -> Any:
    """Python's own `round`, which gives an integer unless digits are asked for."""
    if not isinstance(number, str):
        return round(number, ndigits)
    if ndigits is not None or kind(sdfg, number) in "biu":
        return _round(visitor, sdfg, state, number, ndigits or 0)
    return mapped(visitor, sdfg, state, number, NEAREST, dace.int64)


def _magnitude(visitor: Any, sdfg: Any, state: Any, number: Any) -> Any:
    """Python's own `abs`, which is real of complex numbers."""
    if isinstance(number, str) and kind(sdfg, number) == "c":
        return mapped(visitor, sdfg, state, number, "abs({})", real_of(sdfg, number))
    return replacements._abs(visitor, sdfg, state, number)


def _of_complex(original: Callable[..., Any], of_real: str) -> Callable[..., Any]:
    """A function that DaCe has of complex numbers alone. of_real: what it is of a real one."""

    def call(visitor: Any, sdfg: Any, state: Any, x: Any) -> Any:
        if isinstance(x, str) and kind(sdfg, x) != "c":
            return mapped(visitor, sdfg, state, x, of_real)
        return original(visitor, sdfg, state, x)

    return call


def _array(visitor: Any, sdfg: Any, state: Any, obj: Any, dtype: Any = None, **more: Any) -> Any:
    """Of lists that have variables in them, too."""
    values = np.array(obj, dtype=object)
    held = [sdfg.arrays[v].dtype for v in values.flat if isinstance(v, str)]
    if not held or isinstance(obj, str):
        return replacements._define_literal_ex(visitor, sdfg, state, obj, dtype, **more)
    whole = all(isinstance(v, str | int | np.integer) for v in values.flat)
    kinds = [*held, *(() if whole else (dace.float64,)), *(() if len(held) > 1 else held)]
    name, _ = sdfg.add_temp_transient(values.shape, dtype or dace.dtypes.result_type_of(*kinds))
    target = state.add_write(name)
    for place, value in np.ndenumerate(values):
        inputs = {"__x": dace.Memlet(f"{value}[0]")} if isinstance(value, str) else {}
        tasklet = state.add_tasklet("element", {*inputs}, {"__out"}, f"__out = {'__x' if inputs else value}")
        for connector, memlet in inputs.items():
            state.add_edge(state.add_read(value), None, tasklet, connector, memlet)
        state.add_edge(tasklet, "__out", target, None, dace.Memlet(f"{name}[{', '.join(map(str, place))}]"))
    return name


def reshaped(visitor: Any, sdfg: Any, state: Any, a: str, *newshape: Any, order: Any = "C") -> Any:
    """To a shape, of which one size may be -1, or to a number of elements."""
    sizes = each(newshape[0]) if len(newshape) == 1 else [*newshape]
    if -1 in sizes:
        at = sizes.index(-1)
        rest = math.prod(sizes[:at] + sizes[at + 1 :])
        sizes[at] = sympy.simplify(sympy.sympify(math.prod(sdfg.arrays[a].shape)) / rest)
    return replacements.reshape(visitor, sdfg, state, a, tuple(sizes), order)


def _linspace(
    visitor: Any, sdfg: Any, state: Any, start: Any, stop: Any, num: Any = 50, endpoint: bool = True,
    retstep: bool = False, dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """Of integers, too, real numbers."""
    if dtype is not None or retstep or {start, stop} & sdfg.arrays.keys():
        return replacements._linspace(visitor, sdfg, state, start, stop, num, endpoint, retstep, dtype, axis)
    steps = (num - 1 if endpoint else num) or 1
    code = f"({start}) + {subscripts(1)[0]} * (1.0 * (({stop}) - ({start}))) / ({steps})"
    return pointwise(sdfg, state, [num], dace.float64, code, {})


def _where(visitor: Any, sdfg: Any, state: Any, condition: str, x: Any = None, y: Any = None) -> Any:
    """Between two numbers, too, for every element of the condition."""
    arrays = [sdfg.arrays[v] for v in (x, y) if isinstance(v, str) and v in sdfg.arrays]
    shape = sdfg.arrays[condition].shape
    if x is None or y is None or any(n != 1 for array in arrays for n in array.shape) or tuple(shape) == (1,):
        return replacements._array_array_where(visitor, sdfg, state, condition, x, y)
    inputs = {"__holds": (condition, subscripts(len(shape)))}
    inputs |= {f"__{n}": (v, ["0"]) for n, v in (("x", x), ("y", y)) if isinstance(v, str)}
    one, other = ("__x" if "__x" in inputs else x), ("__y" if "__y" in inputs else y)
    is_real = any(isinstance(v, float) for v in (x, y))
    literal = (np.float16 if is_real else np.int8) if arrays else (np.float64 if is_real else np.int64)
    types = [*(array.dtype.type for array in arrays), *([literal] if len(arrays) < 2 else [])]
    dtype = dace.dtypes.dtype_to_typeclass(np.result_type(*types).type)
    return pointwise(sdfg, state, shape, dtype, f"{one} if __holds else {other}", inputs)


def _copy(visitor: Any, sdfg: Any, state: Any, a: str) -> Any:
    """Of a slice, too."""
    if isinstance(sdfg.arrays[a], dace.data.View):
        return mapped(visitor, sdfg, state, a, "{}")
    return replacements._numpy_copy(visitor, sdfg, state, a)


def _widening(function: Callable[..., Any]) -> Callable[..., Any]:
    """Sums and products of integers are as wide as NumPy has them; of truths they count."""

    def call(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
        wide = {"b": dace.int64, "i": dace.int64, "u": dace.uint64}.get(kind(sdfg, a))
        if wide in (None, sdfg.arrays[a].dtype):
            return function(visitor, sdfg, state, a, axis=axis)
        calls = NestedCall(visitor, sdfg, state)
        return calls, calls(function)(calls(mapped)(a, "{}", wide), axis=axis)

    return call


def _average(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None, weights: Any = None) -> Any:
    """The mean, of integers and truths a real number."""
    if weights is not None:
        raise NotImplementedError("np.average: without weights alone")
    calls = NestedCall(visitor, sdfg, state)
    numbers = calls(mapped)(a, "{}", dace.float64) if kind(sdfg, a) in "biu" else a
    return calls, calls(_mean)(numbers, axis=axis)


def _count(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
    calls = NestedCall(visitor, sdfg, state)
    return calls, calls(_sum)(calls(mapped)(a, "{} != 0", dace.int64), axis=axis)


def _prod(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
    return _reduce(visitor, sdfg, state, "lambda x, y: x * y", a, axis=axis, identity=1)


def _joined(by: str, identity: bool) -> Callable[..., Any]:
    """Whether some, or all, are true."""

    def call(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
        calls = NestedCall(visitor, sdfg, state)
        truths = calls(mapped)(a, "{} != 0", dace.bool_)
        return calls, calls(_reduce)(by, truths, axis=axis, identity=identity)

    return call


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that may keep its axes, of one element each."""

    def call(
        visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None, keepdims: bool = False, **more: Any
    ) -> Any:
        calls = NestedCall(visitor, sdfg, state)
        found = calls(function)(a, axis=axis, **more)
        return calls, calls(with_axes)(found, sdfg.arrays[a].shape, axis) if keepdims else found

    return call


def with_axes(visitor: Any, sdfg: Any, state: Any, found: str, shape: Sequence[Any], axis: Any) -> str:
    """What a reduction of an array of that shape along axes found, with these axes."""
    axes = _axes(axis, len(shape))
    at = subscripts(len(shape))
    kept = [i for d, i in enumerate(at) if d not in axes] or ["0"]
    full = [1 if d in axes else s for d, s in enumerate(shape)]
    return pointwise(sdfg, state, full, sdfg.arrays[found].dtype, "__x", {"__x": (found, kept)})


def _clip(visitor: Any, sdfg: Any, state: Any, a: str, a_min: Any = None, a_max: Any = None) -> str:
    shape, dtype = sdfg.arrays[a].shape, sdfg.arrays[a].dtype
    at = subscripts(len(shape))
    inputs, code = {"__x": (a, at)}, "__x"
    for name, limit, choose in (("__low", a_min, "max"), ("__high", a_max, "min")):
        is_array = isinstance(limit, str) and limit in sdfg.arrays
        if is_array:
            own = sdfg.arrays[limit].shape
            place = at[len(shape) - len(own) :] or ["0"]
            inputs[name] = (limit, ["0" if n == 1 else i for i, n in zip(place, own, strict=True)])
        if limit is not None:
            code = f"{choose}({code}, {name if is_array else limit})"
        if kind(sdfg, a) in "biu" and (kind(sdfg, limit) == "f" if is_array else isinstance(limit, float)):
            dtype = dace.float64
    return pointwise(sdfg, state, shape, dtype, code, inputs)


def _running(by: str) -> Callable[..., Any]:
    """Sums, or products, of an element and all before it."""
    return lambda visitor, sdfg, state, a, axis=None: _cumulative(by, sdfg, state, a, axis)


def _cumulative(by: str, sdfg: Any, state: Any, a: str, axis: Any) -> str:
    descriptor = sdfg.arrays[a]
    shape, dtype = descriptor.shape, descriptor.dtype
    along = only_axis("cumsum, np.cumprod", sdfg, a, axis)
    name, _ = sdfg.add_temp_transient(shape, dtype)
    sums = dace.SDFG("cumulative")
    sums.add_array("_a", shape, dtype, strides=descriptor.strides)
    sums.add_array("_found", shape, dtype)
    first, following = sums.add_state("first", is_start_block=True), sums.add_state("following")
    at = subscripts(len(shape))
    others = {i: f"0:{s}" for d, (i, s) in enumerate(zip(at, shape, strict=True)) if d != along}
    for step, place, code in ((first, "0", "__out = __x"), (following, "__k", f"__out = __before {by} __x")):
        here, before = (
            [where if d == along else i for d, i in enumerate(at)] for where in (place, "__k - 1")
        )
        inputs = {"__x": ("_a", here)} | ({"__before": ("_found", before)} if step is following else {})
        step.add_mapped_tasklet(
            "sum",
            others or {"__once": "0:1"},
            {c: dace.Memlet(f"{array}[{', '.join(i)}]") for c, (array, i) in inputs.items()},
            code,
            {"__out": dace.Memlet(f"_found[{', '.join(here)}]")},
            external_edges=True,
        )
    sums.add_loop(first, following, None, "__k", "1", f"__k < {shape[along]}", "__k + 1")
    whole = ", ".join(f"0:{s}" for s in shape)
    _run(sdfg, state, sums, {}, f"{a}[{whole}]", f"{name}[{whole}]")
    return name


def _repeat(visitor: Any, sdfg: Any, state: Any, a: str, repeats: int, axis: Any = None) -> str:
    shape = list(sdfg.arrays[a].shape)
    axis = only_axis("repeat", sdfg, a, axis)
    at = subscripts(len(shape))
    source = [f"int_floor({i}, {repeats})" if d == axis else i for d, i in enumerate(at)]
    shape[axis] = shape[axis] * repeats
    return pointwise(sdfg, state, shape, sdfg.arrays[a].dtype, "__x", {"__x": (a, source)})


def _tile(visitor: Any, sdfg: Any, state: Any, a: str, reps: Any) -> str:
    own = list(sdfg.arrays[a].shape)
    times = each(reps)
    count = max(len(own), len(times))
    own, times = [1] * (count - len(own)) + own, [1] * (count - len(times)) + times
    at = subscripts(count)
    source = [f"{i} % ({s})" for i, s in zip(at, own, strict=True)][count - len(sdfg.arrays[a].shape) :]
    shape = [s * n for s, n in zip(own, times, strict=True)]
    return pointwise(sdfg, state, shape, sdfg.arrays[a].dtype, "__x", {"__x": (a, source)})


def _first_extreme(better: str) -> Callable[..., Any]:
    """In one pass over all elements, or along one axis."""

    def call(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None) -> Any:
        descriptor = sdfg.arrays[a]
        if axis is None and len(descriptor.shape) > 1:
            calls = NestedCall(visitor, sdfg, state)
            return calls, calls(call)(calls(reshaped)(a, -1))
        along = int(axis or 0) % len(descriptor.shape)
        length = descriptor.shape[along]
        search = dace.SDFG("first_extreme")
        search.add_array("_a", [length], descriptor.dtype, strides=[descriptor.strides[along]])
        search.add_array("_found", [1], dace.int64)
        search.add_scalar("_best", descriptor.dtype, transient=True)
        first, following = search.add_state("first", is_start_block=True), search.add_state("following")
        code = {"__best": "__x", "__found": "0"}
        _one_step(first, {"__x": "_a[0]"}, code)
        code = {
            f"__{n}": f"{new} if __x {better} __old_best else __old_{n}"
            for n, new in (("best", "__x"), ("found", "__k"))
        }
        _one_step(following, {"__x": "_a[__k]", "__old_best": "_best[0]", "__old_found": "_found[0]"}, code)
        search.add_loop(first, following, None, "__k", "1", f"__k < {length}", "__k + 1")
        at = subscripts(len(descriptor.shape))
        others = {i: s for d, (i, s) in enumerate(zip(at, descriptor.shape, strict=True)) if d != along}
        name, _ = sdfg.add_temp_transient([*others.values()] or [1], dace.int64)
        line = [f"0:{length}" if d == along else i for d, i in enumerate(at)]
        memlets = f"{a}[{', '.join(line)}]", f"{name}[{', '.join(others) or '0'}]"
        _run(sdfg, state, search, {i: f"0:{s}" for i, s in others.items()}, *memlets)
        return name

    return call


def _run(sdfg: Any, state: Any, steps: Any, points: Mapping[str, str], source: str, target: str) -> None:
    """At each point, run an SDFG on a part of an array, its `_a`, and have its `_found` in another."""
    node = state.add_nested_sdfg(steps, sdfg, {"_a"}, {"_found"}, {str(s): s for s in steps.free_symbols})
    entry, leave = ([n] for n in state.add_map("points", points)) if points else ([], [])
    read, written = dace.Memlet(source), dace.Memlet(target)
    state.add_memlet_path(state.add_read(read.data), *entry, node, dst_conn="_a", memlet=read)
    state.add_memlet_path(node, *leave, state.add_write(written.data), src_conn="_found", memlet=written)


def _one_step(state: Any, inputs: Mapping[str, str], results: Mapping[str, str]) -> None:
    """A tasklet of scalars: `__best` is written to `_best`, and so on."""
    code = "\n".join(f"{name} = {value}" for name, value in results.items())
    tasklet = state.add_tasklet("step", set(inputs), set(results), code)
    for name, element in inputs.items():
        memlet = dace.Memlet(element)
        state.add_edge(state.add_read(memlet.data), None, tasklet, name, memlet)
    for name in results:
        memlet = dace.Memlet(f"{name[1:]}[0]")
        state.add_edge(tasklet, name, state.add_write(memlet.data), None, memlet)


def _norm(
    visitor: Any, sdfg: Any, state: Any, x: str, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    """Euclidean, of all elements or along axes; along one axis, by the sum and by the extremes of magnitudes,
    too."""
    ord = unboxed(ord)
    calls = NestedCall(visitor, sdfg, state)
    of_vectors = len(_axes(axis, len(sdfg.arrays[x].shape))) == 1
    if of_vectors and ord in _MAGNITUDES:
        magnitudes = calls(_magnitude)(x)
        return calls, calls(_keeping(_MAGNITUDES[ord]))(magnitudes, axis=axis, keepdims=keepdims)
    if ord not in (None, 2, "fro") or (ord == 2 and not of_vectors):
        raise NotImplementedError(
            "np.linalg.norm: of a matrix the Frobenius norm alone; of vectors 1, 2, inf"
        )
    total = calls(_keeping(_sum))(calls(_squares)(x, None, []), axis=axis, keepdims=keepdims)
    return calls, calls(mapped)(total, "sqrt({})")


_MAGNITUDES = {1: _sum, math.inf: replacements._max, -math.inf: replacements._min}


def _spread(form: str) -> Callable[..., Any]:
    """`form` of the mean square distance from the mean."""

    def call(visitor: Any, sdfg: Any, state: Any, a: str, axis: Any = None, ddof: int = 0) -> Any:
        shape = sdfg.arrays[a].shape
        axes = _axes(axis, len(shape))
        calls = NestedCall(visitor, sdfg, state)
        mean = calls(_average)(a, axis=axis)
        found = calls(_mean)(calls(_squares)(a, mean, axes), axis=axis)
        count = math.prod(shape[d] for d in axes)
        return calls, calls(mapped)(
            found, form.format(f"{{}} * ({count}) / ({count} - {ddof})" if ddof else "{}")
        )

    return call


def _covariance(
    visitor: Any, sdfg: Any, state: Any, m: str, y: Any = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None,
) -> Any:  # fmt: skip
    """Of the rows of a matrix, or of its columns, with each other."""
    if y is not None or len(sdfg.arrays[m].shape) != 2 or kind(sdfg, m) == "c":
        raise NotImplementedError("np.cov, np.corrcoef: one matrix of real numbers alone")
    calls = NestedCall(visitor, sdfg, state)
    rows = m if rowvar else calls(replacements._transpose)(m)
    apart = calls(_apart_from_means)(rows)
    total = calls(replacements._matmult)(apart, calls(replacements._transpose)(apart))
    count = sdfg.arrays[rows].shape[1]
    freedom = ddof if ddof is not None else 0 if bias else 1
    return calls, calls(mapped)(total, f"{{}} / ({count} - {freedom})")


def _correlation(visitor: Any, sdfg: Any, state: Any, x: str, y: Any = None, rowvar: bool = True) -> Any:
    calls = NestedCall(visitor, sdfg, state)
    return calls, calls(_by_diagonal)(calls(_covariance)(x, y, rowvar))


def _apart_from_means(visitor: Any, sdfg: Any, state: Any, a: str) -> Any:
    """Of its rows."""
    calls = NestedCall(visitor, sdfg, state)
    inputs = {"__x": (a, subscripts(2)), "__m": (calls(_average)(a, axis=1), subscripts(1))}
    return calls, calls(computed)(sdfg.arrays[a].shape, real_of(sdfg, a), "__x - __m", inputs)


def _by_diagonal(visitor: Any, sdfg: Any, state: Any, a: str) -> str:
    """Every element by the roots of its row's and its column's on the diagonal."""
    (i, j), descriptor = subscripts(2), sdfg.arrays[a]
    inputs = {"__x": (a, [i, j]), "__r": (a, [i, i]), "__c": (a, [j, j])}
    return pointwise(sdfg, state, descriptor.shape, descriptor.dtype, "__x / sqrt(__r * __c)", inputs)


def _squares(visitor: Any, sdfg: Any, state: Any, a: str, mean: str | None, axes: Sequence[int]) -> str:
    """Squares of magnitudes of what an array has, or of its distance from a mean along axes."""
    descriptor = sdfg.arrays[a]
    at = subscripts(len(descriptor.shape))
    inputs = {"__x": (a, at)}
    if mean is not None:
        kept = [i for d, i in enumerate(at) if d not in axes]
        inputs["__m"] = (mean, kept or ["0"])
    form = "real({0} * conj({0}))" if kind(sdfg, a) == "c" else "{0} * {0}"
    code = form.format("(__x - __m)" if mean is not None else "__x")
    return pointwise(sdfg, state, descriptor.shape, real_of(sdfg, a), code, inputs)


def mapped(visitor: Any, sdfg: Any, state: Any, a: str, form: str, dtype: Any = None) -> str:
    descriptor = sdfg.arrays[a]
    inputs = {"__x": (a, subscripts(len(descriptor.shape)))}
    return pointwise(sdfg, state, descriptor.shape, dtype or descriptor.dtype, form.format("__x"), inputs)


def computed(visitor: Any, sdfg: Any, state: Any, *of: Any) -> str:
    """`pointwise`, as functions are called that others are made of."""
    return pointwise(sdfg, state, *of)


def pointwise(
    sdfg: Any,
    state: Any,
    shape: Sequence[Any],
    dtype: Any,
    code: str,
    inputs: dict[str, tuple[str, list[str]]],
) -> str:
    """A new array, every element by the same expression of elements of others."""
    name, _ = sdfg.add_temp_transient(shape, dtype)
    at = subscripts(len(shape))
    state.add_mapped_tasklet(
        "pointwise",
        {i: f"0:{s}" for i, s in zip(at, shape, strict=True)},
        {c: dace.Memlet(f"{array}[{', '.join(i)}]") for c, (array, i) in inputs.items()},
        f"__out = {code}",
        {"__out": dace.Memlet(f"{name}[{', '.join(at)}]")},
        external_edges=True,
    )
    return name


def subscripts(count: int) -> list[str]:
    return [f"__i{d}" for d in range(count)]


def kind(sdfg: Any, a: str) -> str:
    """NumPy's letter for what an array holds: "b", "i", "u", "f" or "c"."""
    return str(np.dtype(sdfg.arrays[a].dtype.type).kind)


def real_of(sdfg: Any, a: str) -> Any:
    """The type of what is made of an array's numbers: theirs or that of their parts, of whole numbers
    float64."""
    return dace.float32 if sdfg.arrays[a].dtype in (dace.float32, dace.complex64) else dace.float64


def unboxed(text: Any) -> Any:
    """DaCe hands texts over in a box."""
    return getattr(text, "value", text)


def _axes(axis: Any, count: int) -> list[int]:
    """Of a reduction."""
    return [*range(count)] if axis is None else [d % count for d in each(axis)]


def only_axis(function: str, sdfg: Any, a: str, axis: Any) -> int:
    """The axis that is said, or the only one."""
    dimensions = len(sdfg.arrays[a].shape)
    if axis is None and dimensions > 1:
        raise NotImplementedError(f"np.{function} of an array of several axes: say which axis")
    return int(axis or 0) % dimensions


def each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def as_method(name: str, function: Callable[..., Any]) -> None:
    """Of arrays, too."""
    for holder in ("Array", "Scalar", "View"):
        op_repository.replaces_method(holder, name)(function)


_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": _widening(_sum), "mean": _average, "max": replacements._max, "min": replacements._min,
    "prod": _widening(_prod), "any": _joined("lambda x, y: x or y", False),
    "all": _joined("lambda x, y: x and y", True), "var": _spread("{}"), "std": _spread("sqrt({})"),
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "array": _array, "empty": _empty, "roll": roll, "diff": _diff, "outer": _outer, "linalg.norm": _norm,
    "linalg.solve": _solve, "clip": _clip, "dot": _dot, "matmul": replacements._matmult,
    "round": _round, "around": _round, "where": _where, "copy": _copy, "linspace": _linspace,
    "count_nonzero": _keeping(_count), "reshape": reshaped,
    "cumsum": _widening(_running("+")), "cumprod": _widening(_running("*")),
    "average": _average, "repeat": _repeat, "tile": _tile,
    "argmin": _first_extreme("<"), "argmax": _first_extreme(">"),
    "cov": _covariance, "corrcoef": _correlation,
    **{name: _keeping(function) for name, function in _REDUCTIONS.items()},
    "amax": _keeping(replacements._max), "amin": _keeping(replacements._min),
}  # fmt: skip
op_repository.replaces("round")(_rounded)
op_repository.replaces("abs")(_magnitude)
for _name, _original, _of_real in (
    ("real", replacements._real, "{}"),
    ("imag", replacements._imag, "0 * {}"),
    ("conj", replacements._conj, "{}"),
):
    op_repository.replaces(f"numpy.{_name}")(_of_complex(_original, _of_real))
replacements.ufuncs["rint"]["code"] = f"__out = {NEAREST.format('__in1')}"
for _name, _function in _FUNCTIONS.items():
    op_repository.replaces(f"numpy.{_name}")(_function)
for _name in (*_REDUCTIONS, *"argmax argmin clip copy cumprod cumsum dot repeat reshape round".split()):
    as_method(_name, _FUNCTIONS[_name])
