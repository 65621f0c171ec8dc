"""Stores with very many nests are searched by lists, which stay right whatever happens to the store."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from store.samples import DEVICE, ENCODER, OTHER_DEVICE, fill, make_embedding, make_nest, make_record

from gnnperf.store import Store, searchable
from gnnperf.store.clusters import cluster
from gnnperf.store.index_files import FOLDER, IndexFiles
from gnnperf.store.searchable import Lists, Searchable, arranged

ALL = np.ones(2000, bool)


@pytest.fixture
def lists_from_300(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lists for 300 nests or more, 20 of them beside the lists, and a cache of one's own."""
    monkeypatch.setattr("gnnperf.store.clusters.WORTH_IT", 300)
    monkeypatch.setattr(searchable, "BESIDE", 20)
    monkeypatch.setenv("GNNPERF_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each time that lists were made, of how many rows."""
    sizes: list[int] = []

    def counted(matrix: np.ndarray) -> object:
        sizes.append(len(matrix))
        return cluster(matrix)

    monkeypatch.setattr(searchable, "cluster", counted)
    return sizes


def world(count: int, seed: int = 0) -> np.ndarray:
    """Unit vectors around fifty points, as programs lie around families."""
    points = np.random.default_rng(0).standard_normal((50, 16))
    chance = np.random.default_rng(seed)
    vectors = points[chance.integers(50, size=count)] + 0.3 * chance.standard_normal((count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def truth(matrix: np.ndarray, query: np.ndarray, k: int) -> set[int]:
    return set(np.argsort(-(matrix @ query))[:k].tolist())


def share_found(found: Searchable, matrix: np.ndarray, usable: np.ndarray, k: int = 10) -> float:
    rows = np.flatnonzero(usable)
    hits = 0
    for query in matrix[::200]:
        expected = set(rows[list(truth(matrix[rows], query, k))].tolist())
        hits += len(expected & set(found.search(query, k)[0].tolist()))
    return hits / (k * len(matrix[::200]))


def test_nearly_all_of_the_nearest_are_found_with_their_distances(lists_from_300: None) -> None:
    matrix = world(6_000)
    everything = np.arange(len(matrix))
    found, lists = arranged(matrix, everything * 7, everything >= 0, None, [])
    assert lists is not None and found.clusters is not None and not len(found.beside)
    assert found.clusters.probes < len(lists.centroids) / 2
    assert share_found(found, matrix, np.ones(len(matrix), bool)) >= 0.98
    assert share_found(found, matrix, np.ones(len(matrix), bool), k=48) >= 0.95
    rows, distances = found.search(matrix[3], 10)
    np.testing.assert_allclose(distances, np.maximum(0, 1 - matrix[rows] @ matrix[3]), atol=1e-6)
    assert rows[0] == 3 and (np.diff(distances) >= 0).all()


def test_only_the_usable_are_found_however_few_they_are(lists_from_300: None) -> None:
    matrix = world(6_000)
    for share in (0.06, 0.5):
        usable = np.random.default_rng(1).random(len(matrix)) < share
        found, lists = arranged(matrix, np.arange(len(matrix)), usable, None, [])
        assert lists is not None
        assert usable[found.search(matrix[5], 50)[0]].all()
        assert share_found(found, matrix, usable) >= 0.98


def test_rows_that_came_later_are_found_beside_the_lists(lists_from_300: None) -> None:
    matrix = world(1020)
    ids = np.random.default_rng(2).permutation(1020) * 3
    before, lists = arranged(matrix[:1000], ids[:1000], ALL[:1000], None, [])
    assert lists is not None
    shuffled = np.random.default_rng(3).permutation(1020)
    found, again = arranged(matrix[shuffled], ids[shuffled], ALL[:1020], None, [lists])
    assert again is None and len(found.beside) == 20
    for late in range(1000, 1020):
        assert shuffled[found.search(matrix[late], 1)[0][0]] == late
    usable = np.arange(1020) != 1019
    found, again = arranged(matrix, ids, usable, before, [])
    assert again is None and found.beside.tolist() == [*range(1000, 1019)]
    assert [found.search(matrix[row], 1)[0][0] for row in (5, 1018)] == [5, 1018]
    assert found.search(matrix[1019], 1)[0][0] != 1019


def test_rows_that_are_gone_are_not_found(lists_from_300: None) -> None:
    matrix = world(1000)
    ids = np.arange(1000)
    _, lists = arranged(matrix, ids, ALL[:1000], None, [])
    assert lists is not None
    found, again = arranged(matrix[400:], ids[400:], ALL[:600], None, [lists])
    assert again is None
    assert all(len(found.search(query, 600)[0]) == 600 for query in matrix[:3])
    _, again = arranged(matrix[600:], ids[600:], ALL[:400], None, [lists])
    assert again is not None and len(again.row_ids) == 400, "most are gone: lists are made anew"


def test_lists_of_vectors_of_another_length_are_not_used(lists_from_300: None) -> None:
    ids = np.arange(400)
    _, lists = arranged(world(400), ids, ALL[:400], None, [])
    assert lists is not None
    narrow = world(400)[:, :8] / np.linalg.norm(world(400)[:, :8], axis=1, keepdims=True)
    found, again = arranged(narrow, ids, ALL[:400], None, [lists])
    assert again is not None and found.search(narrow[7], 1)[0].tolist() == [7]


def test_fewer_are_compared_one_by_one() -> None:
    matrix = world(500)
    found, lists = arranged(matrix, np.arange(500), ALL[:500], None, [])
    assert lists is None and found.clusters is None
    for query in matrix[::50]:
        assert set(found.search(query, 10)[0].tolist()) == truth(matrix, query, 10)
    assert len(found.search(matrix[0], 1000)[0]) == 500 and not len(found.search(matrix[0], 0)[0])


# --------------------------------------------------------------------------- in a store


def nearest(store: Store, number: int, k: int = 5) -> list[str]:
    return [n.nest.digest for n in store.nearest(make_embedding(number), k, ENCODER, DEVICE)]


def test_a_large_store_answers_as_a_small_one(
    lists_from_300: None, store: Store, tmp_path: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, range(400))
    by_lists = [nearest(store, number) for number in range(0, 400, 20)]
    monkeypatch.setattr("gnnperf.store.clusters.WORTH_IT", 1000)
    exact = [nearest(Store.open(tmp_path / "store"), number) for number in range(0, 400, 20)]
    alike = [len(set(a) & set(b)) for a, b in zip(by_lists, exact, strict=True)]
    assert sum(alike) >= 0.98 * 5 * len(exact) and made == [400]
    assert [found[0] for found in by_lists] == [make_nest(number).digest for number in range(0, 400, 20)]


def test_lists_are_kept_for_the_next_process_and_survive_appends(
    lists_from_300: None, store: Store, tmp_path: Path, made: list[int]
) -> None:
    fill(store, range(400))
    nearest(store, 0)
    assert len([*(tmp_path / "store" / FOLDER).iterdir()]) == 1
    other = Store.open(tmp_path / "store")
    fill(other, range(400, 410))
    # An embedding that was updated is found where it is now.
    other.add_nests([make_nest(3)], ["{}"], make_embedding(9000)[None], ENCODER)
    for where in (store, other):
        assert nearest(where, 405, 1) == [make_nest(405).digest]
        assert nearest(where, 9000, 1) == [make_nest(3).digest]
    assert made == [400]
    fill(other, range(410, 440))
    assert nearest(other, 430, 1) == [make_nest(430).digest]
    assert nearest(Store.open(tmp_path / "store"), 431, 1) == [make_nest(431).digest]
    assert made == [400, 440], "too many beside the lists: made anew, once"


def test_records_of_another_device_have_lists_of_their_own(
    lists_from_300: None, store: Store, made: list[int]
) -> None:
    fill(store, range(400))
    store.add_records(make_record(i, device_fingerprint=OTHER_DEVICE) for i in range(0, 400, 100))
    found = store.nearest(make_embedding(7), 9, ENCODER, OTHER_DEVICE)
    assert {n.nest.digest for n in found} == {make_nest(i).digest for i in range(0, 400, 100)}
    assert made == []
    store.nearest(make_embedding(7), 9, ENCODER, DEVICE)
    assert made == [400]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def wrong_lists(path: Path) -> None:
    with np.load(path) as file:
        parts = dict(file)
    parts["list_of"][5] = 1_000_000
    np.savez(path, **parts)


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("centroids", "probes", "row_ids", "list_of"):
            file.writestr(f"{name}.npy", bytes(2**29))


def endless(path: Path) -> None:
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**10)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("centroids.npy", header.getvalue())


def no_lists(path: Path) -> None:
    np.savez(path, centroids=np.zeros((2, 8), np.float32))


@pytest.mark.parametrize(
    "damage", [cut, flip, wrong_lists, bomb, endless, no_lists, lambda path: path.write_bytes(b"")]
)
def test_damaged_lists_are_made_again(
    damage: Callable[[Path], None], lists_from_300: None, store: Store, tmp_path: Path, made: list[int]
) -> None:
    fill(store, range(320))
    nearest(store, 0)
    (path,) = (tmp_path / "store" / FOLDER).iterdir()
    damage(path)
    assert nearest(Store.open(tmp_path / "store"), 17, 1) == [make_nest(17).digest]
    assert made == [320, 320]
    nearest(Store.open(tmp_path / "store"), 17)
    assert made == [320, 320], "the damaged file was replaced"


def test_lists_of_a_store_that_cannot_be_written_are_in_the_cache(
    lists_from_300: None, store: Store, tmp_path: Path, made: list[int]
) -> None:
    fill(store, range(320))
    (tmp_path / "store" / FOLDER).write_text("in the way, as a folder that cannot be written is")
    nearest(store, 0)
    assert nearest(Store.open(tmp_path / "store"), 17, 1) == [make_nest(17).digest]
    assert made == [320] and [*(tmp_path / "cache" / FOLDER).glob("*/*.npz")]


def test_without_any_place_to_write_lists_are_kept_in_memory(
    lists_from_300: None, store: Store, tmp_path: Path, made: list[int]
) -> None:
    (tmp_path / "cache").write_text("in the way")
    (tmp_path / "store" / FOLDER).write_text("in the way")
    fill(store, range(320))
    nearest(store, 0)
    fill(store, range(320, 325))
    assert nearest(store, 322, 1) == [make_nest(322).digest] and made == [320]


def test_lists_of_a_store_elsewhere_are_in_the_cache(lists_from_300: None, tmp_path: Path) -> None:
    lists = Lists(np.eye(2, dtype=np.float32), 1, np.arange(4), np.array([0, 1, 0, 1]))
    IndexFiles("s3://bucket/store").keep(ENCODER, DEVICE, lists)
    (found,) = IndexFiles("s3://bucket/store").kept(ENCODER, DEVICE)
    assert found.list_of.tolist() == [0, 1, 0, 1] and found.probes == 1
    assert not [*IndexFiles("s3://bucket/other").kept(ENCODER, DEVICE)]
    assert not [*IndexFiles("s3://bucket/store").kept(ENCODER, OTHER_DEVICE)]
