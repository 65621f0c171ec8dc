"""Divisions and shifts in 64 bits become ones in 32 where nothing is lost, and stay where something is."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, array, assign, load, loop, nest, op
from schedules.recipes.running import FLAGS, build, call

from gnnperf.nests import LoopNest
from gnnperf.nests.ir import Const, Expr, Load, Op, subexpressions
from gnnperf.schedules.recipes import emit
from gnnperf.schedules.recipes.narrow_integers import narrow_integers

N = 64
X = load("x", "i")
WIDE = op("cast:int64", X)


def one(value: Expr, out: str = "int32", x: str = "int32") -> LoopNest:
    statement = assign(load("out", "i"), value)
    return nest("one", [array("x", N, dtype=x), array("out", N, dtype=out)], loop("i", N, statement))


def is_wide(found: LoopNest) -> bool:
    return any(
        isinstance(e, Op) and e.name in ("cast:int64", "cast:uint64")
        for s in found.statements()
        for e in subexpressions(s.value)
    )


@pytest.mark.parametrize(
    "value",
    [
        op("floordiv", WIDE, 10),
        op("mod", op("add", WIDE, 10), 10),  # as DaCe writes `x % 10`: the sum alone would not fit
        op("bitand", op("shr", WIDE, op("mod", "i", 32)), 1),
        op("mul", op("mod", WIDE, 1000), 2_000_003),  # too large, but stored modulo 2^32
        op("select", op("gt", op("mod", WIDE, 7), 3), op("floordiv", WIDE, 3), -1),
        op("min", op("floordiv", WIDE, 9), 50),
    ],
)
def test_what_fits_is_of_32_bits(value: Expr) -> None:
    assert not is_wide(narrow_integers(one(value)))


@pytest.mark.parametrize(
    "value",
    [
        op("floordiv", op("mul", WIDE, 3), 10),
        op("mod", op("sub", WIDE, 1), 10),
        op("floordiv", op("mul", WIDE, WIDE), 65536),
        op("mod", WIDE, 2**33),
        op("mod", WIDE, -3),
        op("shr", op("floordiv", WIDE, 2), WIDE),  # by how many bits, data says
    ],
)
def test_what_may_not_fit_stays(value: Expr) -> None:
    assert narrow_integers(one(value)) == one(value)


def test_what_is_stored_in_64_bits_stays() -> None:
    kept = one(op("floordiv", WIDE, 10), out="int64")
    assert narrow_integers(kept) == kept


def test_what_gcc_narrows_by_itself_stays() -> None:
    kept = one(op("shr", op("add", op("mul", WIDE, 3), 7), 2))
    assert narrow_integers(kept) == kept


def digits(times: int, held: str = "int64") -> LoopNest:
    """The sum of the digits of every number, in a variable as wide as Python's."""
    total, left = load("total"), load("left")
    body = [
        assign(total, 0),
        assign(left, X),
        loop(
            "k", times,
            accumulate(total, op("mod", op("cast:int64", left), 10)),
            assign(left, op("floordiv", op("cast:int64", left), 10)),
            independent=False,
        ),
        assign(load("out", "i"), total),
    ]  # fmt: skip
    arrays = [
        array("x", N, dtype="int32"),
        array("out", N, dtype="int32"),
        replace(array("total", dtype=held), transient=True, scope="local"),
        replace(array("left", dtype="int32"), transient=True, scope="local"),
    ]
    return nest("digits", arrays, loop("i", N, *body))


def test_a_variable_is_as_narrow_as_what_it_can_hold() -> None:
    assert narrow_integers(digits(9)).buffers["total"].dtype == "int32"


def test_a_variable_that_may_hold_more_stays_wide() -> None:
    assert narrow_integers(digits(10**9)).buffers["total"].dtype == "int64"


