"""Stores and exports that strangers wrote: what is wrong is refused and told, the rest is used."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from store.samples import (
    DEVICE,
    ENCODER,
    OTHER_DEVICE,
    fill,
    make_embedding,
    make_graph,
    make_nest,
    make_record,
    make_schedule,
)

from gnnperf.cli.main import run
from gnnperf.errors import InputError
from gnnperf.graph import Edge, Node, ProgramGraph
from gnnperf.retrieval.neighbours import nearest
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Changed, Store, exchange
from gnnperf.store.schema import LONGEST_GRAPH, NESTS, RECORDS, Record, content_id, nest_rows, rows_of_checked

HALF = "\ud800"
LLVM_IR = 'define void @f() { call void asm sideeffect "int3", ""() ret void }'
PRAGMA = json.dumps(
    {
        "blocks": {"C": "anchor"},
        "cores": 2,
        "loops": "SSR",
        "trace": [
            [
                ["GetSBlock", [], ["C", "main"], ["b0"]],
                ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
                ["Annotate", ["l1", f'"{LLVM_IR}"'], ["pragma_import_llvm"], []],
            ],
            [],
        ],
    },
    sort_keys=True,
    separators=(",", ":"),
)
RECORDS_TO_REFUSE: dict[str, tuple[dict[str, Any], str]] = {
    "code in a trace": (
        {"schedule": PRAGMA, "schedule_kind": "trace"},
        "Annotate: 'pragma_import_llvm' is not",
    ),
    "no recipe": ({"schedule": '{"a":1}'}, "expected a schedule of kind 'recipe'"),
    "unknown kind": (
        {"schedule_kind": "shell"},
        "expected a schedule of kind recipe or trace or call, got 'shell'",
    ),
    "a tile too far": ({"schedule": make_schedule(2**40)}, "recipe field tile_p: expected an integer from 0"),
    "a speedup that is not theirs": ({"speedup": 1e9}, "expected a speedup from 1e-06 to 1e"),
    "a speedup that is not its runtimes'": (
        {"speedup": 50.0},
        "expected the speedup 2 of its runtimes, got 50",
    ),
    "no time at all": ({"runtime_s": 1e-30, "speedup": 5e29}, "expected runtimes from 1e-09 s"),
    "outside of its interval": ({"interval_hi_s": 0.01, "interval_lo_s": 0.01}, "expected a runtime in its"),
    "a path": ({"kernel": "../../etc/passwd"}, "kernel: expected a name without quotes, slashes"),
    "a line": ({"family": "a\nb"}, "family: expected a name without"),
    "a NUL": ({"device_name": "a\0b"}, "device_name: expected a name without"),
    "markup": ({"baseline": "<script>"}, "baseline: expected a name without"),
    "a long name": ({"kernel": "x" * 10_000}, "expected a name of at most 200 characters, got 10000"),
    "no device": ({"device_fingerprint": "my machine"}, "device_fingerprint: expected one such as"),
}
"""By name: what differs from a record that is right, and the reason that is told."""


def forged(number: int, **changes: Any) -> Record:
    """A record with whatever content, and the id that goes with it."""
    plain = replace(make_record(number), **changes)
    return replace(plain, record_id=content_id(plain))


def write_rows(folder: Path, table: str, rows: pa.Table) -> None:
    """As anybody can who may write into the folder."""
    import lancedb

    lancedb.connect(folder).open_table(table).add(rows)


def nest_line(number: int, **changes: Any) -> dict[str, Any]:
    nest = make_nest(number)
    embedding = base64.b64encode(make_embedding(number).astype("<f4").tobytes()).decode()
    fields = {name: getattr(nest, name) for name in ("digest", "kernel", "family", "frontend")}
    fields |= {"encoder_id": ENCODER, "embedding": embedding, "graph_json": make_graph(number)}
    return {"nest": fields | changes}


def record_line(record: Record) -> dict[str, Any]:
    return {"record": {name: getattr(record, name) for name in Record.__slots__}}


def write_export(path: Path, content: list[Any]) -> Path:
    """An export. What is text stands there as it is."""
    lines = [{"format": "gnnperf-store", "schema_version": 1}, *content, {"end": {}}]
    with zstandard.open(path, "wt", encoding="utf-8") as file:
        file.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    return path


def embedded(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


# --------------------------------------------------------------------------- import


@pytest.mark.parametrize("name", RECORDS_TO_REFUSE)
def test_a_record_of_a_stranger_is_refused_with_its_reason(name: str, store: Store, tmp_path: Path) -> None:
    changes, reason = RECORDS_TO_REFUSE[name]
    lines = [nest_line(0), record_line(forged(0, **changes)), record_line(forged(0))]
    added = store.import_(write_export(tmp_path / "file", lines))
    assert (added.nests, added.records, added.refused) == (1, 1, 1)
    assert added.reasons[0].where == "line 3"
    assert reason in added.reasons[0].reason
    assert added.reasons[0].reason.isprintable()
    assert len(added.reasons[0].reason) < 400


def symmetric(count: int = 61) -> ProgramGraph:
    """Paley's graph: every node looks like every other, and so does what is left without it."""
    squares = {n * n % count for n in range(1, count)}
    edges = [(i, j) for i in range(count) for j in range(count) if (j - i) % count in squares]
    nodes = (Node("compute", {"dtype": "float64"}),) * count
    return ProgramGraph(nodes, tuple(Edge(i, j, "flows", {"through": "register"}) for i, j in edges), {})


