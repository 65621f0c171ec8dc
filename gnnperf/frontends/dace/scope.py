"""What the names of one SDFG mean while it is translated: symbols, arrays, memlets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dace

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.expressions import SymbolNames, integer_expression
from gnnperf.frontends.dace.views import Subset, View, ViewLayout
from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.ir import Const, Expr, Load, Op


@dataclass
class Scope:
    """One SDFG instance. `declare` makes the view of an array that has none yet."""

    sdfg: Any
    declare: Callable[[Scope, str], View]
    unknown_symbol: Callable[[str], Expr]
    symbols: dict[str, Expr] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    symbol_buffers: set[str] = field(default_factory=set)
    """Local scalars that hold the symbols which this SDFG assigns."""
    accumulating: set[str] = field(default_factory=set)
    """Arrays whose outer memlet combines values: plain stores into them have no meaning here."""

    @property
    def names(self) -> SymbolNames:
        return SymbolNames(self.name, self.element)

    def name(self, name: str) -> Expr:
        if name in self.symbols:
            return self.symbols[name]
        if name in self.sdfg.arrays:
            view = self.view(name)
            if not view.layout.is_single:
                raise UnsupportedConstruct(f"the array {name} used as a number")
            return view.element(tuple(Const(0) for _ in view.layout.shape))
        if name in self.sdfg.constants:
            return _constant(self.sdfg.constants[name], name)
        if name == "inf":  # what DaCe makes of np.inf
            return Const(math.inf)
        return self.unknown_symbol(name)

    def element(self, name: str, indices: tuple[Expr, ...]) -> Load:
        if name not in self.sdfg.arrays:
            raise UnsupportedConstruct(f"subscripts on {name}")
        return self.view(name).element(indices)

    def view(self, name: str) -> View:
        if name not in self.views:
            self.views[name] = self.declare(self, name)
        return self.views[name]

    def integer(self, value: object) -> Expr:
        """A symbolic integer of this SDFG."""
        return integer_expression(value, self.names)

    def layout(self, descriptor: Any) -> ViewLayout:
        if isinstance(descriptor, dace.data.Scalar):
            return ViewLayout((Const(1),), (Const(1),))
        if not isinstance(descriptor, dace.data.Array) or isinstance(descriptor, dace.data.Reference):
            raise UnsupportedConstruct(f"a container of kind {type(descriptor).__name__}")
        if any(self.integer(o) != Const(0) for o in descriptor.offset):
            raise UnsupportedConstruct("an array whose subscripts do not start at 0")
        shape = tuple(self.integer(s) for s in descriptor.shape)
        return ViewLayout(shape, tuple(self.integer(s) for s in descriptor.strides))

    def subset(self, subset: Any) -> Subset:
        """A DaCe Range or Indices object (inclusive ends) of an array of this SDFG."""
        if not isinstance(subset, dace.subsets.Range):
            subset = dace.subsets.Range.from_indices(subset)
        starts, sizes, steps = [], [], []
        for (begin, end, step), tile in zip(subset.ranges, subset.tile_sizes, strict=True):
            stride = constant(self.integer(step))
            if stride is None or stride <= 0 or tile != 1:
                raise UnsupportedConstruct(f"the subset `{subset}`")
            starts.append(self.integer(begin))
            span = simplify(Op("sub", (self.integer(end), starts[-1])))
            sizes.append(simplify(Op("add", (_floor_div(span, stride), Const(1)))))
            steps.append(stride)
        return Subset(tuple(starts), tuple(sizes), tuple(steps))


def _floor_div(value: Expr, divisor: int) -> Expr:
    return value if divisor == 1 else Op("floordiv", (value, Const(divisor)))


def _constant(value: Any, name: str) -> Const:
    if getattr(value, "ndim", 0):
        raise UnsupportedConstruct(f"the constant array {name}")
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (bool, int, float, complex)):
        raise UnsupportedConstruct(f"the constant {name} of type {type(value).__name__}")
    return Const(value)
