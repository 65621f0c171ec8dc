"""Random nests: the same number is the same nest, and every nest is one that can be learned from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.backends.cpp.trials import NestBench
from gnnperf.corpus import random_nests
from gnnperf.corpus.random_nests import KINDS, generate
from gnnperf.frontends.dace import DaceKernel, capture_inputs, load_kernel
from gnnperf.measure import Compiler, Limits, Runner
from gnnperf.schedules.recipes import random_recipe

NUMBERS = range(3 * len(KINDS))


def small(number: int, folder: Path) -> DaceKernel:
    """The nest at a size that takes no time."""
    nest = generate(number)
    symbols = {name: min(size, 24) for name, size in nest.symbols.items()}
    file = random_nests.write(number, folder)
    return load_kernel(f"{file}:{nest.name}", symbols, f"{file}:inputs")


def test_a_number_is_a_nest() -> None:
    assert [generate(number) for number in NUMBERS] == [generate(number) for number in NUMBERS]
    assert len({generate(number).source for number in NUMBERS}) == len(NUMBERS)


def test_kinds_take_turns_and_name_the_family() -> None:
    families = Counter(generate(number).family for number in NUMBERS)
    assert families == {f"random_{kind}": 3 for kind in KINDS}


def test_many_ranks_types_and_sizes_occur() -> None:
    nests = [generate(number) for number in range(200)]
    text = "".join(nest.source for nest in nests)
    for feature in (
        "float32[",
        "float64[",
        "int32[",
        "int64[",
        "2 * i",
        "- 1 - i",
        "np.max",
        "np.sqrt",
        "if ",
    ):
        assert feature in text
    assert {len(nest.symbols) for nest in nests} >= {1, 2, 3, 4, 5}
    points = [np.prod(list(nest.symbols.values()), dtype=float) for nest in nests]
    assert min(points) < 1e5 < 1e6 < max(points)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_nest_loads_whole(number: int, tmp_path: Path) -> None:
    kernel = small(number, tmp_path)
    assert kernel.units
    assert not kernel.skipped
    assert all(unit.nest.has_loops for unit in kernel.units)


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_recipes_keep_its_results_and_they_are_not_constant(
    number: int, tmp_path: Path, compiler: Compiler, runner: Runner
) -> None:
    kernel = small(number, tmp_path)
    capture_inputs(kernel, compiler, runner)
    unit = kernel.units[-1]
    case = UnitCase.prepare(unit, "auto", compiler, runner)
    for name, result in case.case.reference.items():
        assert np.all(np.isfinite(result)), name
        assert result.size == 1 or np.ptp(result) > 0, name
    bench = NestBench(case.case, compiler, runner, Limits(budget_s=0.0))
    rng = Random(number)
    statuses = {
        t.measurement.status for t in bench.run([random_recipe(unit.nest, rng) for _ in range(3)], "")
    }
    assert "ok" in statuses <= {"ok", "not_applicable"}
