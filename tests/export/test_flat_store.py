"""The store as one flat file: the same neighbours and records as of the store itself."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.made_up_model import CPU

from gnnperf.errors import InputError
from gnnperf.export import FlatStore, export_store, flat_store, open_flat, write_flat
from gnnperf.nn import Bundle
from gnnperf.store import Store
from gnnperf.store.clusters import Clusters, cluster


@pytest.fixture(scope="module")
def flat(folder: Path) -> FlatStore:
    return open_flat(folder / "store.gnnstore")


@pytest.fixture(scope="module")
def store(made_up_folder: Path) -> Store:
    return Store.open(made_up_folder / "store")


def test_neighbours_are_those_of_the_store(flat: FlatStore, store: Store, made_up: Bundle) -> None:
    assert flat.header["nests"] == store.info().nests and flat.header["records"] == store.info().records
    for row in range(0, flat.header["nests"], 40):
        vector = np.asarray(flat.vectors[row])
        found = [(flat.nest(r)["digest"], d) for r, d in flat.nearest(vector, 5, CPU)]
        expected = store.nearest(vector, 5, made_up.encoder_id, CPU)
        np.testing.assert_allclose([d for _, d in found], [n.distance for n in expected], atol=1e-6)
        assert {digest for digest, _ in found} == {n.nest.digest for n in expected}


def test_records_are_those_of_the_store(flat: FlatStore, store: Store) -> None:
    for row in (0, 17, flat.header["nests"] - 1):
        nest = flat.nest(row)
        expected = store.records(nest["digest"])
        assert [r["speedup"] for r in nest["records"]] == [r.speedup for r in expected]
        assert [r["schedule"] for r in nest["records"]] == [json.loads(r.schedule) for r in expected]


def test_devices_that_measured_nothing_have_no_neighbours(flat: FlatStore) -> None:
    assert flat.nearest(np.asarray(flat.vectors[0]), 5, "cpu/aarch64/sve") == []


def test_nests_without_an_ok_record_of_the_device_are_passed_over(tmp_path: Path) -> None:
    vectors = np.eye(4, dtype=np.float32)
    usable = {"a": np.array([True, False, True, True]), "b": np.array([False, True, False, False])}
    lines = [json.dumps({"digest": str(i)}).encode() + b"\n" for i in range(4)]
    write_flat(tmp_path / "s", "e", vectors, usable, lines, 0)
    flat = open_flat(tmp_path / "s")
    assert [row for row, _ in flat.nearest(vectors[1], 9, "a")] == [0, 2, 3]
    assert [(flat.nest(row)["digest"], d) for row, d in flat.nearest(vectors[1], 9, "b")] == [("1", 0.0)]


def test_an_encoder_that_embedded_nothing(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InputError, match=r"expected nests of the store .* embedded by other, got none"):
        export_store(tmp_path / "s", store, "other")


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 100_000, b"[]", b"\xff", b'{"nests":NaN}',
        b'{"nests":1,"embedding_width":1,"lists":-1,"sections":{}}',
    ],
)  # fmt: skip
def test_headers_of_strangers(header: bytes, tmp_path: Path) -> None:
    about = np.array([2, len(header), zlib.crc32(header)], "<u4").tobytes()
    (tmp_path / "s").write_bytes(b"GNNPSTOR" + about + header + bytes(4096))
    with pytest.raises(InputError, match="cannot read the store"):
        open_flat(tmp_path / "s")


@pytest.mark.parametrize("wrong", [{"probes": 0}, {"probes": 10**6}, {"bounds": True}])
def test_lists_of_strangers(wrong: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_store, "WORTH_IT", 100)
    vectors = np.random.default_rng(0).standard_normal((400, 8), dtype=np.float32)

    def forged(given: np.ndarray) -> tuple[Clusters, np.ndarray]:
        lists, order = cluster(given)
        if "bounds" in wrong:
            lists.bounds[-1] = 10**9
        return replace(lists, probes=wrong.get("probes", lists.probes)), order

    lines = [b"{}\n"] * 400
    write_flat(tmp_path / "good", "e", vectors, {"a": np.ones(400, bool)}, lines, 0)
    open_flat(tmp_path / "good")
    monkeypatch.setattr(flat_store, "cluster", forged)
    write_flat(tmp_path / "s", "e", vectors, {"a": np.ones(400, bool)}, lines, 0)
    with pytest.raises(InputError, match="the lists do not follow one another"):
        open_flat(tmp_path / "s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "cannot read"),
        (lambda data: b"X" + data[1:], "expected a store written by"),
        (lambda data: data[:8] + b"\x07" + data[9:], "store version is 7, expected 2"),
        (lambda data: data[:5000], "checksum is [0-9a-f]{8}, expected [0-9a-f]{8}; export it again"),
        (lambda data: data[:20] + b"{" + data[20:], "the header: checksum is .*, expected"),
        (lambda data: data[:-900] + b"??" + data[-898:], "text: checksum is .*, expected"),
        (lambda data: data[:9_999] + bytes([data[9_999] ^ 1]) + data[10_000:], "checksum is .*, expected"),
    ],
)
def test_files_that_are_no_store(folder: Path, tmp_path: Path, change: object, message: str) -> None:
    assert callable(change)
    (tmp_path / "s").write_bytes(change((folder / "store.gnnstore").read_bytes()))
    with pytest.raises(InputError, match=message):
        open_flat(tmp_path / "s")
