"""State machines as loops, branches and blocks."""

from __future__ import annotations

import ast
from typing import Any

import dace
import pytest

from gnnperf.frontends.dace.control_flow import (
    Assign,
    Branch,
    Element,
    For,
    Opaque,
    StateBlock,
    While,
    control_flow,
)


def machine(*edges: tuple[str, str, str, dict[str, str]]) -> Any:
    """An SDFG from (source, target, condition, assignments); the first source is the start."""
    sdfg = dace.SDFG("machine")
    for name in ("i", "j", "k"):
        sdfg.add_symbol(name, dace.int64)
    states: dict[str, Any] = {}
    for source, target, condition, assignments in edges:
        for name in (source, target):
            if name not in states:
                states[name] = sdfg.add_state(name, is_start_block=not states)
        sdfg.add_edge(states[source], states[target], dace.InterstateEdge(condition or "1", assignments))
    return sdfg


def counted(start: str, condition: str, step: str) -> Any:
    return machine(
        ("a", "guard", "", {"i": start}),
        ("guard", "body", condition, {}),
        ("body", "guard", "", {"i": step}),
        ("guard", "end", f"not ({condition})", {}),
    )


def only(sequence: list[Element], kind: type) -> Any:
    (found,) = (e for e in sequence if isinstance(e, kind))
    return found


@pytest.mark.parametrize(
    ("start", "condition", "step", "expected"),
    [
        ("0", "i < 10", "i + 1", ("0", "10", False, 1)),
        ("2", "i <= k", "i + 3", ("2", "k", True, 3)),
        ("k", "10 > i", "1 + i", ("k", "10", False, 1)),
        ("9", "i > -1", "i - 1", ("9", "-1", False, -1)),
        ("9", "i >= 0", "i + -2", ("9", "0", True, -2)),
    ],
)
def test_counted_loops(start: str, condition: str, step: str, expected: tuple[str, str, bool, int]) -> None:
    loop = only(control_flow(counted(start, condition, step)), For)
    assert loop.iterator == "i"
    assert (ast.unparse(loop.start), ast.unparse(loop.stop), loop.closed, loop.step) == expected
    assert [type(e) for e in loop.body] == [StateBlock]


@pytest.mark.parametrize(
    ("start", "condition", "step"),
    [("0", "i < 10", "2 * i"), ("0", "i != 10", "i + 1"), ("0", "k < 3", "i + 1")],
)
def test_other_loops_are_while_loops(start: str, condition: str, step: str) -> None:
    sequence = control_flow(counted(start, condition, step))
    before = [e for e in sequence if isinstance(e, Assign)]
    assert [e.values for e in before] == [{"i": start}]
    loop = only(sequence, While)
    assert ast.unparse(loop.test) == condition
    stepped = only(loop.body, Assign)
    assert stepped.values == {"i": step}
    assert only(loop.body, StateBlock).state.label == "body"


def test_a_loop_has_an_entry_and_an_exit_of_its_own() -> None:
    sdfg = counted("0", "i < 10", "i + 1")
    loop = only(control_flow(sdfg), For)
    first, last = loop.states[0], loop.states[-1]
    assert not first.nodes()
    assert not last.nodes()
    inside = set(loop.states)
    assert all(e.dst is first for e in sdfg.edges() if e.src not in inside and e.dst in inside)
    assert all(e.src is last for e in sdfg.edges() if e.src in inside and e.dst not in inside)


def test_reading_twice_changes_nothing_more() -> None:
    sdfg = counted("0", "i < 10", "i + 1")
    control_flow(sdfg)
    states = sdfg.nodes()
    control_flow(sdfg)
    assert sdfg.nodes() == states


def test_branches_with_and_without_else() -> None:
    sdfg = machine(
        ("a", "then", "k > 1", {}),
        ("a", "join", "not (k > 1)", {"j": "2"}),
        ("then", "join", "", {}),
        ("join", "end", "", {}),
    )
    branch = only(control_flow(sdfg), Branch)
    (yes, first), (no, second) = branch.arms
    assert (ast.unparse(yes), ast.unparse(no)) == ("k > 1", "not k > 1")
    assert [type(e) for e in first] == [StateBlock]
    assert [e.values for e in second if isinstance(e, Assign)] == [{"j": "2"}]


def test_nested_loops() -> None:
    sdfg = machine(
        ("a", "g1", "", {"i": "0"}),
        ("g1", "b", "i < 4", {}),
        ("b", "g2", "", {"j": "i"}),
        ("g2", "c", "j < 5", {}),
        ("c", "g2", "", {"j": "j + 1"}),
        ("g2", "d", "not (j < 5)", {}),
        ("d", "g1", "", {"i": "i + 1"}),
        ("g1", "end", "not (i < 4)", {}),
    )
    outer = only(control_flow(sdfg), For)
    inner = only(outer.body, For)
    assert (outer.iterator, inner.iterator, ast.unparse(inner.start)) == ("i", "j", "i")


def test_break_is_opaque() -> None:
    sdfg = machine(
        ("a", "guard", "", {"i": "0"}),
        ("guard", "body", "i < 4", {}),
        ("body", "end", "k > 2", {}),
        ("body", "rest", "not (k > 2)", {}),
        ("rest", "guard", "", {"i": "i + 1"}),
        ("guard", "end", "not (i < 4)", {}),
    )
    assert "break" in only(control_flow(sdfg), Opaque).reason


def test_symbols_set_beside_the_counter_come_first() -> None:
    sdfg = counted("0", "i < j", "i + 1")
    edge = next(e for e in sdfg.edges() if e.dst.label == "guard" and e.src.label == "a")
    edge.data.assignments["j"] = "k - 1"
    sequence = control_flow(sdfg)
    kinds = [type(e) for e in sequence if not isinstance(e, StateBlock)]
    assert kinds == [Assign, For]