def graph_of(**changes: Any) -> str:
    """The graph of nest 0 with something else in its only node, or in place of a part."""
    document = json.loads(make_graph(0))
    document["nodes"][0]["features"] |= changes.pop("features", {})
    return json.dumps(document | changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"digest": "../../etc/x"}, "digest: expected a name without"),
        ({"digest": "0" * 32}, "of its graph, got '0000"),
        ({"kernel": 'a "quoted" name'}, "kernel: expected a name without"),
        ({"encoder_id": "a/b"}, "expected a name without"),
        ({"graph_json": "{}"}, "expected a program graph of schema version 1"),
        ({"graph_json": "[" * 100_000}, "nested deeper than 32 levels"),
        ({"graph_json": '{"a":' * 40 + "1" + "}" * 40}, "nested deeper than 32 levels"),
        ({"graph_json": "   "}, "got no JSON"),
        ({"graph_json": graph_of(nodes=[1])}, "expected a program graph (nodes, edges, values)"),
        ({"graph_json": graph_of(nodes={"kind": []})}, "expected a program graph (nodes, edges, values)"),
        ({"graph_json": graph_of(values=[])}, "expected a program graph (nodes, edges, values)"),
        ({"graph_json": graph_of(profile=[1])}, "expected a profile"),
        ({"graph_json": graph_of(profile={"cycles": {"a": 1}})}, "expected numbers, got"),
        ({"graph_json": graph_of(features={"size_bytes": 10**400})}, "expected numbers up to 1e+30"),
        ({"graph_json": graph_of(features={"size_bytes": "2026-01-01"})}, "expected a number"),
        ({"graph_json": "1" * 5000}, "got no JSON"),
        ({"graph_json": '{"schema_version":NaN}'}, "NaN is no number in JSON"),
        ({"graph_json": graph_of(unknown=HALF).replace(r"\ud800", HALF)}, "got half of a character"),
        ({"graph_json": graph_of(unknown="x" * LONGEST_GRAPH)}, "a graph of at most 8388608 bytes, got 83"),
        ({"graph_json": 7}, "not all of it is text"),
        ({"embedding": embedded(np.ones(3))}, "expected an embedding of 8 numbers"),
        ({"embedding": embedded(np.full(8, np.nan))}, "expected an embedding of norm 1, got nan"),
        ({"embedding": embedded(np.full(8, 1e30))}, "expected an embedding of norm 1"),
        ({"embedding": embedded(np.zeros(8))}, "expected an embedding of norm 1, got 0"),
        ({"embedding": "AAA"}, "padding"),
        ({"embedding": ""}, "expected an embedding of 8 numbers"),
    ],
)  # fmt: skip
def test_a_nest_of_a_stranger_is_refused_with_its_reason(
    changes: dict[str, Any], reason: str, store: Store, tmp_path: Path
) -> None:
    fill(store, range(1, 2))  # the width of the encoder's embeddings is known
    lines = [nest_line(0, **changes), nest_line(2), record_line(forged(2))]
    added = store.import_(write_export(tmp_path / "file", lines))
    assert (added.nests, added.records, added.refused) == (1, 1, 1)
    assert reason in added.reasons[0].reason
    assert added.reasons[0].reason.isprintable()


