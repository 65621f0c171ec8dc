"""Recipes as data: round trips, refusals, words; and the space that they are drawn from."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedules.recipes.kernels import every_kernel

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import InputError
from gnnperf.nests import normalise
from gnnperf.schedules.recipes import DEFAULTS, Recipe, mutate, random_recipe
from gnnperf.schedules.recipes.recipe import ORDERS, ROLES
from gnnperf.schedules.recipes.space import CHOICES, relevant_fields

KERNELS = dict(every_kernel())


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    return Recipe(**{name: draw(st.sampled_from(values)) for name, values in CHOICES.items()})


@given(recipes())
def test_round_trip(recipe: Recipe) -> None:
    document = json.loads(json.dumps(recipe.to_dict()))
    assert Recipe.from_dict(document) == recipe
    assert Recipe.from_dict(document).id == recipe.id


@given(recipes(), recipes())
def test_ids_tell_recipes_apart(one: Recipe, two: Recipe) -> None:
    assert (one.id == two.id) == (one == two)


@given(recipes())
def test_words(recipe: Recipe) -> None:
    words = recipe.describe()
    assert words.startswith(f"{recipe.order} order")
    assert ("prefetch" in words) == bool(recipe.prefetch)
    assert ("one thread" in words) == (recipe.parallel == "none")
    assert ("fuse" in words) == bool(recipe.fuse)


def test_defaults_differ() -> None:
    assert len({recipe.id for recipe in DEFAULTS}) == len(DEFAULTS)


def test_orders_hold_every_token_once() -> None:
    tokens = {f"{role}{level}" for role in ROLES for level in (0, 2)} | {"q1", "p1", "r1"}
    for order in ORDERS.values():
        assert len(order) == len(set(order))
        assert set(order) <= tokens
        assert {f"{role}0" for role in ROLES} <= set(order), "the points of every role"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "trace"}, "expected a schedule of kind 'recipe'"),
        ({"version": 99}, "version 99"),
        ({"tile_z": 4}, "unknown recipe fields tile_z"),
        ({"order": "spiral"}, "unknown loop order 'spiral'"),
        ({"tile_q": "many"}, "tile_q"),
        ({"tile_q": -4}, "tile_q"),
        ({"tile_q": 10**30}, "tile_q: expected an integer from 0 to 1048576"),
        ({"register_q": 1000}, "register_q: expected an integer from 0 to 64"),
        ({"unroll": 2**31}, "unroll: expected an integer"),
        ({"order": ["row"]}, "unknown loop order"),
        ({"pack": ["q"]}, "pack: expected one of"),
        ({"collapse": 1.5}, "collapse: expected an integer"),
        ({"accumulate": 3}, "accumulate"),
        ({"vector": "q"}, "vector"),
    ],
)
def test_bad_documents_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Recipe.from_dict(Recipe().to_dict() | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("vectors", [AVX512, VectorUnit(32, 16)])
@pytest.mark.parametrize("name", KERNELS)
def test_random_recipes_use_the_fields_that_matter(name: str, vectors: VectorUnit) -> None:
    nest = normalise(KERNELS[name].nest)
    relevant, rng = set(relevant_fields(nest)), Random(3)
    for _ in range(20):
        recipe = random_recipe(nest, rng, vectors)
        changed = {f.name for f in fields(recipe) if getattr(recipe, f.name) != f.default}
        assert changed <= relevant | {"register_r", "register_q"}
        across = recipe.register_r if recipe.vector == "r" else recipe.register_p
        assert recipe.register_q * max(1, across) <= vectors.registers


@pytest.mark.parametrize("name", ["dense-gemm", "units-softmax", "sparse-spmm", "elementwise-stencil1d"])
def test_mutants_are_neighbours(name: str) -> None:
    nest, rng = normalise(KERNELS[name].nest), Random(5)
    recipe = random_recipe(nest, rng)
    for _ in range(50):
        mutant = mutate(recipe, nest, rng)
        assert mutant != recipe
        recipe = mutant


def test_searches_can_be_repeated() -> None:
    nest = normalise(KERNELS["dense-gemm"].nest)
    one, two = ([random_recipe(nest, rng) for _ in range(5)] for rng in (Random(7), Random(7)))
    assert one == two
    assert replace(one[0], chunk=one[0].chunk + 1).id != one[0].id
