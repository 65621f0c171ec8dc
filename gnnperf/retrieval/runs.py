"""Files of what was run on GPUs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from gnnperf.errors import InputError, first_line


def read_csv(path: Path) -> pa.Table:
    """A table with a line of names. Raises InputError where the file is none."""
    try:
        table = pyarrow.csv.read_csv(path)
        table.column_names  # noqa: B018  (they may be no text)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path} as CSV: {first_line(error)}") from None
    return table
