"""Random kernels, as DaCe source: they cover the space between the families that people name.

A number is a seed: it always gives the same kernel. Kinds take turns, and each kind is a family, so that
whole kinds can be held out. Inputs are in [0.1, 1.1) (integers: small), operations keep values near that,
and every output depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gnnperf.corpus.random_nests import algebra, arrays, basic, composed, fused, grids, networks, sparse
from gnnperf.corpus.random_nests.kernel import Kind, RandomKernel

__all__ = ["ALL_KINDS", "COMPOSED", "KINDS", "RandomKernel", "RandomNest", "generate", "write"]

KINDS: Mapping[str, Kind] = {
    **basic.KINDS, **fused.KINDS, **algebra.KINDS, **sparse.KINDS, **grids.KINDS, **networks.KINDS,
    **arrays.KINDS, **composed.KINDS,
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """Numbers whose kernels are drawn alike: kinds take turns. points: see `RandomKernel`."""

    kinds: Sequence[str]
    points: Sequence[tuple[float, float]]


ALL_KINDS = 1000
"""The first number of the series of all kinds."""
COMPOSED = 10_000
"""The first number of the series of programs of several statements."""
_CACHES_AND_MEMORY = ((2e4, 3e5), (1e6, 4e6))
_SERIES = {
    0: Series(tuple(basic.KINDS), _CACHES_AND_MEMORY),
    ALL_KINDS: Series(tuple(name for name in KINDS if name not in composed.KINDS), ((1e5, 4e6),)),
    COMPOSED: Series(tuple(composed.KINDS), _CACHES_AND_MEMORY),
}


@dataclass(frozen=True)
class RandomNest:
    """A kernel `name`, and a function `inputs` for its index arrays, in one source text."""

    number: int
    name: str
    family: str
    symbols: Mapping[str, int]
    source: str


def generate(number: int) -> RandomNest:
    """The random nest with this number."""
    series = _SERIES[max(first for first in _SERIES if first <= number)]
    kind = series.kinds[number % len(series.kinds)]
    dtypes = ("int32", "int64") if kind == "integer" else ("float32", "float64")
    kernel = RandomKernel(Random(f"random nest {number}"), dtypes, series.points)
    KINDS[kind](kernel)
    name = f"random_{number}"
    return RandomNest(number, name, f"random_{kind}", kernel.sizes, kernel.source(name))


def write(number: int, folder: Path) -> Path:
    """Write the source to a file in `folder`: DaCe reads programs from files."""
    nest = generate(number)
    path = folder / f"{nest.name}.py"
    path.write_text(nest.source)
    return path
