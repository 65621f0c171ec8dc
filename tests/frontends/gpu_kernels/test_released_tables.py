"""Measurements that go with released networks come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import gpu_world

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import find_description
from gnnperf.frontends.gpu_kernels.released_tables import tables_from_bytes, tables_to_bytes
from gnnperf.frontends.gpu_kernels.tables import GpuTable, load_tables


@pytest.fixture
def tables(tmp_path: Path) -> list[GpuTable]:
    rows = gpu_world.rows(("pnpoly",), gpu_world.GPUS[:2], 20)
    for row in rows:
        row["params"] = json.dumps({**json.loads(row["params"]), "points": 1000000})
    rows.pop()  # the second GPU tried one less
    return load_tables(gpu_world.write(tmp_path / "t.parquet", rows))


def test_tables_come_back(tables: list[GpuTable]) -> None:
    found = tables_from_bytes(tables_to_bytes(tables), tables[0].description)
    assert [(t.space, t.gpu, t.device, len(t)) for t in found] == [
        (t.space, t.gpu, t.device, len(t)) for t in tables
    ]
    for before, after in zip(tables, found, strict=True):
        assert (after.plan.values["points"] == 1000000).all()
        known = dict(zip(before.keys, before.runtime_ms, strict=True))
        expected = np.array([known[key] for key in after.keys])
        assert np.isnan(expected).sum() == 1
        assert after.runtime_ms == pytest.approx(expected, rel=0.002, nan_ok=True)


def test_tables_of_another_kernel_or_none(tables: list[GpuTable]) -> None:
    gemm = find_description("gemm")
    assert tables_from_bytes(tables_to_bytes(tables), gemm) == []
    with pytest.raises(InputError, match="damaged measurements of gemm"):
        tables_from_bytes(b"PAR1", gemm)
