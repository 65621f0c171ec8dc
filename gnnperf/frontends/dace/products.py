"""Products and transpositions that DaCe's own expansions do not know. These drop axes of one element, take a
column and a row for two vectors, whose dot product is no matrix, and refuse `batch @ matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import dace
from dace import library
from dace.libraries.blas.nodes.matmul import MatMul
from dace.libraries.standard.nodes.transpose import Transpose
from dace.transformation import ExpandTransformation

WHOLE = "whole"
"""The name of the implementations, which look at all axes. They raise NotImplementedError, as expansions do,
where DaCe's own do."""


@library.register_expansion(Transpose, WHOLE)
class WholeTransposition(ExpandTransformation):  # type: ignore[misc]
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: Any) -> Any:
        found, (source, target) = _nested(state, node, sdfg, ("_inp", "_out"))
        if 1 not in source or len(source) != 2 or target != source[::-1]:
            raise NotImplementedError("matrices of one row or column alone")
        ranges = {f"__i{d}": f"0:{size}" for d, size in enumerate(source)}
        _map(found, ranges, {"__x": "_inp[__i0, __i1]"}, "__x", dace.Memlet("_out[__i1, __i0]"))
        return found


@library.register_expansion(MatMul, WHOLE)
class WholeProduct(ExpandTransformation):  # type: ignore[misc]
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: Any) -> Any:
        found, (left, right, result) = _nested(state, node, sdfg, ("_a", "_b", "_c"))
        ranks = len(left), len(right)
        if not any(1 in shape for shape in (left, right)) and (max(ranks) < 3 or ranks in ((2, 3), (3, 3))):
            raise NotImplementedError("products that DaCe does not know alone")
        (edge,) = state.out_edges(node)
        if node.beta != 0 or edge.data.wcr:
            raise NotImplementedError("products that are stored alone")
        batches = [[f"__b{d}" for d in range(rank - 2, 0, -1)] for rank in ranks]
        axes = [*batches[0], "__i", "__k"][-ranks[0] :], [*batches[1], "__k", "__j"][: ranks[1]]
        stored = [*max(batches, key=len), *(axis for axis in ("__i", "__j") if axis in axes[0] + axes[1])]
        sizes: dict[str, Any] = {}
        for axis, size in (*zip(axes[0], left, strict=True), *zip(axes[1], right, strict=True)):
            sizes[axis] = size if sizes.get(axis, 1) == 1 else sizes[axis]
        if ([sizes[axis] for axis in stored] or [1]) != result:
            raise NotImplementedError("products of NumPy's shapes alone")
        reads = {"__a": f"_a[{_at(axes[0], left)}]", "__b": f"_b[{_at(axes[1], right)}]"}
        product = "__a * __b" if node.alpha == 1 else f"{node.alpha} * __a * __b"
        ranges = {axis: f"0:{sizes[axis]}" for axis in stored} or {"__i": "0:1"}
        target = f"_c[{', '.join(stored) or '0'}]"
        if sizes["__k"] == 1:
            _map(found, ranges, reads, product, dace.Memlet(target))
        else:
            _map(found, ranges, {}, "0", dace.Memlet(target))
            ranges["__k"] = f"0:{sizes['__k']}"
            _map(found, ranges, reads, product, dace.Memlet(target, wcr="lambda x, y: x + y"))
        return found


def _nested(state: Any, node: Any, sdfg: Any, connectors: Sequence[str]) -> tuple[Any, list[list[Any]]]:
    """A program with the arrays at a node, and their shapes."""
    found, shapes = dace.SDFG(WHOLE), {}
    for edge in state.all_edges(node):
        path = state.memlet_path(edge)
        held = sdfg.arrays[(path[0].src if edge.dst is node else path[-1].dst).data]
        connector, shape = edge.dst_conn or edge.src_conn, list(edge.data.subset.size())
        if len(shape) != len(held.strides):
            raise NotImplementedError("parts of arrays with all their axes alone")
        found.add_array(connector, shape, held.dtype, strides=held.strides)
        shapes[connector] = shape
    return found, [shapes[connector] for connector in connectors]


def _at(axes: Sequence[str], shape: Sequence[Any]) -> str:
    """Subscripts of an operand, whose axes of one element are broadcast."""
    return ", ".join("0" if size == 1 else axis for axis, size in zip(axes, shape, strict=True))


def _map(sdfg: Any, ranges: dict[str, str], reads: dict[str, str], value: str, write: Any) -> None:
    nodes = sdfg.nodes()
    state = sdfg.add_state_after(nodes[-1], WHOLE) if nodes else sdfg.add_state(WHOLE)
    inputs = {name: dace.Memlet(text) for name, text in reads.items()}
    state.add_mapped_tasklet(WHOLE, ranges, inputs, f"__out = {value}", {"__out": write}, external_edges=True)
