"""What faults start from: nests of the released stores, with their graphs, schedules and records."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.options import REPO
from gnnperf.store import Record, Store, StoredNest

LOOP_NESTS, TENSOR = REPO / "checkpoints" / "loop-nests", REPO / "checkpoints" / "tensor-programs"


@cache
def entries() -> tuple[StoredNest, ...]:
    """Eight nests with three records each, of recipes and of traces."""
    found: list[StoredNest] = []
    for checkpoint in (LOOP_NESTS, TENSOR):
        store = Store.open(checkpoint / "store")
        (encoder,) = store.info().encoders
        some = (e for e in store.entries(encoder) if e.records and len(e.graph_json) < 20_000)
        found += islice(some, 4)
    return tuple(dataclasses.replace(entry, records=entry.records[:3]) for entry in found)


@cache
def encoder_id() -> str:
    """Of the embeddings in `entries`."""
    (found,) = Store.open(LOOP_NESTS / "store").info().encoders
    return found


def records() -> list[Record]:
    return [record for entry in entries() for record in entry.records]


def fill(store: Store, some: Iterable[StoredNest]) -> None:
    """Nests first, then their records."""
    chosen = [*some]
    vectors = np.stack([e.embedding for e in chosen if e.embedding is not None])
    store.add_nests([e.nest for e in chosen], [e.graph_json for e in chosen], vectors, encoder_id())
    store.add_records([record for entry in chosen for record in entry.records])


def filled(folder: Path) -> Path:
    """A new store of all entries, written in two commits of each table."""
    store = Store.open(folder, create=True)
    fill(store, entries()[::2])
    fill(store, entries()[1::2])
    return folder


def copied(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    return folder


def held(store: Store) -> set[str]:
    """Ids of the records that a store holds and believes."""
    return {record.record_id for entry in store.entries(encoder_id()) for record in entry.records}
