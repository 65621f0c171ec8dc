"""Elements that a mask chooses, `y[x > 0] = x[x > 0]` and `x[x > 0].sum()`, of which DaCe 1.0 stores alone,
and what has no mask itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import dace

from gnnperf.frontends.dace.parser.kinds import is_real
from gnnperf.frontends.dace.parser.trees import expression, parsed_instead

_REDUCTIONS = frozenset(("sum", "mean", "min", "max"))


def stored_whole(visitor: Any, node: ast.Assign | ast.AugAssign) -> ast.stmt | None:
    """In the place of a store to what a mask chooses, of values that it chooses, too: all elements, of which
    the others keep their values."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    match target:
        case ast.Subscript(value=ast.Name(id=array), slice=mask) if _is_mask(visitor, mask):
            value, masks = _whole(visitor, node.value)
            if masks == {ast.unparse(mask)}:
                if isinstance(node, ast.AugAssign):
                    value = ast.BinOp(ast.Name(array, ast.Load()), node.op, value)
                chosen = f"numpy.where({ast.unparse(mask)}, {ast.unparse(value)}, {array})"
                return parsed_instead(f"{array}[:] = {chosen}", node)
    return None


def reduced_whole(visitor: Any, node: ast.Call) -> ast.expr | None:
    """In the place of a sum, mean or extreme of what one mask chooses: that of all elements, where the others
    do not count. Raises NotImplementedError for an extreme of integers."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="numpy"), attr=how), args=[values], keywords=[*more]
        ):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as values, attr=how), args=[], keywords=more):
            pass
        case _:
            return None
    if how not in _REDUCTIONS or any(word.arg != "where" for word in more):
        return None
    values, masks = _whole(visitor, values)
    masks |= {ast.unparse(word.value) for word in more}
    if len(masks) != 1:
        return None
    (mask,) = masks
    if how in ("min", "max") and not is_real(visitor, values):
        raise NotImplementedError(f"np.{how} of what a mask chooses: real numbers alone")
    absent = {"min": "math.inf", "max": "-math.inf"}.get(how, "0")
    text = f"numpy.{'sum' if how == 'mean' else how}(numpy.where({mask}, {ast.unparse(values)}, {absent}))"
    text += f" / numpy.sum({mask})" if how == "mean" else ""
    statement = parsed_instead(text, node)
    assert isinstance(statement, ast.Expr)
    return statement.value


def _whole(visitor: Any, values: ast.expr) -> tuple[ast.expr, set[str]]:
    """Values of all elements, in the place of those that masks choose; and the masks."""
    unmasked = _Unmasked(visitor)
    return unmasked.visit(expression(ast.unparse(values))), unmasked.masks


class _Unmasked(ast.NodeTransformer):
    def __init__(self, visitor: Any) -> None:
        self.visitor = visitor
        self.masks: set[str] = set()

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not _is_mask(self.visitor, node.slice):
            self.generic_visit(node)
            return node
        self.masks.add(ast.unparse(node.slice))
        return node.value


def _is_mask(visitor: Any, written: ast.expr) -> bool:
    """Is it a comparison of arrays, or what is made of such?"""
    match written:
        case ast.Compare():
            return any(getattr(held, "shape", (1,)) != (1,) for held in _held(visitor, written))
        case ast.BinOp(left=one, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=other):
            return _is_mask(visitor, one) and _is_mask(visitor, other)
        case ast.UnaryOp(op=ast.Invert(), operand=one):
            return _is_mask(visitor, one)
        case ast.Name():
            return any(held.dtype == dace.bool_ and held.shape != (1,) for held in _held(visitor, written))
    return False


def _held(visitor: Any, written: ast.expr) -> Iterator[Any]:
    """Arrays that are named in an expression."""
    names = (n.id for n in ast.walk(written) if isinstance(n, ast.Name))
    yield from (visitor.defined[name] for name in names if hasattr(visitor.defined.get(name), "dtype"))
