"""What counts bits, in whatever way, is one instruction; what is nearly that stays as it is."""

from __future__ import annotations

import random
from dataclasses import replace
from operator import add as add_
from operator import and_, mod, sub
from operator import mul as mul_
from pathlib import Path

import numpy as np
import pytest
from nests.examples import add, array, assign, load, loop, mul, nest, op
from schedules.recipes.running import build, call

from gnnperf.nests import LoopNest
from gnnperf.nests.dtypes import integer_bits, integer_dtype
from gnnperf.nests.ir import Const, Expr, Load, Op, subexpressions
from gnnperf.schedules.recipes import emit
from gnnperf.schedules.recipes.counted_bits import _Counting, count_bits

N = 64
X32, X64, X8 = (load(f"u{bits}", "i") for bits in (32, 64, 8))
S32, S64, S8 = (load(f"s{bits}", "i") for bits in (32, 64, 8))
BUFFERS = {
    f"{sign}{bits}": array(f"{sign}{bits}", N, dtype=f"{kind}{bits}")
    for sign, kind in (("u", "uint"), ("s", "int"))
    for bits in (8, 32, 64)
}


def repeated(byte: int, bits: int = 64) -> int:
    return int.from_bytes(bytes([byte] * (bits // 8)), "little")


def fields(x: Expr, bits: int, wide: bool = False) -> Expr:
    """The number of bits of each byte, in that byte; wide: computed in int64, as DaCe has it."""
    x = op("cast:int64", x) if wide else x
    v = op("sub", x, op("bitand", op("shr", x, 1), repeated(0x55, bits)))
    three = repeated(0x33, bits)
    v = op("add", op("bitand", v, three), op("bitand", op("shr", v, 2), three))
    return op("bitand", op("add", v, op("shr", v, 4)), repeated(0x0F, bits))


def folded(v: Expr, bits: int) -> Expr:
    by = 8
    while by < bits:
        v = op("add", v, op("shr", v, by))
        by *= 2
    return op("bitand", v, 2 * bits - 1)


def words_of_shifts(v: Expr, bits: int) -> Expr:
    return op("bitand", add(*(op("shr", v, by) if by else v for by in range(0, bits, 8))), 255)


def bit_by_bit(x: Expr, bits: int) -> Expr:
    return add(*(op("bitand", op("shr", x, place), 1) for place in range(bits)))


EITHER = op("bitxor", X32, load("v32", "i"))
COUNTS = {
    "folded": (folded(fields(X64, 64), 64), "u64"),
    "of 32 bits": (folded(fields(X32, 32), 32), "u32"),
    "in int64": (folded(fields(X32, 32, wide=True), 32), "u32"),
    "by a product": (op("shr", mul(fields(X64, 64), repeated(1)), 56), "u64"),
    "by a product of 32 bits": (op("shr", mul(fields(X32, 32), repeated(1, 32)), 24), "u32"),
    "by a remainder": (op("mod", fields(X64, 64), 255), "u64"),
    "of shifted words": (words_of_shifts(fields(X64, 64), 64), "u64"),
    "of a byte": (op("bitand", fields(X8, 8), 15), "u8"),
    "bit by bit": (bit_by_bit(X32, 32), "u32"),
    "bit by bit, with a sign": (bit_by_bit(op("cast:int64", S32), 32), "s32"),
    "bit by bit of a byte with a sign": (bit_by_bit(S8, 8), "s8"),
    "bit by bit of 64": (bit_by_bit(S64, 64), "s64"),
    "with a sign, in int64": (folded(fields(S32, 32, wide=True), 32), "s32"),
    "of int32, which does not hold the first step": (folded(fields(S32, 32), 32), "s32"),
    "of int64": (folded(fields(S64, 64), 64), "s64"),
    "where two differ": (folded(fields(EITHER, 32), 32), "u32"),
}


def one(value: Expr) -> LoopNest:
    arrays = [*BUFFERS.values(), array("v32", N, dtype="uint32"), array("out", N, dtype="int64")]
    return nest("one", arrays, loop("i", N, assign(load("out", "i"), value)))


def is_counted(found: LoopNest) -> bool:
    return any(
        isinstance(e, Op) and e.name == "popcount"
        for s in found.statements()
        for e in subexpressions(s.value)
    )


@pytest.mark.parametrize("name", COUNTS)
def test_bits_are_counted_in_many_ways(name: str) -> None:
    assert is_counted(count_bits(one(COUNTS[name][0])))


def test_counts_are_right(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    memory = {
        name: rng.integers(np.iinfo(b.dtype).min, np.iinfo(b.dtype).max, N, dtype=b.dtype, endpoint=True)
        for name, b in one(X64).buffers.items()
    }
    for name in BUFFERS:
        ends = np.iinfo(memory[name].dtype)
        memory[name][:3] = 0, ends.min, ends.max
    found = [emit(one(value), f"f{n}") for n, (value, _) in enumerate(COUNTS.values())]
    library = build(found, tmp_path)
    for function, (name, (value, of)) in zip(found, COUNTS.items(), strict=True):
        words = memory["u32"] ^ memory["v32"] if name == "where two differ" else memory[of]
        got = call(library, function, one(value), memory)["out"]
        np.testing.assert_array_equal(got, [bits_set(word) for word in words], err_msg=name)


def bits_set(word: np.integer) -> int:
    return (int(word) % (1 << 8 * word.itemsize)).bit_count()


def test_a_count_in_steps_is_seen_through() -> None:
    v, w = (replace(array(name, dtype="uint32"), transient=True, scope="local") for name in "vw")
    body = (
        assign(load("v"), fields(X32, 32)),
        assign(load("w"), op("add", load("v"), op("shr", load("v"), 8))),
        assign(load("out", "i"), op("bitand", op("add", load("w"), op("shr", load("w"), 16)), 63)),
    )
    arrays = [BUFFERS["u32"], array("out", N, dtype="int32"), v, w]
    assert is_counted(count_bits(nest("steps", arrays, loop("i", N, *body))))
    between = (body[0], assign(load("v"), X32), *body[1:])
    assert not is_counted(count_bits(nest("steps", arrays, loop("i", N, *between))))


@pytest.mark.parametrize(
    "value",
    [
        op("shr", op("sub", S32, op("bitand", op("shr", S32, 1), repeated(0x55, 32))), 1),  # it may not fit
        op(
            "bitand", op("add", fields(X32, 32), op("shr", fields(X32, 32), 4)), 127
        ),  # counts beside each other
        op("bitand", X64, 255),
        op("bitand", 255, 15),
        op("shr", mul(fields(X32, 32), repeated(1, 32)), 16),
        add(op("bitand", X32, 1), op("bitand", load("v32", "i"), 1)),
    ],
)
def test_what_is_no_count_stays(value: Expr) -> None:
    assert count_bits(one(value)) == one(value)


def random_value(draw: random.Random, word: Load, depth: int) -> Expr:
    if depth == 0:
        return draw.choice([word, word, op("cast:int64", word)])
    first = random_value(draw, word, depth - 1)
    match draw.choice("shr shr shl bitand bitand mul add sub mod cast".split()):
        case "shr" | "shl" as name:
            return op(name, first, draw.choice([1, 2, 4, 8, 16]))
        case "bitand":
            byte = draw.choice([0x55, 0x33, 0x0F, 0x01, 0xFF, 0xAA])
            return op("bitand", first, draw.choice([repeated(byte, 32), repeated(byte), byte]))
        case "mul":
            return mul(first, draw.choice([3, 5, 257, repeated(1, 32)]))
        case "mod":
            return op("mod", first, draw.choice([3, 15, 63, 255]))
        case "cast":
            return op(draw.choice(["cast:uint8", "cast:uint32", "cast:int64"]), first)
        case name:
            return op(name, first, draw.choice([first, random_value(draw, word, depth - 1)]))


def in_type(number: int, dtype: str) -> int:
    bits = integer_bits(dtype)
    number %= 1 << bits
    return number - (1 << bits) if not dtype.startswith("u") and number >> (bits - 1) else number


def computed(expr: Expr, word: int) -> int:
    """As C++ does; beyond a signed type as if it wrapped around."""
    if isinstance(expr, Const):
        return int(expr.value.real)
    if isinstance(expr, Load):
        return word
    assert isinstance(expr, Op)
    if expr.name.startswith("cast:"):
        return in_type(computed(expr.args[0], word), expr.name.removeprefix("cast:"))
    dtype = integer_dtype(expr, BUFFERS)
    assert dtype is not None
    a, b = (computed(arg, word) for arg in expr.args)
    if expr.name in ("shr", "shl"):
        return in_type(a >> b if expr.name == "shr" else a << b, dtype)
    by = {"bitand": and_, "mul": mul_, "add": add_, "sub": sub, "mod": mod}[expr.name]
    return in_type(by(in_type(a, dtype), in_type(b, dtype)), dtype)


def test_every_sum_of_bits_is_right() -> None:
    draw, sums = random.Random(2), 0
    for _ in range(3000):
        word = draw.choice([X32, X64, X8, S32, S64, S8])
        bits = integer_bits(BUFFERS[word.buffer].dtype)
        value = random_value(draw, word, draw.randrange(1, 6))
        found = _Counting(BUFFERS)._sum(value)
        if found is None or found.word != word:
            continue
        sums += 1
        for pattern in (0, (1 << bits) - 1, *(draw.getrandbits(bits) for _ in range(6))):
            total = sum(weight * (pattern >> place & 1) for place, weight in enumerate(found.weights))
            number = in_type(pattern, BUFFERS[word.buffer].dtype)
            off = total - computed(value, number)
            assert not (off % (1 << found.wraps) if found.wraps else off), (value, number)
    assert sums > 1000
