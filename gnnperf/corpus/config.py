"""Configurations of corpora: what to measure, and for how long. The kind of one says what it lists.

`nests` (also where no kind is given): DaCe kernels, cut into loop nests. `workloads`: TVM programs, measured
here. `pack`: TVM programs, built here to be measured on another machine. `configurations`: of tunable GPU
kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import yaml

from gnnperf.corpus.random_nests import generate
from gnnperf.errors import InputError
from gnnperf.frontends.tvm.workloads import TvmWorkload, read_workloads

ANY = float("inf")
LAST_SEED = 2**31 - 1
CUDA = Path(__file__).with_name("cuda")
"""Sources of the tunable kernels that can be measured, `NAME.cu`."""

READ = "read"
"""In the metadata of a field that a file may set: from the file, the field's name and the value there to what
it means. Raises InputError."""
T = TypeVar("T")


def bounded(default: T, least: float = 0, most: float = ANY) -> T:
    """A field for a number of the type of its default, which a file may set within bounds."""
    kind: Any = type(default)

    def read(path: Path, name: str, value: Any) -> Any:
        accepted = int | float if kind is float else int
        if not isinstance(value, accepted) or isinstance(value, bool) or not least <= value <= most:
            what = "a number" if kind is float else "an integer"
            limits = f"of at least {least:g}" if most == ANY else f"from {least:g} to {most:g}"
            raise InputError(f"{path}: {name}: expected {what} {limits}, got {_shortly(value)}")
        return kind(value)

    return field(default=default, metadata={READ: read})


def _beside_it(path: Path, name: str, value: Any) -> Path:
    """A path that a file names relative to its folder."""
    return path.parent / str(value)


def _passes(path: Path, name: str, value: Any) -> tuple[int, ...]:
    good = isinstance(value, list) and value and all(isinstance(v, int) and v > 0 for v in value)
    if not good or sorted(set(value)) != value:
        raise InputError(f"{path}: {name}: expected growing numbers of schedules, got {value!r}")
    return tuple(value)


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
    recipes_per_nest: int = bounded(40, 1)
    patience: int = bounded(12)
    budget_s_per_nest: float = bounded(20.0)
    budget_s_per_recipe: float = bounded(0.15)
    foreign_per_nest: int = bounded(24)
    converge_share: float = bounded(1.0, 0, 1)
    random_nests: int = bounded(0)
    first_random: int = bounded(0)
    seed: int = bounded(0)
    portfolio: Path | None = field(default=None, metadata={READ: _beside_it})
    beside: Path | None = field(default=None, metadata={READ: _beside_it})

    @staticmethod
    def read(path: Path, raw: Any) -> NestConfig:
        """From the content of a file, whatever it is. Raises InputError."""
        if not isinstance(raw, dict) or not isinstance(raw.get("entries"), list) or not raw.get("name"):
            raise InputError(
                f"{path}: expected a mapping with `name` and a list `entries`, got {_shortly(raw)}"
            )
        settings = _settings(NestConfig, path, raw, "entries")
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
class _OfWorkloads:
    """What configurations of TVM workloads have in common."""

    name: str
    workloads: tuple[TvmWorkload, ...]

    @classmethod
    def read(cls, path: Path, raw: Mapping[str, Any]) -> Self:
        """From the content of a file. Raises InputError."""
        workloads = read_workloads(path)[1]
        return cls(str(raw.get("name", path.stem)), workloads, **_settings(cls, path, raw, "workloads"))

    def only(self, names: Sequence[str]) -> Self:
        """The workloads whose name or kind is given. Raises InputError for one that there is not."""
        chosen = _chosen(self.workloads, names, lambda w: {w.kind, w.name}, "workload or kind")
        return replace(self, workloads=chosen)


@dataclass(frozen=True)
class WorkloadConfig(_OfWorkloads):
    """TVM workloads. passes: schedules per workload after each pass over all of them. random_share: of the
    schedules of a workload, sampled at random; the others are found by the search. batch: schedules per round
    of the search."""

    passes: tuple[int, ...] = field(default=(32, 128), metadata={READ: _passes})
    random_share: float = bounded(0.25, 0, 1)
    batch: int = bounded(16, 1, 1024)
    seed: int = bounded(0, 0, LAST_SEED)

    def up_to(self, schedules: int) -> WorkloadConfig:
        """So many schedules per workload in all."""
        return replace(self, passes=(*(p for p in self.passes if p < schedules), schedules))


@dataclass(frozen=True)
class PackConfig(_OfWorkloads):
    """TVM workloads for a pack. schedules: sampled per workload, the same number from each of its design
    spaces. together: built into one library, which saves most of what the CUDA compiler takes."""

    schedules: int = bounded(64, 1, 100_000)
    together: int = bounded(16, 1, 256)
    seed: int = bounded(0, 0, LAST_SEED)


@dataclass(frozen=True)
class KernelConfig:
    """Tunable GPU kernels, by the names of their sources and descriptions. configurations_per_kernel: drawn
    at random."""

    name: str
    kernels: tuple[str, ...]
    configurations_per_kernel: int = bounded(300, 1)
    seed: int = bounded(0, 0, LAST_SEED)

    @staticmethod
    def read(path: Path, raw: Mapping[str, Any]) -> KernelConfig:
        """From the content of a file. Raises InputError."""
        settings = _settings(KernelConfig, path, raw, "kernels")
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


def _settings(kind: type[Any], path: Path, raw: Mapping[str, Any], listed: str) -> dict[str, Any]:
    """The settings that a file has for a kind of configuration, checked. listed: what its list is called."""
    reads = {f.name: f.metadata[READ] for f in fields(kind) if READ in f.metadata}
    known = {"kind", "name", listed, *reads}
    if unknown := sorted(str(key) for key in set(raw) - known):
        raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return {name: read(path, name, raw[name]) for name, read in reads.items() if name in raw}


def _chosen(
    items: Sequence[T], names: Sequence[str], words: Callable[[T], set[str]], what: str
) -> tuple[T, ...]:
    """The items with one of the names among their words. Raises InputError for a name that none has."""
    known = {word for item in items for word in words(item)}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"no {what} {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return tuple(item for item in items if words(item) & set(names))


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
