"""Tasklets (small Python programs on scalars and pointers) as IR statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import dace

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.builder import Builder
from gnnperf.frontends.dace.dtypes import dtype_name, expression_dtype
from gnnperf.frontends.dace.expressions import SymbolNames, from_ast
from gnnperf.frontends.dace.scope import Scope
from gnnperf.frontends.dace.views import Subset, View
from gnnperf.nests.affine import affine, constant
from gnnperf.nests.ir import Const, Expr, Load, Op, Reduction, loads

_KINDS = dace.dtypes.ReductionType
_REDUCTIONS: dict[Any, Reduction] = {
    _KINDS.Sum: "add", _KINDS.Product: "mul", _KINDS.Min: "min", _KINDS.Max: "max",
    _KINDS.Sub: "add", _KINDS.Div: "mul",
}  # fmt: skip
_LOGICAL: dict[Any, Reduction] = {_KINDS.Logical_And: "min", _KINDS.Logical_Or: "max"}
_INVERSES: dict[Any, Callable[[Expr], Expr]] = {
    _KINDS.Sub: lambda value: Op("neg", (value,)),
    _KINDS.Div: lambda value: Op("div", (Const(1.0), value)),
}


@dataclass(frozen=True)
class Combination:
    """How stores into one place combine: `old reduce inverse(new)`, or plainly (no reduction)."""

    reduce: Reduction | None = None
    inverse: Callable[[Expr], Expr] = lambda value: value


def combination(wcr: Any, dtype: str) -> Combination:
    """What a write-conflict resolution means for elements of `dtype`. Subtracting is adding the
    negative, dividing is multiplying with the reciprocal, where there is one."""
    if wcr is None:
        return Combination()
    from dace.frontend.operations import detect_reduction_type

    text = wcr if isinstance(wcr, str) else ast.unparse(wcr)
    kind = detect_reduction_type(text, openmp=True)
    reduce = _REDUCTIONS.get(kind) or (_LOGICAL.get(kind) if dtype == "bool" else None)
    if reduce is None or (kind == _KINDS.Div and not dtype.startswith(("float", "complex"))):
        raise UnsupportedConstruct(f"the conflict resolution `{text}`")
    return Combination(reduce, _INVERSES.get(kind, Combination.inverse))


@dataclass
class Connector:
    """What a tasklet's connector stands for: elements of `view` from the subset's first on."""

    view: View
    subset: Subset
    shape_is_one: list[bool]
    combine: Combination = Combination()

    @property
    def is_scalar(self) -> bool:
        return not self.subset.dimensions

    def element(self, indices: tuple[Expr, ...] = ()) -> Load:
        """`name` or `name[indices]`: subscripts address the dimensions of the memlet that have
        more than one element (DaCe drops the others)."""
        rank = len(self.subset.sizes)
        dimensions = self.subset.dimensions
        if len(indices) == rank and rank != len(dimensions):
            kept = [i for i in range(rank) if not self.shape_is_one[i]]
            if len(kept) == len(dimensions):
                indices = tuple(indices[i] for i in kept)
            else:
                dimensions = list(range(rank))
        if not indices and dimensions:
            raise UnsupportedConstruct("a tasklet that reads a whole array as one number")
        if self.is_scalar and indices:
            if any(i != Const(0) for i in indices):
                raise UnsupportedConstruct("a tasklet that subscripts a single element")
            indices = ()
        if len(indices) != len(dimensions):
            raise UnsupportedConstruct("a tasklet that subscripts with the wrong number of dimensions")
        return self.view.element(self.subset.at(dict(zip(dimensions, indices, strict=True))))


def connector(scope: Scope, memlet: Any) -> Connector:
    view = scope.view(memlet.data)
    descriptor = scope.sdfg.arrays[memlet.data]
    single = [scope.integer(s) == Const(1) for s in descriptor.shape]
    combine = combination(memlet.wcr, dtype_name(descriptor.dtype))
    return Connector(view, scope.subset(memlet.subset), single, combine)


class TaskletTranslator:
    """Translates one tasklet into statements of `builder`'s open block."""

    def __init__(
        self,
        builder: Builder,
        scope: Scope,
        inputs: dict[str, Connector | Expr],
        outputs: dict[str, Connector],
        types: dict[str, Any],
    ) -> None:
        self.builder, self.scope, self.inputs, self.outputs = builder, scope, inputs, outputs
        self.types = types
        self.locals: dict[str, Load] = {}
        self.counters: dict[str, Expr] = {}
        self.names = SymbolNames(self._name, self._element, self._truncates)

    def run(self, node: Any) -> None:
        if node.language != dace.dtypes.Language.Python:
            language = node.language.name.replace("CPP", "C++")
            raise UnsupportedConstruct(f"a tasklet written in {language}")
        body = node.code.code
        if not isinstance(body, list):
            body = ast.parse(str(body)).body
        assigned = [t for s in body for t in _assigned(s)]
        if len(assigned) > 1:
            self._detach_inputs()
        deferred = {
            name: self._result(name)
            for name, out in self.outputs.items()
            if (out.is_scalar and assigned.count(name) != 1) or self._is_read(name, body)
        }
        self.locals.update(deferred)
        for statement in body:
            self._statement(statement)
        for name, value in deferred.items():
            self._store(self.outputs[name].element(), value, self.outputs[name].combine)

    def _detach_inputs(self) -> None:
        """All inputs are read before anything is written."""
        targets = {o.view.buffer for o in self.outputs.values()}
        for name, value in list(self.inputs.items()):
            if isinstance(value, Connector):
                if value.view.buffer not in targets:
                    continue
                if not value.is_scalar:
                    raise UnsupportedConstruct("a tasklet that reads and writes one array by pointer")
                value = value.element()
            if any(ld.buffer in targets for ld in loads(value)):
                self.inputs[name] = self.builder.local(name, value)

    def _result(self, name: str) -> Load:
        dtype = self.types.get(name)
        buffer = self.builder.buffers[self.outputs[name].view.buffer]
        known = buffer.dtype if dtype is None or dtype.type is None else dtype_name(dtype)
        return Load(self.builder.scalar(name, known))

    def _is_read(self, name: str, body: list[ast.stmt]) -> bool:
        nodes = [n for s in body for n in ast.walk(s)]
        stored = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        names = (n for n in nodes if isinstance(n, ast.Name) and n not in stored)
        return any(n.id == name and isinstance(n.ctx, ast.Load) for n in names)

    # ------------------------------------------------------------------ names

    def _name(self, name: str) -> Expr:
        if name in self.counters:
            return self.counters[name]
        if name in self.locals:
            return self.locals[name]
        if name in self.inputs:
            value = self.inputs[name]
            return value.element() if isinstance(value, Connector) else value
        return self.scope.name(name)

    def _truncates(self, left: Expr, right: Expr) -> bool:
        """Is the quotient one of integers that may be negative?"""
        dtype = expression_dtype(Op("div", (left, right)), self.builder.buffers)
        ranges = (affine(e).reach(self.builder.ranges) for e in (left, right))
        return dtype.startswith(("int", "uint")) and not all(r is not None and r[0] >= 0 for r in ranges)

    def _element(self, name: str, indices: tuple[Expr, ...]) -> Expr:
        value = self.inputs.get(name, self.outputs.get(name))
        if isinstance(value, Connector):
            return value.element(indices)
        if value is not None and all(i == Const(0) for i in indices):
            return value
        raise UnsupportedConstruct(f"subscripts on {name} in a tasklet")

    # ------------------------------------------------------------------ statements

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, from_ast(value, self.names))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, from_ast(value, self.names))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as element], value=value):
                self._assign_element(name, element, from_ast(value, self.names))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                results = [self.builder.local("t", from_ast(v, self.names)) for v in values]
                for target, result in zip(targets, results, strict=True):
                    if not isinstance(target, ast.Name):
                        raise UnsupportedConstruct(f"the statement `{ast.unparse(statement)}`")
                    self._assign(target.id, result)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                combined = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                self._assign(name, from_ast(combined, self.names))
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.builder.local("condition", from_ast(test, self.names))
                for holds, arm in ((condition, body), (Op("not", (condition,)), orelse)):
                    with self.builder.guarded(holds):
                        self._block(arm)
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]
            ):
                self._loop(name, [from_ast(a, self.names) for a in args], statement.body)
            case ast.While(test=test, body=body, orelse=[]):
                self.builder.turns(from_ast(test, self.names), lambda: self._block(body))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case _:
                raise UnsupportedConstruct(f"the statement `{ast.unparse(statement)}` in a tasklet")

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _loop(self, name: str, bounds: list[Expr], body: list[ast.stmt]) -> None:
        start, stop, step = {1: [Const(0), *bounds, Const(1)], 2: [*bounds, Const(1)]}.get(
            len(bounds), bounds
        )
        by = constant(step)
        if not isinstance(by, int) or by < 1 or name in {t for s in body for t in _assigned(s)}:
            raise UnsupportedConstruct(f"the counter {name} in a tasklet, which takes steps of its own")

        def turn(value: Expr) -> None:
            outer = self.counters.copy()
            self.counters[name] = value
            self._block(body)
            self.counters = outer

        self.builder.loop(name, start, stop, by, turn, independent=False)

    def _assign(self, name: str, value: Expr) -> None:
        if name in self.locals:
            self.builder.assign(self.locals[name], value)
        elif name in self.outputs:
            out = self.outputs[name]
            self._store(out.element(), value, out.combine)
        else:
            self.locals[name] = self.builder.local(name, value)

    def _assign_element(self, name: str, target: ast.Subscript, value: Expr) -> None:
        if name not in self.outputs:
            raise UnsupportedConstruct(f"a store into {name} in a tasklet")
        index = target.slice
        elements: Iterable[ast.expr] = index.elts if isinstance(index, ast.Tuple) else [index]
        indices = tuple(from_ast(e, self.names) for e in elements)
        self._store(self.outputs[name].element(indices), value, self.outputs[name].combine)

    def _store(self, target: Load, value: Expr, combine: Combination) -> None:
        self.builder.assign(target, combine.inverse(value), combine.reduce)


def _assigned(statement: ast.stmt) -> list[str]:
    """Names a statement assigns, nested statements included, with repetition: in a loop at least twice."""
    names: list[str] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.append(ast.unparse(node.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.For | ast.While):
            names += [name for inner in node.body for name in _assigned(inner)]
    return names
