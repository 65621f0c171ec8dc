"""Append-only logs of JSON lines in a folder: interrupt what writes one, start it again, it goes on.

A line is written whole and flushed; what a killed run left behind of its last line is cut off when the log is
opened again. `seal` compresses the lines into `.jsonl.zst` (one more frame), the form that is committed. One
process at a time writes.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import zstandard

from gnnperf.corpus.lines import read_lines
from gnnperf.errors import CorpusError
from gnnperf.measure.remote.lines import append_lines, cut_torn_line


class AppendLog:
    """Files of one log, named in `FILES`. Every method raises CorpusError."""

    FILES: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, IO[bytes]] = {}
        try:
            self._open()
            for name in self.FILES:
                for _, line in read_lines(folder, name, CorpusError):
                    self._know(name, line)
        except BaseException:
            self.close()
            raise

    def _know(self, name: str, line: dict[str, Any]) -> None:
        """Take note of a line, read or added."""
        raise NotImplementedError

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in self.FILES:
                path = self.folder / f"{name}.jsonl"
                self._files[name] = path.open("ab", buffering=0)
                fcntl.flock(self._files[name], fcntl.LOCK_EX | fcntl.LOCK_NB)
                cut_torn_line(path)
        except BlockingIOError:
            raise CorpusError(
                f"another process is collecting into {self.folder}; wait for it, or give another folder"
            ) from None
        except OSError as error:
            raise CorpusError(
                f"cannot write the corpus folder {self.folder}: {error.strerror}; give another folder"
            ) from None

    def _append(self, name: str, *lines: Mapping[str, Any]) -> None:
        try:
            append_lines(self._files[name], lines)
        except OSError as error:
            raise self._cannot_write(error) from None

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def seal(self) -> None:
        """Compress what was collected, and close. Opened again, the log goes on."""
        try:
            for name in self.FILES:
                _pack(self.folder / f"{name}.jsonl", self.folder / f"{name}.jsonl.zst")
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            self.close()

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
