"""`DeviceSpec`: what gnnperf knows about one device."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gnnperf.devices.quantity import Provenance, read_quantity
from gnnperf.devices.vectors import VECTOR_UNITS, VectorUnit, vectors_of
from gnnperf.errors import InputError

_DERIVED = ("fingerprint", "vector_bytes")


LAUNCH_GAP_S = 3e-6
"""Between two GPU kernels that were launched ahead: of the order that profilers show; not fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One device. Sizes are in bytes, peaks and bandwidths in 10^9 per second; None is unknown.

    kind: "cpu" or "gpu". name: model name. vendor: "NVIDIA", "AMD", ... aliases: other names it goes by.
    arch: instruction set architecture ("x86_64"), or family of a GPU ("ada", "cdna2").
    isa: widest vector extension in use ("avx512", "avx2", ...), or target of a GPU ("sm_89", "gfx90a").
    cores: physical cores that programs may use; of a GPU its multiprocessors (SM, compute unit).
    threads: hardware threads that programs may use; of a GPU those resident at once on all multiprocessors.
    l1d_bytes, l2_bytes: per core; l2_bytes of a GPU is all of it. l3_bytes: all of it (AMD: Infinity Cache).
    memory_bytes: main memory, or the GPU's own. memory: its technology ("GDDR6", "HBM2e").
    peak_gflops_*: fused multiply-adds counted as two, on all threads and on one, without matrix units;
    peak_gflops_fp16, peak_gflops_int8: the same (operations, of integers), where they are not those of fp32.
    peak_gflops_*_matrix: of instructions that multiply dense matrices (tensor cores, MFMA), where there are
    such, with sums in fp32 or int32. See `product_gflops`.
    bandwidth_gbps: of a CPU the STREAM triad (24 bytes counted per element), on all threads and on one;
    of a GPU the datasheet's peak.
    Only of GPUs: boost_mhz: boost clock. board_power_w: power limit of the whole board.
    process_nm: feature size of the manufacturing process, as its maker names it.
    fp32_lanes_per_core, registers_per_core (of 32 bits), threads_per_core, shared_bytes_per_core: of one
    multiprocessor. shared_bytes_per_block: most that one block can have. warp_threads: warp, wavefront.
    source: where the values come from (a datasheet's address, "measured by ...").
    provenance: by field, the source of single values, and what is doubtful about them.
    """

    kind: Literal["cpu", "gpu"]
    name: str
    vendor: str | None = None
    aliases: tuple[str, ...] = ()
    arch: str
    isa: str
    cores: int
    threads: int
    l1d_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    memory_bytes: int | None = None
    memory: str | None = None
    peak_gflops_fp32: float | None = None
    peak_gflops_fp64: float | None = None
    peak_gflops_fp32_1_thread: float | None = None
    peak_gflops_fp64_1_thread: float | None = None
    peak_gflops_fp16: float | None = None
    peak_gflops_int8: float | None = None
    peak_gflops_fp64_matrix: float | None = None
    peak_gflops_fp32_matrix: float | None = None
    peak_gflops_tf32_matrix: float | None = None
    peak_gflops_fp16_matrix: float | None = None
    peak_gflops_bf16_matrix: float | None = None
    peak_gflops_fp8_matrix: float | None = None
    peak_gflops_int8_matrix: float | None = None
    bandwidth_gbps: float | None = None
    bandwidth_gbps_1_thread: float | None = None
    boost_mhz: float | None = None
    board_power_w: float | None = None
    process_nm: float | None = None
    fp32_lanes_per_core: int | None = None
    registers_per_core: int | None = None
    threads_per_core: int | None = None
    shared_bytes_per_core: int | None = None
    shared_bytes_per_block: int | None = None
    warp_threads: int | None = None
    source: str
    provenance: Mapping[str, Provenance] = field(default_factory=dict, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """Records of devices with equal fingerprints may stand in for one another: "cpu/x86_64/avx512"."""
        return f"{self.kind}/{self.arch}/{self.isa}"

    @property
    def vector_bytes(self) -> int | None:
        """Of a register of the widest vector extension; None where the name does not say it."""
        return None if (unit := VECTOR_UNITS.get(self.isa)) is None else unit.bytes

    @property
    def vectors(self) -> VectorUnit:
        """What code for a CPU is made for."""
        return vectors_of(self.fingerprint)

    def product_gflops(self, dtype: str) -> float | None:
        """Peak of matrix products in a dtype ("fp64", "tf32", "bf16", ...), on matrix units where there are
        such for it; None where it is not known that there is a way to run them.

        Libraries sum products of fp16 in fp32: without matrix units they are no slower than those.
        """
        matrix: float | None = getattr(self, f"peak_gflops_{dtype}_matrix", None)
        plain: float | None = getattr(self, f"peak_gflops_{dtype}", None)
        if matrix is None and plain is not None and dtype == "fp16":
            return max(plain, self.peak_gflops_fp32 or 0.0)
        return matrix or plain

    def to_record(self) -> dict[str, Any]:
        """What records of measurements say of it: `to_dict` with what follows from it."""
        derived = {"fingerprint": self.fingerprint, "vector_bytes": self.vector_bytes}
        return {k: v for k, v in {**derived, **self.to_dict()}.items() if v is not None}

    @classmethod
    def from_record(cls, values: Mapping[str, Any], origin: str) -> DeviceSpec | None:
        """The inverse of `to_record`; None for an older record, which names a device and no more."""
        if "cores" not in values:
            return None
        return cls.from_dict({k: v for k, v in values.items() if k not in _DERIVED}, origin)

    def to_dict(self) -> dict[str, Any]:
        """Known values by field name, in the order of the fields, without their provenance."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "provenance"}
        return {k: list(v) if k == "aliases" else v for k, v in values.items() if v is not None and v != ()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], origin: str) -> DeviceSpec:
        """The inverse of `to_dict`, for values from a file; `origin` names it in messages.

        A value is plain, in the unit of its field, or {value, unit, source, doubtful}, where the last two
        are texts and may be left out. A GPU's `threads` follow from `cores` and `threads_per_core`.
        Raises InputError on an unknown, missing or ill-typed field or unit.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{origin}: expected a mapping of device fields, got {type(values).__name__}")
        hints = _hints()
        fields = {f.name: f for f in dataclasses.fields(cls) if f.name != "provenance"}
        unknown = [str(key) for key in values if key not in fields]
        if unknown:
            raise InputError(f"{origin}: unknown field {unknown[0]!r}; known: {', '.join(fields)}")
        plain, provenance = dict(values), {}
        for name, value in values.items():
            if isinstance(value, Mapping):
                plain[name], provenance[name] = read_quantity(name, value, f"{origin}: {name}")
        checked = {name: _checked(hints[name], value, f"{origin}: {name}") for name, value in plain.items()}
        if checked.get("kind") == "gpu" and checked.get("threads_per_core") and "cores" in checked:
            checked.setdefault("threads", checked["cores"] * checked["threads_per_core"])
        needed = (dataclasses.MISSING, dataclasses.MISSING)
        required = [f.name for f in fields.values() if (f.default, f.default_factory) == needed]
        missing = [name for name in required if name not in checked]
        if missing:
            raise InputError(f"{origin}: field {missing[0]!r} is missing; required: {', '.join(required)}")
        return cls(**checked, provenance=provenance)


@functools.cache
def _hints() -> Mapping[str, Any]:
    return get_type_hints(DeviceSpec)


def _checked(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type of its field; every number of a device is positive."""
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InputError(f"{where}: expected {' or '.join(map(repr, get_args(hint)))}, got {value!r}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v.strip() for v in value):
            raise InputError(f"{where}: expected a list of texts, got {value!r}")
        return tuple(v.strip() for v in value)
    (wanted,) = [t for t in get_args(hint) or (hint,) if t is not types.NoneType]
    if value is None and type(None) in get_args(hint):
        return None
    if wanted is str:
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: expected a text, got {value!r}")
        return value.strip()
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not value > 0 or value == float("inf") or (wanted is int and value != int(value)):
        what = "a positive integer" if wanted is int else "a positive number"
        raise InputError(f"{where}: expected {what}, got {value!r}")
    return wanted(value)
