"""Ranges of integer expressions over loops, and what follows: which iterations never meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf, isinf

from gnnperf.nests.affine import affine, constant
from gnnperf.nests.analysis import mentions, points_of, written
from gnnperf.nests.ir import Const, Expr, Load, Loop, Node, Op, Symbol, loads, walk

Loops = Mapping[str, Sequence[Loop]]
"""Iterator -> the loops that bind it: a tile and its remainder share a name."""


def loops_of(body: tuple[Node, ...]) -> dict[str, list[Loop]]:
    """All loops in a body, by the name of their iterator."""
    found: dict[str, list[Loop]] = {}
    for node in walk(body):
        if isinstance(node, Loop):
            found.setdefault(node.iterator, []).append(node)
    return found


def value_range(expr: Expr, loops: Loops) -> tuple[float, float]:
    """(least, greatest) value of an integer expression over all iterations; infinite where unknown."""
    form = affine(expr)
    low = high = float(form.constant)
    for atom, coefficient in form.terms.items():
        ends = [coefficient * end for end in _atom_range(atom, loops)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_range(atom: Expr, loops: Loops) -> tuple[float, float]:
    if isinstance(atom, Symbol) and atom.name in loops:
        starts = [value_range(lp.start, loops)[0] for lp in loops[atom.name]]
        stops = [value_range(lp.stop, loops)[1] for lp in loops[atom.name]]
        return min(starts), max(stops) - 1
    if isinstance(atom, Op) and atom.name in ("min", "max"):
        lows, highs = zip(*(value_range(a, loops) for a in atom.args), strict=True)
        choose = min if atom.name == "min" else max
        low, high = choose(lows), choose(highs)
        if (both := constant(Op("add", atom.args))) is not None:  # the greater of x and c - x is half of c
            return (low, min(high, both // 2)) if atom.name == "min" else (max(low, -(-both // 2)), high)
        return low, high
    if isinstance(atom, Op) and atom.name in ("mod", "floordiv") and isinstance(atom.args[1], Const):
        divisor = int(atom.args[1].value.real)
        if divisor > 0 and atom.name == "mod":
            return 0, divisor - 1
        if divisor > 0:
            low, high = value_range(atom.args[0], loops)
            return _floor(low / divisor), _floor(high / divisor)
    return -inf, inf


def _floor(value: float) -> float:
    return value if isinf(value) else floor(value)


def longest(start: Expr, stop: Expr) -> int | None:
    """Upper bound of stop - start, where one is known: `stop` may be a minimum of several ends."""
    if isinstance(stop, Op) and stop.name == "min":
        return min((n for end in stop.args if (n := longest(start, end)) is not None), default=None)
    return constant(Op("sub", (stop, start)))


def separates(target: Load, loop: Loop) -> bool:
    """Do different iterations of `loop` always address different elements?

    True where some subscript is c * point + rest, and what the rest can add up to inside one iteration
    is less than |c|, the least that two iterations are apart. Conservative: False where unsure.
    """
    points = points_of(loop)
    inner = {name: loops for name, loops in loops_of(loop.body).items() if name not in points}
    changing, stored = points | set(inner), written(loop)
    for index in target.indices:
        own, reach = [], 0.0
        for atom, coefficient in affine(index).terms.items():
            if isinstance(atom, Symbol) and atom.name in points:
                own.append(coefficient)
            elif any(ld.buffer in stored for ld in loads(atom)):
                reach = inf
            elif any(mentions(atom, name) for name in changing):
                reach += abs(coefficient) * _span(atom, points, inner)
        if len(own) == 1 and reach < abs(own[0]):
            return True
    return False


def _span(atom: Expr, points: set[str], loops: Loops) -> float:
    """Most that the values of an atom differ by while everything around `loops` stands still."""
    if any(mentions(atom, name) for name in points):
        return inf
    low, high = _atom_range(atom, loops)
    known = high - low if -inf < low and high < inf else inf
    if not isinstance(atom, Symbol) or len(loops[atom.name]) != 1:
        return max(0.0, known)
    (loop,) = loops[atom.name]
    length = longest(loop.start, loop.stop)
    if length is None:
        return max(0.0, known)
    moved = float(max(0, length - 1) // loop.step * loop.step)
    for other, coefficient in affine(loop.start).terms.items():
        if any(mentions(other, name) for name in (*points, *loops)):
            moved += abs(coefficient) * _span(other, points, loops)
    return max(0.0, min(known, moved))
