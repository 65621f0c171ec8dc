"""Loop nests as JSON, for corpora: what a recipe is applied to, wherever it is learned from.

An expression is a number, the name of a symbol, `["load", buffer, index, ...]` or `["name of the
operation", argument, ...]`; complex numbers are `["complex", real, imaginary]`, infinities and NaN
`["float", text]`. Fields of nodes that have their default are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gnnperf.errors import InputError
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
)

_EXPRESSIONS = frozenset(("start", "stop", "condition", "target", "value", "init", "guard"))


def nest_to_dict(nest: LoopNest) -> dict[str, Any]:
    """A JSON object; `nest_from_dict` restores an equal nest."""
    return {
        "name": nest.name,
        "buffers": [_buffer(buffer) for buffer in nest.buffers.values()],
        "body": [_node(node) for node in nest.body],
        "parameters": dict(nest.parameters),
    }


def nest_from_dict(document: Mapping[str, Any]) -> LoopNest:
    """Raises InputError where the document is no nest."""
    try:
        found = [
            Buffer(**(raw | {"shape": _read_sizes(raw["shape"]), "strides": _read_sizes(raw["strides"])}))
            for raw in document["buffers"]
        ]
        body = tuple(_read_node(raw) for raw in document["body"])
        return LoopNest(document["name"], {b.name: b for b in found}, body, document["parameters"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"expected a loop nest (name, buffers, body, parameters), got {error!r}") from error


def _fields(item: Any) -> dict[str, Any]:
    """What differs from the defaults."""
    return {f.name: value for f in fields(item) if (value := getattr(item, f.name)) != f.default}


def _buffer(buffer: Buffer) -> dict[str, Any]:
    return _fields(buffer) | {"shape": _sizes(buffer.shape), "strides": _sizes(buffer.strides)}


def _node(node: Node) -> dict[str, Any]:
    found = _fields(node)
    for name in _EXPRESSIONS & found.keys():
        found[name] = _expression(found[name])
    if isinstance(node, Loop):
        found["body"] = [_node(child) for child in node.body]
        if node.annotation is not None:
            found["annotation"] = _fields(node.annotation)
    return found


def _read_node(raw: Mapping[str, Any]) -> Node:
    found: dict[str, Any] = {k: _read_expression(v) if k in _EXPRESSIONS else v for k, v in raw.items()}
    if "iterator" not in found:
        return Statement(**found)
    found["body"] = tuple(_read_node(child) for child in raw["body"])
    if "annotation" in found:
        note = found["annotation"]
        found["annotation"] = Annotation(**(note | {"steps": tuple(note.get("steps", ()))}))
    return Loop(**found)


def _sizes(sizes: tuple[int | Expr, ...]) -> list[Any]:
    return [size if isinstance(size, int) else {"expression": _expression(size)} for size in sizes]


def _read_sizes(raw: list[Any]) -> tuple[int | Expr, ...]:
    return tuple(size if isinstance(size, int) else _read_expression(size["expression"]) for size in raw)


def _expression(expr: Expr) -> Any:
    match expr:
        case Const(complex() as value):
            return ["complex", value.real, value.imag]
        case Const(float() as value) if not math.isfinite(value):
            return ["float", str(value)]
        case Const(value):
            return value
        case Symbol(name):
            return name
        case Load(buffer, indices):
            return ["load", buffer, *map(_expression, indices)]
        case Op(name, args):
            return [name, *map(_expression, args)]


def _read_expression(raw: Any) -> Expr:
    match raw:
        case ["complex", real, imaginary]:
            return Const(complex(real, imaginary))
        case ["float", text]:
            return Const(float(text))
        case str(name):
            return Symbol(name)
        case ["load", str(buffer), *indices]:
            return Load(buffer, tuple(map(_read_expression, indices)))
        case [str(name), *args]:
            return Op(name, tuple(map(_read_expression, args)))
        case bool() | int() | float():
            return Const(raw)
        case _:
            raise ValueError(f"no expression: {raw!r}")
