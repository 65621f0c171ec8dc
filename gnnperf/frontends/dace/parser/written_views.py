"""Views with steps, and transposed ones, that are written, or whose array is: `odd = x[1::2]; odd += 1`. They
are copies to DaCe 1.0."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass

from gnnperf.frontends.dace.parser.trees import elements, expression, in_one, stored_in, times_assigned


def replace_written_views(function: ast.FunctionDef) -> None:
    """In place: what such names are views of, where they are used. `flatten` is a copy where it is written.

    Raises NotImplementedError for a part of a view that has no other name here.
    """
    times = times_assigned(function)
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For | ast.While)]
    views: list[tuple[ast.Assign, str, str]] = []
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                array = _looked_at(value)
                if array and times[name] == 1 and not times[array]:
                    views.append((statement, name, array))
    for made, name, array in views:
        alike = {array, *(other for _, other, of in views if of == array)}
        again = any(made in ast.walk(loop) for loop in loops)
        written = {
            part
            for one in ast.walk(function)
            if isinstance(one, ast.Assign | ast.AugAssign) and (again or one.lineno > made.lineno)
            for part in stored_in(one)
        }
        if not written & alike:
            continue
        if ast.unparse(made.value).endswith(".flatten()"):
            made.value = expression(f"{ast.unparse(made.value)}.copy()")
        else:
            view = _View(name, array, made)
            function.body = [view.visit(one) for one in function.body]
    ast.fix_missing_locations(function)


def _looked_at(value: ast.expr) -> str | None:
    """The array that an expression is such a view of, or a flat copy."""
    match value:
        case ast.Subscript(value=ast.Name(id=array), slice=axes):
            every = elements(axes)
            stepped = any(isinstance(axis, ast.Slice) and axis.step is not None for axis in every)
            return array if stepped else None
        case ast.Attribute(value=ast.Name(id=array), attr="T"):
            return array
        case ast.Call(func=ast.Attribute(value=ast.Name(id=array), attr="transpose" | "flatten"), args=[]):
            return array
    return None


@dataclass
class _View(ast.NodeTransformer):
    name: str
    array: str
    made: ast.Assign

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node is self.made else self.generic_visit(node)  # type: ignore[return-value]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if ast.unparse(node.target) == self.name and not isinstance(self.made.value, ast.Subscript):
            if not isinstance(node.value, ast.Constant):
                raise NotImplementedError(f"{ast.unparse(node)}: {self.name} is a view of {self.array}")
            target = expression(f"{self.array}[:]")
            return ast.copy_location(ast.AugAssign(_stored(target), node.op, node.value), node)  # type: ignore[arg-type]
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name:
            return node
        view = copy.deepcopy(self.made.value)
        return ast.copy_location(_stored(view) if isinstance(node.ctx, ast.Store) else view, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        if ast.unparse(node.value) != self.name:
            self.generic_visit(node)
            return node
        axes = [self.visit(axis) for axis in elements(node.slice)]
        if isinstance(self.made.value, ast.Subscript):
            of, left = [], iter(axes)
            for axis in elements(self.made.value.slice):
                of.append(
                    self._within(axis, next(left, ast.Slice())) if isinstance(axis, ast.Slice) else axis
                )
            axes = [*of, *left]
        elif len(axes) <= 2:
            axes = [*axes, ast.Slice()][1::-1]
        else:
            raise NotImplementedError(f"{ast.unparse(node)}: {self.name} is a view of {self.array}")
        at = in_one(axes)
        return ast.copy_location(ast.Subscript(ast.Name(self.array, ast.Load()), at, node.ctx), node)

    def _within(self, axis: ast.Slice, part: ast.expr) -> ast.expr:
        """The place of a part of a slice."""
        if isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None:
            return copy.deepcopy(axis)
        step = ast.literal_eval(axis.step) if axis.step is not None else 1
        if isinstance(part, ast.Slice | ast.UnaryOp) or (step < 0 and axis.lower is not None):
            raise NotImplementedError(f"{self.name}[{ast.unparse(part)}]: it is a view of {self.array}")
        first = ast.unparse(axis.lower) if axis.lower is not None else "0" if step > 0 else "-1"
        return expression(f"({first}) + {step} * ({ast.unparse(part)})")


def _stored(part: ast.expr) -> ast.expr:
    assert isinstance(part, ast.Subscript)
    part.ctx = ast.Store()
    return part
