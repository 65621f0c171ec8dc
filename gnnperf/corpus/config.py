"""Configurations of corpora: what to measure, and for how long. The kind of one says what it lists.

`nests` (also where no kind is given): DaCe kernels, cut into loop nests. `workloads`: TVM programs, measured
here. `pack`: TVM programs, built here to be measured on another machine. `configurations`: of tunable GPU
kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import yaml

from gnnperf.corpus.random_nests import generate
from gnnperf.errors import InputError
from gnnperf.frontends.tvm.workloads import TvmWorkload, read_workloads

Bounds: TypeAlias = Mapping[str, tuple[type, float, float]]
"""Type, least and largest value of each numeric setting."""
SEED = (int, 0, 2**31 - 1)
ANY = float("inf")
CUDA = Path(__file__).with_name("cuda")
"""Sources of the tunable kernels that can be measured, `NAME.cu`."""


@dataclass(frozen=True)
class NestEntry:
    """One kernel at one size. `kernel` and `inputs` are file:name, relative to the configuration; where
    `random` is the number of a random nest, `kernel` is its name."""

    kernel: str
    family: str
    symbols: Mapping[str, float]
    inputs: str | None = None
    random: int | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.kernel.rpartition(":")[2]

    @property
    def key(self) -> str:
        """Names the entry in the log of a collection."""
        return json.dumps([self.kernel, dict(self.symbols), self.inputs])

    def __str__(self) -> str:
        return " ".join([self.kernel, *(f"{k}={v}" for k, v in self.symbols.items())])


@dataclass(frozen=True)
class NestConfig:
    """Loop nests of kernels.

    folder: of the file, which what is in it is relative to. recipes_per_nest: measured by search at most.
    patience: mutations without progress that end a search earlier (0: never). budget_s_per_nest: wall time of
    one search. budget_s_per_recipe: of the timed runs of one recipe and of the baseline beside it.
    foreign_per_nest: recipes that were good on other nests, measured after that. converge_share: of the
    entries, whose search goes on until its patience ends; the others get a first look. random_nests: entries,
    after those listed, that are random nests with the numbers `first_random` and following: more of them
    leave those before as they are. portfolio: a corpus whose portfolio is measured on all nests, so that none
    must be chosen first. beside: a corpus that has the same nests: instead of all that, each is searched with
    `recipes_per_nest` random recipes and by evolution, and what that corpus measured on it is measured again.
    """

    name: str
    folder: Path
    entries: tuple[NestEntry, ...]
    recipes_per_nest: int = 40
    patience: int = 12
    budget_s_per_nest: float = 20.0
    budget_s_per_recipe: float = 0.15
    foreign_per_nest: int = 24
    converge_share: float = 1.0
    random_nests: int = 0
    first_random: int = 0
    seed: int = 0
    portfolio: Path | None = None
    beside: Path | None = None

    CORPORA: ClassVar[tuple[str, ...]] = ("portfolio", "beside")
    BOUNDS: ClassVar[Bounds] = {
        "recipes_per_nest": (int, 1, ANY), "patience": (int, 0, ANY), "budget_s_per_nest": (float, 0, ANY),
        "budget_s_per_recipe": (float, 0, ANY),
        "foreign_per_nest": (int, 0, ANY), "converge_share": (float, 0, 1), "random_nests": (int, 0, ANY),
        "first_random": (int, 0, ANY), "seed": (int, 0, ANY),
    }  # fmt: skip

    @staticmethod
    def read(path: Path, raw: Any) -> NestConfig:
        """From the content of a file, whatever it is. Raises InputError."""
        if not isinstance(raw, dict) or not isinstance(raw.get("entries"), list) or not raw.get("name"):
            raise InputError(
                f"{path}: expected a mapping with `name` and a list `entries`, got {_shortly(raw)}"
            )
        settings = _settings(path, raw, NestConfig.BOUNDS, "name", "entries", *NestConfig.CORPORA)
        settings |= {key: path.parent / str(raw[key]) for key in NestConfig.CORPORA if key in raw}
        entries = [_entry(path, number, item) for number, item in enumerate(raw["entries"], start=1)]
        first = settings.get("first_random", 0)
        nests = map(generate, range(first, first + settings.get("random_nests", 0)))
        entries += [NestEntry(n.name, n.family, n.symbols, random=n.number) for n in nests]
        return NestConfig(str(raw["name"]), path.parent, tuple(entries), **settings)

    def only(self, names: Sequence[str]) -> NestConfig:
        """The entries of these families. Raises InputError for one that there is not."""
        return replace(self, entries=_chosen(self.entries, names, lambda e: {e.family}, "family"))

    def path(self, spec: str) -> str:
        """A `file:name` of an entry, seen from the current folder."""
        return str(self.folder / spec)


@dataclass(frozen=True)
class WorkloadConfig:
    """TVM workloads. passes: schedules per workload after each pass over all of them. random_share: of the
    schedules of a workload, sampled at random; the others are found by the search. batch: schedules per round
    of the search."""

    name: str
    workloads: tuple[TvmWorkload, ...]
    passes: tuple[int, ...] = (32, 128)
    random_share: float = 0.25
    batch: int = 16
    seed: int = 0

    BOUNDS: ClassVar[Bounds] = {"random_share": (float, 0, 1), "batch": (int, 1, 1024), "seed": SEED}

    @staticmethod
    def read(path: Path, raw: Mapping[str, Any]) -> WorkloadConfig:
        """From the content of a file. Raises InputError."""
        workloads = read_workloads(path)[1]
        settings = _settings(path, raw, WorkloadConfig.BOUNDS, "name", "workloads", "passes")
        if "passes" in raw:
            settings["passes"] = _passes(path, raw["passes"])
        return WorkloadConfig(str(raw.get("name", path.stem)), workloads, **settings)

    def only(self, names: Sequence[str]) -> WorkloadConfig:
        """The workloads whose name or kind is given. Raises InputError for one that there is not."""
        return replace(self, workloads=_chosen(self.workloads, names, _words, WORKLOAD))

    def up_to(self, schedules: int) -> WorkloadConfig:
        """So many schedules per workload in all."""
        return replace(self, passes=(*(p for p in self.passes if p < schedules), schedules))


@dataclass(frozen=True)
class PackConfig:
    """TVM workloads for a pack. schedules: sampled per workload, the same number from each of its design
    spaces. together: built into one library, which saves most of what the CUDA compiler takes."""

    name: str
    workloads: tuple[TvmWorkload, ...]
    schedules: int = 64
    together: int = 16
    seed: int = 0

    BOUNDS: ClassVar[Bounds] = {"schedules": (int, 1, 100_000), "together": (int, 1, 256), "seed": SEED}

    @staticmethod
    def read(path: Path, raw: Mapping[str, Any]) -> PackConfig:
        """From the content of a file. Raises InputError."""
        workloads = read_workloads(path)[1]
        settings = _settings(path, raw, PackConfig.BOUNDS, "name", "workloads")
        return PackConfig(str(raw.get("name", path.stem)), workloads, **settings)

    def only(self, names: Sequence[str]) -> PackConfig:
        """The workloads whose name or kind is given. Raises InputError for one that there is not."""
        return replace(self, workloads=_chosen(self.workloads, names, _words, WORKLOAD))


@dataclass(frozen=True)
class KernelConfig:
    """Tunable GPU kernels, by the names of their sources and descriptions. configurations_per_kernel: drawn
    at random."""

    name: str
    kernels: tuple[str, ...]
    configurations_per_kernel: int = 300
    seed: int = 0

    BOUNDS: ClassVar[Bounds] = {"configurations_per_kernel": (int, 1, ANY), "seed": SEED}

    @staticmethod
    def read(path: Path, raw: Mapping[str, Any]) -> KernelConfig:
        """From the content of a file. Raises InputError."""
        settings = _settings(path, raw, KernelConfig.BOUNDS, "name", "kernels")
        kernels, known = raw.get("kernels"), sorted(path.stem for path in CUDA.glob("*.cu"))
        if not isinstance(kernels, list) or not kernels or not all(kernel in known for kernel in kernels):
            raise InputError(
                f"{path}: kernels: expected a list out of {', '.join(known)}, got {_shortly(kernels)}"
            )
        return KernelConfig(str(raw.get("name", path.stem)), tuple(kernels), **settings)

    def only(self, names: Sequence[str]) -> KernelConfig:
        """These kernels. Raises InputError for one that there is not."""
        return replace(self, kernels=_chosen(self.kernels, names, lambda kernel: {kernel}, "kernel"))


Config: TypeAlias = NestConfig | WorkloadConfig | PackConfig | KernelConfig
KINDS: Mapping[str, Callable[[Path, Mapping[str, Any]], Config]] = {
    "nests": NestConfig.read, "workloads": WorkloadConfig.read, "pack": PackConfig.read,
    "configurations": KernelConfig.read,
}  # fmt: skip
"""What reads a configuration of a kind."""


def load_config(path: Path) -> Config:
    """Read a YAML file. InputError names the first thing that is wrong."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"cannot read the configuration {path}: {' '.join(str(error).split())}") from None
    kind = raw.get("kind", "nests") if isinstance(raw, dict) else "nests"
    if kind not in list(KINDS):  # what is a list itself has no hash
        raise InputError(f"{path}: kind: expected one of {', '.join(KINDS)}, got {_shortly(kind)}")
    return KINDS[kind](path, raw)


