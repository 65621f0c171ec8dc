"""Neighbours over several stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from retrieval.records import DEVICE, ENCODER, make_nest, make_record, recipe

from gnnperf.retrieval import nearest
from gnnperf.store import Record, Store

QUERY = np.array([1.0, 0.0], np.float32)


def at(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


def make_store(folder: Path, nests: dict[str, float], records: list[Record]) -> Store:
    """Nests by name at an angle from the query."""
    store = Store.open(folder, create=True)
    if nests:
        vectors = np.stack([at(angle) for angle in nests.values()])
        store.add_nests([make_nest(name) for name in nests], ["{}"] * len(nests), vectors, ENCODER)
        store.add_records(records)
    return store


def test_stores_are_searched_as_one(tmp_path: Path) -> None:
    one = make_store(
        tmp_path / "one", {"a": 0.1, "b": 0.3}, [make_record(n, recipe(1), 2.0) for n in ("a", "b")]
    )
    other = make_store(
        tmp_path / "two", {"c": 0.2, "d": 0.4}, [make_record(n, recipe(1), 2.0) for n in ("c", "d")]
    )
    found = nearest([one, other], QUERY, 3, ENCODER, DEVICE)
    assert [n.nest.kernel for n in found] == ["a", "c", "b"]
    assert [n.distance for n in found] == pytest.approx([1 - np.cos(x) for x in (0.1, 0.2, 0.3)], abs=1e-6)


def test_a_nest_in_two_stores_keeps_all_its_records_once(tmp_path: Path) -> None:
    shared = make_record("a", recipe(1), 2.0, created="2026-01-01T00:00:00+00:00")
    one = make_store(tmp_path / "one", {"a": 0.1}, [shared, make_record("a", recipe(2), 3.0)])
    other = make_store(tmp_path / "two", {"a": 0.1}, [shared, make_record("a", recipe(3), None)])
    (found,) = nearest([one, other], QUERY, 5, ENCODER, DEVICE)
    assert sorted((r.speedup or 0.0) for r in found.records) == [0.0, 2.0, 3.0]


def test_a_cpu_borrows_the_records_of_its_kin(tmp_path: Path) -> None:
    """Whether they lie in a store of their own or beside its own."""
    avx2 = "cpu/x86_64/avx2"
    of_kin = [make_record("a", recipe(1), 2.0), make_record("c", recipe(1), 2.0)]
    kin = make_store(tmp_path / "kin", {"a": 0.1, "c": 0.3}, of_kin)
    assert [n.nest.kernel for n in nearest([kin], QUERY, 5, ENCODER, avx2)] == ["a", "c"]
    assert nearest([kin], QUERY, 5, ENCODER, "cpu/aarch64/neon") == []
    owned = [make_record(nest, recipe(2), 3.0, device_fingerprint=avx2) for nest in ("b", "c")]
    own = make_store(tmp_path / "own", {"b": 0.2, "c": 0.3}, owned)
    both = make_store(tmp_path / "both", {"a": 0.1, "b": 0.2, "c": 0.3}, [*of_kin, *owned])
    together = nearest([both], QUERY, 5, ENCODER, avx2)
    assert [n.nest.kernel for n in together] == ["a", "b", "c"]
    assert [len(n.records) for n in together] == [1, 1, 2]
    assert [n.nest.kernel for n in nearest([both], QUERY, 2, ENCODER, avx2)] == ["a", "b"]
    assert together == nearest([own, kin], QUERY, 5, ENCODER, avx2)


def test_other_devices_and_other_encoders_are_not_neighbours(tmp_path: Path) -> None:
    other = make_record("a", recipe(1), 2.0, device_fingerprint="cpu/aarch64/neon")
    store = make_store(tmp_path / "one", {"a": 0.1}, [other])
    assert nearest([store], QUERY, 5, ENCODER, DEVICE) == []
    assert nearest([store], QUERY, 5, "another encoder", "cpu/aarch64/neon") == []
    assert len(nearest([store], QUERY, 5, ENCODER, "cpu/aarch64/neon")) == 1


def test_empty_stores_and_no_stores(tmp_path: Path) -> None:
    assert nearest([], QUERY, 5, ENCODER, DEVICE) == []
    assert nearest([make_store(tmp_path / "empty", {}, [])], QUERY, 5, ENCODER, DEVICE) == []
