"""Caches and other buffers that a function allocates: where they live, and how large they are there.

TIR addresses them like the whole array they are part of; when a function is lowered, each is allocated
inside of the loops around all its uses, as large as these uses need (TVM's CompactBufferAllocation).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from gnnperf.nests import Buffer, Load, Symbol
from gnnperf.nests.affine import Affine, affine, from_affine
from gnnperf.nests.ir import row_major

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.scheduled import ScheduledTranslator


@dataclass
class _Reach:
    """Least and greatest subscript per dimension; None where it is not known."""

    ends: list[tuple[int, int] | None]


class Workspaces:
    """Follows the translator through the function, and makes accesses relative."""

    def __init__(self, function: Any) -> None:
        from tvm.s_tir.analysis import detect_buffer_access_lca

        self._starts: dict[int, list[int]] = defaultdict(list)
        parameters = {p.__chandle__() for p in function.params}
        for buffer, place in detect_buffer_access_lca(function).items():
            if place is not None and buffer.__chandle__() not in parameters:
                self._starts[place.__chandle__()].append(buffer.__chandle__())
        self._outside: dict[int, frozenset[str]] = {}
        self._open: list[str] = []
        self._threads: set[str] = set()
        self._reach: dict[str, _Reach] = {}

    def enter(self, statement: Any, names: Iterable[str], bound: bool) -> None:
        """A loop, with the iterators it became, or a block begins."""
        names = list(names)
        self._open += names
        if bound:
            self._threads.update(names)
        for buffer in self._starts.get(statement.__chandle__(), ()):
            self._outside[buffer] = frozenset(self._open)

    def leave(self, count: int) -> None:
        """A loop that became `count` loops ends."""
        del self._open[len(self._open) - count :]

    def relative(self, buffer: Any, load: Load, translator: ScheduledTranslator) -> Load:
        """The access with subscripts from where the buffer begins."""
        around = self._outside.get(buffer.__chandle__(), frozenset[str]())
        scope = translator.buffers[load.buffer].scope
        if scope == "local":
            around |= self._threads  # every thread has its own
        elif scope == "shared":
            around -= self._threads  # all threads of the block share one
        if not around:
            return load
        forms = [_without(affine(i), around) for i in load.indices]
        reach = self._reach.setdefault(load.buffer, _Reach([(1 << 62, -(1 << 62))] * len(forms)))
        for d, form in enumerate(forms):
            reach.ends[d] = _joined(reach.ends[d], form.reach(translator.ranges))
        return Load(load.buffer, tuple(from_affine(f) for f in forms))

    def sized(self, buffer: Buffer) -> Buffer:
        """The buffer as it is allocated. In memory of its own inside of loops it is as good as local."""
        reach = self._reach.get(buffer.name)
        if reach is None:
            return buffer
        sizes = cast("tuple[int, ...]", buffer.shape)
        shape = tuple(
            size if ends is None else min(size, ends[1] - ends[0] + 1)
            for size, ends in zip(sizes, reach.ends, strict=True)
        )
        scope = "local" if buffer.scope == "global" else buffer.scope
        return replace(buffer, shape=shape, strides=row_major(shape), scope=scope)


def _without(form: Affine, names: frozenset[str]) -> Affine:
    terms = {a: c for a, c in form.terms.items() if not (isinstance(a, Symbol) and a.name in names)}
    return Affine(terms, form.constant)


def _joined(one: tuple[int, int] | None, two: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if one is None or two is None else (min(one[0], two[0]), max(one[1], two[1]))
