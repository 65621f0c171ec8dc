"""JSON and YAML of strangers: a value, or one reason. Files that are replaced in one step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from gnnperf.documents import DEPTH, from_json, from_yaml, replacing


def test_plain_values_are_read() -> None:
    assert from_json(' {"a": [1, 2.5, null, true, "größer"]} ') == {"a": [1, 2.5, None, True, "größer"]}
    assert from_json("[" * DEPTH + "]" * DEPTH)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "{", "2026-01-01", "NaN", "[Infinity]", "1" * 5000, "[" * 100_000,
        "[" * (DEPTH + 1) + "1" + "]" * (DEPTH + 1), '{"a":' * 500 + "1" + "}" * 500,
    ],
)  # fmt: skip
def test_anything_else_is_one_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra data|number|digits|nested deeper than"):
        from_json(text)


def test_plain_yaml_is_read() -> None:
    assert from_yaml("a: [1, 2.5, ~, yes, größer]") == {"a": [1, 2.5, None, True, "größer"]}
    assert from_yaml("[" * DEPTH + "]" * DEPTH)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested deeper than|maximum nesting"),  # the loader overflows the stack
        ("- " * 3_000, "nested deeper than"),
        ("a: &a [x, x]\nb: [*a, *a]", r"an alias, \*a"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("!!timestamp 9", "groupdict"),
        ("2026-13-45", "month must be in"),
        ("{[1]: 2}", "unhashable key"),
        ("a: 1\nb: 2\na: 3", "'a' is given twice"),
        ("[{a: 1, a: 1}]", "'a' is given twice"),
        ("\t", "cannot start any token"),
        ("9" * 5_000, "digits"),
    ],
)
def test_other_yaml_is_one_error(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_yaml(text)


def test_threads_replace_a_file_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "file"
    both = Barrier(2)

    def write(text: str) -> None:
        with replacing(path) as partial:
            partial.write_text(text)
            both.wait(20.0)
            assert partial.read_text() == text

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("one", "two")))
    assert path.read_text() in ("one", "two") and list(tmp_path.iterdir()) == [path]
