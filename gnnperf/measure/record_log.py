"""An append-only log of measurements in a folder: interrupt what writes one, start it again, it goes on.

tasks.jsonl    one line per task: what was measured, its baseline, the machine
records.jsonl  one line per schedule of a task: its status and times
done.jsonl     what needs no further work, and how it ended

A line is written whole and is on the disk before anything else happens; what a killed run left behind of its
last line is cut off when the log is opened again. `seal` compresses the lines into `NAME.jsonl.zst` (one more
frame), the form that is committed; lines added later are plain again and count after the sealed ones. One
process at a time writes.

Light: the standard library and, for sealed files, zstandard, because packs take this module along.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

from gnnperf.documents import EXPANSION, SMALL, replacing
from gnnperf.errors import CorpusError, GnnperfError, InputError

FILES = ("tasks", "records", "done")
Line: TypeAlias = dict[str, Any]
Known: TypeAlias = tuple[dict[str, Line], dict[str, dict[str, Line]], dict[str, Line]]
"""`tasks`, `records` and `done` of a log."""
Message: TypeAlias = tuple[str, Any]
"""One of FILES and lines of it; or another word and a text for people."""


class RecordLog:
    """Append to a log, knowing what is already in it. Every method that writes raises CorpusError.

    Attributes:
        tasks: `task` -> its first line. records: `task` -> `schedule_id` -> its last line.
        done: `key` of finished work -> its last line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks: dict[str, Line] = {}
        self.records: dict[str, dict[str, Line]] = {}
        self.done: dict[str, Line] = {}
        self._files: dict[str, IO[bytes]] = {}
        try:
            self._open()
            for name in FILES:
                for where, line in read_lines(folder, name, CorpusError):
                    try:
                        self._know(name, line)
                    except KeyError as key:
                        raise CorpusError(f"{where}: expected the key {key}, got none; {REMOVE}") from None
                    except TypeError as error:  # a list or a mapping has no hash
                        raise CorpusError(f"{where}: expected names as text ({error}); {REMOVE}") from None
        except BaseException:
            self.close()
            raise

    def _know(self, name: str, line: Line) -> None:
        if name == "tasks":
            self.tasks.setdefault(line["task"], line)
        elif name == "records":
            self.records.setdefault(line["task"], {})[line["schedule_id"]] = line
        else:
            self.done[line["key"]] = line

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                path = self.folder / f"{name}.jsonl"
                self._files[name] = path.open("ab", buffering=0)
                fcntl.flock(self._files[name], fcntl.LOCK_EX | fcntl.LOCK_NB)
                content = path.read_bytes()
                os.truncate(path, content.rfind(b"\n") + 1)  # a torn last line
        except BlockingIOError:
            raise CorpusError(
                f"another process is collecting into {self.folder}; wait for it, or give another folder"
            ) from None
        except OSError as error:
            raise CorpusError(
                f"cannot write the corpus folder {self.folder}: {error.strerror}; give another folder"
            ) from None

    def require_device(self, fingerprint: str) -> None:
        """What was measured on unlike devices does not compare. Raises InputError where the log is of others
        than this one."""
        devices = [line.get("device") for line in self.tasks.values()]
        known = {str(device.get("fingerprint")) for device in devices if isinstance(device, Mapping)}
        if known and fingerprint not in known:
            raise InputError(
                f"expected a folder with measurements of {fingerprint}, this machine, got {self.folder} with "
                f"some of {', '.join(sorted(known))}; give another folder"
            )

    def add(self, name: str, *lines: Mapping[str, Any]) -> None:
        """Add lines to one of FILES; a task that is known already is not added again."""
        new = [dict(line) for line in lines if name != "tasks" or line["task"] not in self.tasks]
        for line in new:
            self._know(name, line)
        self._append(name, new)

    def receiving(self, say: Callable[[str], None]) -> Callable[[Message], None]:
        """What takes the messages of processes that do not hold the files: adds lines, tells `say` texts."""

        def receive(message: Message) -> None:
            name, content = message
            if name in FILES:
                self.add(name, *content)
            else:
                say(content)

        return receive

    def mark_done(self, key: str, **details: Any) -> None:
        """Say that work is finished, and how it ended."""
        self.add("done", {"key": key, **details})

    def _append(self, name: str, lines: Iterable[Line]) -> None:
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        file = self._files[name]
        try:
            while data:  # a disk that is almost full takes a part
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except OSError as error:
            raise self._cannot_write(error) from None

    @property
    def known(self) -> Known:
        """A copy of what is in it."""
        return dict(self.tasks), {task: dict(found) for task, found in self.records.items()}, dict(self.done)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def seal(self) -> None:
        """Compress what was collected, and close. Opened again, the log goes on."""
        try:
            for name in FILES:
                _seal(self.folder / f"{name}.jsonl", self.folder / f"{name}.jsonl.zst")
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            self.close()

    def _cannot_write(self, error: OSError) -> CorpusError:
        return CorpusError(
            f"cannot write the corpus folder {self.folder}: {error.strerror}; make room and start again, "
            "nothing collected so far is lost"
        )


