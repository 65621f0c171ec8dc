"""Nests made up for the tests of the map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from nests.examples import EXAMPLES
from retrieval.records import make_record, recipe

from gnnperf.graph import ProgramGraph
from gnnperf.nests import nest_graph
from gnnperf.report.explore import MappedNest
from gnnperf.report.explore.picture import picture
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Nest, Record

GRAPHS: dict[str, ProgramGraph] = {name: nest_graph(make()) for name, make in EXAMPLES.items()}
PICTURES = {name: picture(graph) for name, graph in GRAPHS.items()}
WIDTH = 6


def record(speedup: float | None, schedule: Recipe | None = None) -> Record:
    """With the id it would have in a store."""
    made = make_record("nest", schedule or recipe(1), speedup)
    return replace(made, record_id=f"{speedup} {made.schedule}")


def unit_rows(count: int, width: int = WIDTH, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def mapped(
    kernels: Sequence[str], families: Sequence[str] | None = None, best: Iterable[Record | None] | None = None
) -> list[MappedNest]:
    """A nest for each kernel, drawn as the example of that name, or else as one of the examples."""
    families = families or [f"family of {kernel}" for kernel in kernels]
    best = list(best) if best is not None else [record(1.5 + number) for number in range(len(kernels))]
    examples = list(PICTURES)
    rows = zip(kernels, families, best, unit_rows(len(kernels)), strict=True)
    return [
        MappedNest(
            Nest(f"{number:032x}", kernel, family, "dace"),
            PICTURES.get(kernel, PICTURES[examples[number % len(examples)]]),
            embedding,
            fastest,
            0 if fastest is None else 3,
        )
        for number, (kernel, family, fastest, embedding) in enumerate(rows)
    ]


def lattice(count: int) -> np.ndarray:
    """Places on the plane, none on top of another."""
    side = int(np.ceil(np.sqrt(count)))
    return np.array([divmod(number, side) for number in range(count)], dtype=float)
