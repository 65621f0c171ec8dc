"""Files that hold a page for people: whether they can be written, asked early."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click


def page_option() -> click.Option:
    """`--report FILE.html`. A file that cannot be written is refused before any work is done for it."""
    return click.Option(
        ["--report", "page_path"], type=click.Path(path_type=Path), metavar="FILE.html",
        callback=lambda ctx, param, path: path if path is None else check_page(path, "--report"),
        help="Also write what is found as a page for people: one HTML file that needs nothing else.",
    )  # fmt: skip


def check_page(path: Path, option: str) -> Path:
    """The path, if a page can be written there. Raises InputError."""
    from gnnperf.errors import InputError

    if path.is_dir():
        raise InputError(f"{option}: expected a file to write, got the folder {path}; name a file in it")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{option}: expected a file that can be written, got {path}: {error.strerror}; choose another"
        ) from None
    return path
