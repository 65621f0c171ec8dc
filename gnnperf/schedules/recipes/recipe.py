"""Recipes: schedules of loop nests, written in the roles that loops play.

A recipe never names a loop of one nest, so it applies to a nest of another depth and size. The roles
(see `roles.py`) are

    P  outer spatial loops        R  outer reduction loops
    q  the spatial loop with reuse        r  the innermost reduction loop
    p  the contiguous spatial loop (vectors run along it)

and each role may be split at two levels: a cache tile (`tile`) and a register tile (`register`).
`order` lists tile loops (`q2`), register-tile loops (`q1`) and points (`q0`), outermost first;
tokens whose loop does not exist in a nest are skipped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from gnnperf.documents import from_json
from gnnperf.errors import InputError, first_line, quoted

ROLES = ("P", "q", "p", "R", "r")
VERSION = 1

ORDERS: Mapping[str, tuple[str, ...]] = {
    # register blocking inside cache tiles, reductions innermost but for the register tile
    "blocked": ("P2", "q2", "p2", "R2", "r2", "P0", "q1", "p1", "R0", "r1", "r0", "q0", "p0"),
    # the panel of the contiguous loop outermost (packed operands stay in cache)
    "panel": ("p2", "R2", "r2", "P2", "q2", "P0", "q1", "p1", "R0", "r1", "r0", "q0", "p0"),
    # register tile of the contiguous loop outermost of the points: one packed column panel at a time
    "column": ("P2", "p2", "q2", "R2", "r2", "P0", "p1", "q1", "R0", "r1", "r0", "q0", "p0"),
    # row by row: update a whole row for every reduction step
    "row": ("P2", "q2", "p2", "P0", "q1", "q0", "R2", "r2", "R0", "r1", "r0", "p1", "p0"),
    # register tiles of a row, each through all its reductions (rows of a sparse matrix)
    "rowtile": ("P2", "q2", "p2", "P0", "q1", "q0", "p1", "R2", "r2", "R0", "r1", "r0", "p0"),
    # dot products: reductions innermost, vectors along them
    "dot": ("P2", "q2", "p2", "P0", "q1", "p1", "p0", "R2", "r2", "R0", "r1", "q0", "r0"),
    # reductions outermost: stream through the inputs once
    "stream": ("R2", "r2", "R0", "r1", "r0", "P2", "q2", "p2", "P0", "q1", "q0", "p1", "p0"),
    # tiles of the contiguous loop outermost, then the stream through the reductions
    "strip": ("p2", "P2", "q2", "R2", "r2", "R0", "r1", "r0", "P0", "q1", "q0", "p1", "p0"),
    # two-dimensional tiles walked against the store order (transpositions)
    "tile2d": ("P2", "p2", "q2", "P0", "R2", "r2", "R0", "r1", "r0", "q1", "p1", "q0", "p0"),
}

LIMITS: Mapping[str, int] = {
    **dict.fromkeys([f"tile_{role}" for role in ROLES], 2**20),
    **dict.fromkeys([f"register_{role}" for role in "qpr"], 64),
    "chunk": 2**20,
    "collapse": 16,
    "unroll": 64,
    "prefetch": 2**16,
    "fuse": 2**20,
    "time_tile": 2**10,
}
"""The largest sizes of recipes that are read: far beyond what is ever fast, and before code that is written
out becomes too much for a compiler."""


@dataclass(frozen=True)
class Recipe:
    """One point of the schedule space. Sizes are iterations; 0 means "not split".

    order: key of ORDERS. tile: cache-tile size per role. register: register-tile size per role (p and
    the vectorised r: in vectors of the machine). vector: the role that runs across vector lanes, or
    "none" (left to the compiler). parallel: which loops become threads. accumulate: keep partial
    results in registers or on the stack. pack: copy tiles of operands that are reused ("q": those
    invariant in q, "p": those invariant in p). unroll: factor of the innermost reduction loop.
    combine: run pointwise nests of a unit as one (see `combine.py`). prefetch: distance for indirect loads.
    nontemporal: results that the nest does not read go past the caches. fuse: 0 keeps the nests of a unit
    apart, n shares their outermost loop in tiles of n iterations, inside sequential loops too; where n is as
    many as there are heads or batches of products, the next loop in each of them; along a loop that is
    contiguous the tiles are strips of register_p vectors (see `column_strips.py`), those of stencils of
    stencils overlap (see `overlap.py`). time_tile: steps of loops over time that a tile of rows goes
    through before the next does (see `time_tiles.py`). library: bands that are routines of that library
    become calls of it; the other fields say what happens to the rest.
    """

    kind: ClassVar[str] = "recipe"

    order: str = "blocked"
    tile_P: int = 0
    tile_q: int = 0
    tile_p: int = 0
    tile_R: int = 0
    tile_r: int = 0
    register_q: int = 0
    register_p: int = 0
    register_r: int = 0
    vector: Literal["auto", "p", "r", "none"] = "auto"
    parallel: Literal["none", "spatial", "reduction"] = "spatial"
    omp_schedule: Literal["static", "dynamic", "guided", "balanced"] = "static"
    chunk: int = 0
    collapse: int = 1
    accumulate: bool = True
    pack: Literal["", "q", "p", "qp"] = ""
    unroll: int = 0
    prefetch: int = 0
    fuse: int = 0
    time_tile: int = 0
    combine: Literal["", "merge", "inline"] = ""
    library: Literal["", "blas"] = ""
    nontemporal: bool = False

    def tile(self, role: str) -> int:
        return int(getattr(self, f"tile_{role}"))

    def register(self, role: str) -> int:
        return int(getattr(self, f"register_{role}")) if role in "qpr" else 0

    @property
    def tokens(self) -> tuple[str, ...]:
        return ORDERS[self.order]

    @property
    def id(self) -> str:
        """Short stable hash: equal recipes have equal ids."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def key(self) -> str:
        """Equal recipes have equal keys."""
        return self.id

    def to_json(self) -> str:
        """One line, as records keep it; `from_json` restores an equal recipe."""
        return json.dumps(self.to_dict())

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Raises InputError where the text is no recipe of this version."""
        return _parsed(text)

    def to_dict(self) -> dict[str, Any]:
        """JSON form: only what differs from the defaults, plus kind and version."""
        default = Recipe()
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": "recipe", "version": VERSION} | {
            k: v for k, v in changed.items() if v != getattr(default, k) or k == "order"
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Recipe:
        """Inverse of `to_dict`; InputError on another kind, version, or an unknown field."""
        if data.get("kind") != "recipe" or data.get("version") != VERSION:
            raise InputError(
                f"expected a schedule of kind 'recipe' version {VERSION}, got kind "
                f"{quoted(data.get('kind'))} version {quoted(data.get('version'))}; "
                "export it again with this version of gnnperf"
            )
        values = {k: v for k, v in data.items() if k not in ("kind", "version")}
        known = {f.name for f in fields(Recipe)}
        if unknown := sorted(set(values) - known):
            named = quoted(", ".join(unknown)).strip("'")
            raise InputError(f"unknown recipe fields {named}; expected some of {', '.join(sorted(known))}")
        order = values.get("order", "blocked")
        if not isinstance(order, str) or order not in ORDERS:
            raise InputError(f"unknown loop order {quoted(order)}; expected one of {', '.join(ORDERS)}")
        for name, value in values.items():
            _check(name, value, field_types()[name])
        return Recipe(**values)

    def describe(self) -> str:
        """The schedule in words, for reports."""
        words = [f"{self.order} order"]
        if self.library:
            words.append("calls of BLAS where it has a routine")
        if self.combine:
            words.append(
                {"merge": "merge pointwise nests", "inline": "recompute instead of storing"}[self.combine]
            )
        if self.fuse:
            words.append(f"fuse in tiles of {self.fuse}" if self.fuse > 1 else "fuse")
        if self.time_tile:
            words.append(f"time in tiles of {self.time_tile}")
        tiles = [f"{role}:{self.tile(role)}" for role in ROLES if self.tile(role)]
        if tiles:
            words.append("tile " + " ".join(tiles))
        registers = [f"{role}:{self.register(role)}" for role in "qpr" if self.register(role) > 1]
        if registers:
            words.append("register tile " + " ".join(registers))
        vectors = {"auto": "vectorize the contiguous loop", "none": "compiler vectors"}
        words.append(vectors.get(self.vector, f"vectorize {self.vector}"))
        if self.parallel == "none":
            words.append("one thread")
        else:
            chunk = f",{self.chunk}" if self.chunk else ""
            collapse = f" collapse {self.collapse}" if self.collapse > 1 else ""
            words.append(f"parallel {self.parallel} {self.omp_schedule}{chunk}{collapse}")
        if self.accumulate:
            words.append("accumulate locally")
        if self.pack:
            words.append("pack " + " and ".join(f"{c}-invariant" for c in self.pack))
        if self.unroll > 1:
            words.append(f"unroll {self.unroll}")
        if self.prefetch:
            words.append(f"prefetch {self.prefetch} ahead")
        if self.nontemporal:
            words.append("non-temporal stores")
        return ", ".join(words)


@lru_cache(1 << 14)
def _parsed(text: str) -> Recipe:
    """Stores have the same recipes for many nests."""
    try:
        data = from_json(text)
    except ValueError as error:
        raise InputError(f"expected a recipe as JSON, got {quoted(text)} ({first_line(error)})") from None
    if not isinstance(data, dict):
        raise InputError(f"expected a recipe as a JSON object, got {quoted(text)}")
    return Recipe.from_dict(data)


@cache
def field_types() -> Mapping[str, Any]:
    """Of a recipe, by name."""
    return get_type_hints(Recipe)


def _check(name: str, value: Any, hint: Any) -> None:
    if hint is bool:
        valid, expected = isinstance(value, bool), "true or false"
    elif hint is int:
        most = LIMITS[name]
        valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
        expected = f"an integer from 0 to {most}"
    elif choices := get_args(hint):
        valid, expected = value in choices, "one of " + ", ".join(map(repr, choices))
    else:
        valid, expected = isinstance(value, str), "text"
    if not valid:
        raise InputError(f"recipe field {name}: expected {expected}, got {quoted(value)}")
