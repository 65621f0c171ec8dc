"""Small real nests, and recipes that make different programs of each, for corpora that are made up."""

from __future__ import annotations

from collections.abc import Mapping

from nests.examples import accumulate, array, assign, load, loops, nest, op

from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe

RECIPES: Mapping[str, Recipe] = {
    "tile": Recipe(tile_q=16, tile_p=16),
    "stream": Recipe(order="row", parallel="none"),
    "wrong": Recipe(order="row", vector="none"),
    "unfit": Recipe(library="blas"),
}
"""By the schedule ids of made-up corpora; "unfit" fits none of the nests."""


def small_nest(rows: int, columns: int, reduction: bool = False, operation: str = "add") -> LoopNest:
    """An operation on each element of a matrix; as a reduction, its sum over each row."""
    element = load("A", "i", "j")
    matrices = [array(name, rows, columns, dtype="float32") for name in "AB"]
    shape = {"i": rows, "j": columns}
    if reduction:
        value = op(operation, element) if operation == "exp" else op(operation, element, 3.0)
        sums = array("s", rows, dtype="float32")
        body = accumulate(load("s", "i"), value, init=0.0)
        return nest(f"reduce_{operation}", [matrices[0], sums], loops(shape, body))
    target = load("B", "i", "j")
    value = op(operation, element) if operation == "exp" else op(operation, element, target)
    return nest(f"map_{operation}", matrices, loops(shape, assign(target, value)))
