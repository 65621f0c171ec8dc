"""Expressions and statements as short text for people (labels, messages); never parsed back."""

from __future__ import annotations

from functools import lru_cache

from gnnperf.nests.ir import EXPRESSIONS_KEPT, Const, Expr, Load, Op, Statement, Symbol

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or",
    "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip


@lru_cache(EXPRESSIONS_KEPT)
def expression_text(expr: Expr) -> str:
    """Infix notation, every operation inside another in parentheses."""
    if isinstance(expr, Const):
        return str(expr.value)
    if isinstance(expr, Symbol):
        return expr.name
    if isinstance(expr, Load):
        indices = ", ".join(map(_bare, expr.indices))
        return f"{expr.buffer}[{indices}]" if indices else expr.buffer
    if _is_infix(expr):
        return f"({_bare(expr)})"
    return f"{expr.name.removeprefix('cast:')}({', '.join(map(_bare, expr.args))})"


def _is_infix(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.name in _INFIX and len(expr.args) == 2


def _bare(expr: Expr) -> str:
    """Without parentheses around the whole."""
    if not isinstance(expr, Op) or not _is_infix(expr):
        return expression_text(expr)
    left, right = map(expression_text, expr.args)
    if expr.name == "add" and right.startswith("-"):
        return f"{left} - {right[1:]}"
    return f"{left} {_INFIX[expr.name]} {right}"


def statement_text(statement: Statement) -> str:
    """`target = value`, `target += value`, `target max= value`; the guard follows after `if`."""
    combine = {"add": "+=", "mul": "*=", None: "="}.get(statement.reduce, f"{statement.reduce}=")
    text = f"{expression_text(statement.target)} {combine} {_bare(statement.value)}"
    return text if statement.guard is None else f"{text} if {_bare(statement.guard)}"
