"""JSON of strangers: a value, or one reason."""

from __future__ import annotations

import pytest

from gnnperf.documents import DEPTH, from_json


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
