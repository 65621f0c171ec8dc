"""Files that appear only when they are complete, and archives that are what was written."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from gnnperf.documents import check_expansion, replacing
from gnnperf.errors import InputError


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write the parts one after another; what was there is replaced in one step. Raises InputError if it
    cannot be written."""
    try:
        with replacing(path) as partial, partial.open("wb") as file:
            for part in parts:
                file.write(part)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another folder") from error


def check_archive(path: Path) -> None:
    """Raises InputError where a part of an artefact, an archive of torch, is not what its checksum says.

    torch itself loads such a file without a word.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_expansion(archive, path.stat().st_size)
            damaged = archive.testzip()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; name a file of `gnnperf export`") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; write it again with `gnnperf export`") from error
    if damaged is not None:
        raise InputError(
            f"{path}: {damaged}: the checksum is not the one that was written; write it again with "
            "`gnnperf export`"
        )