def _settings(path: Path, raw: Mapping[str, Any], bounds: Bounds, *others: str) -> dict[str, Any]:
    """The settings that have bounds, checked. others: further keys that a file may have."""
    known = {"kind", *others, *bounds}
    if unknown := sorted(str(key) for key in set(raw) - known):
        raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return {name: _number(path, name, raw[name], *limits) for name, limits in bounds.items() if name in raw}


def _number(path: Path, name: str, value: Any, kind: type, low: float, high: float) -> Any:
    accepted = int | float if kind is float else int
    if not isinstance(value, accepted) or isinstance(value, bool) or not low <= value <= high:
        what = "a number" if kind is float else "an integer"
        limits = f"of at least {low:g}" if high == ANY else f"from {low:g} to {high:g}"
        raise InputError(f"{path}: {name}: expected {what} {limits}, got {_shortly(value)}")
    return kind(value)


def _passes(path: Path, value: Any) -> tuple[int, ...]:
    good = isinstance(value, list) and value and all(isinstance(v, int) and v > 0 for v in value)
    if not good or sorted(set(value)) != value:
        raise InputError(f"{path}: passes: expected growing numbers of schedules, got {value!r}")
    return tuple(value)


Item = TypeVar("Item")


def _chosen(
    items: Sequence[Item], names: Sequence[str], words: Callable[[Item], set[str]], what: str
) -> tuple[Item, ...]:
    """The items with one of the names among their words. Raises InputError for a name that none has."""
    known = {word for item in items for word in words(item)}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"no {what} {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return tuple(item for item in items if words(item) & set(names))


