"""What of DaCe's parser is replaced while a program is read."""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dace
import numpy as np
import sympy
from dace import data, symbolic
from dace.codegen.tools import type_inference
from dace.frontend.common.einsum import EinsumParser
from dace.frontend.python import astutils, memlet_parser, newast, replacements
from dace.frontend.python.nested_call import NestedCall
from dace.frontend.python.newast import ProgramVisitor
from dace.frontend.python.preprocessing import GlobalResolver
from dace.sdfg import nodes
from dace.sdfg.state import ControlFlowRegion
from dace.subsets import Range
from sympy.printing.pycode import PythonCodePrinter

from gnnperf.frontends.dace.parser import ahead, kinds, loops, names, slices, stores, syntax
from gnnperf.frontends.dace.repaired import Repairs, repaired

CPP_WORDS = frozenset(
    "auto case catch char const constexpr default delete do double enum explicit extern float friend goto "
    "inline int long mutable namespace new operator private protected public register short signed sizeof "
    "static struct switch template this throw typedef typename union unsigned using virtual void "
    "volatile".split()
)
"""That a variable of a Python program may be called."""


@contextmanager
def repaired_parser(keeps_axes: bool = True) -> Iterator[None]:
    """DaCe's parser without its mistakes. keeps_axes: slices of one element have theirs, as in Python."""
    repairs: Repairs = {
        (ProgramVisitor, "_add_access"): slices.fitting,
        (ProgramVisitor, "_add_read_slice"): functools.partial(slices.reading, keeps_axes=keeps_axes),
        (ProgramVisitor, "_add_read_access"): slices.reading_in_maps,
        (ProgramVisitor, "_add_write_access"): stores.writing_in_maps,
        (ProgramVisitor, "_add_assignment"): stores.storing,
        (ProgramVisitor, "_add_aug_assignment"): stores.broadcasting,
        (memlet_parser, "_fill_missing_slices"): slices.from_the_end,
        (replacements, "math"): lambda _: math,  # to evaluate `1.0 / (N - 1)`; it is not imported
        (replacements, "_result_type"): kinds.common_type,
        (replacements, "_sym_type"): _whole_or_not,
        (type_inference, "infer_expr_type"): _whole_quotients,
        (astutils, "unparse"): _with_floors,
        (EinsumParser, "is_bmm"): _products_alone,
        (astutils, "function_to_ast"): ahead.rewritten,
        (ProgramVisitor, "parse_program"): _prepared,
        (newast, "FORBIDDEN_ARRAY_NAMES"): lambda _: _Everything(),
        (ProgramVisitor, "visit_Assign"): syntax.assigning,
        (GlobalResolver, "visit_Assert"): syntax.passing_over,
        (ProgramVisitor, "visit_AugAssign"): syntax.placing,
        (ProgramVisitor, "visit_BinOp"): syntax.dividing,
        (ProgramVisitor, "visit_Call"): syntax.converting,
        (ProgramVisitor, "visit_Compare"): syntax.comparing,
        (ProgramVisitor, "visit_For"): loops.counting,
        (ProgramVisitor, "visit_IfExp"): lambda _: syntax.visit_choice,
        (ProgramVisitor, "visit_Subscript"): syntax.sizing,
        (ProgramVisitor, "visit_While"): loops.repeating,
        (NestedCall, "add_state"): lambda _: _add_state,
        (ControlFlowRegion, "add_state_before"): _where_it_is,
    }
    symbolic.pystr_to_symbolic.cache_clear()  # it says 2.0 where 2 is asked for, if a program before said 2.0
    with repaired(repairs):
        yield


def _prepared(original: Any) -> Any:
    """Programs as they are easier to read for DaCe."""

    def parse(visitor: Any, program: ast.FunctionDef, *rest: Any, **more: Any) -> Any:
        for module in (dace, math, np):  # what stands in the place of other code is of these
            visitor.globals.setdefault(module.__name__, module)
        loops.LeftByBreak().visit(program)
        loops.rename_counters(program)
        names.tell_parts_apart(visitor, program)
        kinds.begin_real(visitor, program)
        found = original(visitor, program, *rest, **more)
        _name_temporaries(visitor)
        return found

    return parse


