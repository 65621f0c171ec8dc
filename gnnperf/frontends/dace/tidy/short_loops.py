"""Short sums whose counters are numbers of the arithmetic, written out: coefficients become literals."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

from gnnperf.frontends.dace.expressions import cast
from gnnperf.frontends.dace.tidy.facts import Block, Code, Counts
from gnnperf.frontends.dace.tidy.scalars import converted
from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import Band, band
from gnnperf.nests.ir import (
    Const,
    Expr,
    Load,
    Node,
    Op,
    Statement,
    Symbol,
    map_expr,
    reads,
    substitute,
    symbols,
)

MOST_TURNS = 5
"""Of each loop: filters of images and differences have no more."""

MOST_TERMS = 27
"""Of all together: a point in space with its neighbours."""

MOST_BITS = 64
"""Of a word, where the turns take one each: `c += (x >> k) & 1`."""

_OF_NUMBERS: Mapping[str, Callable] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
    "min": min, "max": max, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "not": operator.not_, "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}  # fmt: skip
_NEUTRAL: Mapping[str, int] = {"mul": 1, "add": 0}


def write_out(block: Block, outside: Counts, code: Code) -> Block:
    """For a local scalar s and loops of a few turns, `s = 0` and `for d in -1..2: s += d * x[i + d]` become
    `s = -1 * x[i - 1] + x[i + 1]`."""
    nodes: list[Node] = []
    for node in block:
        sums = _sums(node, code)
        for total in sums or ():
            _add(total, nodes, code)
        if sums is None:
            nodes.append(node)
    return tuple(nodes)


def _sums(node: Node, code: Code) -> list[Statement] | None:
    """What the loops add to every scalar; None where they do something else, or counters only choose
    elements."""
    nest = band(node)
    turns = _turns(nest) if nest.is_perfect else []
    targets = {s.target.buffer for s in nest.statements}
    for s in nest.statements:
        plain = s.reduce == "add" and s.init is None and code.is_local_scalar(s.target.buffer)
        if not plain or any(ld.buffer in targets for ld in reads(s)):
            return None
    if not turns or not any(_computes_with(s, nest.iterators) for s in nest.statements):
        return None
    terms: dict[str, list[Expr]] = {name: [] for name in sorted(targets)}
    for values in turns:
        for s in nest.statements:
            name = s.target.buffer
            holds = Const(True) if s.guard is None else _with_numbers(s.guard, values)
            if not isinstance(holds, Const):
                return None
            value = _with_numbers(s.value, values)
            if holds.value and not (isinstance(value, Const) and value.value == 0):
                terms[name].append(converted(value, code.buffers[name].dtype, code.buffers))
    return [Statement(Load(name), _added(found), "add") for name, found in terms.items() if found]


def _turns(nest: Band) -> list[dict[str, Const]]:
    """The counters of every turn; none where these are not known, or too many."""
    ranges: list[Sequence[int]] = []
    of_bits = len(nest.loops) == 1 and all(_takes_a_bit(s, nest.iterators[0]) for s in nest.statements)
    most_turns, most_terms = (MOST_BITS, MOST_BITS) if of_bits else (MOST_TURNS, MOST_TERMS)
    for loop in nest.loops:
        start, stop = constant(loop.start), constant(loop.stop)
        if start is None or stop is None or len(range(start, stop, loop.step)) > most_turns:
            return []
        ranges.append(range(start, stop, loop.step))
    turns = [dict(zip(nest.iterators, map(Const, turn), strict=True)) for turn in itertools.product(*ranges)]
    return turns if nest.loops and len(turns) <= most_terms else []


def _takes_a_bit(statement: Statement, counter: str) -> bool:
    """Is its value the bit of a word that the counter says?"""
    match statement.value:
        case Op(name="bitand", args=(Op(name="shr", args=(word, Symbol(name=by))), Const(value=1))):
            return by == counter and counter not in symbols(word)
    return False


def _computes_with(statement: Statement, counters: Collection[str]) -> bool:
    """Is a counter a number in what the statement computes or asks, and not only a subscript?"""
    pending = [e for e in (statement.value, statement.guard) if e is not None]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Symbol) and expr.name in counters:
            return True
        pending += expr.args if isinstance(expr, Op) else ()
    return False


def _with_numbers(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    return map_expr(substitute(expr, values), _folded)


def _folded(expr: Expr) -> Expr:
    if not isinstance(expr, Op):
        return expr
    if expr.name.startswith("cast:") and isinstance(expr.args[0], Const):
        return cast(expr.name.removeprefix("cast:"), expr.args[0])
    numbers = [a.value for a in expr.args if isinstance(a, Const)]
    if len(numbers) == len(expr.args) and expr.name in _OF_NUMBERS:
        return Const(_OF_NUMBERS[expr.name](*numbers))
    if expr.name == "mul" and 0 in numbers:
        return Const(0)
    if numbers == [_NEUTRAL.get(expr.name)]:
        return next(a for a in expr.args if not isinstance(a, Const))
    return expr


def _added(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Op("add", (a, b)), terms)


def _add(total: Statement, nodes: list[Node], code: Code) -> None:
    """Append the sum, as a plain value where the scalar was set to a number before."""
    touching = [i for i, n in enumerate(nodes) if code.of(n).touches(total.target.buffer)]
    match nodes[touching[-1]] if touching else None:
        case Statement(target=total.target, value=Const() as first, reduce=None, guard=None):
            del nodes[touching[-1]]
            total = Statement(total.target, _folded(Op("add", (total.value, first))))
    nodes.append(total)
