"""TVM functions whose products and convolutions are calls of a library."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.vendor.library import (
    LIBRARIES,
    VendorLibrary,
    WeightsOrder,
    libraries_of,
    weights_order,
)
from gnnperf.frontends.tvm.vendor.operations import CONVOLUTION, Operation, operations
from gnnperf.frontends.tvm.weights import FREE, MARK, has_constant_weights
from gnnperf.schedules.calls import LibraryCall

LEAST_WORK = 1 << 20
"""Multiplications of a function from which on a call may pay."""
LANES = (16, 8, 4)
"""Elements of vectors, as many as divide the innermost loop."""


def calls_of(function: Any, cores: int) -> list[LibraryCall]:
    """What may be tried on a function: its products and convolutions by the fastest library installed.
    Whole pictures or matrices are shared out where there are enough of them, else the longer dimension."""
    found = operations(function)
    if not found or max(one.work for one in found) < LEAST_WORK:
        return []
    heaviest = max(found, key=lambda one: one.work)
    ways = [way for way, (_, extent) in heaviest.along.items() if extent >= cores]
    if heaviest.kind == CONVOLUTION:
        order = ["n", "s"]
    else:
        extents = {way: heaviest.along[way][1] for way in ways}
        order = ["b", *sorted("mn", key=lambda way: -extents.get(way, 0))]
    best = next((way for way in order if way in ways), None)
    if best is None:
        return []
    libraries = libraries_of(heaviest.dtype, heaviest.kind == CONVOLUTION)
    return [LibraryCall(library.name, best) for library in libraries[:1]]


def with_calls(module: Any, call: LibraryCall, cores: int) -> Any:
    """The module of one function with calls in place of its products and convolutions. What is around them is
    parallel, in the same loop where that divides. Raises NotApplicable."""
    from tvm.s_tir import Schedule

    library = LIBRARIES.get(call.library)
    function = module["main"]
    found = [one for one in operations(function) if call.shares in one.along] if library else []
    if library is None or not found or not has_root(function):
        raise NotApplicable(f"the function has no product or convolution for {call.library}")
    if refused := [one.dtype for one in found if one.dtype not in library.types]:
        raise NotApplicable(f"{call.library} does not multiply {refused[0]}")
    builder = _Builder(function, library.entry, call.shares, cores)
    for one in found:
        builder.replace(one)
    schedule = Schedule(import_tvm().IRModule({"main": builder.function()}))
    _schedule_rest(schedule, builder.called)
    return schedule.mod


@dataclass
class _Called:
    """names: of blocks that call; touched: names of buffers that calls read; packing: of blocks that pack
    constant weights. even: whether the parts of the last call are of one size."""

    names: list[str]
    touched: set[str]
    packing: set[str]
    even: bool = True


class _Builder:
    """Puts calls into the body of a function."""

    def __init__(self, function: Any, entry: str, shares: str, cores: int) -> None:
        from gnnperf.frontends.tvm.translate import TirTranslator

        self._function, self._entry, self._shares, self._cores = function, entry, shares, cores
        self._root = function.body.block
        body = self._root.body
        self._statements: list[Any] = [*body.seq] if hasattr(body, "seq") else [body]
        self._allocated: list[Any] = [*self._root.alloc_buffers]
        translator = TirTranslator()
        known = [*function.params, *self._root.alloc_buffers]
        self._buffers: dict[str, Any] = {
            translator.declare(b, transient=n >= len(function.params)): b for n, b in enumerate(known)
        }
        self._dropped: set[int] = set()  # places of blocks that pad: the library does
        self._before: dict[int, Any] = {}
        self.called = _Called([], set(), set())

    def replace(self, operation: Operation) -> None:
        """Of an operation, the call in place of its block."""
        import tvm
        from tvm import tirx
        from tvm.s_tir.stmt import SBlock, SBlockRealize

        source, weights, target = (
            self._buffers[name] for name in (operation.left, operation.right, operation.target)
        )
        place, extent = operation.along[self._shares]
        parts = min(self._cores, extent)
        text = operation.texts[self._shares]
        if operation.kind == CONVOLUTION:
            if operation.padding is not None:
                self._dropped.add(operation.padding)
            weights = self._packed(operation, weights, text, parts)
        index = _dtype(target.shape[place])
        loop, first = tirx.Var("part", index), tirx.IntImm(index, 0)
        axis = tirx.IterVar(_range(parts, index), tirx.Var("v_part", index), 0)
        region = _whole(target)
        self.called.even = extent % parts == 0
        if self.called.even:
            size = tirx.IntImm(index, extent // parts)
            region[place] = tvm.ir.Range.from_min_extent(axis.var * size, size)
        given = [tvm.ir.StringImm(text), axis.var.astype("int64"), tirx.IntImm("int64", parts)]
        given += [_address(buffer) for buffer in (source, weights, target)]
        name = f"{self._entry}_{operation.block}"
        block = SBlock(
            [axis],
            [tirx.BufferRegion(b, _whole(b)) for b in (source, weights)],
            [tirx.BufferRegion(target, region)],
            name,
            tirx.Evaluate(tirx.call_extern("int32", self._entry, *given)),
        )
        realize = SBlockRealize([loop], True, block)
        self._statements[operation.block] = tirx.For(
            loop, first, tirx.IntImm(index, parts), tirx.ForKind.PARALLEL, realize
        )
        self.called.names.append(name)
        self.called.touched |= {source.name, weights.name}

    def _packed(self, operation: Operation, weights: Any, text: str, parts: int) -> Any:
        """The weights as the library wants them: themselves, or a buffer that a block before the call packs
        them into."""
        from tvm import tirx
        from tvm.s_tir.stmt import SBlock, SBlockRealize

        order = weights_order(text, parts)
        packed = _Packed.of(order, operation.order, [int(n) for n in weights.shape])
        if packed.is_same:
            return weights
        buffer = tirx.decl_buffer(packed.shape, weights.dtype, f"{weights.name}_packed")
        loops = [tirx.Var(f"p{n}", "int64") for n in range(len(packed.shape))]
        axes = [
            tirx.IterVar(_range(extent), tirx.Var(f"v_p{n}", "int64"), 0)
            for n, extent in enumerate(packed.shape)
        ]
        indices, inside = packed.element([axis.var for axis in axes])
        value = tirx.BufferLoad(weights, indices)
        if inside is not None:
            value = tirx.if_then_else(inside, value, tirx.const(0, weights.dtype))
        name = f"{weights.name}_packed"
        constant = has_constant_weights(self._function) and self._is_free(weights)
        block = SBlock(
            axes,
            [tirx.BufferRegion(weights, _whole(weights))],
            [tirx.BufferRegion(buffer, [_point(axis.var) for axis in axes])],
            name,
            tirx.BufferStore(buffer, value, [axis.var for axis in axes]),
            annotations={MARK: True} if constant else {},
        )
        statement: Any = SBlockRealize(loops, True, block)
        for loop, extent in zip(reversed(loops), reversed(packed.shape), strict=True):
            statement = tirx.For(
                loop, tirx.IntImm("int64", 0), tirx.IntImm("int64", extent), tirx.ForKind.SERIAL, statement
            )
        self._before[operation.block] = statement
        self._allocated.append(buffer)
        if constant:
            self.called.packing.add(name)
        return buffer

    def _is_free(self, weights: Any) -> bool:
        function = self._function
        return any(function.params[int(place)].same_as(weights) for place in function.attrs[FREE])

    def function(self) -> Any:
        """With its calls."""
        from tvm import tirx
        from tvm.s_tir.stmt import SBlock, SBlockRealize

        statements = []
        for place, statement in enumerate(self._statements):
            if place not in self._dropped:
                before = self._before.get(place)
                statements += [statement] if before is None else [before, statement]
        body = tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]
        used = _used(body)
        root = SBlock([], [], [], "root", body, alloc_buffers=[b for b in self._allocated if b.name in used])
        return self._function.with_body(SBlockRealize([], True, root))


@dataclass(frozen=True)
class _Packed:
    """Weights in the order of a library: the shape of the buffer, and for each of its dimensions the logical
    one and what a step is worth in it. shape_of: sizes of the logical ones; places: theirs in the weights."""

    shape: tuple[int, ...]
    digits: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    padded: tuple[int, ...]
    places: tuple[int | None, ...]
    given: tuple[int, ...]

    @staticmethod
    def of(order: WeightsOrder, places: Sequence[int | None], given: Sequence[int]) -> _Packed:
        sizes = tuple(1 if place is None else given[place] for place in places)
        worth = [prod(size for dim, size in order.blocks if dim == d) for d in range(len(sizes))]
        outer = sorted(range(len(sizes)), key=lambda d: -order.steps[d])
        digits = [(d, worth[d]) for d in outer]
        shape = [order.sizes[d] // worth[d] for d in outer]
        for dim, size in order.blocks:
            worth[dim] //= size
            digits.append((dim, worth[dim]))
            shape.append(size)
        return _Packed(tuple(shape), tuple(digits), sizes, order.sizes, tuple(places), tuple(given))

    @property
    def is_same(self) -> bool:
        """Whether the weights lie in that order."""
        walked = [self.places[dim] for (dim, _), n in zip(self.digits, self.shape, strict=True) if n > 1]
        return (
            self.sizes == self.padded
            and len(set(walked)) == len(walked)
            and walked == [place for place, n in enumerate(self.given) if n > 1]
        )

    def element(self, variables: Sequence[Any]) -> tuple[list[Any], Any]:
        """Indices of the weights, and a condition where they may be outside of them."""
        from tvm import tirx

        logical: list[Any] = [tirx.IntImm("int64", 0)] * len(self.sizes)
        for variable, (dim, worth) in zip(variables, self.digits, strict=True):
            logical[dim] = logical[dim] + variable * worth
        indices: list[Any] = [tirx.IntImm("int64", 0)] * len(self.given)
        inside = None
        for value, place, size, padded in zip(logical, self.places, self.sizes, self.padded, strict=True):
            if place is not None:
                indices[place] = value
            if padded > size:
                condition = value < size
                inside = condition if inside is None else tirx.And(inside, condition)
        return indices, inside


def _whole(buffer: Any) -> list[Any]:
    return [_range(int(extent), _dtype(extent)) for extent in buffer.shape]


def _dtype(value: Any) -> str:
    return str(value.ty.dtype)


def _range(extent: int, dtype: str = "int64") -> Any:
    import tvm
    from tvm import tirx

    return tvm.ir.Range.from_min_extent(tirx.IntImm(dtype, 0), tirx.IntImm(dtype, extent))


def _point(variable: Any) -> Any:
    import tvm
    from tvm import tirx

    return tvm.ir.Range.from_min_extent(variable, tirx.IntImm("int64", 1))


def _address(buffer: Any) -> Any:
    from tvm import tirx

    return tirx.address_of(tirx.BufferLoad(buffer, [tirx.IntImm(_dtype(n), 0) for n in buffer.shape]))


def _used(body: Any) -> set[str]:
    """Names of buffers that blocks read or write."""
    import tvm_ffi
    from tvm.s_tir.stmt import SBlock

    names: set[str] = set()

    def visit(block: Any) -> None:
        names.update(region.source.name for region in [*block.reads, *block.writes])

    tvm_ffi.structural_walk(body, [(SBlock, visit)], order="pre")
    return names


# --------------------------------------------------------------------------- what is around the calls


def _schedule_rest(schedule: Any, called: _Called) -> None:
    """Elementwise blocks are computed where they are used, the last beside the call's part that it needs,
    where all parts are alike; what is left of the others is parallel and in vectors."""
    names = [schedule.get(block).name_hint for block in _blocks(schedule)]
    for name in names:
        block = schedule.get_sblock(name)
        written = {region.source.name for region in schedule.get(block).writes}
        if name not in called.names and name not in called.packing and not written & called.touched:
            with suppress(Exception):  # it is no elementwise block, or gives the result
                schedule.compute_inline(block)
    last = _blocks(schedule)[-1]
    beside = None
    if called.even and schedule.get(last).name_hint not in called.names:
        loop = schedule.get_loops(schedule.get_sblock(called.names[-1]))[0]
        with suppress(Exception):  # it needs more than one part of the call
            schedule.reverse_compute_at(last, loop)
            beside = schedule.get(last).name_hint
    for block in _blocks(schedule):
        name = schedule.get(block).name_hint
        if name not in called.names and name not in called.packing:
            _vectorise(schedule, block, parallel=name != beside)


def _blocks(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def _vectorise(schedule: Any, block: Any, parallel: bool) -> None:
    loops = [*schedule.get_loops(block)]
    kinds = [int(axis.iter_type) for axis in schedule.get(block).iter_vars]
    if any(kind != 0 for kind in kinds):  # a reduction
        if parallel and loops:
            with suppress(Exception):
                schedule.parallel(loops[0])
        return
    if not loops:
        return
    extent = int(schedule.get(loops[-1]).extent)
    lanes = next((n for n in LANES if extent % n == 0 and extent >= n), 0)
    if lanes:
        *_, inner = schedule.split(loops[-1], [None, lanes])
        schedule.vectorize(inner)
        loops = [*schedule.get_loops(block)][:-1]
    if parallel:
        schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def libraries_called(module: Any) -> list[VendorLibrary]:
    """Those that functions of a module call."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    texts: set[str] = set()

    def visit(call: Any) -> None:
        texts.update(
            str(argument.value) for argument in call.args[:1] if isinstance(argument, tvm.ir.StringImm)
        )

    for function in module.functions.values():
        if isinstance(function, tirx.PrimFunc):
            tvm_ffi.structural_walk(function.body, [(tvm.ir.Call, visit)], order="pre")
    return [library for library in LIBRARIES.values() if library.entry in texts]
