"""The append-only log that `gnnperf collect` writes: interrupt it, start it again, it goes on.

A corpus folder holds `nests.jsonl`, `measurements.jsonl` and `done.jsonl`. A line is written whole and
flushed; what a killed run left behind of its last line is cut off when the log is opened again. `seal`
compresses the lines into `.jsonl.zst` (one more frame), the form that is committed. One process at a time
writes.
"""

from __future__ import annotations

import copy
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import zstandard

from gnnperf.errors import CorpusError

FILES = ("nests", "measurements", "done")
"""`done` says what needs no further work, and how it ended."""


class CorpusLog:
    """Append to a corpus folder, knowing what is already in it. Every method raises CorpusError.

    Attributes:
        nests: digest -> nest line. measurements: digest -> schedule id -> measurement line.
        done: key of finished work -> its line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self.nests: dict[str, dict[str, Any]] = {}
        self.measurements: dict[str, dict[str, dict[str, Any]]] = {}
        self.done: dict[str, dict[str, Any]] = {}
        try:
            self._open()
            self._read()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                path = self.folder / f"{name}.jsonl"
                self._files[name] = path.open("ab", buffering=0)
                fcntl.flock(self._files[name], fcntl.LOCK_EX | fcntl.LOCK_NB)
                _cut_torn_line(path)
        except BlockingIOError:
            raise CorpusError(
                f"another process is collecting into {self.folder}; wait for it, or give another folder"
            ) from None
        except OSError as error:
            raise CorpusError(
                f"cannot write the corpus folder {self.folder}: {error.strerror}; give another folder"
            ) from None

    def _read(self) -> None:
        for name in FILES:
            for line in _lines(self.folder, name):
                self._know(name, line)

    def _know(self, name: str, line: dict[str, Any]) -> None:
        if name == "nests":
            self.nests[line["digest"]] = line
        elif name == "measurements":
            self.measurements.setdefault(line["digest"], {})[line["schedule_id"]] = line
        else:
            self.done[line["key"]] = line

    def add(self, name: str, line: Mapping[str, Any]) -> None:
        """Add a line to one of FILES; a nest that is known already is not added again."""
        if name != "nests" or line["digest"] not in self.nests:
            self._know(name, dict(line))
            self._append(name, line)

    def mark_done(self, key: str, **details: Any) -> None:
        """Say that work is finished, and how it ended."""
        self.add("done", {"key": key, **details})

    def relayed(self, send: Callable[[tuple[str, Mapping[str, Any]]], None]) -> CorpusLog:
        """A copy for a process that does not hold the files: what is added to it is sent, as the arguments
        of `add`, to the one that does."""
        log = copy.copy(self)
        log.nests, log.done = dict(self.nests), dict(self.done)
        log.measurements = {digest: dict(of_nest) for digest, of_nest in self.measurements.items()}
        log._append = lambda name, line: send((name, line))  # type: ignore[method-assign]
        return log

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def seal(self) -> None:
        """Compress what was collected, and close. Opened again, the log goes on."""
        try:
            for name in FILES:
                _pack(self.folder / f"{name}.jsonl", self.folder / f"{name}.jsonl.zst")
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            self.close()

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        file = self._files[name]
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        try:
            while data:  # a disk that is almost full takes a part
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except OSError as error:
            raise self._cannot_write(error) from None

    def _cannot_write(self, error: OSError) -> CorpusError:
        return CorpusError(
            f"cannot write the corpus folder {self.folder}: {error.strerror}; make room and start again, "
            "nothing collected so far is lost"
        )


def _pack(plain: Path, packed: Path) -> None:
    """Move the lines of one file into a new frame of the other."""
    frame = zstandard.ZstdCompressor(level=19).compress(plain.read_bytes())
    temporary = packed.with_suffix(".tmp")
    try:
        temporary.write_bytes((packed.read_bytes() if packed.exists() else b"") + frame)
        temporary.replace(packed)
    finally:
        temporary.unlink(missing_ok=True)
    plain.unlink()


def _cut_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)


def _lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    for path in (folder / f"{name}.jsonl.zst", folder / f"{name}.jsonl"):
        for number, line in enumerate(_content(path).splitlines(), start=1):
            try:
                yield json.loads(line)
            except ValueError:
                raise CorpusError(
                    f"line {number} of {path} is damaged; remove it, or restore the file"
                ) from None


def _content(path: Path) -> bytes:
    if not path.exists():
        return b""
    try:
        if path.suffix != ".zst":
            return path.read_bytes()
        with path.open("rb") as file:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    except (OSError, zstandard.ZstdError) as error:
        raise CorpusError(f"cannot read {path}: {error}; restore the file") from None
