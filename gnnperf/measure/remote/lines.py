"""Files of JSON lines that are appended to: what packs and their measurements are written as.

The format of `TensorLog` in gnnperf.tuning, which opens, goes on with and seals what is written here; this
one does without zstandard, so that it works where little is installed.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gnnperf.errors import CorpusError


class LineLog:
    """Files `NAME.jsonl` of a folder, which one process at a time writes. Every method raises CorpusError.

    Attributes:
        lines: name -> the lines of that file, those added among them.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self.lines: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        self._files: dict[str, IO[bytes]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                if (folder / f"{name}.jsonl.zst").exists():
                    raise CorpusError(
                        f"{folder} was sealed: expected a log that is still written; give another"
                    )
                path = folder / f"{name}.jsonl"
                self._files[name] = path.open("ab", buffering=0)
                fcntl.flock(self._files[name], fcntl.LOCK_EX | fcntl.LOCK_NB)
                cut_torn_line(path)
                self.lines[name] += read_json_lines(path)
        except BlockingIOError:
            self.close()
            raise CorpusError(
                f"another process writes {folder}; wait for it, or give another folder"
            ) from None
        except OSError as error:
            self.close()
            raise CorpusError(f"cannot write {folder}: {error.strerror}; give another folder") from None
        except BaseException:
            self.close()
            raise

    def add(self, name: str, *lines: Mapping[str, Any]) -> None:
        """Append to one file; on the disk when this returns."""
        try:
            append_lines(self._files[name], lines)
        except OSError as error:
            raise CorpusError(f"cannot write {self.folder}: {error.strerror}; make room and go on") from None
        self.lines[name] += map(dict, lines)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def append_lines(file: IO[bytes], lines: Iterable[Mapping[str, Any]]) -> None:
    """Append JSON lines to a file that was opened without a buffer; on the disk when this returns. Raises
    OSError."""
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    while data:  # a disk that is almost full takes a part
        data = data[file.write(data) :]
    os.fsync(file.fileno())


def cut_torn_line(path: Path) -> None:
    """Cut off what an interrupted writer left of the last line of a file. Raises OSError."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; what an interrupted writer left of a last one is left out. Raises CorpusError."""
    try:
        found = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: expected JSON lines ({error}); restore it, or write it again") from None
    if not all(isinstance(line, dict) for line in found):
        raise CorpusError(f"{path}: expected one JSON object a line; restore it, or write it again")
    return found
