"""Sums of generators and of lists that are made on the spot, `sum(x[k] for k in range(i) if x[k] > 0)`, as
the loops that they are."""

from __future__ import annotations

import ast

from dace import data

from gnnperf.frontends.dace.parser.trees import filled, names_in, parsed_instead


def add_generators_up(function: ast.FunctionDef) -> None:
    """In place: loops ahead of the statements that have the sums."""
    _Statements({*names_in(function)}).visit(function)
    ast.fix_missing_locations(function)


class _Statements(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken  # names, to which those of sums are added

    def _with_sums(self, node: ast.Assign | ast.AugAssign | ast.Return) -> list[ast.stmt]:
        sums = _Sums(self.taken)
        if node.value is not None:
            node.value = sums.visit(node.value)
        loops = ast.Module(sums.loops, [])
        self.visit(loops)  # there may be sums in what is added up
        return [*loops.body, node]

    visit_Assign = visit_AugAssign = visit_Return = _with_sums


class _Sums(ast.NodeTransformer):
    """Names in the place of sums; and `loops`, the statements that add them up."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.loops: list[ast.stmt] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(
                func=ast.Name(id="sum"), args=[(ast.GeneratorExp() | ast.ListComp()) as made], keywords=[]
            ):
                return self._name_of(made, node)
        self.generic_visit(node)
        return node

    def _name_of(self, made: ast.GeneratorExp | ast.ListComp, call: ast.Call) -> ast.expr:
        name = data.find_new_name("sum_of", self.taken)
        self.taken.add(name)
        own: dict[str, ast.expr] = {}  # counters, whose names mean nothing outside
        lines: list[str] = []

        def text(written: ast.expr) -> str:
            return ast.unparse(filled(written, own))

        for each in made.generators:
            iterated = text(each.iter)
            own |= {n: ast.Name(f"{n}_{name}", ast.Load()) for n in names_in(each.target)}
            lines.append(f"for {text(each.target)} in {iterated}:")
            lines += [f"if {text(condition)}:" for condition in each.ifs]
        lines.append(f"{name} += {text(made.elt)}")
        loop = "\n".join(f"{'    ' * depth}{line}" for depth, line in enumerate(lines))
        self.loops += [parsed_instead(statement, call) for statement in (f"{name} = 0", loop)]
        return ast.copy_location(ast.Name(name, ast.Load()), call)
