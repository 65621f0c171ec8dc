"""Files that appear only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gnnperf.errors import InputError


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> int:
    """Write the parts one after another; what was there is replaced in one step. Returns the size in bytes.

    Raises InputError if it cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        try:
            with partial.open("wb") as file:
                for part in parts:
                    file.write(part)
                size = file.tell()
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another folder") from error
    return size
