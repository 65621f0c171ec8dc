"""Tile factors for other extents: factorisations nearest to what was tuned, and tiles with a remainder."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

Factors = tuple[int, ...]
"""Outermost first."""

OUTERMOST = 0.15
"""Weight of the outermost factor, which takes what is left; the others weigh more the further inside."""


@functools.cache
def factorisations(extent: int, parts: int) -> tuple[Factors, ...]:
    """All ways to write an extent as a product of so many factors, in order."""
    if parts == 1:
        return ((extent,),)
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return tuple((d, *rest) for d in divisors for rest in factorisations(extent // d, parts - 1))


def distance(new: Sequence[int], old: Sequence[int]) -> float:
    """Weighted difference of the factors' logarithms, in doublings."""
    weights = [OUTERMOST, *(1.0 + 0.5 * i for i in range(len(old) - 1))]
    return sum(w * abs(math.log2(a / b)) for w, a, b in zip(weights, new, old, strict=True))


@functools.cache
def nearest(extent: int, old: Factors, innermost: int, count: int) -> tuple[Factors, ...]:
    """The factorisations of the extent nearest to `old`, best first. innermost: the largest innermost
    factor that is allowed; 0 allows any."""
    allowed = (f for f in factorisations(extent, len(old)) if innermost <= 0 or f[-1] <= innermost)
    return tuple(sorted(allowed, key=lambda f: (distance(f, old), f))[:count])


def with_remainder(extent: int, old: Factors) -> Factors | None:
    """The old inner factors, and as many tiles as cover the extent, the last of them partly; None where
    that is a factorisation, or where inner tiles are larger than the extent."""
    inner = math.prod(old[1:])
    if inner >= extent or extent % inner == 0:
        return None
    return (-(-extent // inner), *old[1:])
