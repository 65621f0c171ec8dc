"""The rows that a benchmark has measured: interrupt it, start it again, it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnnperf.documents import replacing
from gnnperf.errors import InputError

FILE = "rows.jsonl"


class RowLog:
    """Rows by name, appended to `rows.jsonl` in a folder as they are measured.

    folder: None keeps rows in memory alone. settings: what the rows were measured with, as JSON values; rows
    that were measured with others do not belong in the same table. Raises InputError where the folder holds
    such rows.

    A row with failures is not taken from the folder: it is measured again. What a killed run left of its
    last line is left out, and written over.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._path = folder and folder / FILE
        if self._path is not None:
            self._read(self._path, dict(settings))

    def _read(self, path: Path, settings: dict[str, Any]) -> None:
        header, self.rows = read_rows(path) or (settings, {})
        if differing := sorted(key for key in {*settings, *header} if settings.get(key) != header.get(key)):
            key = differing[0]
            raise InputError(
                f"expected an empty folder or rows measured with {key} {settings.get(key)!r}, "
                f"got {header.get(key)!r} in {path}; choose another folder"
            )
        kept = [header, *({"name": name, "row": row} for name, row in self.rows.items())]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            with replacing(path) as partial:
                partial.write_text(text, encoding="utf-8")

    def add(self, name: str, row: Mapping[str, Any]) -> None:
        """row: JSON values. Raises OSError where it cannot be written."""
        self.rows[name] = dict(row)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": name, "row": row}) + "\n")


def read_rows(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]] | None:
    """What the rows of a file were measured with, and those without failures, by name; None where there is
    nothing."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return None
    header, *lines = map(json.loads, whole.splitlines())
    return header, {line["name"]: line["row"] for line in lines if not line["row"].get("failures")}
