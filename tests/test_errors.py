"""Messages are one line of bounded length, whatever they tell of."""

from __future__ import annotations

from gnnperf.errors import LONGEST_LINE, GnnperfError, InputError


def test_a_message_is_one_line_of_printed_characters() -> None:
    assert str(InputError("a\nb\0c\x1b[31m größer")) == "a b?c?[31m größer"
    assert str(InputError("expected " + "9" * 10_000 + "; give another")).endswith("9; give another")
    assert len(str(GnnperfError("9" * 10_000))) <= LONGEST_LINE
