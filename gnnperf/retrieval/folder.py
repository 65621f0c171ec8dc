"""The folder that a verb writes its results to, whatever the frontend."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gnnperf.errors import InputError

LIBRARY, SCRIPT, REPORT = "libkernel.so", "run.py", "report.json"


def check_output(folder: Path) -> None:
    """Refuse early, before minutes of work: InputError where the folder cannot be written."""
    if folder.is_file():
        raise InputError(f"--output: expected a folder, but '{folder}' is a file; choose another")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"--output: expected a folder that can be written, got {folder}: {error.strerror}; choose another"
        ) from None
