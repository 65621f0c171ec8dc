"""The append-only log that `gnnperf collect` writes: interrupt it, start it again, it goes on.

A corpus folder holds `nests.jsonl` and `measurements.jsonl`. A line is written whole and flushed; what a
killed run left behind of its last line is cut off when the log is opened again. `seal` compresses the
lines into `.jsonl.zst` (one more frame), the form that is committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import zstandard

from gnnperf.errors import GnnperfError

FILES = ("nests", "measurements", "done")
"""`done` marks the entries of the configuration that need no further work."""


class CorpusLog:
    """Append to a corpus folder, knowing what is already in it.

    Attributes:
        nests: digest -> nest line. measurements: digest -> schedule id -> measurement line.
        done: keys of finished work.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._files: dict[str, IO[bytes]] = {}
            for name in FILES:
                _cut_torn_line(folder / f"{name}.jsonl")
                self._files[name] = (folder / f"{name}.jsonl").open("ab")
        except OSError as error:
            raise GnnperfError(f"cannot write the corpus folder {folder}: {error.strerror}") from None
        self.nests: dict[str, dict[str, Any]] = {line["digest"]: line for line in _lines(folder, "nests")}
        self.measurements: dict[str, dict[str, dict[str, Any]]] = {}
        for line in _lines(folder, "measurements"):
            self.measurements.setdefault(line["digest"], {})[line["schedule_id"]] = line
        self.done: set[str] = {line["key"] for line in _lines(folder, "done")}

    def add_nest(self, line: Mapping[str, Any]) -> None:
        """Add a nest, once."""
        if line["digest"] not in self.nests:
            self.nests[line["digest"]] = dict(line)
            self._append("nests", line)

    def add_measurement(self, line: Mapping[str, Any]) -> None:
        self.measurements.setdefault(line["digest"], {})[line["schedule_id"]] = dict(line)
        self._append("measurements", line)

    def mark_done(self, key: str) -> None:
        self.done.add(key)
        self._append("done", {"key": key})

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def seal(self) -> None:
        """Compress what was collected; the log stays resumable."""
        self.close()
        for name in FILES:
            plain, packed = self.folder / f"{name}.jsonl", self.folder / f"{name}.jsonl.zst"
            frame = zstandard.ZstdCompressor(level=19).compress(plain.read_bytes())
            temporary = packed.with_suffix(".tmp")
            temporary.write_bytes((packed.read_bytes() if packed.exists() else b"") + frame)
            temporary.replace(packed)
            plain.unlink()

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        file = self._files[name]
        try:
            file.write((json.dumps(line, separators=(",", ":")) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise GnnperfError(
                f"cannot write {self.folder / name}.jsonl: {error.strerror}; make room and start again, "
                "nothing collected so far is lost"
            ) from None


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)


def _lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    packed, plain = folder / f"{name}.jsonl.zst", folder / f"{name}.jsonl"
    text = b""
    if packed.exists():
        with packed.open("rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    text += plain.read_bytes() if plain.exists() else b""
    yield from (json.loads(line) for line in text.splitlines() if line.strip())
