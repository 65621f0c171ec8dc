"""What the warps of a configuration move: sectors of memory, banks of shared memory, bytes of a block."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from gnnperf.frontends.gpu_kernels.plan import Numbers, Plan
from gnnperf.frontends.gpu_kernels.statements import ElementAccess
from gnnperf.graph.vocabulary import element_bytes

SECTOR_BYTES = 32
BANKS, BANK_BYTES = 32, 4
DRAWN = 2**16
"""Different indices that are drawn for a buffer of them."""


class Traffic:
    """Counts for n configurations.

    Args:
        plan: the configurations.
        warp: threads that run in step on the device.
    """

    def __init__(self, plan: Plan, warp: int) -> None:
        self.plan, self.warp = plan, warp
        self.blocks = plan.iterations(plan.level("block"))
        self.threads = plan.iterations(plan.level("thread"))
        self.warps = np.ceil(self.threads / warp)
        self.staged = {stage.about.buffer: stage for stage in plan.stages}
        self.lanes = self._lanes()

    def _lanes(self) -> dict[str, Int64[np.ndarray, "n lanes"]]:
        """Value of every axis in each lane of the first warp, thread.x fastest; the last repeats."""
        lane = np.minimum(np.arange(self.warp)[None, :], self.threads[:, None].astype(np.int64) - 1)
        rest, found = lane, dict[str, Int64[np.ndarray, "n lanes"]]()
        for level in ("thread.x", "thread.y", "thread.z"):
            for loop in reversed(self.plan.loops):
                if loop.about.bind == level:
                    here = rest % loop.extent[:, None] * loop.step[:, None]
                    found[loop.about.axis] = found.get(loop.about.axis, 0) + here
                    rest = rest // loop.extent[:, None]
        return found

    def executions(self, access: ElementAccess) -> Numbers:
        """How often a thread makes an access: not again in loops further inside that do not move it, nor in
        unrolled ones around, where its element stays in a register; nor, of what it keeps, in any. Nor where
        unrolled loops meet an element again, as windows that overlap do."""
        always = access.buffer in self.plan.description.registers
        count, inner = self._different(access), np.ones(self.plan.count, dtype=bool)
        for loop in reversed(self.plan.level("")):
            moves = self.plan.moves(access, loop)
            kept = loop.flat if moves else loop.flat | inner | always
            count = np.where(kept, count, count * loop.extent)
            inner = inner & (not moves)
        return count

    def _different(self, access: ElementAccess) -> Numbers:
        """Different elements of an access in the unrolled loops that move it."""
        most, sides = self.kept(access), np.ones(self.plan.count)
        if access.indirect:
            return most
        for coefficients in access.coefficients:
            length = np.ones(self.plan.count, dtype=np.int64)
            pitch = np.ones(self.plan.count, dtype=np.int64)
            for loop in reversed(self.plan.level("")):
                if coefficient := abs(coefficients.get(loop.about.axis, 0)):
                    extent = np.where(loop.flat, loop.extent, 1)
                    length, pitch = _overlapping(length, pitch, extent, coefficient * loop.step)
            sides = sides * length
        return np.minimum(most, sides)

    def width(self, access: ElementAccess) -> Numbers:
        """Elements of one load: the extent of a vectorized loop that moves along memory."""
        width = np.ones(self.plan.count)
        for loop in self.plan.loops:
            last = access.coefficients[-1].get(loop.about.axis, 0) if access.coefficients else 0
            if last == 1:
                width = np.where(loop.vectorized & (loop.step == 1), width * loop.extent, width)
        return width

    def kept(self, access: ElementAccess) -> Numbers:
        """Different elements of an access in the unrolled loops: what registers hold at once."""
        return self.plan.flat(loop for loop in self.plan.level("") if self.plan.moves(access, loop))

    def addresses(self, access: ElementAccess, pitch: tuple[np.ndarray, ...]) -> Int64[np.ndarray, "n lanes"]:
        """Element offset in every lane; `pitch`: elements between neighbours, by dimension."""
        total = np.zeros((self.plan.count, self.warp), dtype=np.int64)
        for coefficients, stride in zip(access.coefficients, pitch, strict=True):
            for axis, c in coefficients.items():
                if axis in access.indirect:
                    total = total + c * self._indices(access.indirect[axis]) * np.asarray(stride)[:, None]
                elif axis in self.lanes:
                    total = total + c * self.lanes[axis] * np.asarray(stride)[:, None]
        return total

    def _indices(self, inner: ElementAccess) -> Int64[np.ndarray, "n lanes"]:
        """Elements of a buffer of indices in every lane: those in the middle of its data, or drawn."""
        about = self.plan.description.buffers[inner.buffer]
        if about.data is None:
            assert about.below is not None
            below = about.below(self.plan.values, f"buffers.{inner.buffer}.values")
            drawn = np.random.default_rng(0).random(DRAWN)
            at = self.addresses(inner, self._pitch(inner.buffer)) % DRAWN
            return (drawn[at] * below[:, None]).astype(np.int64)
        one = (np.ones(self.plan.count, dtype=np.int64),)
        places = (
            self.addresses(ElementAccess(inner.buffer, (c,), (o,), inner.indirect), one) + o + side // 2
            for c, o, side in zip(inner.coefficients, inner.offsets, about.data.shape, strict=True)
        )
        wrapped = (p % side for p, side in zip(places, about.data.shape, strict=True))
        return about.data[tuple(wrapped)]

    def global_memory(self) -> tuple[Numbers, Numbers, Numbers]:
        """Sectors that a warp asks for, loads and stores of a thread, and the share of the sectors' bytes
        that is used."""
        sectors, requests, useful = (np.zeros(self.plan.count) for _ in range(3))
        accesses = [(a, on) for a, on in self.plan.reads] + [
            (a, np.ones(self.plan.count, dtype=bool)) for a in self.plan.writes
        ]
        for access, active in accesses:
            stage = self.staged.get(access.buffer)
            here = active & ~stage.active if stage is not None else active
            if not here.any():
                continue
            size = self.element_bytes(access.buffer)
            width = self.width(access)
            per_thread = self.executions(access) / width
            offsets = self.addresses(access, self._pitch(access.buffer)) * size
            touched = _distinct(offsets // SECTOR_BYTES)
            touched = np.minimum(np.maximum(touched, touched * width * size / SECTOR_BYTES), touched * width)
            sectors = sectors + here * per_thread * touched
            requests = requests + here * per_thread
            useful = useful + here * per_thread * np.minimum(
                _distinct(offsets) * width * size, touched * SECTOR_BYTES
            )
        for stage in self.plan.stages:
            size = self.element_bytes(stage.about.buffer)
            fills = self._fills(stage.about.inside)
            elements = stage.elements
            row = stage.tile[-1] * size
            lanes = np.minimum(self.warp, stage.threads[0])
            run = np.minimum(lanes * stage.vector * size, row)
            sectors_of_run = np.ceil(run / SECTOR_BYTES) + (run % SECTOR_BYTES != 0) * 0.5
            runs = fills * elements * size / np.maximum(run, 1) / self.warps
            sectors = sectors + stage.active * runs * sectors_of_run
            requests = requests + stage.active * fills * elements / stage.vector / self.threads
            useful = useful + stage.active * runs * run
        return sectors, requests, useful / np.maximum(sectors * SECTOR_BYTES, 1e-9)

    def shared_memory(self) -> tuple[Numbers, Numbers, Numbers]:
        """Cycles of shared memory for a warp, loads and stores of a thread, and the worst conflict."""
        cycles, requests, worst = (
            np.zeros(self.plan.count),
            np.zeros(self.plan.count),
            np.ones(self.plan.count),
        )
        for access, active in self.plan.reads:
            stage = self.staged.get(access.buffer)
            if stage is None or not (stage.active & active).any():
                continue
            here, width = stage.active & active, self.width(access)
            size = self.element_bytes(access.buffer)
            sides = [*stage.tile[1:-1], stage.tile[-1] + stage.pad] if len(stage.tile) > 1 else []
            pitch = [np.ones(self.plan.count, dtype=np.int64)]
            for side in reversed(sides):
                pitch.insert(0, pitch[0] * side)
            words = self.addresses(access, tuple(pitch)) * size // BANK_BYTES
            degree = _conflicts(words)
            cost = degree * np.maximum(1.0, width * size / BANK_BYTES / np.where(degree > 1, width, 1))
            per_thread = self.executions(access) / width
            cycles = cycles + here * per_thread * cost
            requests = requests + here * per_thread
            worst = np.where(here, np.maximum(worst, degree), worst)
        for stage in self.plan.stages:
            stores = stage.active * stage.elements * self._fills(stage.about.inside) / self.threads
            cycles, requests = cycles + stores, requests + stores / stage.vector
        return cycles, requests, worst

    def _fills(self, inside: str) -> Numbers:
        """How often a block fills a stage."""
        own = self.plan.level("")
        around = [loop.about.name for loop in own].index(inside) + 1 if inside else 0
        return self.plan.iterations(own[:around])

    def block_bytes(self) -> Numbers:
        """What a block reads and writes, each byte once per fill of its stage."""
        inner = [loop for loop in self.plan.loops if loop.level != "block"]
        total = np.zeros(self.plan.count)
        for buffer in {a.buffer for a, _ in self.plan.reads} - {a.buffer for a in self.plan.writes}:
            box = np.prod([side.astype(float) for side in self.plan.box(buffer, inner)], axis=0)
            mine = [a for a, _ in self.plan.reads if a.buffer == buffer]
            if any(a.indirect for a in mine):  # not more of a box than is met
                met = [self.plan.iterations(x for x in inner if self.plan.moves(a, x)) for a in mine]
                box = np.minimum(box, np.sum(met, axis=0))
            total = total + box * self.element_bytes(buffer)
        for access in self.plan.writes:
            sides = [
                np.prod([self.plan.reach(axis, inner) for axis in c], axis=0) if c else 1.0
                for c in access.coefficients
            ]
            total = total + np.prod(
                np.broadcast_arrays(*sides, total * 0 + 1.0), axis=0
            ) * self.element_bytes(access.buffer)
        return total

    def distinct_bytes(self) -> Numbers:
        used = {a.buffer for a, _ in self.plan.reads} | {a.buffer for a in self.plan.writes}
        shapes = self.plan.shapes
        return sum(
            (
                np.prod([s.astype(float) for s in shapes[b]], axis=0) * self.element_bytes(b)
                for b in sorted(used)
            ),
            np.zeros(self.plan.count),
        )

    def _pitch(self, buffer: str) -> tuple[np.ndarray, ...]:
        pitch = [np.ones(self.plan.count, dtype=np.int64)]
        for side in reversed(self.plan.shapes[buffer][1:]):
            pitch.insert(0, pitch[0] * side)
        return tuple(pitch[: len(self.plan.shapes[buffer])])

    def element_bytes(self, buffer: str) -> int:
        return element_bytes(self.plan.description.buffers[buffer].dtype)


def _distinct(values: Int64[np.ndarray, "n lanes"]) -> Numbers:
    """Different values in each row."""
    ordered = np.sort(values, axis=1)
    return 1.0 + (np.diff(ordered, axis=1) != 0).sum(axis=1)


def _conflicts(words: Int64[np.ndarray, "n lanes"]) -> Numbers:
    """Most different words that lanes of a warp want of one bank."""
    ordered = np.sort(words, axis=1)
    fresh = np.concatenate([np.ones_like(ordered[:, :1], dtype=bool), np.diff(ordered, axis=1) != 0], axis=1)
    counts = np.zeros((len(words), BANKS))
    rows = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    np.add.at(counts, (rows[fresh], ordered[fresh] % BANKS), 1)
    return counts.max(axis=1)


def _overlapping(
    length: Int64[np.ndarray, " n"],
    pitch: Int64[np.ndarray, " n"],
    extent: Int64[np.ndarray, " n"],
    step: Int64[np.ndarray, " n"],
) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
    """How many different sums two progressions from 0 have, {0, pitch, ...} of `length` elements and
    {0, step, ...} of `extent`, and the pitch of these. Where neither divides the other, none is equal."""
    alone, single = length == 1, extent == 1
    fine, coarse = np.minimum(pitch, step), np.maximum(pitch, step)
    many, few = np.where(pitch <= step, length, extent), np.where(pitch <= step, extent, length)
    ratio = np.where(coarse % np.maximum(fine, 1) == 0, coarse // np.maximum(fine, 1), many)
    found = many + (few - 1) * np.minimum(ratio, many)
    return (
        np.where(single, length, np.where(alone, extent, found)),
        np.where(single, pitch, np.where(alone, step, fine)),
    )
