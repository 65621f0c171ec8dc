from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from helpers.synthetic import DEVICE, measurement, nest, nest_like, write_corpus

from gnnperf.errors import InputError
from gnnperf.training import load_corpus

A, B = nest_like([8, 16]), nest_like([8, 16], reduction=True)
NESTS = [nest(A, "map", profile={"runtime_1_thread_s": 0.5}), nest(B, "reduce")]
MEASUREMENTS = [
    measurement(A.digest, "x", 0.5),
    measurement(B.digest, "x", None),
    measurement(B.digest, "y", 0.25, origin="mutation"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", NESTS, MEASUREMENTS)


def compress(file: Path) -> None:
    file.with_name(file.name + ".zst").write_bytes(zstandard.compress(file.read_bytes()))
    file.unlink()


def test_reads_nests_and_measurements(folder: Path) -> None:
    corpus = load_corpus(folder)
    assert [n.family for n in corpus.nests] == corpus.families == ["map", "reduce"]
    assert corpus.nests[0].graph.digest == A.digest
    assert corpus.nests[0].graph.profile == {"runtime_1_thread_s": 0.5}
    assert corpus.measurement_count == 3
    y = corpus.measurements[B.digest]["y"]
    assert (y.status, y.runtime_s, y.origin) == ("ok", 0.25, "mutation")
    assert corpus.measurements[B.digest]["x"].runtime_s is None
    assert corpus.device == DEVICE


def test_compressed_and_plain_read_alike_and_add_up(folder: Path) -> None:
    plain = load_corpus(folder)
    for name in ("tasks", "records"):
        compress(folder / f"{name}.jsonl")
    assert load_corpus(folder).digest == plain.digest
    (folder / "records.jsonl").write_text(json.dumps(measurement(A.digest, "z", 0.1)) + "\n")
    grown = load_corpus(folder)
    assert set(grown.measurements[A.digest]) == {"x", "z"}
    assert grown.digest != plain.digest


def test_frames_appended_to_a_compressed_file_are_all_read(folder: Path) -> None:
    compress(folder / "records.jsonl")
    more = json.dumps(measurement(A.digest, "z", 0.1)) + "\n"
    with (folder / "records.jsonl.zst").open("ab") as file:
        file.write(zstandard.compress(more.encode()))
    assert "z" in load_corpus(folder).measurements[A.digest]


@pytest.mark.parametrize("name", ["tasks", "records"])
def test_a_torn_last_line_is_ignored(folder: Path, name: str) -> None:
    whole = load_corpus(folder).digest
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write('{"task": "é'[:-1])
    assert load_corpus(folder).digest == whole


def test_a_last_line_torn_inside_a_character_is_ignored(folder: Path) -> None:
    whole = load_corpus(folder).digest
    with (folder / "records.jsonl").open("ab") as file:
        file.write('{"detail": "é'.encode()[:-1])
    assert load_corpus(folder).digest == whole


def test_a_nest_without_measurements_and_a_measurement_without_nest_are_left_out(folder: Path) -> None:
    lonely = nest_like([3])
    with (folder / "tasks.jsonl").open("a") as file:
        file.write(json.dumps(nest(lonely, "other")) + "\n")
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(measurement("f" * 32, "x", 0.5)) + "\n")
    corpus = load_corpus(folder)
    assert corpus.families == ["map", "reduce"]
    assert set(corpus.measurements) == {A.digest, B.digest}


def test_a_repeated_measurement_replaces_the_earlier_one(folder: Path) -> None:
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(measurement(A.digest, "x", 0.75)) + "\n")
    assert load_corpus(folder).measurements[A.digest]["x"].runtime_s == 0.75


def test_several_devices_need_a_choice(folder: Path) -> None:
    other = "cpu/x86_64/avx2"
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(measurement(A.digest, "z", 0.1, device=other)) + "\n")
    with pytest.raises(InputError, match=f"measured on {other}, {DEVICE}, got device None; choose"):
        load_corpus(folder)
    assert "z" not in load_corpus(folder, device=DEVICE).measurements[A.digest]
    with pytest.raises(InputError, match="got device gpu; choose"):
        load_corpus(folder, device="gpu")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("tasks", "{", r"tasks.jsonl line 3: expected a JSON object"),
        ("tasks", "[]", r"tasks.jsonl line 3: expected a JSON object, got list; remove the line"),
        ("records", '{"task": "x"}', r"records.jsonl line 4: expected the key 'schedule_id'"),
        *(
            (
                "records",
                json.dumps({**measurement(A.digest, "z", 0.1), key: ["a"]}),
                r"records.jsonl line 4: expected names as text .*; collect it again",
            )
            for key in ("task", "schedule_id", "device")
        ),
        ("tasks", json.dumps({**nest(A, "map"), "task": ["a"]}), r"tasks.jsonl line 3: expected names"),
        (
            "records",
            json.dumps(measurement(A.digest, "z", 0.1, status="fine")),
            r"line 4: expected a status among .*, got 'fine'",
        ),
        (
            "records",
            json.dumps(measurement(A.digest, "z", 0.1, interval_s=None)),
            r"line 4: not a record of this version",
        ),
        (
            "tasks",
            json.dumps({**nest(A, "map"), "graph": {"nodes": []}}),
            r"line 3: not a task of this version",
        ),
    ],
)
def test_a_damaged_line_is_named(folder: Path, name: str, line: str, message: str) -> None:
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=message):
        load_corpus(folder)


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a corpus folder with tasks.jsonl"):
        load_corpus(tmp_path)


def test_nothing_measured(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no measured task"):
        load_corpus(write_corpus(tmp_path, NESTS, []))


def test_a_damaged_compressed_file(folder: Path) -> None:
    (folder / "tasks.jsonl.zst").write_bytes(b"not zstandard")
    with pytest.raises(InputError, match=r"cannot read .*tasks.jsonl.zst"):
        load_corpus(folder)