class RelayedLog(RecordLog):
    """For a process that does not hold the files: what is added to it is sent to the one that does (see
    `receiving`). known: of the log there."""

    def __init__(self, known: Known, send: Callable[[Message], None]) -> None:
        self.tasks, self.records, self.done = known
        self._files = {}
        self._send = send

    def _append(self, name: str, lines: Iterable[Line]) -> None:
        self._send((name, list(lines)))


REMOVE = "remove the line, or restore the file"


def read_lines(folder: Path, name: str, error: type[GnnperfError] = InputError) -> Iterator[tuple[str, Line]]:
    """(where, line) of one of FILES, the sealed part first; nothing where there is no such file.

    What an interrupted writer left of a last line is not read. Raises `error` where a line is damaged.
    """
    for file in log_files(folder, name):
        lines = _content(file, error).split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{file} line {number}"
            try:
                found = json.loads(line)
            except ValueError as reason:
                if number == len(lines):  # no newline after it: the writer was interrupted here
                    continue
                raise error(f"{where}: expected a JSON object ({reason}); {REMOVE}") from None
            if not isinstance(found, dict):
                raise error(f"{where}: expected a JSON object, got {type(found).__name__}; {REMOVE}")
            yield where, found


def log_files(folder: Path, name: str) -> list[Path]:
    """Those of the two files of `name` that exist, in the order of reading."""
    return [f for f in (folder / f"{name}.jsonl.zst", folder / f"{name}.jsonl") if f.is_file()]


def _seal(plain: Path, packed: Path) -> None:
    """Move the lines of one file into a new frame of the other."""
    compressor = _zstandard(packed, CorpusError).ZstdCompressor(level=19, write_checksum=True)
    frame = compressor.compress(plain.read_bytes())
    with replacing(packed) as new:
        new.write_bytes((packed.read_bytes() if packed.exists() else b"") + frame)
    plain.unlink()


def _content(file: Path, error: type[GnnperfError]) -> bytes:
    try:
        if file.suffix != ".zst":
            return file.read_bytes()
        zstandard = _zstandard(file, error)
        most = max(SMALL, EXPANSION * file.stat().st_size)
        with file.open("rb") as packed:
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            content: bytes = reader.read(most + 1)
        if len(content) > most:
            raise ValueError(f"it expands to more than {most} bytes")
        return content
    except GnnperfError:
        raise
    except Exception as reason:  # ZstdError, which is only known where zstandard is, has no other base
        raise error(f"cannot read {file}: {reason}; restore it, or collect it again") from None


def _zstandard(file: Path, error: type[GnnperfError]) -> Any:
    try:
        import zstandard
    except ImportError:
        raise error(f"{file} needs zstandard: pip install zstandard, or give another folder") from None
    return zstandard
