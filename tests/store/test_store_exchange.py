"""Export to one file, and import from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from store.samples import DEVICE, ENCODER, fill, make_embedding, make_graph, make_nest, make_record

from gnnperf.errors import InputError
from gnnperf.store import Changed, Store


def lines(path: Path) -> list[dict]:
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path: Path, values: list[dict]) -> None:
    with zstandard.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def exported(store: Store, tmp_path: Path) -> Path:
    """Three nests, one of them with two embeddings, and four records."""
    fill(store, range(3))
    store.add_nest(make_nest(0), make_graph(0), make_embedding(0, width=4), "encoder-2")
    store.add_records([make_record(2, status="timeout")])
    store.add_nest(make_nest(1), make_graph(1), make_embedding(100), ENCODER)  # supersedes the first
    path = tmp_path / "export.jsonl.zst"
    assert store.export(path) == Changed(nests=4, records=4)
    return path


def test_import_gives_back_what_was_exported(exported: Path, store: Store, tmp_path: Path) -> None:
    copy = Store.open(tmp_path / "copy", create=True)
    assert copy.import_(exported) == Changed(nests=4, records=4)
    assert copy.import_(exported) == copy.merge(store) == Changed(0, 0)
    for embedding, encoder_id in ((make_embedding(100), ENCODER), (make_embedding(0, width=4), "encoder-2")):
        assert copy.nearest(embedding, 5, encoder_id, DEVICE) == store.nearest(
            embedding, 5, encoder_id, DEVICE
        )
    for i in range(3):
        digest = make_nest(i).digest
        assert copy.records(digest) == store.records(digest)
        assert copy.graph_json(digest) == make_graph(i)
    again = tmp_path / "again.jsonl.zst"
    copy.export(again)
    assert sorted(map(str, lines(again))) == sorted(map(str, lines(exported)))


def test_the_file_is_readable_json(exported: Path) -> None:
    header, *content, end = lines(exported)
    assert header == {"format": "gnnperf-store", "schema_version": 1}
    assert end == {"end": {"nests": 4, "records": 4}}
    assert [next(iter(line)) for line in content] == ["nest"] * 4 + ["record"] * 4


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays(np.float64, 5, elements=st.floats(-1, 1)).filter(lambda v: np.linalg.norm(v) > 1e-3),
    st.floats(1e-9, 1e5),
)
def test_numbers_survive_exactly(tmp_path: Path, direction: np.ndarray, runtime_s: float) -> None:
    first, second = (Store.open(f"memory://{name}", create=True) for name in ("first", "second"))
    embedding = (direction / np.linalg.norm(direction)).astype(np.float32)
    first.add_nest(make_nest(0), make_graph(0), embedding, ENCODER)
    times = dict.fromkeys(("runtime_s", "interval_lo_s", "interval_hi_s"), runtime_s)
    added = first.add_records([make_record(0, **times, baseline_s=2 * runtime_s)])
    first.export(tmp_path / "file.jsonl.zst")
    second.import_(tmp_path / "file.jsonl.zst")
    second.export(tmp_path / "again.jsonl.zst")
    assert list(second.records(make_nest(0).digest)) == added
    assert lines(tmp_path / "again.jsonl.zst") == lines(tmp_path / "file.jsonl.zst")


def cut(values: list[dict]) -> None:
    del values[-1]


def another_version(values: list[dict]) -> None:
    values[0]["schema_version"] = 2


def another_format(values: list[dict]) -> None:
    del values[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "is cut short"),
        (another_version, "expected schema version 1, got 2; use the gnnperf that wrote it"),
        (another_format, "expected a file made by `gnnperf store export`"),
    ],
)
def test_a_file_that_is_no_whole_export_is_bad_input(
    damage: Callable[[list[dict]], None], message: str, exported: Path, tmp_path: Path
) -> None:
    values = lines(exported)
    damage(values)
    broken = tmp_path / "broken.jsonl.zst"
    write(broken, values)
    with pytest.raises(InputError) as error:
        Store.open(tmp_path / "copy", create=True).import_(broken)
    assert message in str(error.value)
    assert str(broken) in str(error.value)


def test_a_file_that_is_not_one_is_bad_input(exported: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "copy", create=True)
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        store.import_(tmp_path / "none")
    half = tmp_path / "half.jsonl.zst"
    half.write_bytes(exported.read_bytes()[: exported.stat().st_size // 2])
    with pytest.raises(InputError, match=r"damaged or not an export|cut short|made by"):
        store.import_(half)
    text = tmp_path / "text"
    text.write_text("not compressed")
    with pytest.raises(InputError, match="damaged or not an export"):
        store.import_(text)
    flipped = bytearray(exported.read_bytes())
    flipped[len(flipped) // 2] ^= 0xFF
    half.write_bytes(flipped)
    with pytest.raises(InputError):
        store.import_(half)


def test_an_export_appears_only_when_it_is_complete(store: Store, tmp_path: Path) -> None:
    fill(store, range(2))
    with pytest.raises(InputError, match=r"cannot write .*: No such file or directory"):
        store.export(tmp_path / "no such folder" / "file.jsonl.zst")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        store.export(tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "taken"]