def test_what_stays_wide_reads_narrow_variables_with_the_sign_they_had() -> None:
    rest = replace(array("rest", dtype="uint64"), transient=True, scope="local")
    body = (
        assign(load("rest"), op("mod", op("cast:uint64", X), 10)),
        assign(load("out", "i"), op("gt", op("sub", load("rest"), 1), 5)),
    )
    arrays = [array("x", N, dtype="uint32"), array("out", N, dtype="int64"), rest]
    found = narrow_integers(nest("rest", arrays, loop("i", N, *body)))
    assert found.buffers["rest"].dtype == "int32"
    _, last = found.statements()
    assert last.value == op("gt", op("sub", op("cast:uint64", load("rest")), 1), 5)


OPERATIONS = "add sub mul bitand bitor bitxor min max floordiv mod shl shr select cast neg mod shr".split()
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def random_value(draw: random.Random, depth: int) -> Expr:
    """As DaCe has them: every element is widened where it meets a number."""
    if depth == 0 or draw.random() < 0.15:
        number = draw.choice([0, 1, 3, 10, 255, 1 << 16, 2**31 - 1, 2**32 - 1, -1, -7, -(2**31)])
        element = Load(draw.choice(DTYPES), (load("x", "i").indices[0],))
        wide = Op(draw.choice(["cast:int64", "cast:uint64", "cast:int64"]), (element,))
        return draw.choice([wide, wide, wide, Const(number)])
    name = draw.choice(OPERATIONS)
    first = random_value(draw, depth - 1)
    if name in ("floordiv", "mod"):
        return Op(name, (first, Const(draw.choice([1, 2, 3, 10, 16, 255, 65521, 2**31 - 1]))))
    if name in ("shl", "shr"):
        by = draw.choice([Const(draw.randrange(32)), op("bitand", op("cast:int64", load("uint8", "i")), 31)])
        return Op(name, (first, by))
    if name == "cast":
        return Op(f"cast:{draw.choice([*DTYPES, 'int64'])}", (first,))
    if name == "neg":
        return Op(name, (first,))
    second = random_value(draw, depth - 1)
    if name == "select":
        chosen = Op(draw.choice(["lt", "ge", "eq"]), (random_value(draw, 1), random_value(draw, 1)))
        return Op(name, (chosen, first, second))
    return Op(name, (first, second))


def extreme_numbers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    ends = np.iinfo(dtype)
    numbers = rng.integers(ends.min, ends.max, N, dtype=dtype, endpoint=True)
    return np.where(rng.random(N) < 0.3, rng.choice([ends.min, 0, 1, ends.max], N), numbers).astype(dtype)


def test_random_values_are_what_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, rng = random.Random(5), np.random.default_rng(7)
    nests = list[LoopNest]()
    for number in range(300):
        dtype = draw.choice([d for d in DTYPES if "8" not in d])
        value = op("cast:int64", random_value(draw, 4))
        arrays = [array(d, N, dtype=d) for d in DTYPES] + [array("out", N, dtype=dtype)]
        nests.append(nest(f"n{number}", arrays, loop("i", N, assign(load("out", "i"), value))))
    narrow = [(n, found) for n in nests if (found := narrow_integers(n)) != n]
    assert len(narrow) > 60
    monkeypatch.setattr(sys.modules[emit.__module__], "narrow_integers", lambda n: n)
    wide = [emit(n, f"wide_{n.name}") for n, _ in narrow]
    small = [emit(found, f"narrow_{found.name}") for _, found in narrow]
    library = build([*wide, *small], tmp_path, (*FLAGS, "-fwrapv"))
    for (n, _), before, after in zip(narrow, wide, small, strict=True):
        memory = {d: extreme_numbers(rng, d) for d in DTYPES}
        memory["out"] = np.zeros(N, n.buffers["out"].dtype)
        expected, got = (call(library, f, n, memory)["out"] for f in (before, after))
        np.testing.assert_array_equal(got, expected, err_msg=str(n.body))