WORKLOAD = "workload or kind"


def _words(workload: TvmWorkload) -> set[str]:
    return {workload.kind, workload.name}


def _entry(path: Path, number: int, item: Any) -> NestEntry:
    where = f"{path}: entry {number}"
    if not isinstance(item, dict) or not _REQUIRED <= set(item) <= _REQUIRED | {"symbols", "inputs"}:
        raise InputError(
            f"{where}: expected kernel, family and optionally symbols and inputs, got {_shortly(item)}"
        )
    symbols = item.get("symbols") or {}
    numbers = isinstance(symbols, dict) and all(
        isinstance(k, str) and isinstance(v, int | float) for k, v in symbols.items()
    )
    if not numbers:
        raise InputError(
            f"{where}: expected symbols as a mapping of names to numbers, got {_shortly(symbols)}"
        )
    kernel, inputs = item["kernel"], item.get("inputs")
    for key, spec in (("kernel", kernel), ("inputs", inputs)):
        if spec is None and key == "inputs":
            continue
        if not isinstance(spec, str) or not (path.parent / spec.rpartition(":")[0]).is_file():
            raise InputError(
                f"{where}: expected {key} to be file.py:name of a file that exists, got {_shortly(spec)}"
            )
    return NestEntry(kernel, str(item["family"]), dict(symbols), inputs)


_REQUIRED = {"kernel", "family"}


def _shortly(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
