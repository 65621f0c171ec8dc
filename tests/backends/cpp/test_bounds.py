"""Subscripts that are data, and where they lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gnnperf.backends.cpp.bounds import require_within_bounds
from gnnperf.errors import InputError
from gnnperf.measure import Compiler, Runner
from gnnperf.nests.bounds import changed_in, data_accesses
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol

i, p = Symbol("i"), Symbol("p")
ROWS, COLUMNS, ENTRIES = 4, 10, 6


def load(buffer: str, *indices: Expr) -> Load:
    return Load(buffer, indices)


BUFFERS = {
    "x": Buffer("x", "float64", (COLUMNS,), (1,)),
    "X": Buffer("X", "float64", (ROWS, COLUMNS), (COLUMNS, 1)),
    "indptr": Buffer("indptr", "int32", (ROWS + 1,), (1,)),
    "indices": Buffer("indices", "int32", (ENTRIES,), (1,)),
    "again": Buffer("again", "int64", (ENTRIES,), (1,)),
    "y": Buffer("y", "float64", (ENTRIES,), (1,)),
}
ELEMENT = load("indices", i)
IS_VALID = Op("ge", (ELEMENT, Const(0)))


def over_entries(statement: Statement) -> Loop:
    return Loop("i", Const(0), Const(ENTRIES), (statement,))


NESTS: dict[str, Node] = {
    "gather": over_entries(Statement(load("y", i), load("x", ELEMENT))),
    "shifted": over_entries(Statement(load("y", i), load("x", Op("add", (ELEMENT, Const(1)))))),
    "scatter": over_entries(Statement(load("x", ELEMENT), load("y", i), reduce="add")),
    "second_dimension": over_entries(Statement(load("y", i), load("X", Const(1), ELEMENT))),
    "twice": over_entries(Statement(load("y", i), load("x", load("again", ELEMENT)))),
    "guarded": over_entries(Statement(load("y", i), load("x", ELEMENT), guard=IS_VALID)),
    "selected": over_entries(
        Statement(load("y", i), Op("select", (IS_VALID, load("x", ELEMENT), Const(0.0))))
    ),
    "selected_otherwise": over_entries(
        Statement(load("y", i), Op("select", (Op("not", (IS_VALID,)), Const(0.0), load("x", ELEMENT))))
    ),
    "evaluated_in_any_case": over_entries(
        Statement(
            load("y", i),
            Op("mul", (load("x", ELEMENT), Op("select", (IS_VALID, Const(1.0), Const(0.0))))),
        )
    ),
    "rows": Loop(
        "i", Const(0), Const(ROWS),
        (Loop("p", load("indptr", i), load("indptr", Op("add", (i, Const(1)))),
              (Statement(load("y", i), load("x", load("indices", p)), reduce="add"),)),),
    ),
}  # fmt: skip

GOOD = {
    "indices": [0, 9, 3, 3, 5, 1],
    "again": [0, 1, 2, 3, 4, 9],
    "indptr": [0, 2, 2, 5, 6],
}


def checked(name: str, tools: tuple[Compiler, Runner], **changes: list[int]) -> None:
    nest = LoopNest(name, BUFFERS, (NESTS[name],))
    used = {
        buffer: np.asarray((GOOD | changes)[buffer], BUFFERS[buffer].dtype)
        if buffer in GOOD
        else np.ones(BUFFERS[buffer].shape)
        for buffer in nest.arguments
    }
    require_within_bounds(nest, used, *tools)


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner(threads=1) as runner:
        yield compiler, runner


class Unused:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name}: the values alone should have been enough")


@pytest.mark.parametrize("name", ["gather", "scatter", "second_dimension", "guarded", "rows"])
def test_values_that_show_it_are_enough(name: str) -> None:
    checked(name, (Unused(), Unused()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("shifted", {"indices": [0, 8, -1, 3, 5, 1]}),
        ("twice", {"indices": [0, 5, 3, 3, 5, 1], "again": [0, 1, -7, 3, 4, 9]}),
        ("guarded", {"indices": [0, -1, -9, 3, 5, 1]}),
        ("selected", {"indices": [0, -1, -9, 3, 5, 1]}),
        ("selected_otherwise", {"indices": [0, -1, -9, 3, 5, 1]}),
        ("rows", {"indptr": [2, 2, 2, 5, 6], "indices": [-5, 70, 3, 3, 5, 1]}),
        ("rows", {"indptr": [0, 0, -9, -9, -9]}),  # loops that are empty
    ],
)
def test_what_stays_inside_passes(
    name: str, changes: dict[str, list[int]], tools: tuple[Compiler, Runner]
) -> None:
    checked(name, tools, **changes)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gather", {"indices": [0, 10, 3, 3, -1, 1]}, "x to be used within its bounds, got 2 accesses where "
         "indices[i] is not from 0 to below 10 (dimension 0)"),
        ("shifted", {"indices": [0, 9, -2, 3, 5, 1]}, "x to be used within its bounds, got 2 accesses"),
        ("scatter", {"indices": [0, 1 << 30, 3, 3, 5, 1]}, "x to be used within its bounds, got 1 accesses"),
        ("second_dimension", {"indices": [0, 10, 3, 3, 5, 1]}, "below 10 (dimension 1)"),
        ("twice", {"indices": [0, 6, 3, 3, 5, 1]}, "again to be used within its bounds, got 1 accesses"),
        ("twice", {"indices": [0, 2, 3, 3, 5, 1], "again": [0, 1, -7, 3, 4, 9]}, "x to be used within its"),
        ("guarded", {"indices": [0, 10, -9, 3, 5, 1]}, "got 1 accesses"),
        ("selected", {"indices": [0, 10, -9, 3, 5, 1]}, "got 1 accesses"),
        ("evaluated_in_any_case", {"indices": [0, 9, -9, 3, 5, 1]}, "got 1 accesses"),
        ("rows", {"indptr": [0, 2, 2, 5, 8]}, "indices to be used within its bounds, got 2 accesses where p"),
    ],
)  # fmt: skip
def test_what_leads_outside_is_counted(
    name: str, changes: dict[str, list[int]], message: str, tools: tuple[Compiler, Runner]
) -> None:
    with pytest.raises(InputError, match=f"{name}: expected .*{re.escape(message)}.*correct --inputs"):
        checked(name, tools, **changes)


def test_an_index_that_the_nest_itself_writes_is_not_judged_by_what_was_there_before() -> None:
    body = (
        over_entries(Statement(load("indices", i), Const(99))),
        over_entries(Statement(load("y", i), load("x", ELEMENT))),
    )
    nest = LoopNest("writes", BUFFERS, body)
    (access,) = data_accesses(nest)
    data = {"indices": np.zeros(ENTRIES, np.int32)}
    assert access.stays_inside(data, ())
    assert not access.stays_inside(data, changed_in(nest))
