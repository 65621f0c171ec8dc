"""Which nests factorise a matrix: A = L L^T (Cholesky), or A = L U without pivots.

There are dozens of ways to write either as loops: by rows or columns, from what is left or to what remains,
in place or not, of one triangle or the other, with sums apart. All compute the same numbers, so nests are
recognised by what they compute at small sizes; what the nest reads and writes there is what a routine may.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isclose
from typing import Literal, TypeAlias

import numpy as np

from gnnperf.errors import NotApplicable
from gnnperf.nests.analysis import access_counts, depth
from gnnperf.nests.ir import Buffer, Const, Load, Loop, Node, Op, Statement, subexpressions, walk
from gnnperf.schedules.recipes.blas import MAX_INT
from gnnperf.schedules.recipes.small_run import Memory, SmallRun

Kind: TypeAlias = Literal["lower", "upper", "unit lower", "unit upper"]
"""Cholesky: the triangle that holds L, or its transpose; LU: the one whose diagonal is one."""
Matrix: TypeAlias = dict[tuple[int, int], float]

SMALLEST = 32
"""Rows of matrices that a routine is worth while for."""
SMALL = (4, 6)
"""Sizes that nests are run at."""


@dataclass(frozen=True)
class Factorisation:
    """target = factors of source, which may be the same; only the triangle `kind` of both where it is a
    Cholesky factorisation. steps: elements between rows."""

    kind: Kind
    rows: int
    source: Load
    source_step: int
    target: Load
    target_step: int

    @property
    def is_cholesky(self) -> bool:
        return self.kind in ("lower", "upper")


def match_factorisation(
    node: Node, buffers: Mapping[str, Buffer], around: Mapping[str, int] | None = None
) -> Factorisation | None:
    """The factorisation that a nest is; None where it is anything else. around: how often what the nest is in
    accesses each buffer, of which sums that are kept apart must be the nest's own."""
    if not isinstance(node, Loop) or node.independent or node.condition is not None:
        return None
    statements = [n for n in walk((node,)) if isinstance(n, Statement)]
    operations = {e.name for s in statements for e in subexpressions(s.value) if isinstance(e, Op)}
    if not {"div", "sqrt", "pow"} & operations or depth(node) < 3:
        return None
    counts = access_counts((node,))
    matrices = [name for name in counts if _is_matrix(buffers[name])]
    others = [name for name in counts if name not in matrices]
    if any((buffers[n].scope == "global" and not buffers[n].transient) or
           (around is not None and around.get(n, 0) != counts[n]) for n in others):  # fmt: skip
        return None
    written = {s.target.buffer for s in statements} - set(others)
    if len(written) != 1 or len(matrices) > 2 or len({buffers[n].shape for n in matrices}) != 1:
        return None
    if len({buffers[n].dtype for n in matrices}) != 1:
        return None
    (target,) = written
    source = next((n for n in matrices if n != target), target)
    kind = _kind(node, source, target, int(str(buffers[target].shape[0])))
    if kind is None:
        return None
    first, (rows, _) = Load(source, (Const(0), Const(0))), buffers[source].shape
    steps = {}
    for name in (source, target):
        down, across = buffers[name].strides
        if across != 1 or not isinstance(down, int) or down > MAX_INT:
            return None
        steps[name] = down
    return Factorisation(
        kind, int(str(rows)), first, steps[source], Load(target, first.indices), steps[target]
    )


def _is_matrix(buffer: Buffer) -> bool:
    square = len(buffer.shape) == 2 and buffer.shape[0] == buffer.shape[1]
    large = square and isinstance(buffer.shape[0], int) and buffer.shape[0] >= SMALLEST
    return large and buffer.scope == "global" and buffer.dtype in ("float64", "float32")


@lru_cache(1 << 12)
def _kind(node: Loop, source: str, target: str, size: int) -> Kind | None:
    """What the nest is at every small size."""
    found = {_small_kind(node, source, target, size, small) for small in SMALL}
    return found.pop() if len(found) == 1 else None


def _small_kind(node: Loop, source: str, target: str, size: int, small: int) -> Kind | None:
    numbers = random.Random(small)
    places = [(i, j) for i in range(small) for j in range(small)]
    given: Matrix = {
        place: numbers.uniform(0.5, 1.5) + 2 * small * (place[0] == place[1]) for place in places
    }
    symmetric = {(i, j): given[min(i, j), max(i, j)] for i, j in places}
    lower = _cholesky(symmetric, small)
    old = {place: numbers.uniform(-9, 9) for place in places}
    kinds: tuple[tuple[Kind, Matrix], ...] = (
        ("lower", lower),
        ("upper", _turned(lower)),
        ("unit lower", _lu(given, small)),
        ("unit upper", _turned(_lu(_turned(given), small))),
    )
    for kind, expected in kinds:
        # What a routine does not read holds anything, and what it does not write keeps it.
        read = {p: (symmetric if kind in ("lower", "upper") else given)[p] for p in expected}
        memory: Memory = {(target, p): value for p, value in old.items()}
        memory |= {(source, p): value for p, value in (old | read).items()}
        try:
            SmallRun(size, small, memory).run(node)
        except (NotApplicable, ValueError, ArithmeticError):
            continue
        wanted = old | expected
        if all(_alike(memory[target, p], wanted[p]) for p in places):
            return kind
    return None


def _alike(found: object, wanted: float) -> bool:
    return isinstance(found, float) and isclose(found, wanted, rel_tol=1e-9)


def _turned(a: Matrix) -> Matrix:
    return {(j, i): value for (i, j), value in a.items()}


def _cholesky(a: Matrix, n: int) -> Matrix:
    """The lower triangle of L."""
    found = np.linalg.cholesky([[a[i, j] for j in range(n)] for i in range(n)])
    return {(i, j): float(found[i, j]) for i in range(n) for j in range(i + 1)}


def _lu(a: Matrix, n: int) -> Matrix:
    """L below the diagonal, on which it is one, and U."""
    found: Matrix = {}
    for i, j in product(range(n), repeat=2):
        rest = a[i, j] - sum(found[i, k] * found[k, j] for k in range(min(i, j)))
        found[i, j] = rest / found[j, j] if i > j else rest
    return found
