"""Damaged and hostile files end in one line and exit code 2, never in a crash. Runs under sanitizers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from gnnperf.errors import InputError
from gnnperf.export import write_flat
from gnnperf.graph import ProgramGraph

GEMM = (GOLDEN / "graphs" / "gemm.json").read_text()
VALUES = (
    None,
    True,
    -1,
    0,
    1,
    2**63,
    2**64,
    10**300,
    -1e308,
    0.5,
    "",
    "loop",
    "none",
    "ÿ",
    [],
    [[]],
    {},
    {"add": 1},
)
KINDS = ("loop", "buffer", "access", "compute", "intrinsic")


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Paths to everything in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(text: str, path: tuple[object, ...], value: object) -> str:
    """The document with one value replaced, or removed where it is `...`."""
    document = json.loads(text)
    if not path:
        return json.dumps(value if value is not ... else None)
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(document)


def mutants() -> Iterator[bytes]:
    """Some hundreds of damaged graphs, the same every time."""
    chance = random.Random(0)
    raw = GEMM.encode()
    for _ in range(80):
        yield raw[: chance.randrange(len(raw))]
    for _ in range(120):
        flipped = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            flipped[chance.randrange(len(raw))] = chance.randrange(256)
        yield bytes(flipped)
    everywhere = [*places(json.loads(GEMM))]
    for _ in range(250):
        yield replaced(GEMM, chance.choice(everywhere), chance.choice((..., *VALUES))).encode()
    loop = {"kind": "loop", "features": {"loop_kind": "spatial"}}
    ring = [{"source": i, "target": (i + 1) % 3, "kind": "contains", "features": {}} for i in range(3)]
    graph = {"schema_version": 1, "nodes": [loop] * 3, "edges": ring, "values": {}}
    yield json.dumps(graph).encode()  # loops that contain one another
    yield json.dumps({**graph, "nodes": [], "edges": []}).encode()
    yield json.dumps({**graph, "edges": ring * 2000}).encode()
    yield b"[" * 100_000
    yield b'{"a":' * 100_000
    yield b'{"schema_version": 1, "nodes": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    yield b"\x00" * 1000
    yield b"1e999"
    yield b'{"schema_version": 1e400}'


def accepted(text: bytes) -> bool:
    try:
        ProgramGraph.from_json(text.decode())
    except (InputError, UnicodeDecodeError, RecursionError, OverflowError, ValueError):
        return False
    return True


def outcomes(drive: Callable[..., str], files: list[Path]) -> list[str]:
    """What the driver says of each file; it must survive them all."""
    lines = drive(*files).splitlines()
    assert len(lines) == len(files)
    return lines


def test_damaged_graphs(drive: Callable[..., str], tmp_path: Path) -> None:
    texts = [*mutants()]
    assert len(texts) > 400
    files = [tmp_path / f"{i}.json" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    found = outcomes(drive, files)
    refused = [line for line in found if line != "ok"]
    assert len(refused) > 300
    assert all("expected" in line or "got" in line or "may not join" in line for line in refused)
    # C++ reads what Python reads; it may be stricter about what is no JSON number or UTF-8.
    differ = [
        (text[:60], line)
        for text, line in zip(texts, found, strict=True)
        if line == "ok" and not accepted(text) and len(text) < 50_000
    ]
    assert not differ


@pytest.mark.parametrize("lists", [False, True])
def test_damaged_stores(
    drive: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lists: bool
) -> None:
    whole = small_store(tmp_path / "whole.gnnstore", monkeypatch, lists).read_bytes()
    chance = random.Random(1)
    header = 20 + int.from_bytes(whole[12:16], "little")
    files = []
    for i in range(150):
        data = bytearray(whole[: chance.randrange(len(whole))] if i < 50 else whole)
        reach = (len(data), header, 16)[i % 3]  # anywhere, in the header, in what comes before it
        for _ in range(3):
            if data and i > 20:
                data[chance.randrange(min(len(data), reach))] = chance.randrange(256)
        files.append(tmp_path / f"{i}.gnnstore")
        files[-1].write_bytes(data)
    found = outcomes(drive, [tmp_path / "whole.gnnstore", *files])
    assert found[0] == "ok"
    assert sum(line != "ok" for line in found) > 90
    assert all("expected" in line or "again" in line for line in found if line != "ok")


def small_store(path: Path, monkeypatch: pytest.MonkeyPatch, lists: bool) -> Path:
    """A store of sixty made-up nests; with lists, as only large ones have them."""
    monkeypatch.setattr("gnnperf.export.flat_store.WORTH_IT", 10 if lists else 1000)
    vectors = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lines = [json.dumps({"digest": str(i), "records": []}).encode() + b"\n" for i in range(60)]
    header = write_flat(path, "e", vectors, {"a": np.ones(60, bool)}, lines, 0)
    assert (header["lists"] > 0) == lists
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GEMM[:500], "expected JSON"),
        ("[]", "expected a program graph of schema version 1, got none"),
        (replaced(GEMM, ("schema_version",), 7), "expected a program graph of schema version 1, got 7"),
        (replaced(GEMM, ("nodes", 0, "kind"), "goto"), "expected a node kind out of loop, buffer, access"),
        (replaced(GEMM, ("edges", 0, "source"), 999), "expected source to be a node below"),
        (replaced(GEMM, ("edges", 0, "source"), -1), "expected source to be a node below"),
        (replaced(GEMM, ("nodes", 0, "features", "speed"), 1), "got the field 'speed', which it cannot have"),
        (replaced(GEMM, ("values", "total_flops"), "many"), "expected another kind of value for the field"),
    ],
)
def test_the_tool_says_what_is_wrong_and_exits_with_2(
    refusal: Callable[..., str], exported: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "graph.json").write_text(text)
    line = refusal("embed", exported / "model.pt", tmp_path / "graph.json")
    assert message in line and "graph.json" in line
