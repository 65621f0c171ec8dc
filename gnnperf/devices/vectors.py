"""The vector registers of a processor."""

from __future__ import annotations

from typing import NamedTuple


class VectorUnit(NamedTuple):
    """bytes: of one register. registers: how many a program can name."""

    bytes: int
    registers: int


AVX512 = VectorUnit(64, 32)
"""Of the machines that the corpora were measured on."""

VECTOR_UNITS = {
    "avx512": AVX512,
    "avx2": VectorUnit(32, 16),
    "avx": VectorUnit(32, 16),
    "sse2": VectorUnit(16, 16),
    "neon": VectorUnit(16, 32),
}
"""By the name of the widest extension that a machine has, as `DeviceSpec.isa` says it."""


def vectors_of(fingerprint: str) -> VectorUnit:
    """Of the devices with a fingerprint, such as cpu/x86_64/avx2. Where it does not tell, those of AVX-512:
    the compiler splits vectors that are too wide."""
    return VECTOR_UNITS.get(fingerprint.rpartition("/")[2], AVX512)