class _Everything:
    """What has everything in it: DaCe goes through the whole program for each temporary that it renames."""

    def __contains__(self, _: object) -> bool:
        return True


def _name_temporaries(visitor: Any) -> None:
    """As the program calls them, all at once."""
    arrays, new = visitor.sdfg.arrays, dict[str, str]()
    for name, held in visitor.variables.items():
        is_new = dace.dtypes.validate_name(name) and name not in arrays and name not in symbolic._sympy_clash
        if is_new and held in arrays and arrays[held].transient and held not in new:
            new[held] = name
    visitor.sdfg.replace_dict(new)


def _products_alone(original: Any) -> Any:
    """Which `einsum` is a batch of matrix products: `ij,ij->i` is none, nor `ijk,kj->i`, whose indices
    j and k are not in one order."""

    def is_bmm(self: Any) -> bool:
        if not original(self) or (self.a_batch and self.a_sum and not (self.a_only or self.b_only)):
            return False
        (a, b), c = self.inputs, self.output
        alike = (
            [(a, self.a_batch), (b, self.b_batch), (c, self.c_batch)],
            [(a, self.a_sum), (b, self.b_sum)],
            [(a, self.a_only), (c, self.c_a_only)],
            [(b, self.b_only), (c, self.c_b_only)],
        )
        return all(len({tuple(text[i] for i in places) for text, places in group}) == 1 for group in alike)

    return is_bmm


class _Printer(PythonCodePrinter):  # type: ignore[misc]  # sympy has no types
    def _print_Mod(self, expr: Any) -> str:
        return "(({}) % ({}))".format(*map(self._print, expr.args))


def _with_floors(original: Any) -> Any:
    """Expressions of symbols in tasklets, with `//` as the functions of DaCe's that they are, and in
    parentheses: DaCe makes `2.0 ** -0.5*i` of `np.power(2.0, -0.5 * i)`, sympy `i - 2*i % 2` of
    `i - 2 * (i % 2)`."""
    printer = _Printer({"user_functions": {"int_floor": "int_floor", "int_ceil": "int_ceil"}})

    def unparse(node: Any) -> Any:
        if isinstance(node, sympy.Basic):
            return f"({printer.doprint(node)})"
        return f"({node})" if isinstance(node, int | float) and node < 0 else original(node)

    return unparse


def _whole_or_not(original: Any) -> Any:
    """The type of an expression of symbols, which DaCe finds by computing it for some, of those with `//`."""

    def sym_type(expr: Any) -> Any:
        try:
            return original(expr)
        except NameError:  # of int_floor
            whole = all(p.exp.is_nonnegative for p in expr.atoms(sympy.Pow)) and not expr.atoms(sympy.Float)
            return dace.int64 if whole else dace.float64

    return sym_type


def _whole_quotients(original: Any) -> Any:
    """The type of a bound `N // 2`, for which DaCe has none."""

    def infer_expr_type(code: Any, *rest: Any, **more: Any) -> Any:
        found = original(code, *rest, **more)
        return dace.int64 if found is None and "int_floor" in str(code) else found

    return infer_expr_type


def _add_state(call: Any, label: str | None = None) -> Any:
    """The next state of a function of several, as `np.mean`, in the loop that it is called in: DaCe puts it
    outside, and refuses the program."""
    call.count += 1
    around = call.last_state.parent_graph
    state = around.add_state(label=label)
    around.add_edge(call.last_state, state, dace.InterstateEdge())
    call.last_state = state
    return state


def _where_it_is(original: Any) -> Any:
    """A state before another one, in the loop that this is in: `einsum` in a loop asks the program for it."""

    def add_state_before(_: Any, state: Any, *rest: Any, **more: Any) -> Any:
        around = state.parent_graph
        first = around.start_block is state
        added = original(around, state, *rest, **more)
        if first:
            around.start_block = around.node_id(added)
        return added

    return add_state_before


