"""Corpus configurations: what is read, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnperf.corpus.config import NestConfig, load_config
from gnnperf.errors import InputError

ENTRY = "{kernel: kernels.py:f, family: g, symbols: {N: 4, alpha: 1.5}, inputs: kernels.py:make}"


def load(path: Path) -> NestConfig:
    found = load_config(path)
    assert isinstance(found, NestConfig)
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text("")
    return tmp_path / "corpus.yaml"


def test_everything_is_read(config: Path) -> None:
    numbers = "recipes_per_nest: 5\npatience: 4\nforeign_per_nest: 2\nbudget_s_per_nest: 3\nseed: 7\n"
    config.write_text(f"name: mine\n{numbers}entries: [{ENTRY}]")
    loaded = load(config)
    assert (loaded.name, loaded.recipes_per_nest, loaded.foreign_per_nest) == ("mine", 5, 2)
    assert (loaded.patience, loaded.budget_s_per_nest, loaded.seed) == (4, 3.0, 7)
    (entry,) = loaded.entries
    assert (entry.kernel, entry.family, entry.inputs) == ("kernels.py:f", "g", "kernels.py:make")
    assert entry.symbols == {"N": 4, "alpha": 1.5}
    assert str(entry) == "kernels.py:f N=4 alpha=1.5"
    assert loaded.path(entry.kernel) == f"{config.parent}/kernels.py:f"


def test_what_is_left_out_has_defaults(config: Path) -> None:
    config.write_text("name: mine\nentries:\n  - {kernel: kernels.py:f, family: g}\n")
    loaded = load(config)
    assert loaded.recipes_per_nest > 0
    assert loaded.entries[0].symbols == {}
    assert loaded.entries[0].inputs is None


def test_keys_tell_entries_apart(config: Path) -> None:
    lines = [
        "{kernel: kernels.py:f, family: g, symbols: {N: 4}}",
        "{kernel: kernels.py:f, family: g, symbols: {N: 5}}",
        "{kernel: kernels.py:h, family: g, symbols: {N: 4}}",
        "{kernel: kernels.py:f, family: g, symbols: {N: 4}, inputs: kernels.py:make}",
    ]
    config.write_text(f"name: mine\nentries: [{', '.join(lines)}]")
    assert len({entry.key for entry in load(config).entries}) == 4


def test_random_nests_follow_the_entries(config: Path) -> None:
    for count in (0, 3, 5):
        config.write_text(f"name: mine\nrandom_nests: {count}\nentries: [{ENTRY}]")
        first, *others = load(config).entries
        assert (first.name, first.random) == ("f", None)
        assert [entry.random for entry in others] == list(range(count))
        assert [entry.name for entry in others] == [f"random_{number}" for number in range(count)]
        assert all(entry.family.startswith("random_") and entry.symbols for entry in others)


MISTAKES = [
    ("name: [", "cannot read the configuration"),
    ("\udcff", "cannot read the configuration"),
    ("", "expected a mapping with `name` and a list `entries`, got None"),
    ("- a\n- b", "expected a mapping with `name` and a list `entries`, got ['a', 'b']"),
    ("name: mine", "expected a mapping with `name` and a list `entries`"),
    ("name: mine\nentries: 3", "expected a mapping with `name` and a list `entries`"),
    ("entries: []", "expected a mapping with `name` and a list `entries`"),
]
MISTAKEN_SETTINGS = [
    (
        "recipes: 3",
        "unknown setting 'recipes'; known: beside, budget_s_per_nest, budget_s_per_recipe, converge_share",
    ),
    ("recipes_per_nest: many", "recipes_per_nest: expected an integer of at least 1, got 'many'"),
    ("recipes_per_nest: 0", "recipes_per_nest: expected an integer of at least 1, got 0"),
    ("recipes_per_nest: 1.5", "recipes_per_nest: expected an integer of at least 1, got 1.5"),
    ("budget_s_per_nest: -1", "budget_s_per_nest: expected a number of at least 0, got -1"),
    ("budget_s_per_nest: .nan", "budget_s_per_nest: expected a number of at least 0, got nan"),
    ("patience: -1", "patience: expected an integer of at least 0, got -1"),
    ("random_nests: 2.5", "random_nests: expected an integer of at least 0, got 2.5"),
    ("seed: true", "seed: expected an integer of at least 0, got True"),
]
MISTAKEN_ENTRIES = [
    ("3", "entry 2: expected kernel, family and optionally symbols and inputs, got 3"),
    ("{kernel: kernels.py:f}", "entry 2: expected kernel, family and optionally"),
    ("{kernel: kernels.py:f, family: g, size: 3}", "entry 2: expected kernel, family and optionally"),
    (
        "{kernel: kernels.py:f, family: g, symbols: 3}",
        "entry 2: expected symbols as a mapping of names to numbers, got 3",
    ),
    ("{kernel: kernels.py:f, family: g, symbols: {N: x}}", "to numbers, got {'N': 'x'}"),
    (
        "{kernel: gone.py:f, family: g}",
        "entry 2: expected kernel to be file.py:name of a file that exists, got 'gone.py:f'",
    ),
    ("{kernel: kernels.py, family: g}", "entry 2: expected kernel to be file.py:name"),
    ("{kernel: 3, family: g}", "entry 2: expected kernel to be file.py:name of a file that exists, got 3"),
    ("{kernel: kernels.py:f, family: g, inputs: gone.py:h}", "entry 2: expected inputs to be file.py:name"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *MISTAKES,
        *((f"name: mine\nentries: []\n{text}", message) for text, message in MISTAKEN_SETTINGS),
        *((f"name: mine\nentries: [{ENTRY}, {text}]", message) for text, message in MISTAKEN_ENTRIES),
    ],
)
def test_mistakes_are_one_clear_line(text: str, message: str, config: Path) -> None:
    config.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as error:
        load(config)
    assert message in str(error.value)
    assert str(config) in str(error.value)
    assert "\n" not in str(error.value)
