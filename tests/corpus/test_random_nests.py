"""Random nests: the same number is the same nest, and every nest is one that can be learned from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.backends.cpp.trials import NestBench
from gnnperf.corpus import random_nests
from gnnperf.corpus.random_nests import ALL_KINDS, COMPOSED, KINDS, basic, composed, generate
from gnnperf.frontends.dace import DaceKernel, capture_inputs, load_kernel
from gnnperf.measure import Compiler, Limits, Runner
from gnnperf.schedules.recipes import DEFAULTS, random_recipe

FIRST = range(2 * len(basic.KINDS))
SINGLE = [kind for kind in KINDS if kind not in composed.KINDS]
ALL = range(ALL_KINDS, ALL_KINDS + len(SINGLE))
SEVERAL = range(COMPOSED, COMPOSED + 2 * len(composed.KINDS))
NEW = [
    number
    for number in (*ALL, *SEVERAL[: len(composed.KINDS)])
    if generate(number).family.removeprefix("random_") not in basic.KINDS
]
"""The first of every kind that is not basic."""


def small(number: int, folder: Path) -> DaceKernel:
    """The nest at a size that takes no time."""
    nest = generate(number)
    symbols = {name: min(size, 24) for name, size in nest.symbols.items()}
    file = random_nests.write(number, folder)
    return load_kernel(f"{file}:{nest.name}", symbols, f"{file}:inputs")


def test_a_number_is_a_nest() -> None:
    numbers = [*FIRST, *ALL, *SEVERAL]
    assert [generate(number) for number in numbers] == [generate(number) for number in numbers]
    assert len({generate(number).source for number in numbers}) == len(numbers)


def digest(numbers: Iterable[int]) -> str:
    nests = [generate(number) for number in numbers]
    text = repr([(n.number, n.name, n.family, dict(n.symbols), n.source) for n in nests])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_measured_numbers_stay_the_nests_that_were_measured() -> None:
    """Corpora name random nests by number. A new kind starts a new series, and leaves these as they are."""
    assert digest(range(64)) == "3022520306844f39", "configs/corpus/first.yaml"
    assert digest(range(1000, 3000)) == "9befbbfbfda294ee", "configs/corpus/random.yaml"
    assert digest(range(10_000, 10_600)) == "67022389c0c2f42b", "configs/corpus/composed.yaml"


def test_kinds_take_turns_and_name_the_family() -> None:
    for numbers, kinds, times in ((FIRST, basic.KINDS, 2), (ALL, SINGLE, 1), (SEVERAL, composed.KINDS, 2)):
        families = Counter(generate(number).family for number in numbers)
        assert families == {f"random_{kind}": times for kind in kinds}


@pytest.mark.parametrize("first", [0, ALL_KINDS])
def test_many_ranks_types_and_sizes_occur(first: int) -> None:
    nests = [generate(number) for number in range(first, first + 200)]
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
    assert {len(nest.symbols) for nest in nests} >= {1, 2, 3, 4}
    points = [np.prod(list(nest.symbols.values()), dtype=float) for nest in nests]
    assert min(points) < 1.5e5 < 1e6 < max(points)


@pytest.mark.parametrize("number", FIRST)
def test_a_nest_loads_whole(number: int, tmp_path: Path) -> None:
    kernel = small(number, tmp_path)
    assert kernel.units
    assert not kernel.skipped
    assert all(unit.nest.has_loops for unit in kernel.units)


@pytest.mark.parametrize("number", range(len(basic.KINDS)))
def test_recipes_keep_its_results_and_they_are_not_constant(
    number: int, tmp_path: Path, compiler: Compiler, runner: Runner
) -> None:
    check(small(number, tmp_path), 3, compiler, runner)


@pytest.mark.parametrize("number", NEW, ids=lambda n: generate(n).name + generate(n).family[6:])
def test_every_kind_loads_whole_and_a_recipe_keeps_its_results(
    number: int, tmp_path: Path, compiler: Compiler, runner: Runner
) -> None:
    kernel = small(number, tmp_path)
    assert not kernel.skipped
    assert all(unit.nest.has_loops for unit in kernel.units)
    check(kernel, 1, compiler, runner)


def check(kernel: DaceKernel, recipes: int, compiler: Compiler, runner: Runner) -> None:
    """Its last nest, against DaCe's plain code: a default recipe, and random ones."""
    capture_inputs(kernel, compiler, runner)
    unit = kernel.units[-1]
    case = UnitCase.prepare(unit, "simplify", compiler, runner)
    for name, result in case.case.problem.reference.items():
        assert np.all(np.isfinite(result)), name
        assert result.size == 1 or np.ptp(result) > 0, name
    bench = NestBench(case.case, compiler, runner, Limits(budget_s=0.0))
    rng = Random(kernel.name)
    drawn = [random_recipe(unit.nest, rng) for _ in range(recipes)]
    statuses = {trial.measurement.status for trial in bench.run([DEFAULTS[0], *drawn], "")}
    assert "ok" in statuses <= {"ok", "not_applicable"}
