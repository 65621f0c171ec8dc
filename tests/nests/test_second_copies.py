"""Steps of time that update arrays in place go from one copy to another and back, with the same results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Buffer, Expr, Load, Loop, LoopNest, Node, normalise
from gnnperf.nests.analysis import depth
from gnnperf.nests.combine import combine, from_copy_to_copy
from gnnperf.nests.ir import walk
from gnnperf.schedules.recipes import Recipe, apply, copying_recipes, emit

N, M = 12, 11


def inner(*body: Node) -> Node:
    """All elements but the borders."""
    return loop("i", N - 1, loop("j", M - 1, *body, start=1), start=1)


def around(name: str) -> Expr:
    return add(
        load(name, add("i", -1), "j"), load(name, add("i", 1), "j"), load(name, "i", add("j", -1)),
        mul(0.5, load(name, "i", add("j", 1))),
    )  # fmt: skip


def around_row(name: str) -> Expr:
    """What differs between a row and the next one, and between columns."""
    return add(load(name, add("i", 1), "j"), mul(-0.5, load(name, "i", op("sub", M - 1, "j"))))


def here(name: str) -> Load:
    return load(name, "i", "j")


KEEP = inner(assign(load("T", "i", "j"), mul(0.2, around("A"))))
UPDATE = inner(assign(load("A", "i", "j"), add(mul(0.25, here("A")), here("T"))))
TOP = loop("k", M, assign(load("A", 0, "k"), load("A", 1, "k")))
LEFT = loop("k", N, assign(load("A", "k", 0), load("A", "k", 1)))
WORK = loop("i", N, loop("j", M, assign(load("C", "i", "j"), load("A", "i", "j"))))
FROM_WORK = inner(assign(load("A", "i", "j"), mul(0.25, around("C"))))
OTHER = [
    inner(assign(load("S", "i", "j"), mul(0.1, around("B")))),
    inner(accumulate(load("B", "i", "j"), add(here("S"), mul(0.1, here("A"))))),
]


def steps(*body: Node, count: int = 6, start: int = 0) -> Node:
    return loop("t", start + count, *body, start=start, independent=False)


def unit(*body: Node, **given: Buffer) -> LoopNest:
    arrays = {name: array(name, N, M) for name in "ABC"}
    arrays |= {name: array(name, N, M, transient=True) for name in "TS"}
    return nest("example", [*{**arrays, **given}.values()], *body)


ALTERNATING: dict[str, tuple[LoopNest, int]] = {
    "an even number of steps": (unit(steps(KEEP, UPDATE)), 2),
    "an odd number, from the third on": (unit(steps(KEEP, UPDATE, count=5, start=3)), 3),
    "from a step on that the caller says": (
        nest(
            "example",
            [array("A", N, M), array("T", N, M, transient=True)],
            loop(
                "t",
                add("s", 5),
                inner(assign(load("T", "i", "j"), mul("t", around("A")))),
                UPDATE,
                start="s",
                independent=False,
            ),
            s=2,
        ),
        3,
    ),
    "added to": (unit(steps(KEEP, inner(accumulate(load("A", "i", "j"), here("T"))))), 2),
    "the greater of two": (unit(steps(KEEP, inner(accumulate(load("A", "i", "j"), here("T"), by="max")))), 2),
    "at a time": (
        unit(
            steps(inner(assign(load("T", "i", "j"), mul("t", around("A")))), UPDATE, count=5, start=1),
        ),
        3,
    ),
    "two arrays": (unit(steps(KEEP, UPDATE, *OTHER)), 2),
    "both kept first": (unit(steps(KEEP, OTHER[0], UPDATE, OTHER[1], count=7)), 3),
    "flows into cells and out of them": (
        unit(
            steps(
                loop("i", N - 1, loop("j", M, assign(load("T", "i", "j"), mul(0.1, around_row("A"))))),
                loop("i", N - 1, loop("j", M, accumulate(load("A", "i", "j"), here("T")))),
                loop("i", N - 1, loop("j", M, accumulate(load("A", add("i", 1), "j"), mul(-1.0, here("T"))))),
            )
        ),
        2,
    ),
    "borders after": (unit(steps(KEEP, UPDATE, TOP, LEFT, count=5)), 3),
    "borders before": (unit(steps(TOP, LEFT, KEEP, UPDATE)), 2),
    "kept for the caller": (unit(steps(KEEP, UPDATE), T=array("T", N, M)), 5),
    "work for the caller": (unit(steps(WORK, FROM_WORK, count=5)), 3),
    "kept for the caller, by the time": (
        unit(steps(loop("k", "t", assign(load("C", 0, "k"), load("A", 1, "k"))), KEEP, UPDATE)),
        2,
    ),
    "a local number that grows": (
        unit(
            assign(load("c"), 1.0),
            steps(
                accumulate(load("c"), 0.5),
                inner(assign(load("T", "i", "j"), mul(load("c"), around("A")))),
                UPDATE,
            ),
            c=array("c", scope="local"),
        ),
        2,
    ),
    "borders on a condition": (
        unit(
            steps(
                KEEP,
                UPDATE,
                loop("k", M, assign(load("A", 0, "k"), 2.0, guard=op("lt", load("B", 0, "k"), "t"))),
            )
        ),
        2,
    ),
    "borders that grow": (unit(steps(KEEP, UPDATE, loop("k", M, accumulate(load("A", 0, "k"), 0.5)))), 2),
    "read again in the step": (unit(steps(KEEP, UPDATE, inner(accumulate(here("C"), around("A"))))), 4),
    "columns are contiguous": (unit(steps(KEEP, UPDATE), A=array("A", N, M, strides=(1, N))), 2),
    "part of a larger array": (unit(steps(KEEP, UPDATE), A=array("A", N, M, strides=(20, 2), offset=5)), 2),
    "read after the steps, into what was there before": (
        unit(
            loop("i", N, loop("j", M, assign(here("C"), mul(3.0, here("B"))))),
            steps(KEEP, UPDATE),
            loop("i", N, loop("j", M, assign(here("C"), add(here("A"), here("C"))))),
        ),
        3,
    ),
    "work, and something else in its place": (
        unit(
            steps(WORK, FROM_WORK, count=5),
            loop("i", N, loop("j", M, assign(here("C"), mul(2.0, here("B"))))),
        ),
        4,
    ),
    "in steps of others": (
        unit(loop("r", 5, *OTHER, steps(KEEP, UPDATE), independent=False)),
        4,
    ),
    "in another loop": (unit(loop("r", 2, steps(KEEP, UPDATE, TOP, count=5), independent=False)), 3),
}
ROW = loop("j", M - 1, assign(load("A", "i", "j"), around("A")), start=1)
KEPT = {
    "neighbours of this step": unit(steps(loop("i", N - 1, ROW, start=1, independent=False))),
    "few steps": unit(steps(KEEP, UPDATE, count=3)),
    "as many as it says itself": unit(
        loop("t", load("c"), KEEP, UPDATE, accumulate(load("c"), 0), independent=False),
        c=array("c", dtype="int64"),
    ),
    "elements on a condition": unit(
        steps(KEEP, inner(assign(load("A", "i", "j"), here("T"), guard=op("lt", here("T"), 1.0))))
    ),
    "all of it written twice": unit(steps(KEEP, UPDATE, inner(assign(load("A", "i", "j"), around("B"))))),
    "borders between": unit(steps(KEEP, TOP, UPDATE, LEFT)),
    "independent tasks": unit(loop("r", 2, steps(KEEP, UPDATE))),
    "as long as it is far away": unit(
        loop("t", 9, KEEP, UPDATE, independent=False, condition=op("lt", load("B", 0, 0), 3.0))
    ),
    "nothing kept": unit(steps(inner(assign(load("A", "i", "j"), mul(0.5, here("A")))))),
}


def sweeps(of: Sequence[Node]) -> int:
    """Over two dimensions, of updates."""
    most = [n for n in walk(tuple(of)) if isinstance(n, Loop) and n.independent and depth(n) == 2]
    return sum("copied" not in loop.iterator for loop in most)


@pytest.mark.parametrize("name", ALTERNATING)
def test_the_results_are_the_same(name: str) -> None:
    whole, expected = ALTERNATING[name]
    after = combine("inline", whole)
    assert after == from_copy_to_copy(whole)
    assert sweeps(after.body) == expected
    rng = np.random.default_rng(0)
    for backwards in (False, True):
        memory = random_memory(whole, rng)
        for array_name, values in interpret(whole, memory).items():
            found = interpret(after, memory, backwards)[array_name]
            np.testing.assert_allclose(found, values, rtol=1e-12, err_msg=array_name)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
def test_any_number_of_steps(count: int, tmp_path: Path) -> None:
    """Which the caller says; from a step on, with work arrays, borders, and loops in each other."""

    def until(*body: Node, start: int | str = 0) -> Node:
        return loop("t", "n", *body, start=start, independent=False)

    bodies = [
        [until(KEEP, UPDATE, TOP, LEFT)],
        [until(WORK, FROM_WORK)],
        [until(inner(assign(load("T", "i", "j"), mul("t", around("A")))), UPDATE, start="s")],
        [loop("r", 3, *OTHER, until(KEEP, UPDATE), independent=False)],
    ]
    wholes = [
        replace(unit(*body), parameters={"n": count + 2 * (body is bodies[2]), "s": 2}) for body in bodies
    ]
    recipe = Recipe(order="row", register_p=2, combine="inline")
    functions = [emit(apply(recipe, whole), f"f{n}") for n, whole in enumerate(wholes)]
    library = build(functions, tmp_path)
    for function, whole in zip(functions, wholes, strict=True):
        after = from_copy_to_copy(whole)
        assert after is not None
        memory = random_memory(whole, np.random.default_rng(1))
        expected = interpret(whole, memory)
        for backwards in (False, True):
            assert not differences(expected, interpret(after, memory, backwards))
        assert not differences(expected, call(library, function, whole, memory))


@pytest.mark.parametrize("name", KEPT)
def test_others_stay_in_place(name: str) -> None:
    assert from_copy_to_copy(KEPT[name]) is None
    assert not copying_recipes(KEPT[name])
    assert not [n for n, b in combine("inline", KEPT[name]).buffers.items() if n not in KEPT[name].buffers]


def test_second_copies_are_scratch_in_the_order_of_the_first() -> None:
    after = combine("inline", ALTERNATING["columns are contiguous"][0])
    (copy,) = (b for n, b in after.buffers.items() if n.startswith("A_"))
    assert (copy.shape, copy.strides, copy.transient) == ((N, M), (1, N), True)


def test_compiled_steps_compute_the_same(tmp_path: Path) -> None:
    """With threads, vectors and tiles of time, which interpreting has not."""
    plain = Recipe(order="row", register_p=4, combine="inline")
    tiled = ("an even number of steps", "two arrays", "borders after")
    cases = [(whole, plain) for whole, _ in ALTERNATING.values()]
    cases += [(ALTERNATING[name][0], replace(plain, fuse=1, time_tile=4)) for name in tiled]
    functions = [emit(apply(recipe, whole), f"f{n}") for n, (whole, recipe) in enumerate(cases)]
    library = build(functions, tmp_path)
    for function, (whole, _) in zip(functions, cases, strict=True):
        memory = random_memory(whole, np.random.default_rng(1))
        found, expected = call(library, function, whole, memory), interpret(whole, memory)
        assert not differences(expected, found)


def test_the_plain_recipe_goes_from_copy_to_copy_and_in_tiles_of_time_out_of_caches() -> None:
    small, _ = ALTERNATING["an even number of steps"]
    assert [(r.combine, r.time_tile) for r in copying_recipes(small)] == [("inline", 0)]
    large = nest("large", [array("A", 900, 900), array("T", 900, 900, transient=True)], *small.body)
    assert [r.time_tile > 0 for r in copying_recipes(large)] == [True]


def random_part(chance: random.Random) -> Node:
    """A sweep over the inner elements that reads neighbours of other arrays, or a border."""
    if chance.random() < 0.25:
        name = chance.choice("ABC")
        row, column = load(name, 0, "k"), load(name, "k", 0)
        return chance.choice([
            loop("k", M, assign(row, load(name, chance.choice([1, N - 2]), "k"))),
            loop("k", N, assign(column, load(name, "k", chance.choice([1, M - 2])))),
            loop("k", M, accumulate(row, 0.1)),
            loop("k", M, assign(row, 2.0, guard=op("lt", load("B", 1, "k"), "t"))),
        ])  # fmt: skip
    target = chance.choice("ABCTS")
    terms: list[Expr] = [mul(0.01, "t")]
    for _ in range(chance.randint(1, 3)):
        source = chance.choice("ABCTS")
        i, j = (0, 0) if source == target else (chance.randint(-1, 1), chance.randint(-1, 1))
        terms.append(mul(0.3, load(source, add("i", i), add("j", j))))
    value, element = add(*terms[chance.randint(0, 1) :]), here(target)
    if chance.random() < 0.3:
        return inner(accumulate(element, value, by=chance.choice(["add", "max"])))
    return inner(assign(element, value, guard=op("lt", here("B"), 1.0) if chance.random() < 0.1 else None))


def random_steps(seed: int) -> LoopNest:
    chance = random.Random(seed)
    before = [loop("i", N, loop("j", M, assign(here(name), here("B")))) for name in "TS"]
    parts = [random_part(chance) for _ in range(chance.randint(2, 6))]
    after = loop("i", N, loop("j", M, assign(here("C"), here(chance.choice("ABTS")))))
    over_time = steps(*parts, count=chance.randint(4, 7), start=chance.choice([0, 2]))
    return normalise(unit(*before, over_time, *([after] if chance.random() < 0.4 else [])))


def test_whatever_steps_do_the_results_are_the_same(tmp_path: Path) -> None:
    """Also compiled, in one parallel region."""
    wholes = [random_steps(seed) for seed in range(160)]
    alternating = [(whole, after) for whole in wholes if (after := from_copy_to_copy(whole)) is not None]
    assert len(alternating) > 15
    recipe = Recipe(order="row", register_p=2, combine="inline")
    functions = [emit(apply(recipe, whole), f"f{n}") for n, (whole, _) in enumerate(alternating)]
    library = build(functions, tmp_path)
    for function, (whole, after) in zip(functions, alternating, strict=True):
        memory = random_memory(whole, np.random.default_rng(2))
        expected = interpret(whole, memory)
        for backwards in (False, True):
            assert not differences(expected, interpret(after, memory, backwards))
        assert not differences(expected, call(library, function, whole, memory))