def test_the_first_embedding_does_not_say_what_an_encoder_makes_where_that_is_known(
    store: Store, tmp_path: Path
) -> None:
    path = write_export(tmp_path / "file", [nest_line(0, embedding=embedded([1.0])), nest_line(1)])
    assert store.import_(path, {ENCODER: 8}).nests == 1
    assert store.widths() == {ENCODER: 8}


def test_a_graph_that_takes_for_ever_to_name_is_refused_soon(store: Store, tmp_path: Path) -> None:
    graph = symmetric()
    path = write_export(tmp_path / "file", [nest_line(0, graph_json=graph.to_json())])
    started = time.process_time()
    assert "too symmetric to be named" in store.import_(path).reasons[0].reason
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "expected a nest or a record"),
        (" " * 1000, "expected a nest or a record"),
        ("[1, 2]", "expected a nest or a record"),
        ('{"surprise": {}}', "expected a nest or a record"),
        ('{"nest": {}}', "expected a nest or a record"),
        ('{"record": {"colour": "red"}}', "expected a nest or a record"),
        ('{"record": ["a"]}', "expected a nest or a record"),
        ("[" * 100_000, "nested deeper than 32 levels"),
        ("1" * 5000, "expected a nest or a record"),
        ('{"record": "\\ud800"}', "expected a nest or a record"),
        ({"record": record_line(forged(0))["record"] | {"record_id": "0" * 32}}, "its content was changed"),
        ({"record": record_line(forged(0))["record"] | {"samples": 10**30}}, "samples to be a count"),
        ({"record": record_line(forged(0))["record"] | {"runtime_s": 10**400}}, "to be a positive number"),
        ({"record": record_line(forged(0))["record"] | {"created": "0001-01-01T00:00:00+14:00"}}, "a time"),
        ({"record": record_line(forged(0))["record"] | {"kernel": ["a"]}}, "kernel to be a non-empty string"),
        ({"record": record_line(forged(0))["record"] | {"schema_version": 10**50}}, "schema version 1"),
        ({"record": record_line(forged(0))["record"] | {"schema_version": True}}, "version 1, got True"),
        ({"record": record_line(forged(0))["record"] | {"schema_version": 1.0}}, "version 1, got 1.0"),
        ({"record": record_line(forged(0))["record"] | {"provenance": "[" * 9000}}, "text of a JSON object"),
        ({"record": record_line(forged(0))["record"] | {"provenance": '{"a":"\\ud800"}'}}, "text of a JSON"),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_told_and_passed_over(
    line: Any, reason: str, store: Store, tmp_path: Path
) -> None:
    path = write_export(tmp_path / "file", [line, nest_line(0), record_line(forged(0))])
    added = store.import_(path)
    assert (added.nests, added.records, added.refused) == (1, 1, 1)
    assert added.reasons[0].where == "line 2"
    assert reason in added.reasons[0].reason
    assert added.reasons[0].reason.isprintable()
    assert len(added.reasons[0].reason) < 400


