"""Reading logs of JSON lines: `NAME.jsonl.zst`, the committed form, then `NAME.jsonl`, as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

from gnnperf.errors import GnnperfError, InputError

RESTORE = "restore it, or collect it again"


def read_lines(
    folder: Path,
    name: str,
    error: type[GnnperfError] = InputError,
    advice: str = "remove the line, or restore the file",
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) of each line of the two files, as far as they exist.

    What an interrupted writer left of a last line is not read. Raises `error`, whose message ends in the
    `advice`, where a line is damaged.
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
                raise error(f"{where}: expected a JSON object ({reason}); {advice}") from None
            if not isinstance(found, dict):
                raise error(f"{where}: expected a JSON object, got {type(found).__name__}; {advice}")
            yield where, found


def read_corpus_lines(
    folder: Path, name: str, keys: Sequence[str], corpus: str, collector: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same of a log that must be there, with lines that must have `keys`. Raises InputError.

    corpus, collector: what the folder is, and what writes one, in words.
    """
    if not log_files(folder, name):
        raise InputError(
            f"expected {corpus} with {name}.jsonl or {name}.jsonl.zst, got {folder}; "
            f"give the folder that {collector} wrote"
        )
    for where, found in read_lines(folder, name):
        if missing := [key for key in keys if key not in found]:
            raise InputError(f"{where}: expected the key {missing[0]!r}, got none; collect it again")
        yield where, found


def log_files(folder: Path, name: str) -> list[Path]:
    """Those of the two files that exist."""
    return [f for f in (folder / f"{name}.jsonl.zst", folder / f"{name}.jsonl") if f.is_file()]


def _content(file: Path, error: type[GnnperfError]) -> bytes:
    try:
        if file.suffix != ".zst":
            return file.read_bytes()
        with file.open("rb") as compressed:
            return zstandard.ZstdDecompressor().stream_reader(compressed, read_across_frames=True).read()
    except (OSError, zstandard.ZstdError) as reason:
        raise error(f"cannot read {file}: {reason}; {RESTORE}") from None
