"""Arrays as memory: how inputs travel to the measuring server and are laid out in a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from gnnperf.errors import MeasureError

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
GUARD = 4096  # bytes on either side of an array that a candidate may write
_GUARD_BYTE = 0xA5
_POISON_BYTE = 0x5A

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Layout:
    """dtype, shape and strides (bytes, none negative) of an array, as JSON-ready values."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: NDArray[Any]) -> Layout:
        if any(s < 0 for s in array.strides) or array.dtype.hasobject:
            raise MeasureError(
                f"array {name!r}: expected a plain dtype and no negative stride, got {array.dtype} "
                f"with strides {array.strides}; pass a copy (numpy.ascontiguousarray)"
            )
        return cls(array.dtype.str, array.shape, array.strides)

    @property
    def nbytes(self) -> int:
        """From the first byte of the first element to the last byte of the last, gaps included."""
        if 0 in self.shape:
            return 0
        span = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return span + np.dtype(self.dtype).itemsize

    def view(self, memory: Bytes) -> NDArray[Any]:
        """The array that lies at the beginning of `memory`."""
        return np.ndarray(self.shape, self.dtype, memory.data, 0, self.strides)


def memory_of(name: str, array: NDArray[Any]) -> Bytes:
    """The bytes an array lies in, gaps between its elements included, without copying."""
    size = Layout.of(name, array).nbytes
    if size == 0:
        return np.empty(0, np.uint8)
    first = as_strided(array, (1,), (array.itemsize,)).view(np.uint8)
    return as_strided(first, (size,), (1,))  # which keeps the array alive


def content_id(memory: Bytes) -> str:
    """Equal for equal bytes: what decides whether the server already has an array."""
    return f"{memory.nbytes:x}-{xxhash.xxh3_128_hexdigest(memory.data)}"


def describe(arrays: Mapping[str, NDArray[Any]], blobs: dict[str, Bytes]) -> dict[str, list[Any]]:
    """[content id, dtype, shape, strides in bytes] of each, to send to another process; what the ids stand
    for is added to `blobs`."""
    described = {}
    for name, array in arrays.items():
        layout, memory = Layout.of(name, array), memory_of(name, array)
        key = content_id(memory)
        blobs[key] = memory
        described[name] = [key, layout.dtype, layout.shape, layout.strides]
    return described


def aligned_empty(nbytes: int) -> Bytes:
    """uint8[nbytes] at a multiple of `ALIGNMENT`, from numpy's allocator (so, like a user's arrays,
    on huge pages when it is large)."""
    base = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -base.ctypes.data % ALIGNMENT
    return base[start : start + nbytes]


class GuardedCopy:
    """A private copy of an array between two guard zones that show writes out of bounds."""

    def __init__(self, layout: Layout, original: Bytes) -> None:
        self._original = original
        self._all = aligned_empty(2 * GUARD + original.nbytes)
        self._guards = self._all[:GUARD], self._all[GUARD + original.nbytes :]
        self.memory = self._all[GUARD : GUARD + original.nbytes]
        self.array = layout.view(self.memory)
        self.reset()

    def reset(self) -> None:
        """Original contents and whole guard zones."""
        for guard in self._guards:
            guard[:] = _GUARD_BYTE
        self.restore()

    def restore(self, copy: Callable[[Bytes, Bytes], None] = np.copyto) -> None:
        """Back to the original contents."""
        copy(self.memory, self._original)

    def poison(self) -> None:
        """Fill with values that no correct program produces, to find what is never written."""
        if self.array.dtype.kind in "fc":
            self.array[...] = np.nan
        elif self.array.dtype.kind == "b":  # neither true nor false, which no assignment of bools makes
            self.array.view(np.uint8)[...] = _POISON_BYTE
        else:
            pattern = bytes([_POISON_BYTE]) * self.array.dtype.itemsize
            self.array[...] = np.frombuffer(pattern, self.array.dtype)[0]

    def intact(self) -> bool:
        """False after a write just outside of the array."""
        return all(bool((guard == _GUARD_BYTE).all()) for guard in self._guards)


def as_arrays(data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Arrays as they are, scalars as rank-0 arrays (a numpy scalar keeps its dtype)."""
    return {name: np.asarray(value) for name, value in data.items()}
