"""The configuration of a corpus of TVM schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.frontends.tvm.workloads import Workload, read_workloads

_BOUNDS: dict[str, tuple[float, float]] = {
    "random_share": (0, 1),
    "batch": (1, 1024),
    "seed": (0, 2**31 - 1),
}


@dataclass(frozen=True)
class TensorConfig:
    """passes: schedules per workload after each pass over all workloads. random_share: of the schedules of a
    workload, sampled at random; the others are found by the search. batch: schedules per round of the search.
    """

    name: str
    workloads: tuple[Workload, ...]
    passes: tuple[int, ...] = (32, 128)
    random_share: float = 0.25
    batch: int = 16
    seed: int = 0

    @staticmethod
    def load(path: Path) -> TensorConfig:
        """Read a YAML file. Raises InputError."""
        raw, workloads = read_workloads(path)
        known = {"name", "passes", *_BOUNDS}
        if unknown := sorted(str(key) for key in set(raw) - known):
            raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
        for key in _BOUNDS.keys() & raw.keys():
            low, high = _BOUNDS[key]
            whole = key != "random_share"
            number = isinstance(raw[key], int if whole else int | float) and not isinstance(raw[key], bool)
            if not number or not low <= raw[key] <= high:
                kind = "an integer" if whole else "a number"
                raise InputError(f"{path}: {key}: expected {kind} from {low:g} to {high:g}, got {raw[key]!r}")
        settings: dict[str, Any] = {key: raw[key] for key in _BOUNDS.keys() & raw.keys()}
        if "passes" in raw:
            settings["passes"] = _passes(path, raw["passes"])
        return TensorConfig(str(raw.get("name", path.stem)), workloads, **settings)

    def only(self, names: Sequence[str]) -> TensorConfig:
        """The workloads whose name or kind is given. Raises InputError for one that there is not."""
        known = {word for workload in self.workloads for word in (workload.name, workload.kind)}
        if unknown := [name for name in names if name not in known]:
            kinds = sorted({workload.kind for workload in self.workloads})
            raise InputError(
                f"no workload or kind {unknown[0]!r}; kinds: {', '.join(kinds)}; a name is a kind with its "
                "parameters, as in the log"
            )
        chosen = tuple(w for w in self.workloads if {w.name, w.kind} & set(names))
        return replace(self, workloads=chosen)

    def up_to(self, trials: int) -> TensorConfig:
        """So many schedules per workload in all."""
        return replace(self, passes=(*(p for p in self.passes if p < trials), trials))


def _passes(path: Path, value: Any) -> tuple[int, ...]:
    good = isinstance(value, list) and value and all(isinstance(v, int) and v > 0 for v in value)
    if not good or sorted(set(value)) != value:
        raise InputError(f"{path}: passes: expected growing numbers of schedules, got {value!r}")
    return tuple(value)
