"""Python expressions of an SDFG (tasklets, conditions, assignments, symbolic subsets) as IR expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.state_graph import python_expression
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import simplify
from gnnperf.nests.dtypes import literal
from gnnperf.nests.ir import TRANSCENDENTAL, Const, Expr, Op, map_expr

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip

# Functions by their last name: math.exp, np.exp, dace.math.exp and exp are the same thing.
_DIRECT: Mapping[str, str] = {
    "sqrt": "sqrt", "abs": "abs", "fabs": "abs", "Abs": "abs", "floor": "floor", "ceil": "ceil",
    "sign": "sign", "sgn": "sign", "floor_divide": "floordiv", "Mod": "mod", "py_mod": "mod",
    "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor", "left_shift": "shl",
    "right_shift": "shr", "logical_and": "and", "logical_or": "or", "logical_not": "not", "ifloor": "floor",
    "And": "and", "Or": "or", "Not": "not", "negative": "neg", "py_floor": "floordiv", "conj": "conj",
    "conjugate": "conj", "real": "real", "imag": "imag", "power": "pow", "arctan2": "atan2",
    **{name: name for name in TRANSCENDENTAL},
    **{f"arc{f}": f"a{f}" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip
_ARITY = {
    "pow": 2,
    "floordiv": 2,
    "mod": 2,
    "atan2": 2,
    "bitand": 2,
    "bitor": 2,
    "bitxor": 2,
    "shl": 2,
    "shr": 2,
    "and": 2,
    "or": 2,
}

_CASTS = frozenset(ELEMENT_BYTES)
_CAST_ALIASES: Mapping[str, str] = {
    "int": "int64", "float": "float64", "double": "float64", "bool_": "bool", "complex": "complex128",
}  # fmt: skip
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046


@dataclass(frozen=True)
class SymbolNames:
    """How an expression's names are looked up. truncates: does C++ round the quotient of two expressions
    towards zero?"""

    name: Callable[[str], Expr]
    element: Callable[[str, tuple[Expr, ...]], Expr]
    truncates: Callable[[Expr, Expr], bool] = lambda left, right: False


def parse_expression(text: str, names: SymbolNames) -> Expr:
    """The IR of a Python expression given as text (a symbolic subset, an interstate assignment)."""
    return from_ast(python_expression(text), names)


def integer_expression(value: object, names: SymbolNames) -> Expr:
    """A symbolic integer (DaCe/SymPy expression or int) as a canonical IR expression."""
    if isinstance(value, int):
        return Const(value)
    return _whole(map_expr(simplify(parse_expression(str(value), names)), _whole_power))


def _whole_power(expr: Expr) -> Expr:
    """The base of a size such as `2**i` is a real number to DaCe."""
    match expr:
        case Op("pow", (base, exponent)):
            return Op("pow", (_whole(base), exponent))
    return expr


def _whole(expr: Expr) -> Expr:
    match expr:
        case Const(value=float() as number) if number.is_integer():
            return Const(int(number))
    return expr


def from_ast(tree: ast.expr, names: SymbolNames) -> Expr:
    match tree:
        case ast.Constant(value=bool() | int() | float() | complex() as value):
            return Const(value)
        case ast.Name(id=name):
            return {"True": Const(True), "False": Const(False)}.get(name) or names.name(name)
        case ast.Attribute():
            return _attribute(tree, names)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(from_ast(left, names), from_ast(right, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(_BINARY[type(op)], from_ast(left, names), from_ast(right, names), names)
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, from_ast(operand, names))
        case ast.BoolOp(op=op, values=values):
            return _fold("and" if isinstance(op, ast.And) else "or", [from_ast(v, names) for v in values])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(left, ops, comparators, names)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Op("select", (from_ast(test, names), from_ast(body, names), from_ast(orelse, names)))
        case ast.Call():
            return _call(tree, names)
        case ast.Subscript(value=value, slice=index):
            elements = index.elts if isinstance(index, ast.Tuple) else [index]
            return names.element(ast.unparse(value), tuple(simplify(from_ast(e, names)) for e in elements))
    raise UnsupportedConstruct(f"the expression `{ast.unparse(tree)}`")


def _attribute(tree: ast.Attribute, names: SymbolNames) -> Expr:
    constants = {"pi": 3.141592653589793, "e": 2.718281828459045, "inf": float("inf")}
    if (
        isinstance(tree.value, ast.Name)
        and tree.value.id in ("math", "np", "numpy")
        and tree.attr in constants
    ):
        return Const(constants[tree.attr])
    return names.name(ast.unparse(tree))


def _binary(name: str, left: Expr, right: Expr, names: SymbolNames) -> Expr:
    """Where DaCe's C++ divides integers, the quotient is rounded towards zero, and the remainder has the
    sign of the dividend, unlike in Python."""
    if name in ("floordiv", "mod") and names.truncates(left, right):
        quotient = Op("div", (left, right))
        return quotient if name == "floordiv" else Op("sub", (left, Op("mul", (quotient, right))))
    return Op(name, (left, right))


def _unary(op: ast.unaryop, operand: Expr) -> Expr:
    if isinstance(op, ast.UAdd):
        return operand
    if isinstance(op, ast.USub):
        if isinstance(operand, Const) and not isinstance(operand.value, bool):
            return Const(-operand.value)
        return Op("neg", (operand,))
    if isinstance(op, ast.Not):
        return Op("not", (operand,))
    return Op("bitxor", (operand, Const(-1)))


def _compare(left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr], names: SymbolNames) -> Expr:
    terms: list[Expr] = []
    operands = [from_ast(e, names) for e in (left, *comparators)]
    for op, a, b in zip(ops, operands, operands[1:], strict=False):
        if type(op) not in _COMPARE:
            raise UnsupportedConstruct(f"the comparison `{type(op).__name__}`")
        terms.append(Op(_COMPARE[type(op)], (a, b)))
    return _fold("and", terms)


def _fold(name: str, args: list[Expr]) -> Expr:
    if not args:
        raise UnsupportedConstruct(f"`{name}` of nothing")
    result = args[0]
    for arg in args[1:]:
        result = Op(name, (result, arg))
    return result


def _power(base: Expr, exponent: Expr) -> Expr:
    """Small integer powers are products, as DaCe's `ipow`; 0.5 is a square root."""
    if isinstance(exponent, Const):
        if exponent.value == 0.5:
            return Op("sqrt", (base,))
        if exponent.value == 1:
            return base
        if exponent.value in (2, 3, 4) and not isinstance(base, Op):
            return _fold("mul", [base] * int(exponent.value.real))
    return Op("pow", (base, exponent))


