"""Which rows of a store may go. Nothing is removed here."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from gnnperf.store.checks import record_problem
from gnnperf.store.schema import Record
from gnnperf.store.snapshot import NestIndex, RecordIndex


def prunable_records(
    index: RecordIndex, keep_best: int | None, failures_before: datetime | None
) -> list[int]:
    """`row_id` of repeated records and of those `Store.prune` describes."""
    drop, rows = list(index.superseded), index.rows
    if keep_best is not None:
        ok = rows.filter(pc.equal(rows["status"], "ok"))
        drop += _beyond_best(ok.sort_by([("created", "descending")]).to_pylist(), keep_best)
    if failures_before is not None:
        # `created` is ISO 8601 in UTC with microseconds: it sorts as text.
        old = pc.less(rows["created"], failures_before.isoformat(timespec="microseconds"))
        failed = pc.not_equal(rows["status"], "ok")
        drop += rows.filter(pc.and_(old, failed))["row_id"].to_pylist()
    return drop


def _beyond_best(newest_first: list[dict[str, Any]], keep_best: int) -> list[int]:
    """`row_id` of all but the newest record of each of the fastest schedules. What is not believed does not
    compete, and stays: see `Store.check`.

    Speedups are compared under one baseline only; runtimes are not, as one fingerprint covers machines of
    different speed.
    """
    drop: list[int] = []
    groups: dict[tuple[str, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in newest_first:
        if record_problem(Record(**{name: row[name] for name in Record.__slots__})):
            continue
        newest = groups[row["nest_digest"], row["device_fingerprint"], row["baseline"]]
        if row["schedule"] in newest:
            drop.append(row["row_id"])
        else:
            newest[row["schedule"]] = row
    for newest in groups.values():
        ranked = sorted(newest.values(), key=lambda row: row["speedup"], reverse=True)
        drop += [row["row_id"] for row in ranked[keep_best:]]
    return drop


def prunable_embeddings(index: NestIndex, encoder_id: str | None) -> list[int]:
    """`row_id` of updated embeddings and, given an encoder, of others' of the nests it has embedded."""
    drop = list(index.superseded)
    mine = index.embeddings(encoder_id) if encoder_id is not None else None
    if mine is not None:
        rows = index.rows
        other = pc.not_equal(rows["encoder_id"], encoder_id)
        replaced = pc.is_in(rows["digest"], mine.rows["digest"])
        drop += rows.filter(pc.and_(other, replaced))["row_id"].to_pylist()
    return drop
