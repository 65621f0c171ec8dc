"""Affine view of expressions: integer combinations of atoms plus a constant.

An atom is a `Symbol`, or anything that is not affine (a `Load`, a product of iterators, a modulo).
`simplify` brings subscripts and bounds to one canonical form, so that equal accesses are equal
expressions whatever way they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gnnperf.nests.ir import EXPRESSIONS_KEPT, Const, Expr, Load, Op, Symbol, loads, map_expr, subexpressions

_FOLD: Mapping[str, Callable[[int, int], int | None]] = {
    "floordiv": lambda a, b: a // b if b else None,
    "mod": lambda a, b: a % b if b else None,
    "min": min,
    "max": max,
    "mul": lambda a, b: a * b,
}

Ranges = Mapping[str, tuple[int, int]]
"""Symbol -> (lowest, highest) value, for those of which both are known."""


@dataclass(frozen=True)
class Affine:
    """sum(coefficient * atom) + constant, with no zero coefficient."""

    terms: Mapping[Expr, int]
    constant: int

    def coefficient(self, name: str) -> int:
        """Coefficient of the symbol `name`; 0 where it does not occur as a symbol of its own."""
        return self.terms.get(Symbol(name), 0)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def reach(self, ranges: Ranges) -> tuple[int, int] | None:
        """Lowest and highest value; None where an atom has no known range."""
        low = high = self.constant
        for atom, coefficient in self.terms.items():
            known = ranges.get(atom.name) if isinstance(atom, Symbol) else None
            if known is None:
                return None
            ends = sorted(coefficient * end for end in known)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def divided(self, divisor: int) -> tuple[Affine, Affine]:
        """(quotient, rest), which together are divisor * quotient + rest: terms that are no multiples of the
        divisor are in the rest, whose constant is less than that."""
        whole = {a: c // divisor for a, c in self.terms.items() if c % divisor == 0}
        rest = {a: c for a, c in self.terms.items() if c % divisor}
        return Affine(whole, self.constant // divisor), Affine(rest, self.constant % divisor)


@lru_cache(EXPRESSIONS_KEPT)
def affine(expr: Expr) -> Affine:
    """The affine form; total, because what is not affine becomes an atom."""
    terms: dict[Expr, int] = {}
    constant = _accumulate(expr, 1, terms)
    return Affine({a: c for a, c in terms.items() if c}, constant)


def _accumulate(expr: Expr, scale: int, terms: dict[Expr, int]) -> int:
    """Add `scale` times the expression to `terms`; the constant that comes with it."""
    if type(expr) is Symbol:
        terms[expr] = terms.get(expr, 0) + scale
        return 0
    if type(expr) is Const and isinstance(expr.value, int):
        return scale * int(expr.value)
    if type(expr) is Op:
        name, args = expr.name, expr.args
        if name == "add":
            return _accumulate(args[0], scale, terms) + _accumulate(args[1], scale, terms)
        if name == "sub":
            return _accumulate(args[0], scale, terms) + _accumulate(args[1], -scale, terms)
        if name == "neg":
            return _accumulate(args[0], -scale, terms)
        if name == "mul":
            for other, factor in (args, args[::-1]):
                form = affine(factor)
                if form.is_constant:
                    return _accumulate(other, scale * form.constant, terms)
    is_atom, found = _folded(expr)
    if isinstance(found, int):
        return scale * found
    if is_atom:
        terms[found] = terms.get(found, 0) + scale
        return 0
    return _accumulate(found, scale, terms)


def _folded(expr: Expr) -> tuple[bool, int | Expr]:
    """What is no sum or product: as an atom in canonical form (then true), as its value where that is
    constant, or as the expression that it stands for."""
    if isinstance(expr, Op):
        if expr.name.startswith("cast:int") and _rounds_nothing(expr.args[0]):
            return False, expr.args[0]
        if expr.name in _FOLD:
            args = [affine(a) for a in expr.args]
            if all(a.is_constant for a in args):
                value = _FOLD[expr.name](*(a.constant for a in args))
                if value is not None:
                    return False, value
            return True, Op(expr.name, tuple(from_affine(a) for a in args))
        if expr.name == "abs":
            return False, Op("max", (expr.args[0], Op("neg", expr.args)))
        if expr.name == "select" and (chosen := _chosen(*expr.args)):
            return False, chosen
    if isinstance(expr, Load):
        return True, Load(expr.buffer, tuple(simplify(i) for i in expr.indices))
    return True, expr


_BELOW_ZERO: Mapping[str, tuple[int, int]] = {"lt": (1, 0), "le": (1, -1), "gt": (-1, 0), "ge": (-1, -1)}
"""(factor, constant) with which a comparison of two integers holds where their difference is below zero."""


def _chosen(condition: Expr, one: Expr, other: Expr) -> Expr | None:
    """A choice as the one that is taken, where it is known, or as the lesser or greater of the two, where it
    is: borders reflect (`-i if i < 0 else i`) or clamp."""
    difference = affine(Op("sub", (one, other)))
    if difference == Affine({}, 0):
        return one
    if not isinstance(condition, Op) or condition.name not in _BELOW_ZERO:
        return None
    factor, shift = _BELOW_ZERO[condition.name]
    below = affine(Op("add", (Op("mul", (Const(factor), Op("sub", condition.args))), Const(shift))))
    if below.is_constant:
        return one if below.constant < 0 else other
    if difference.is_constant:
        return None
    atom, coefficient = next(iter(difference.terms.items()))
    slope = coefficient // below.terms.get(atom, 1)
    if difference.terms != {a: slope * c for a, c in below.terms.items()}:
        return None
    # The difference is slope * below + offset, and the condition is below <= -1; else, below >= 0.
    offset = difference.constant - slope * below.constant
    if not 0 <= (offset if slope > 0 else -offset) <= abs(slope):
        return None
    return Op("min" if slope > 0 else "max", (one, other))


def from_affine(form: Affine) -> Expr:
    """Canonical expression of an affine form: terms sorted by their text, constant last."""
    result: Expr | None = None
    for atom, coefficient in sorted(form.terms.items(), key=_text):
        if coefficient in (1, -1):
            term: Expr = atom
        else:
            term = Op("mul", (Const(abs(coefficient)), atom))
        if result is None:
            result = term if coefficient > 0 else Op("neg", (term,))
        else:
            result = Op("add" if coefficient > 0 else "sub", (result, term))
    if result is None:
        return Const(form.constant)
    if form.constant:
        result = Op("add" if form.constant > 0 else "sub", (result, Const(abs(form.constant))))
    return result


def _text(term: tuple[Expr, int]) -> str:
    """The atom's `repr`, which dataclasses take long to find: most are symbols."""
    atom = term[0]
    return f"Symbol(name={atom.name!r})" if type(atom) is Symbol else repr(atom)


@lru_cache(EXPRESSIONS_KEPT)
def simplify(expr: Expr) -> Expr:
    """Canonical form of an integer expression (a subscript or a bound)."""
    return from_affine(affine(expr))


def constant(expr: Expr) -> int | None:
    """The value of a constant integer expression, else None."""
    form = affine(expr)
    return form.constant if form.is_constant else None


def evaluate(expr: Expr, values: Mapping[str, int]) -> int | None:
    """Value of an integer expression with symbols bound; None where a load or free symbol remains."""
    form = affine(expr)
    if form.is_constant:
        return form.constant
    bound = map_expr(
        expr, lambda e: Const(values[e.name]) if isinstance(e, Symbol) and e.name in values else e
    )
    return constant(bound)


def _rounds_nothing(expr: Expr) -> bool:
    """May a conversion of the expression to an integer be left out of a subscript? Elements of arrays are
    converted where they are used; what is computed from several, or with fractions, is rounded once."""
    if isinstance(expr, Load):
        return True
    fractions = any(isinstance(e, Const) and isinstance(e.value, float) for e in subexpressions(expr))
    return not fractions and not loads(expr)
