"""Arguments that are one array: as a call `f(a, a)` passes them.

DaCe takes its arguments to be apart, in generated code (`__restrict__`) and in the order of what it runs.
Where one is written, a program is therefore only right of two names for one memory once it has one name.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from dace.sdfg import nodes

from gnnperf.errors import InputError


def overlaps(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names of each two arrays that share memory."""
    arrays = [(name, value) for name, value in given.items() if isinstance(value, np.ndarray)]
    return [(a, b) for (a, one), (b, two) in combinations(arrays, 2) if np.may_share_memory(one, two)]


def same_arrays(given: Mapping[str, Any], written: Collection[str]) -> dict[str, str]:
    """Later names of arrays, one of which is written, with the first name of the same memory. Raises
    InputError where arrays, one of them written, share a part of their memory."""
    merged: dict[str, str] = {}
    for first, second in overlaps(given):
        if not {first, second} & set(written):
            continue
        if _place(given[first]) != _place(given[second]):
            raise apart(first, second)
        merged.setdefault(second, merged.get(first, first))
    return merged


def _place(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return array.ctypes.data, array.shape, array.strides, array.dtype


def apart(first: str, second: str) -> InputError:
    """What is said of arrays that cannot be one."""
    return InputError(
        f"--inputs: {first} and {second} share memory, and one of them is written; expected arrays apart, or "
        "one array for both in a kernel that goes element by element: give a copy of one"
    )


def merge(sdfg: Any, simplified: Any, same: Mapping[str, str]) -> Any:
    """A copy of a program with one name for each array. Raises InputError where what it computes may depend
    on an order that it does not give: nodes of a state without a path between them, or, in the simplified
    program, a map, copy, nested program or function of a library that touches other elements of one than of
    the other."""
    for name, first in same.items():
        group = {name, first}
        steps = (step for state in simplified.states() for step in _steps(state))
        if not all(_in_order(s, group) for s in sdfg.states()) or not all(
            _element_by_element(step, group) for step in steps
        ):
            raise apart(first, name)
    found = copy.deepcopy(sdfg)
    for name in same:
        found.remove_data(name, validate=False)
    found.replace_dict(dict(same), replace_keys=False)
    return found


def _in_order(state: Any, group: Collection[str]) -> bool:
    named = [node for node in state.data_nodes() if node.data in group]
    for first, second in combinations(named, 2):
        if first.data != second.data and (state.in_degree(first) or state.in_degree(second)):
            if not (nx.has_path(state.nx, first, second) or nx.has_path(state.nx, second, first)):
                return False
    return True


def _steps(state: Any) -> Iterator[list[Any]]:
    """The edges at which each map, copy or node outside of them reads and writes."""
    for node in state.scope_children()[None]:
        if isinstance(node, nodes.EntryNode):
            yield [
                e for e in state.scope_subgraph(node).edges() if not (_is_scope(e.src) and _is_scope(e.dst))
            ]
        elif not isinstance(node, nodes.AccessNode | nodes.ExitNode):
            yield state.all_edges(node)
    yield from ([e] for e in state.edges() if _is_array(e.src) and _is_array(e.dst))


def _is_scope(node: Any) -> bool:
    return isinstance(node, nodes.EntryNode | nodes.ExitNode)


def _is_array(node: Any) -> bool:
    return isinstance(node, nodes.AccessNode)


def _element_by_element(edges: Sequence[Any], group: Collection[str]) -> bool:
    """Does a step that has more than one of the arrays touch the same element of all at a time?"""
    touched: dict[str, set[str]] = {}
    for edge in edges:
        memlet = edge.data
        if _is_array(edge.src) and _is_array(edge.dst):
            for name, subset in ((edge.src.data, memlet.src_subset), (edge.dst.data, memlet.dst_subset)):
                touched.setdefault(name, set()).add(str(subset or memlet.subset))
        elif memlet.data in group:
            whole = isinstance(edge.src, _OPAQUE) or isinstance(edge.dst, _OPAQUE)
            touched.setdefault(memlet.data, set()).add(memlet.data if whole else str(memlet.subset))
    found = [subsets for name, subsets in touched.items() if name in group]
    return len(found) < 2 or len(set.union(*found)) == 1


_OPAQUE = (nodes.NestedSDFG, nodes.LibraryNode)
"""Which elements these pair is not known."""
