"""Sums that begin in a block of their own, as TVM wants them: with what they begin with (`T.init`).

By hand, `C[i, j] = 0` is often written as one block and `C[i, j] = C[i, j] + ...` as another. The same loops
compute the same with one block, and only that can be split, cached and put in parallel as a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.schedules.traces.roles import REDUCED


def with_initial_values(function: Any) -> Any:
    """The PrimFunc, where a block that fills what another one adds to, and nothing else, is part of that one;
    itself where there is none."""
    from tvm.tirx import SeqStmt
    from tvm_ffi import structural_map

    if not has_root(function):
        return function
    body = structural_map(function.body, (SeqStmt, _merged))
    return function if body.same_as(function.body) else function.with_body(body)


def _merged(sequence: Any) -> Any:
    """A sequence of statements where the first to touch what a block filled begins with it."""
    from tvm.tirx import SeqStmt

    statements, place = [*sequence.seq], 0
    while place < len(statements):
        rest = _beginning(statements[place], statements[place + 1 :])
        if rest is None:
            place += 1
        else:
            statements[place:] = rest
    if len(statements) == len(sequence.seq):
        return sequence
    return SeqStmt(statements) if len(statements) > 1 else statements[0]


def _beginning(statement: Any, rest: Sequence[Any]) -> list[Any] | None:
    """The statements after one, the first of which to touch what it filled begins with that; None where this
    is not the same."""
    filled = _Store.of(statement)
    if filled is None or not _is_number(filled.value):
        return None
    user = next((n for n, later in enumerate(rest) if _mentions(later, filled.buffer)), None)
    summed = None if user is None else _Store.of(rest[user])
    if user is None or summed is None or not summed.continues(filled):
        return None
    return [*rest[:user], summed.beginning_with(filled.value), *rest[user + 1 :]]


@dataclass(frozen=True)
class _Store:
    """A block that writes one element, with the loops directly around it, outermost first."""

    loops: Sequence[Any]
    realize: Any

    @classmethod
    def of(cls, statement: Any) -> _Store | None:
        """None where a statement is not that alone, whatever the loops' values."""
        loops = []
        while type(statement).__name__ == "For" and statement.step is None:
            loops.append(statement)
            statement = statement.body
        if type(statement).__name__ != "SBlockRealize":
            return None
        block, always = statement.block, statement.predicate
        if block.init is not None or block.alloc_buffers or block.match_buffers:
            return None
        if type(block.body).__name__ != "BufferStore" or getattr(always, "value", 0) != 1:
            return None
        return cls(loops, statement)

    @property
    def block(self) -> Any:
        return self.realize.block

    @property
    def buffer(self) -> Any:
        return self.block.body.buffer

    @property
    def value(self) -> Any:
        return self.block.body.value

    @cached_property
    def bound(self) -> dict[int, Any]:
        """What the block's iterators stand for."""
        pairs = zip(self.block.iter_vars, self.realize.iter_values, strict=True)
        return {iterator.var.__chandle__(): value for iterator, value in pairs}

    @cached_property
    def own(self) -> dict[int, Any]:
        """Its loops by what they count."""
        return {loop.loop_var.__chandle__(): loop for loop in self.loops}

    @cached_property
    def places(self) -> list[Any]:
        """By dimension of what it writes: the loop that goes through it, or what is the same in all loops."""
        values = [self.bound.get(index.__chandle__(), index) for index in self.block.body.indices]
        return [self.own.get(value.__chandle__(), value) for value in values]

    @property
    def reduced(self) -> list[Any] | None:
        """The loops that it reduces over, from the first value on; None where iterators are no such loops."""
        found = []
        for iterator in self.block.iter_vars:
            if iterator.iter_type == REDUCED:
                loop = self.own.get(self.bound[iterator.var.__chandle__()].__chandle__())
                if loop is None or not _same_range(loop, iterator.dom):
                    return None
                found.append(loop)
        return found

    def goes_through(self, loops: Sequence[Any]) -> bool:
        """Whether its loops are these, each once."""
        return sorted(loop.__chandle__() for loop in loops) == sorted(w.__chandle__() for w in self.loops)

    def continues(self, filled: _Store) -> bool:
        """Whether it reduces into all that another one filled, and reads nothing else of that."""
        from tvm.ir import TensorLoad
        from tvm_ffi import structural_equal, structural_walk

        reduced = self.reduced
        if not reduced or not self.goes_through([*_loops(self.places), *reduced]):
            return False
        if not filled.goes_through(_loops(filled.places)):
            return False
        for one, other in zip(self.places, filled.places, strict=True):
            both = _loops([one, other])
            if len(both) == 1 or not (_same_range(one, other) if both else structural_equal(one, other)):
                return False
        loads: list[Any] = []
        structural_walk(self.value, (TensorLoad, loads.append))
        own = [load for load in loads if load.source.same_as(self.buffer)]
        return all(structural_equal(load.indices, self.block.body.indices) for load in own)

    def beginning_with(self, value: Any) -> Any:
        """Its statement, as a reduction."""
        tvm = import_tvm()
        block, store = self.block, self.block.body
        reads = [region for region in block.reads if not region.source.same_as(store.buffer)]
        initial = tvm.tirx.BufferStore(store.buffer, value, store.indices)
        kept = (block.iter_vars, reads, block.writes, block.name_hint)
        whole = tvm.s_tir.SBlock(*kept, store, initial, annotations=block.annotations)
        statement = tvm.s_tir.SBlockRealize(self.realize.iter_values, self.realize.predicate, whole)
        for loop in reversed(self.loops):
            around = (loop.loop_var, loop.min, loop.extent, loop.kind)
            statement = tvm.tirx.For(*around, statement, loop.thread_binding, loop.annotations)
        return statement


def _loops(places: Sequence[Any]) -> list[Any]:
    return [place for place in places if type(place).__name__ == "For"]


def _same_range(one: Any, other: Any) -> bool:
    """Of loops, or domains of iterators."""
    from tvm_ffi import structural_equal

    return bool(structural_equal(one.min, other.min) and structural_equal(one.extent, other.extent))


def _is_number(value: Any) -> bool:
    if type(value).__name__ == "Cast":
        value = value.value
    return type(value).__name__ in ("IntImm", "FloatImm")


def _mentions(statement: Any, buffer: Any) -> bool:
    from tvm.ir import Var
    from tvm_ffi import structural_walk

    found: list[bool] = []
    structural_walk(statement, (Var, lambda variable: found.append(variable.same_as(buffer))))
    return any(found)
