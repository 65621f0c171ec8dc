"""Tables that hold anything but what they should are one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gnnperf.devices import load_device
from gnnperf.errors import InputError
from gnnperf.nn.runtime.operator_table import operator_table
from gnnperf.retrieval.tunable import read_runs

ROW = {"op_family": "linear", "op": "linear", "device": "l4", "B": 1, "M": 8, "N": 8, "K": 8, "H": 0}


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_operators_with_lists_for_names(value: object) -> None:
    with pytest.raises(InputError, match="here: column op: expected texts: Unsupported cast"):
        operator_table(pa.Table.from_pylist([{**ROW, "op": value}]), "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"device,runtime_ms\nl4,inf\n", "expected runtime_ms above 0 in every row of"),
        (b"device,runtime_ms\nl4,-1\n", "expected runtime_ms above 0 in every row of"),
        (b"device,runtime_ms,\xa5\nl4,1,1\n", "cannot read .* as CSV: .*utf-8"),
        (b"device\nl4\n", "expected a column runtime_ms, got device"),
    ],
)
def test_runs(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_runs(tmp_path / "runs.csv", load_device("l4"), {})
