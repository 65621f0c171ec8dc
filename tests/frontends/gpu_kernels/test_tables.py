"""Reading measured configurations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import gpu_world

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels.tables import data_path, load_tables, spaces_of


def test_tables_by_space_and_gpu(tmp_path: Path) -> None:
    rows = gpu_world.rows(("pnpoly",), ("A100", "A4000"), 20)
    unknown = {**rows[0], "kernel": "fft", "space": "fft"}
    failed = [{**row, "space": "failed", "valid": False} for row in rows[:3]]
    tables = load_tables(gpu_world.write(tmp_path / "t.parquet", [*rows, unknown, *failed]))
    assert [(t.space, t.gpu, len(t)) for t in tables] == [
        ("pnpoly_made_up", g, 20) for g in ("A100", "A4000")
    ]
    first = tables[0]
    assert not first.ok[0]
    assert first.ok[1:].all()
    assert first.efficiency[0] == 0
    assert first.efficiency.max() == 1
    assert first.best_ms == np.nanmin([row["time_ms"] for row in rows[1:20]])
    assert first.device.name == "NVIDIA A100-PCIE-40GB"
    assert (
        dict(zip(first.description.parameters, first.keys[3], strict=True)).items()
        <= json.loads(rows[3]["params"]).items()
    )
    assert [space for space, _ in spaces_of(tables, 2)] == ["pnpoly_made_up"]
    assert list(spaces_of(tables, 3)) == []


def test_a_parameter_that_varies_has_to_be_described(tmp_path: Path) -> None:
    rows = gpu_world.rows(("pnpoly",), ("A100",), 4)
    rows[1]["params"] = json.dumps({**json.loads(rows[1]["params"]), "clock": 900})
    with pytest.raises(InputError, match="has no parameter 'clock'; add it, or leave it out with --ignore"):
        load_tables(gpu_world.write(tmp_path / "t.parquet", rows))


def test_parameters_nested_without_end_are_refused(tmp_path: Path) -> None:
    rows = gpu_world.rows(("pnpoly",), ("A100",), 4)
    rows[1]["params"] = "[" * 100_000
    with pytest.raises(InputError, match="nested deeper than 32 levels"):
        load_tables(gpu_world.write(tmp_path / "t.parquet", rows))


def test_a_short_file_of_very_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnnperf.documents.MOST_ROWS", 1000)
    rows = gpu_world.rows(("pnpoly",), ("A100",), 1)
    load_tables(gpu_world.write(tmp_path / "t.parquet", rows * 1000))
    with pytest.raises(InputError, match="a table of 1001 rows, more than 1000"):
        load_tables(gpu_world.write(tmp_path / "t.parquet", rows * 1001))


def test_a_short_file_that_says_something_long_very_often_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnnperf.documents.LARGEST_TABLE", 2**26)
    rows = gpu_world.rows(("pnpoly",), ("A100",), 1)
    table = pa.Table.from_pylist([{**rows[0], "params": "x" * 2**17}] * 1000)
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd")
    with pytest.raises(InputError, match="a table of more than 67108864 bytes"):
        load_tables(tmp_path / "t.parquet")


def test_a_parameter_may_be_ignored(tmp_path: Path) -> None:
    rows = gpu_world.rows(("pnpoly",), ("A100",), 4)
    again = []
    for row, factor in zip(rows, (1.0, 2.0, 0.5, 1.0), strict=True):
        params = json.dumps({**json.loads(row["params"]), "clock": 9})
        again.append({**row, "time_ms": row["time_ms"] * factor, "params": params})
    (table,) = load_tables(gpu_world.write(tmp_path / "t.parquet", [*rows, *again]), ignored=["clock"])
    assert len(table) == 4
    found = dict(zip(table.keys, table.runtime_ms.tolist(), strict=True))
    (whole,) = load_tables(gpu_world.write(tmp_path / "t.parquet", rows))
    times = [found[key] for key in whole.keys]
    assert np.isnan(times[0])
    assert times[1:] == (whole.runtime_ms[1:] * [1.0, 0.5, 1.0]).tolist()  # the faster of two


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("time_ms", "soon"),
        ("params", "block_size_x=256"),
        ("params", "[256]"),
        ("params", '{"block_size_x": "many"}'),
        ("params", '{"block_size_x": 0.5}'),
        ("params", '{"block_size_x": [256]}'),
        ("params", '{"block_size_x": 1e999}'),
        ("params", None),
    ],
)
def test_rows_that_cannot_be_read_are_told(tmp_path: Path, column: str, value: str | None) -> None:
    rows = [{**row, column: value} for row in gpu_world.rows(("pnpoly",), ("A100",), 4)]
    with pytest.raises(InputError, match=r"t.parquet: pnpoly_made_up on A100: expected numbers in time_ms"):
        load_tables(gpu_world.write(tmp_path / "t.parquet", rows))


@pytest.mark.parametrize("column", ["space", "device"])
def test_rows_that_do_not_say_where_they_belong_are_told(tmp_path: Path, column: str) -> None:
    first, *rows = gpu_world.rows(("pnpoly",), ("A100",), 4)
    with pytest.raises(InputError, match=f"expected a text in every row of {column}, got None"):
        load_tables(gpu_world.write(tmp_path / "t.parquet", [{**first, column: None}, *rows]))


def test_files_that_will_not_do_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNPERF_DATA", raising=False)
    with pytest.raises(InputError, match="give --data, or set GNNPERF_DATA"):
        data_path(None)
    with pytest.raises(InputError, match=r"expected tunable_kernels.parquet or a folder with it"):
        data_path(tmp_path)
    (tmp_path / "tunable_kernels.parquet").write_text("no")
    monkeypatch.setenv("GNNPERF_DATA", str(tmp_path))
    with pytest.raises(InputError, match="expected a Parquet file with kernel, space, device"):
        load_tables(data_path(None))
