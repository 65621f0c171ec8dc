"""Retrieval from a store of which strangers wrote a part: the same answers, and what the checks take.

`python -m benchmarks.hostile_share CHECKPOINT HOSTILE`: two checkpoints, of whose stores the second has
hostile rows besides. Prints what the checks of a first query took, and how many answers differ, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.options import with_scripts
from gnnperf.devices import describe_host
from gnnperf.retrieval.neighbours import nearest
from gnnperf.store import Record, Store, StoredNest
from gnnperf.store import store as checking
from gnnperf.store.schema import content_id, nest_rows, rows_of_checked
from gnnperf.store.tables import open_tables

EVERY = 20
"""One hostile row for so many that are right."""
SOME = 8
"""One nest of so many is asked for."""
K = 48
"""Neighbours, as retrieval asks for."""
CODE = '{"trace":[[["Annotate",["l1","code"],["pragma_import_llvm"],[]]],[]]}'
HOSTILE: tuple[dict[str, Any], ...] = (
    {"schedule": CODE, "schedule_kind": "trace"},
    {"schedule": '{"a":1}'},
    {"speedup": 1e9},
    {"kernel": "../../etc/passwd"},
    {"interval_hi_s": 1e-30},
)
"""What differs from a record that is right."""


def hostile_copy(checkpoint: Path, folder: Path) -> None:
    """A checkpoint in whose store one row of twenty is hostile. Those records would be ranked first; the
    nests are as near as others, and have nothing else."""
    shutil.copytree(checkpoint, folder)
    entries = _entries(Store.open(folder / "store"))
    nests, records = open_tables(str(folder / "store"), create=False)
    right = [record for entry in entries for record in entry.records if record.status == "ok"]
    lone = entries[::EVERY]
    named = [dataclasses.replace(e.nest, digest=f"{n:032x}") for n, e in enumerate(lone)]
    vectors = np.stack([e.embedding for e in lone if e.embedding is not None])
    nests.append(nest_rows(named, ["{"] * len(named), vectors, _encoder(folder)))
    bad = [_forged(record, n) for n, record in enumerate(right[::EVERY])]
    bad += [
        _forged(dataclasses.replace(right[0], nest_digest=nest.digest), n) for n, nest in enumerate(named)
    ]
    records.append(rows_of_checked(bad))


def _forged(record: Record, number: int) -> Record:
    changes = {"speedup": 1e5, **HOSTILE[number % len(HOSTILE)]}
    forged = dataclasses.replace(record, **changes)
    return dataclasses.replace(forged, record_id=content_id(forged))


def _encoder(checkpoint: Path) -> str:
    (encoder,) = Store.open(checkpoint / "store").info().encoders
    return encoder


def _entries(store: Store) -> list[StoredNest]:
    (encoder,) = store.info().encoders
    return [entry for entry in store.entries(encoder) if entry.embedding is not None]


def compared(checkpoint: Path, hostile: Path) -> dict[str, Any]:
    """In a process of its own, where the first query is the first. See `compare`."""
    command = [sys.executable, "-m", "benchmarks.hostile_share", str(checkpoint), str(hostile)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=with_scripts())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(checkpoint: Path, hostile: Path) -> dict[str, Any]:
    """checks_s: of the first query. queries, differing: of some nests without themselves. left_out: rows."""
    encoder, fingerprint = _encoder(checkpoint), describe_host().fingerprint
    clean, other = Store.open(checkpoint / "store"), Store.open(hostile / "store")
    checks_s = _checks_s(lambda: nearest([other], _any(other.widths()[encoder]), K, encoder, fingerprint))

    def asked(store: Store, entry: StoredNest) -> list[tuple[object, ...]]:
        assert entry.embedding is not None
        found = nearest([store], entry.embedding, K, encoder, fingerprint, [entry.nest.digest])
        return [(n.nest, round(n.distance, 6), [r.record_id for r in n.records]) for n in found]

    entries = _entries(clean)[::SOME]
    differing = sum(asked(other, entry) != asked(clean, entry) for entry in entries)
    return {
        "checks_s": checks_s, "queries": len(entries), "differing": differing,
        "left_out": other.left_out.total(),
    }  # fmt: skip


def _any(width: int) -> np.ndarray:
    """f32[width]."""
    return np.random.default_rng(0).standard_normal(width).astype(np.float32)


def _checks_s(query: Callable[[], object]) -> float:
    """Of a query: what the checks of the store take, in processor time."""
    spent = [0.0]

    def timed(check: Callable[[Any], str]) -> Callable[[Any], str]:
        def wrapped(value: Any) -> str:
            started = time.thread_time()
            problem = check(value)
            spent[0] += time.thread_time() - started
            return problem

        return wrapped

    names = ("record_problem", "nest_problem")
    with ExitStack() as patched:
        for name in names:
            patched.enter_context(patch.object(checking, name, timed(getattr(checking, name))))
        query()
    return spent[0]


if __name__ == "__main__":
    print(json.dumps(compare(*map(Path, sys.argv[1:]))))
