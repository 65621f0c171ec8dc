"""Measurements that go with released networks come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import gpu_world

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description
from gnnperf.frontends.gpu_kernels.released_tables import file_of, load_released_tables, save_tables
from gnnperf.frontends.gpu_kernels.tables import GpuTable, load_tables


@pytest.fixture
def tables(tmp_path: Path) -> list[GpuTable]:
    rows = gpu_world.rows(("pnpoly",), gpu_world.GPUS[:2], 20)
    for row in rows:
        row["params"] = json.dumps({**json.loads(row["params"]), "points": 1000000})
    rows.pop()  # the second GPU tried one less
    return load_tables(gpu_world.write(tmp_path / "t.parquet", rows))


def test_tables_come_back(tables: list[GpuTable], tmp_path: Path) -> None:
    save_tables(tmp_path, tables)
    found = load_released_tables(tmp_path, tables[0].description)
    assert [(t.space, t.gpu, t.device, len(t)) for t in found] == [
        (t.space, t.gpu, t.device, len(t)) for t in tables
    ]
    for before, after in zip(tables, found, strict=True):
        assert (after.plan.values["points"] == 1000000).all()
        known = dict(zip(before.keys, before.runtime_ms, strict=True))
        expected = np.array([known[key] for key in after.keys])
        assert np.isnan(expected).sum() == 1
        assert after.runtime_ms == pytest.approx(expected, rel=0.002, nan_ok=True)


def test_tables_of_another_kernel_or_none(tables: list[GpuTable], tmp_path: Path) -> None:
    save_tables(tmp_path, tables)
    description = find_description("gemm")
    assert load_released_tables(tmp_path, description) == []
    file_of(tmp_path, tables[0].description).rename(file_of(tmp_path, description))
    assert load_released_tables(tmp_path, description) == []
    file_of(tmp_path, description).write_bytes(b"PAR1")
    with pytest.raises(InputError, match="damaged"):
        load_released_tables(tmp_path, description)