def _call(tree: ast.Call, names: SymbolNames) -> Expr:
    if tree.keywords:
        raise UnsupportedConstruct(f"the call `{ast.unparse(tree)}`")
    if isinstance(tree.func, ast.Call) and ast.unparse(tree.func.func) == "decltype":  # of the result
        return from_ast(tree.args[0], names)
    path = ast.unparse(tree.func).split(".")
    function, args = path[-1], [from_ast(a, names) for a in tree.args]
    if function in _CASTS or function in _CAST_ALIASES:
        if len(args) != 1:
            raise UnsupportedConstruct(f"the cast `{ast.unparse(tree)}`")
        return cast(_CAST_ALIASES.get(function, function), args[0])
    if function in ("min", "max", "Min", "Max", "minimum", "maximum", "fmin", "fmax"):
        return _fold("min" if "min" in function.lower() else "max", args)
    if function == "int_floor" and len(args) == 2:
        return _binary("floordiv", args[0], args[1], names)
    if function in ("pow", "power", "ipow") and len(args) == 2:
        return _power(*args)
    if function in _DIRECT:
        name = _DIRECT[function]
        if name in ("and", "or"):
            return _fold(name, args)
        if len(args) != _ARITY.get(name, 1):
            raise UnsupportedConstruct(f"the call `{ast.unparse(tree)}`")
        return Op(name, tuple(args))
    composed = _composed(function, args)
    if composed is None:
        raise UnsupportedConstruct(f"the function `{ast.unparse(tree.func)}`")
    return composed


def _composed(function: str, args: list[Expr]) -> Expr | None:
    """Functions that are a short formula of the IR's operations."""
    match function, args:
        case "int_ceil", [a, b]:
            return Op("floordiv", (Op("sub", (Op("add", (a, b)), Const(1))), b))
        case "reciprocal", [a]:
            return Op("div", (Const(1.0), a))
        case "rsqrt", [a]:
            return Op("div", (Const(1.0), Op("sqrt", (a,))))
        case "square", [a] if not isinstance(a, Op):
            return Op("mul", (a, a))
        case "square", [a]:
            return Op("pow", (a, Const(2)))
        case "log2", [a]:
            return Op("div", (Op("log", (a,)), Const(_LN2)))
        case "log10", [a]:
            return Op("div", (Op("log", (a,)), Const(_LN10)))
        case "round", [a]:  # half away from zero; what is added is below 1/2, or the number below 1/2 is 1
            up = Op("floor", (Op("add", (Op("abs", (a,)), Const(math.nextafter(0.5, 0.0)))),))
            return Op("select", (Op("lt", (a, Const(0.0))), Op("neg", (up,)), up))
        case "trunc", [a]:
            up, down = (Op(name, (a,)) for name in ("ceil", "floor"))
            return Op("select", (Op("lt", (a, Const(0.0))), up, down))
        case "hypot", [a, b]:
            return Op("sqrt", (Op("add", (Op("mul", (a, a)), Op("mul", (b, b)))),))
        case "cbrt", [a]:
            return Op("mul", (Op("sign", (a,)), Op("pow", (Op("abs", (a,)), Const(1.0 / 3.0)))))
        case (("fmod" | "cpp_mod"), [a, b]):
            whole = _composed("trunc", [Op("div", (a, b))])
            return Op("sub", (a, Op("mul", (b, whole)))) if whole else None
        case "heaviside", [a, at_zero]:
            up = Op("select", (Op("gt", (a, Const(0.0))), Const(1.0), at_zero))
            return Op("select", (Op("lt", (a, Const(0.0))), Const(0.0), up))
        case (("deg2rad" | "radians"), [a]):
            return Op("mul", (a, Const(math.pi / 180.0)))
        case (("rad2deg" | "degrees"), [a]):
            return Op("mul", (a, Const(180.0 / math.pi)))
        case "exp2", [a]:
            return Op("pow", (Const(2.0), a))
        case (("where" | "select" | "ITE"), [c, a, b]):
            return Op("select", (c, a, b))
        case (("add" | "Add"), [_, *_]):
            return _fold("add", args)
        case (("multiply" | "Mul"), [_, *_]):
            return _fold("mul", args)
    return None


def cast(dtype: str, value: Expr) -> Expr:
    """`value` converted to `dtype`; literals are converted here."""
    if isinstance(value, Const):
        inexact = isinstance(value.value, float) and not value.value.is_integer()
        if not inexact or dtype.startswith(("float", "complex")) or dtype == "bool":
            return Const(literal(value.value, dtype))
    return Op(f"cast:{dtype}", (value,))