def test_lines_and_files_have_an_end(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LONGEST_LINE", 2**16)
    monkeypatch.setattr(exchange, "SMALL", 2**24)
    monkeypatch.setattr(exchange, "MOST_REFUSED", 100)
    good = [nest_line(0), record_line(forged(0))]
    added = store.import_(
        write_export(tmp_path / "long", [*good, " " * 2**22, record_line(forged(0, samples=9))])
    )
    assert (added.nests, added.records, added.refused) == (1, 2, 1)
    assert "expected lines of at most 65536 bytes" in added.reasons[0].reason
    with pytest.raises(InputError, match=r"expands to more than 16777216 bytes"):
        store.import_(write_export(tmp_path / "blank", [nest_line(1), " " * 2**26]))
    with pytest.raises(InputError, match=r"100 lines of it cannot be used"):
        store.import_(write_export(tmp_path / "empty", [nest_line(2), *[""] * 200]))
    assert store.info().nests == 3, "what was read until then has been added"


def test_merging_checks_as_importing_does(store: Store, tmp_path: Path) -> None:
    other = hostile_store(tmp_path / "other")
    added = store.merge(other)
    assert (added.nests, added.records) == (6, 6)
    assert added.refused == other.check().refused > 10
    assert store.check() == Changed(6, 6)


# --------------------------------------------------------------------------- use


def hostile_store(folder: Path) -> Store:
    """Six nests as they should be, and beside each of them the worst."""
    store = Store.open(folder, create=True)
    fill(store, range(6))
    bad = [forged(number % 6, **changes) for number, (changes, _) in enumerate(RECORDS_TO_REFUSE.values())]
    write_rows(folder, "records", rows_of_checked(bad))
    lone = range(20, 40)  # nests with no record that could be used, nearer to everything than those of before
    near = np.stack([make_embedding(number % 6) for number in lone])
    write_rows(folder, "nests", nest_rows([make_nest(n) for n in lone], ["{"] * 20, near, ENCODER))
    write_rows(folder, "records", rows_of_checked([forged(n, schedule='{"a":1}') for n in lone]))
    named = nest_rows([replace(make_nest(50), kernel="a\nb")], ["{}"], make_embedding(0)[None], ENCODER)
    write_rows(folder, "nests", named)
    write_rows(folder, "records", rows_of_checked([forged(50, kernel="a\nb")]))
    for wrong in (np.ones(3), np.full(8, np.nan), np.zeros(8), np.zeros(0)):
        rows = nest_rows([make_nest(0)], ["{}"], np.ones((1, 8)), ENCODER).drop_columns(["embedding"])
        column = pa.array([wrong.tolist()], pa.list_(pa.float32()))
        write_rows(folder, "nests", rows.append_column("embedding", column).select(NESTS.names))
    write_rows(folder, "nests", pa.table({n: pa.nulls(1, NESTS.field(n).type) for n in NESTS.names}))
    write_rows(folder, "records", pa.table({n: pa.nulls(1, RECORDS.field(n).type) for n in RECORDS.names}))
    return Store.open(folder)


@pytest.fixture
def hostile(tmp_path: Path) -> Store:
    return hostile_store(tmp_path / "hostile")


@pytest.mark.parametrize("k", [1, 3, 6, 48])
def test_the_answer_is_the_same_with_hostile_records_as_without(k: int, hostile: Store, store: Store) -> None:
    fill(store, range(6))
    for query in (make_embedding(0), make_embedding(1000)):
        found, expected = (s.nearest(query, k, ENCODER, DEVICE) for s in (hostile, store))
        assert [n.nest for n in found] == [n.nest for n in expected]
        assert [n.distance for n in found] == pytest.approx([n.distance for n in expected], abs=1e-6)
        assert [[content(r) for r in n.records] for n in found] == [
            [content(r) for r in n.records] for n in expected
        ]
    assert not store.left_out
    if k > 5:
        assert hostile.left_out.total() == 35
    hostile.nearest(make_embedding(0), k, ENCODER, DEVICE)


def test_very_many_encoders_are_soon_read(store: Store, tmp_path: Path) -> None:
    fill(store, range(3))
    count = 4000
    rows = nest_rows([make_nest(0)] * count, ["{}"] * count, np.ones((count, 8)), ENCODER)
    names = pa.array([f"encoder{n}" for n in range(count)])
    write_rows(tmp_path / "store", "nests", rows.set_column(5, "encoder_id", names))
    started = time.process_time()
    opened = Store.open(tmp_path / "store")
    assert len(opened.widths()) == count + 1
    assert len(opened.nearest(make_embedding(1), 9, ENCODER, DEVICE)) == 3
    assert time.process_time() - started < 20


def test_bad_records_of_a_device_do_not_hide_those_of_its_kin(store: Store, tmp_path: Path) -> None:
    store.add_nests([make_nest(0)], [make_graph(0)], make_embedding(0)[None], ENCODER)
    store.add_records([make_record(0, device_fingerprint=OTHER_DEVICE)])
    expected = nearest([store], make_embedding(0), 3, ENCODER, DEVICE)
    assert [r.device_fingerprint for r in expected[0].records] == [OTHER_DEVICE]
    bad = [forged(0, schedule='{"a":1}', provenance=f'{{"n":{n}}}') for n in range(70)]
    write_rows(tmp_path / "store", "records", rows_of_checked(bad))
    assert nearest([store], make_embedding(0), 3, ENCODER, DEVICE) == expected
    assert store.devices == (OTHER_DEVICE,) and store.left_out.total() == 70
    store.add_records([make_record(0)])
    assert store.devices == (OTHER_DEVICE, DEVICE)


def content(record: Record) -> Record:
    return replace(record, created="", record_id="")


def test_whatever_a_store_hands_out_is_right(hostile: Store) -> None:
    entries = list(hostile.entries(ENCODER))
    assert {entry.nest for entry in entries} == {make_nest(number) for number in range(6)}
    for entry in entries:
        assert ProgramGraph.from_json(entry.graph_json).digest == entry.nest.digest
        assert [Recipe.from_json(record.schedule) for record in entry.records] == [Recipe()]
        assert hostile.records(entry.nest.digest) == entry.records


def test_what_cannot_be_read_does_not_keep_others_from_being_embedded(hostile: Store) -> None:
    def embed(graphs: list[str]) -> np.ndarray:
        return np.stack([make_embedding(7, 4) for _ in graphs])

    assert hostile.reembed("encoder-2", embed) == 6
    assert len(hostile.nearest(make_embedding(7, 4), 9, "encoder-2", DEVICE)) == 6


def test_a_wrong_graph_does_not_take_the_place_of_the_right_one(store: Store, tmp_path: Path) -> None:
    fill(store, range(1))
    other = nest_rows([make_nest(0)], [make_graph(1)], make_embedding(0)[None], "encoder-2")
    write_rows(tmp_path / "store", "nests", other)
    assert store.graph_json(make_nest(0).digest) == make_graph(0)


def test_a_graph_that_expands_without_end_is_left_out(store: Store, tmp_path: Path) -> None:
    fill(store, range(2))
    bomb = zstandard.compress(b" " * 2**28)
    rows = nest_rows([make_nest(3)], ["{}"], make_embedding(3)[None], ENCODER).drop_columns(["graph"])
    rows = rows.append_column("graph", pa.array([bomb])).select(NESTS.names)
    write_rows(tmp_path / "store", "nests", rows)
    assert len(list(store.entries(ENCODER))) == 2
    assert "expected a graph of at most" in next(iter(store.left_out))


def test_the_best_is_not_pruned_for_what_cannot_be(store: Store, tmp_path: Path) -> None:
    fill(store, range(1))
    write_rows(tmp_path / "store", "records", rows_of_checked([forged(0, speedup=1e9)]))
    store.prune(keep_best=1)
    assert [record.speedup for record in store.records(make_nest(0).digest)] == [2.0]


# --------------------------------------------------------------------------- check


def test_check_tells_and_prune_removes_what_fails(hostile: Store, capfd: pytest.CaptureFixture[str]) -> None:
    location = hostile.location
    assert run(["store", "check", location]) == 1
    told = capfd.readouterr()
    assert told.out == f"{location}: checked 6 nests and 6 records, refused 62\n"
    assert "pragma_import_llvm" in told.err
    assert f"`gnnperf store prune --failed-check {location}` removes them" in told.err.splitlines()[-1]
    assert run(["store", "prune", location, "--failed-check"]) == 0
    assert run(["store", "check", location, "--json"]) == 0
    assert '"nests": 6, "records": 6' in capfd.readouterr().out


def test_the_released_stores_pass() -> None:
    from gnnperf.shipped import shipped_bundle, shipped_tensor_bundle

    for folder in (shipped_bundle(), shipped_tensor_bundle()):
        store = Store.open(folder / "store")
        info = store.info()
        assert store.check() == Changed(info.nests, info.records)
        assert not store.left_out
