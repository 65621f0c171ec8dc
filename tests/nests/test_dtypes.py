"""Types of expressions of integers, by the usual conversions of C++."""

from __future__ import annotations

import pytest
from nests.examples import array, load, op

from gnnperf.nests.dtypes import integer_dtype
from gnnperf.nests.ir import Expr

BUFFERS = {d: array(d, 10, dtype=d) for d in ("bool", "uint8", "int32", "uint32", "int64", "float32")}
BYTE, WORD, UNSIGNED = load("uint8", "i"), load("int32", "i"), load("uint32", "i")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (op("add", BYTE, BYTE), "int32"),
        (op("add", BYTE, load("bool", "i")), "int32"),
        (op("add", WORD, UNSIGNED), "uint32"),
        (op("sub", UNSIGNED, load("int64", "i")), "int64"),
        (op("add", WORD, "i"), "int64"),
        (op("shr", BYTE, "i"), "int32"),
        (op("add", WORD, 2**40), "int64"),
        (op("bitand", WORD, 2**63), "uint64"),
        (op("cast:uint8", load("int64", "i")), "int32"),
        (op("lt", "i", 2**40), "int32"),
        (op("select", op("gt", "i", 0), BYTE, 1), "int32"),
        (op("add", WORD, 0.5), None),
        (op("add", WORD, load("float32", "i")), None),
    ],
)
def test_integer_dtype(value: Expr, dtype: str | None) -> None:
    assert integer_dtype(value, BUFFERS) == dtype
