"""`DeviceSpec`: what gnnperf knows about one device."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gnnperf.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One device. Sizes are in bytes, peaks and bandwidths in 10^9 per second; None is unknown.

    kind: "cpu" or "gpu". name: model name. arch: instruction set architecture ("x86_64").
    isa: its widest vector extension in use ("avx512", "avx2", "neon", ...).
    cores, threads: physical cores, and hardware threads, that programs may use.
    l1d_bytes, l2_bytes: per core. l3_bytes: all of it. memory_bytes: main memory.
    peak_gflops_*: fused multiply-adds counted as two, on all threads and on one.
    bandwidth_gbps: STREAM triad (24 bytes counted per element), on all threads and on one.
    source: where the values come from (a datasheet's address, "measured by ...").
    """

    kind: Literal["cpu", "gpu"]
    name: str
    arch: str
    isa: str
    cores: int
    threads: int
    l1d_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    memory_bytes: int | None = None
    peak_gflops_fp32: float | None = None
    peak_gflops_fp64: float | None = None
    peak_gflops_fp32_1_thread: float | None = None
    peak_gflops_fp64_1_thread: float | None = None
    bandwidth_gbps: float | None = None
    bandwidth_gbps_1_thread: float | None = None
    source: str

    @property
    def fingerprint(self) -> str:
        """Records of devices with equal fingerprints may stand in for one another: "cpu/x86_64/avx512"."""
        return f"{self.kind}/{self.arch}/{self.isa}"

    def to_dict(self) -> dict[str, Any]:
        """Known values by field name, in the order of the fields."""
        return {k: v for k, v in dataclasses.asdict(self).items() if v is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], origin: str) -> DeviceSpec:
        """The inverse of `to_dict`, for values from a file; `origin` names it in messages.

        Raises InputError on an unknown, missing or ill-typed field.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{origin}: expected a mapping of device fields, got {type(values).__name__}")
        hints = get_type_hints(cls)
        fields = {f.name: f for f in dataclasses.fields(cls)}
        unknown = [str(key) for key in values if key not in fields]
        if unknown:
            raise InputError(f"{origin}: unknown field {unknown[0]!r}; known: {', '.join(fields)}")
        required = [f.name for f in fields.values() if f.default is dataclasses.MISSING]
        missing = [name for name in required if name not in values]
        if missing:
            raise InputError(f"{origin}: field {missing[0]!r} is missing; required: {', '.join(required)}")
        checked = {name: _checked(hints[name], value, f"{origin}: {name}") for name, value in values.items()}
        return cls(**checked)


def _checked(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type of its field; every number of a device is positive."""
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InputError(f"{where}: expected {' or '.join(map(repr, get_args(hint)))}, got {value!r}")
        return value
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