def divided_as_in_slices(array: Any) -> None:
    """Sizes of an annotated array that Python divided, `N // 2`, as DaCe divides in slices."""

    def as_integers(quotient: Any) -> Any:
        return symbolic.int_floor(*sympy.fraction(sympy.together(quotient)))

    shape = [s.replace(sympy.floor, as_integers) if isinstance(s, sympy.Basic) else s for s in array.shape]
    if shape != list(array.shape):
        array.set_shape(shape)


def mend(sdfg: Any) -> None:
    """In place: what a parsed program means that Python does not."""
    _rename_cpp_words(sdfg)
    _types_of_arguments(sdfg)
    _convert_copies(sdfg)


def _rename_cpp_words(sdfg: Any) -> None:
    """Other names for variables whose names mean something in C++; arguments keep theirs."""
    for part in sdfg.all_sdfgs_recursive():
        words = other_names_of_cpp_words(part)
        part.replace_dict({word: name for word, name in words.items() if part.arrays[word].transient})


def other_names_of_cpp_words(sdfg: Any) -> dict[str, str]:
    """By arrays' names that mean something in C++."""
    taken = {*sdfg.arrays, *sdfg.symbols}
    return {word: data.find_new_name(f"{word}_", taken) for word in sdfg.arrays if word in CPP_WORDS}


def _types_of_arguments(sdfg: Any) -> None:
    """Functions that a program calls take scalars of the types that they are given, as in Python, whatever
    the annotation says: DaCe reads the bytes of the one type as those of the other."""
    for part in sdfg.all_sdfgs_recursive():  # what calls comes before what it calls
        for state in part.states():
            for node in (n for n in state.nodes() if isinstance(n, nodes.NestedSDFG)):
                for edge in state.in_edges(node):
                    inner = node.sdfg.arrays.get(edge.dst_conn)
                    if isinstance(inner, data.Scalar) and edge.data.data in part.arrays:
                        inner.dtype = part.arrays[edge.data.data].dtype


def _convert_copies(sdfg: Any) -> None:
    """Copies between arrays of different types convert element by element; DaCe's do not compile."""
    for part in sdfg.all_sdfgs_recursive():
        for state in part.states():
            for edge in state.edges():
                ends = edge.src, edge.dst
                if (
                    not all(isinstance(end, nodes.AccessNode) for end in ends)
                    or edge.src_conn
                    or edge.dst_conn
                ):
                    continue
                held = [part.arrays[end.data] for end in ends]
                if held[0].dtype == held[1].dtype:
                    continue
                given = edge.data.get_src_subset(edge, state), edge.data.get_dst_subset(edge, state)
                parts = [one or Range.from_array(array) for one, array in zip(given, held, strict=True)]
                points = [[n for n in each.size() if n != 1] for each in parts]
                if points[0] != points[1]:
                    continue
                read, written = (
                    f"{end.data}[{_element(each)}]" for end, each in zip(ends, parts, strict=True)
                )
                state.add_mapped_tasklet(
                    "convert",
                    {f"__i{d}": f"0:{n}" for d, n in enumerate(points[0] or [1])},
                    {"__x": dace.Memlet(read)},
                    "__out = __x",
                    {"__out": dace.Memlet(written)},
                    external_edges=True,
                    input_nodes={edge.src.data: edge.src},
                    output_nodes={edge.dst.data: edge.dst},
                )
                state.remove_edge(edge)


def _element(subset: Any) -> str:
    """Of a part of an array, where `__i0`, ... count the axes of more than one element."""
    axes = itertools.count()
    return ", ".join(
        str(first) if n == 1 else f"{first} + {step} * __i{next(axes)}"
        for (first, _, step), n in zip(subset.ranges, subset.size(), strict=True)
    )
