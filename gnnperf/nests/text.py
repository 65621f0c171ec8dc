"""Expressions and statements as short text for people (labels, messages); never parsed back."""

from __future__ import annotations

from gnnperf.nests.ir import Const, Expr, Load, Statement, Symbol

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or",
    "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip


def expression_text(expr: Expr) -> str:
    """Infix notation, every operation inside another in parentheses."""
    if isinstance(expr, Const):
        return str(expr.value)
    if isinstance(expr, Symbol):
        return expr.name
    if isinstance(expr, Load):
        indices = ", ".join(map(expression_text, expr.indices))
        return f"{expr.buffer}[{indices}]" if indices else expr.buffer
    arguments = [expression_text(a) for a in expr.args]
    if expr.name in _INFIX and len(arguments) == 2:
        return f"({arguments[0]} {_INFIX[expr.name]} {arguments[1]})"
    return f"{expr.name.removeprefix('cast:')}({', '.join(arguments)})"


def statement_text(statement: Statement) -> str:
    """`target = value`, `target += value`, `target max= value`; the guard follows after `if`."""
    value = expression_text(statement.value)
    combine = {"add": "+=", "mul": "*=", None: "="}.get(statement.reduce, f"{statement.reduce}=")
    text = f"{expression_text(statement.target)} {combine} {value[1:-1] if value.startswith('(') else value}"
    return text if statement.guard is None else f"{text} if {expression_text(statement.guard)}"
