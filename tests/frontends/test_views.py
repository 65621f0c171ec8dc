"""Where nested arrays point: slices, dropped dimensions, steps, reshapes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from frontends.interpret import Interpreter
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.views import Subset, View, ViewLayout, narrow, split, whole
from gnnperf.nests import Const, LoopNest, Op, Symbol


def packed(*shape: int) -> ViewLayout:
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return layout(shape, strides)


def layout(shape: tuple[int, ...] | list[int], strides: tuple[int, ...] | list[int]) -> ViewLayout:
    return ViewLayout(tuple(map(Const, shape)), tuple(map(Const, strides)))


def subset(*ranges: tuple[int, int, int]) -> Subset:
    """(start, size, step) per dimension."""
    return Subset(
        tuple(Const(r[0]) for r in ranges), tuple(Const(r[1]) for r in ranges), tuple(r[2] for r in ranges)
    )


def at(view: View, *indices: int) -> tuple[int, ...]:
    """The subscripts of the buffer that a view's element has."""
    load = view.element(tuple(map(Const, indices)))
    interpreter = Interpreter(LoopNest("none", {}, ()), {})
    return tuple(int(interpreter.value(i)) for i in load.indices)


def check(outer: ViewLayout, part: Subset, inner: ViewLayout) -> None:
    """Every element of the inner array lies where address arithmetic says."""
    view = narrow(whole("A", outer), part, inner, {})
    shape = [s.value for s in outer.shape if isinstance(s, Const)]
    strides = [s.value for s in outer.strides if isinstance(s, Const)]
    inner_shape = [int(s.value) for s in inner.shape if isinstance(s, Const)]
    inner_strides = [s.value for s in inner.strides if isinstance(s, Const)]
    start = sum(s.value * t for s, t in zip(part.starts, strides, strict=True) if isinstance(s, Const))
    for index in itertools.product(*map(range, inner_shape)):
        found = at(view, *index)
        assert all(0 <= i < n for i, n in zip(found, shape, strict=True))
        address = sum(i * t for i, t in zip(found, strides, strict=True))
        assert address == start + sum(i * t for i, t in zip(index, inner_strides, strict=True))


def test_slice_keeps_its_rank() -> None:
    check(packed(6, 7), subset((1, 3, 1), (2, 4, 1)), layout((3, 4), (7, 1)))


def test_dropped_dimensions() -> None:
    check(packed(4, 5, 6), subset((2, 1, 1), (0, 5, 1), (3, 1, 1)), layout((5,), (6,)))
    check(packed(4, 5, 6), subset((1, 3, 1), (2, 1, 1), (0, 6, 1)), layout((3, 6), (30, 1)))


def test_steps() -> None:
    check(packed(8, 9), subset((0, 4, 2), (1, 3, 3)), layout((4, 3), (18, 3)))


def test_single_element() -> None:
    check(packed(4, 5), subset((2, 1, 1), (3, 1, 1)), layout((1,), (1,)))


def test_reshape_of_a_contiguous_array() -> None:
    check(packed(4, 6), subset((0, 4, 1), (0, 6, 1)), packed(2, 12))
    check(packed(4, 6), subset((0, 4, 1), (0, 6, 1)), packed(24))
    check(packed(24), subset((0, 24, 1)), packed(2, 3, 4))


def test_reshape_of_rows_in_the_middle() -> None:
    check(packed(5, 6), subset((2, 2, 1), (0, 6, 1)), packed(12))


def test_reshape_of_a_gap_is_refused() -> None:
    with pytest.raises(UnsupportedConstruct, match="non-contiguous"):
        narrow(whole("A", layout((4, 6), (8, 1))), subset((0, 4, 1), (0, 6, 1)), packed(24), {})


def test_wrong_rank_is_refused() -> None:
    with pytest.raises(UnsupportedConstruct, match="rank"):
        whole("A", packed(3, 4)).element((Const(0),))


def test_one_element_is_a_scalar() -> None:
    assert whole("A", packed(1, 1)).element((Const(0), Const(0))).indices == ()


def test_known_ranges_make_reshapes_affine() -> None:
    address = Op("add", (Op("mul", (Symbol("i"), Const(6))), Symbol("j")))
    assert split(address, (Const(4), Const(6)), {"i": (0, 3), "j": (0, 5)}) == (Symbol("i"), Symbol("j"))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_split_inverts_row_major_addresses(shape: list[int], data: st.DataObject) -> None:
    index = tuple(data.draw(st.integers(0, s - 1)) for s in shape)
    address = int(np.ravel_multi_index(index, shape))
    found = split(Const(address), tuple(map(Const, shape)), {})
    interpreter = Interpreter(LoopNest("none", {}, ()), {})
    assert tuple(interpreter.value(f) for f in found) == index
