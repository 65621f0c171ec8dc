"""Helpers on rows of the tables: what repeats, what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LARGEST_CHUNK = 2**20
"""Rows that are copied to be one chunk."""


def keys(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """The values of some columns, row by row."""
    return zip(*(rows[name].to_pylist() for name in columns), strict=True)


def repeated_row_ids(rows: pa.Table, columns: Sequence[str]) -> list[int]:
    """`row_id` of the rows whose key occurs again further down."""
    if rows.group_by(list(columns), use_threads=False).aggregate([]).num_rows == rows.num_rows:
        return []
    last = {key: position for position, key in enumerate(keys(rows, columns))}
    repeated = np.ones(rows.num_rows, dtype=bool)
    repeated[list(last.values())] = False
    return rows["row_id"].filter(pa.array(repeated)).to_pylist()


def without(rows: pa.Table, row_ids: Sequence[int]) -> pa.Table:
    """The rows whose `row_id` is not among those."""
    if not row_ids:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["row_id"], pa.array(row_ids, pa.int64()))))


def joined(rows: pa.Table, more: pa.Table) -> pa.Table:
    """One below the other. The chunks of what comes of it halve in size, so that they are few, and a row is
    seldom copied."""
    more = more.combine_chunks()
    kept, end = rows.num_rows, more.num_rows
    for chunk in reversed(rows.column(0).chunks):
        if not len(chunk) <= 2 * end <= LARGEST_CHUNK:
            break
        kept, end = kept - len(chunk), end + len(chunk)
    last = pa.concat_tables([rows.slice(kept), more]).combine_chunks()
    return pa.concat_tables([rows.slice(0, kept), last])


class FirstOfEachKey:
    """Passes on each key once: the first row that has it, unless it was known before."""

    def __init__(self, columns: Sequence[str], known: pa.Table) -> None:
        self._columns = columns
        self._seen = set(keys(known, columns))

    def take(self, rows: pa.Table) -> pa.Table:
        """The rows with new keys, which are known from now on."""
        new = []
        for position, key in enumerate(keys(rows, self._columns)):
            if key not in self._seen:
                self._seen.add(key)
                new.append(position)
        return rows.take(pa.array(new, pa.int64()))
