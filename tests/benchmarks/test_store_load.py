"""Processes that search and write one store, in a folder and on object storage."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from benchmarks import run as module
from benchmarks import store_load
from benchmarks.object_storage import object_storage
from benchmarks.store_load import LoadStudy

from gnnperf.store import Store


def test_nothing_is_lost_and_everything_is_timed() -> None:
    words = ["store-load", "--processes", "2", "--minutes", "0.05", "--nests", "300", "--json"]
    done = subprocess.run(
        [sys.executable, module.__file__, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    folder, bucket = document["rows"]
    for row in (folder, bucket):
        assert row["lost_records"] == 0
        assert row["records"] == 4 * row["writes"] > 0
        assert row["searches"] == 3 * row["writes"]
        assert 0 < row["search_ms_p50"] <= row["search_ms_p99"]
    assert len(folder["mb"]) == 12 and min(folder["mb"]) > 0
    assert bucket["fill_s"] > 0 and bucket["open_s"] > 0
    assert document["figures"]["folder_lost_records"] == 0


def test_a_lost_record_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_load, "_records", lambda location: iter(()))
    row: Mapping[str, Any] = LoadStudy(1, 0.01, 10)._folder(lambda text: None)
    assert row["lost_records"] == row["records"] > 0
    assert row["failures"] == [f"{row['records']} acknowledged records are lost"]


def test_a_process_that_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_load, "filled", lambda folder, vectors, encoder: folder.mkdir())
    with pytest.raises(store_load.GnnperfError, match="did not open the store"):
        LoadStudy(1, 0.01, 10)._folder(lambda text: None)


def test_a_store_on_object_storage_is_one_like_any_other() -> None:
    with object_storage() as bucket:
        store = store_load.filled(f"{bucket}/some/store", store_load._vectors(50), store_load.ENCODER)
        again = Store.open(f"{bucket}/some/store")
        (nearest,) = again.nearest(store_load._vectors(50)[7], 1, store_load.ENCODER, store.devices[0])
        assert (nearest.nest.digest, nearest.distance) == ("7", pytest.approx(0.0, abs=1e-6))
        assert again.info().records == 50
