"""The configuration of a pack of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gnnperf.errors import InputError
from gnnperf.frontends.tvm.workloads import Workload, read_workloads

_BOUNDS = {"schedules": (1, 100_000), "together": (1, 256), "seed": (0, 2**31 - 1)}


@dataclass(frozen=True)
class PackConfig:
    """schedules: sampled per workload, the same number from each of its design spaces. together: built into
    one library, which saves most of what the CUDA compiler takes."""

    name: str
    workloads: tuple[Workload, ...]
    schedules: int = 64
    together: int = 16
    seed: int = 0

    @staticmethod
    def load(path: Path) -> PackConfig:
        """Read a YAML file. Raises InputError."""
        raw, workloads = read_workloads(path)
        known = {"name", *_BOUNDS}
        if unknown := sorted(str(key) for key in set(raw) - known):
            raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
        for key in _BOUNDS.keys() & raw.keys():
            low, high = _BOUNDS[key]
            if not isinstance(raw[key], int) or isinstance(raw[key], bool) or not low <= raw[key] <= high:
                raise InputError(f"{path}: {key}: expected an integer from {low} to {high}, got {raw[key]!r}")
        settings = {key: int(raw[key]) for key in _BOUNDS.keys() & raw.keys()}
        return PackConfig(str(raw.get("name", path.stem)), workloads, **settings)

    def only(self, names: Sequence[str]) -> PackConfig:
        """The workloads whose name or kind is given. Raises InputError for one that there is not."""
        known = {word for workload in self.workloads for word in (workload.name, workload.kind)}
        if unknown := [name for name in names if name not in known]:
            kinds = sorted({workload.kind for workload in self.workloads})
            raise InputError(f"no workload or kind {unknown[0]!r}; kinds: {', '.join(kinds)}")
        return replace(self, workloads=tuple(w for w in self.workloads if {w.name, w.kind} & set(names)))
