"""What may be a record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from store.samples import make_record

from gnnperf.errors import InputError
from gnnperf.store.schema import RECORDS, Record, checked, content_id, record_rows, to_records


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "fine"}, "expected a status among ok, wrong_result, .*, got 'fine'"),
        ({"nest_digest": ""}, "expected nest_digest to be a non-empty string, got ''"),
        ({"device_fingerprint": None}, "expected device_fingerprint to be a non-empty string, got None"),
        ({"runtime_s": None}, "expected runtime_s with status ok, got none"),
        ({"runtime_s": float("nan")}, "expected runtime_s to be a positive number, got nan"),
        ({"interval_hi_s": float("inf")}, "expected interval_hi_s to be a positive number, got inf"),
        ({"speedup": -1.0}, "expected speedup to be a positive number, got -1.0"),
        ({"baseline_s": "fast"}, "expected baseline_s to be a positive number, got 'fast'"),
        ({"samples": 1.5}, "expected samples to be a count, got 1.5"),
        ({"samples": -1}, "expected samples to be a count, got -1"),
        ({"schedule": "tile 8"}, "schedule: expected the text of a JSON object, got 'tile 8'"),
        ({"schedule": {"tile": 8}}, "schedule: expected the text of a JSON object"),
        ({"provenance": "[]"}, "provenance: expected the text of a JSON object"),
        ({"created": "yesterday"}, "created: expected a time with its zone, such as 20.*, got 'yesterday'"),
        ({"created": "2026-01-01T00:00:00"}, "created: expected a time with its zone"),
        ({"schema_version": 2}, "expected schema version 1, got 2"),
        ({"record_id": "0" * 32}, "expected record_id .*, got 0000.*; its content was changed"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(replace(make_record(0), **changes))


def test_failures_have_no_figures() -> None:
    failure = make_record(0, status="timeout")
    assert checked(failure).runtime_s is None
    for name in ("runtime_s", "interval_lo_s", "interval_hi_s", "speedup"):
        with pytest.raises(InputError, match=f"expected no {name} with status timeout"):
            checked(replace(failure, **{name: 1.0}))


def test_records_that_mean_the_same_have_one_id() -> None:
    record = make_record(0, baseline_s=2.0, samples=7, created="2026-01-01T12:00:00.000000+00:00")
    same = replace(
        record,
        baseline_s=np.float32(2),
        samples=np.int64(7),
        schedule='{"version": 1,\n "kind": "recipe"}',
        created="2026-01-01T13:00:00+01:00",
    )
    assert checked(same) == checked(record)
    assert checked(checked(record)) == checked(record)
    for name in Record.__slots__:
        if name != "record_id":
            assert content_id(replace(record, **{name: "other"})) != content_id(record), name


def test_rows_and_records_convert_both_ways() -> None:
    records = [checked(make_record(0)), checked(make_record(1, status="run_error", baseline_s=None))]
    rows = record_rows(records)
    assert rows.schema.equals(RECORDS, check_metadata=True)
    assert to_records(rows) == records
    assert len(set(rows["row_id"].to_pylist())) == 2
