"""What depends on inner loops alone is computed once; results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Buffer, Loop, LoopNest, Node, Statement
from gnnperf.nests.ir import Const, Expr, Op, subexpressions, walk
from gnnperf.nests.names import Names
from gnnperf.nests.tables import LEAST_USES, MOST_ELEMENTS, is_costly, tabulate

N, M = LEAST_USES, 5
BUFFERS = [
    array("x", N, M),
    array("y", N, M),
    array("a", M),
    array("b", N),
    array("t", transient=True, scope="local"),
]
COSINE = op("cos", load("a", "j"))


def tabulated(node: Node, extra: Buffer | None = None) -> LoopNest:
    """With tables; it computes the same."""
    one = nest("example", [*BUFFERS, *([extra] if extra else [])], node)
    buffers = dict(one.buffers)
    names = Names.of(one)
    made = nest("example", [], *tabulate(one.body, buffers, names.fresh))
    made = LoopNest("example", buffers, made.body, {})
    memory = random_memory(one, np.random.default_rng(1))
    expected, found = interpret(one, memory), interpret(made, memory)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-14)
    return made


def rows(value: Expr, stop: int = N) -> Loop:
    return loops({"i": stop, "j": M}, assign(load("y", "i", "j"), value))


def computed(made: LoopNest) -> list[int]:
    """For each node, how many cosines its statements have."""
    return [sum(map(_cosines, walk((node,)))) for node in made.body]


def _cosines(node: Node) -> int:
    parts = subexpressions(node.value) if isinstance(node, Statement) else ()
    return sum(isinstance(e, Op) and e.name == "cos" for e in parts)


def test_what_a_row_needs_is_computed_once_for_all_rows() -> None:
    made = tabulated(rows(mul(load("x", "i", "j"), COSINE)))
    table, _ = made.body
    assert isinstance(table, Loop) and table.iterator == "j" and computed(made) == [1, 0]
    (held,) = made.buffers.keys() - {b.name for b in BUFFERS}
    assert (made.buffers[held].shape, made.buffers[held].dtype) == ((M,), "float64")
    assert made.buffers[held].transient


def test_equal_values_share_a_table() -> None:
    twice = loops(
        {"i": N, "j": M},
        assign(load("y", "i", "j"), mul(load("x", "i", "j"), COSINE)),
        assign(load("x", "i", "j"), add(load("y", "i", "j"), COSINE)),
    )
    assert computed(tabulated(twice)) == [1, 0]


def test_steps_of_time_read_what_no_step_changes() -> None:
    step = loops({"i": N, "j": M}, accumulate(load("y", "i", "j"), op("exp", op("neg", load("x", "i", "j")))))
    made = tabulated(loop("t", LEAST_USES, step, independent=False))
    table, _ = made.body
    assert [lp.iterator for lp in walk((table,)) if isinstance(lp, Loop)] == ["i", "j"]


def test_scalars_of_an_iteration_stand_for_what_they_hold() -> None:
    angle = assign(load("t"), mul(0.5, "j"))
    scaled = assign(load("y", "i", "j"), mul(load("x", "i", "j"), op("cos", load("t"))))
    assert computed(tabulated(loops({"i": N, "j": M}, angle, scaled))) == [1, 0]


def test_what_a_loop_leaves_in_a_scalar_is_no_table() -> None:
    """In the second loop, t is what the last iteration of the first one left."""
    first = loop("j", M, assign(load("t"), mul(0.5, "j")))
    second = loop("j", M, assign(load("y", "i", "j"), mul(load("x", "i", "j"), op("cos", load("t")))))
    assert computed(tabulated(loop("i", N, first, second))) == [1]


def test_loops_of_one_name_have_tables_of_their_own() -> None:
    short, whole = (
        loop("j", stop, accumulate(load("y", "i", "j"), mul(load("x", "i", "j"), COSINE))) for stop in (2, M)
    )
    made = tabulated(loop("i", N, short, whole))
    shapes = [made.buffers[name].shape for name in made.buffers.keys() - {b.name for b in BUFFERS}]
    assert sorted(shapes) == [(2,), (M,)]


def test_what_a_whole_number_holds_is_one() -> None:
    held = array("k", dtype="int64", transient=True, scope="local")
    node = loops(
        {"i": N, "j": M},
        assign(load("k"), mul(2.0, op("sqrt", op("add", "j", 0.5)))),
        accumulate(load("y", "i", "j"), mul(load("x", "i", "j"), op("cast:float64", load("k")))),
    )
    tabulated(node, extra=held)


@pytest.mark.parametrize(
    "node",
    [
        rows(mul(load("x", "i", "j"), COSINE), stop=LEAST_USES - 1),
        rows(op("cos", load("x", "i", "j"))),
        rows(op("cos", load("b", "i"))),  # compilers know that
        loops({"i": N, "j": M}, assign(load("y", "i", "j"), COSINE), assign(load("a", "j"), 1.0)),
        rows(op("select", op("gt", load("x", "i", "j"), 0.0), COSINE, 0.0)),  # an element that may not exist
        rows(op("select", op("gt", load("x", "i", "j"), 9.0), op("exp", op("mod", 3, "j")), 0.0)),
    ],
)
def test_other_values_are_computed_where_they_are(node: Loop) -> None:
    assert tabulated(node).body == (node,)


def test_places_are_in_tables_whatever_loops_decide_them() -> None:
    def place(iterator: str, size: int) -> Expr:
        middle = op("cast:int64", op("floor", mul(0.5, op("sub", iterator, 0.5))))
        return op("min", op("max", middle, 0), size - 1)

    picked = load("x", place("i", N), place("j", M))
    made = tabulated(loops({"i": N, "j": N + 1}, accumulate(load("y", "i", 0), picked)))
    shapes = [b.shape for name, b in made.buffers.items() if b.dtype == "int64"]
    assert sorted(shapes) == [(N,), (N + 1,)]


def test_tables_stay_in_a_cache() -> None:
    size = MOST_ELEMENTS + 1
    arrays = {b.name: b for b in (array("y", size), array("a", size))}
    node = loop("t", N, loop("j", size, accumulate(load("y", "j"), COSINE)), independent=False)
    assert tabulate((node,), arrays, str) == (node,)


@pytest.mark.parametrize(
    ("value", "costly"),
    [
        (op("exp", "j"), True),
        (op("div", load("a", "j"), op("sqrt", load("a", "j"))), True),
        (op("div", load("a", "j"), 3.0), False),
        (op("pow", load("a", "j"), 2), False),
        (op("pow", load("a", "j"), Const(2.5)), True),
        (add(*[load("a", "j")] * 9), False),
    ],
)
def test_additions_alone_cost_little(value: Expr, costly: bool) -> None:
    assert is_costly(value) == costly
