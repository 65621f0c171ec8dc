"""A store under load: processes that search and write at once, in a folder and on object storage."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.machine import setup
from benchmarks.made_up_store import filled
from benchmarks.object_storage import object_storage
from benchmarks.options import with_scripts
from benchmarks.store_worker import ENCODER, WIDTH
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import GnnperfError
from gnnperf.store import Store
from gnnperf.store.store import size_bytes
from gnnperf.store.tables import open_tables

KNOWN = 2000
"""Nests in the folder at the start."""

FEW = 2
"""Processes on object storage, at most: each holds what it searches in memory, 5 GB for a million nests."""

LOOKS = 10
"""How often the size of the folder is looked at."""


@dataclass(frozen=True)
class LoadStudy(Study):
    """minutes: of the load. processes: at once. nests: on object storage, with a record each."""

    name = "store-load"
    key = "store"

    processes: int
    minutes: float
    nests: int

    def settings(self) -> Mapping[str, Any]:
        about = {"processes": self.processes, "minutes": self.minutes, "nests": self.nests}
        return {**setup("lancedb", "moto"), **about}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {"folder": self._folder, "object storage": self._object_storage}

    def _folder(self, say: Say) -> Row:
        with tempfile.TemporaryDirectory(prefix="gnnperf-load-") as folder:
            path = Path(folder) / "store"
            filled(path, _vectors(KNOWN), ENCODER)
            sizes = [_size_mb(path)]
            say(f"{self.processes} processes for {self.minutes:g} minutes")
            row = self._loaded(
                str(path), self.processes, 60 * self.minutes, lambda: sizes.append(_size_mb(path))
            )
            say("compacting")
            started = time.perf_counter()
            Store.open(path).prune()
            return {"store": "folder", **row, "mb": [*sizes, _size_mb(path)],
                    "compaction_s": time.perf_counter() - started}  # fmt: skip

    def _object_storage(self, say: Say) -> Row:
        with object_storage() as bucket:
            say(f"writing {self.nests} nests and records")
            started = time.perf_counter()
            filled(f"{bucket}/store", _vectors(self.nests), ENCODER)
            fill_s = time.perf_counter() - started
            say("opening")
            started = time.perf_counter()
            store = Store.open(f"{bucket}/store")
            store.nearest(_vectors(1)[0], 10, ENCODER, store.devices[0])
            open_s = time.perf_counter() - started
            del store
            count = min(FEW, self.processes)
            say(f"{count} processes for {self.minutes:g} minutes")
            row = self._loaded(f"{bucket}/store", count, 60 * self.minutes, lambda: None)
            return {"store": "object storage", "fill_s": fill_s, "open_s": open_s, **row}

    @staticmethod
    def _loaded(location: str, processes: int, seconds: float, look: Callable[[], None]) -> Row:
        """What the processes found, while `look` is called now and then."""
        with ExitStack() as started:
            workers = [started.enter_context(_worker(location, n, seconds)) for n in range(processes)]
            for worker in workers:
                started.callback(worker.kill)
            for worker in workers:
                if worker.stdout is None or worker.stdout.readline() != "ready\n":
                    raise GnnperfError(f"a process did not open the store {location}")
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write("\n")
                worker.stdin.flush()
            end = time.perf_counter() + seconds
            for left in range(LOOKS, 0, -1):
                time.sleep(max(0.0, end - (left - 1) * seconds / LOOKS - time.perf_counter()))
                look()
            said = [worker.communicate() for worker in workers]
        failures = [error.strip().splitlines()[-1] for _, error in said if error.strip()]
        if failures:
            return {"failures": failures}
        found = [json.loads(output) for output, _ in said]
        kept = set(_records(location))
        lost = [r for one in found for r in one["acknowledged"] if r not in kept]
        return {
            "processes": processes,
            "searches": sum(len(one["search_ms"]) for one in found),
            **_percentiles("search_ms", [ms for one in found for ms in one["search_ms"]]),
            "writes": sum(len(one["write_ms"]) for one in found),
            **_percentiles("write_ms", [ms for one in found for ms in one["write_ms"]]),
            "records": sum(len(one["acknowledged"]) for one in found),
            "lost_records": len(lost),
            **({"failures": [f"{len(lost)} acknowledged records are lost"]} if lost else {}),
        }

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {
            f"{row['store'].replace(' ', '_')}_{name}": row[name]
            for row in table
            for name in ("lost_records", "search_ms_p50", "search_ms_p99", "write_ms_p50", "write_ms_p99",
                         "fill_s", "open_s", "compaction_s")
            if name in row
        }  # fmt: skip

    @staticmethod
    def shown(row: Row) -> Row:
        return {name: value for name, value in row.items() if name != "mb"}

    @staticmethod
    def notes(table: Rows) -> Iterable[str]:
        for row in table:
            if "mb" in row:
                *during, compacted = (f"{mb:.1f}" for mb in row["mb"])
                yield f"MB of the folder over time: {' '.join(during)}; compacted {compacted}"


def _worker(location: str, seed: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.store_worker", location, str(seed), str(seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**with_scripts(), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def _vectors(count: int) -> np.ndarray:
    """f32[count, WIDTH], of norm 1."""
    vectors = np.random.default_rng(count).standard_normal((count, WIDTH), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _records(location: str) -> Iterable[str]:
    """Ids of all records of a store."""
    _, records = open_tables(location, create=False)
    return list(records.read(["record_id"])["record_id"].to_pylist())


def _percentiles(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p{q}": float(np.percentile(values, q)) if values else 0.0 for q in (50, 99)}


def _size_mb(folder: Path) -> float:
    return size_bytes(str(folder)) / 1e6


@click.command("store-load", cls=Verb, page=True)
@click.option("--processes", default=8, show_default=True, type=click.IntRange(1, 1000))
@click.option("--minutes", default=10.0, show_default=True, type=click.FloatRange(0.01, 1e5))
@click.option("--nests", default=1_000_000, show_default=True, type=click.IntRange(1, 10**8))
@output_option
def store_load(processes: int, minutes: float, nests: int, output: Path | None) -> Report:
    """A store under load: processes that search and write at once, in a folder and on object storage.

    Every process searches three times, then writes a nest and four records, over and over: in a folder of
    2,000 nests, and, two processes, in a bucket with --nests of them, of a local server that speaks S3's
    protocol (pip install 'moto[s3,server]'). Afterwards every record that a call has acknowledged must be
    there. Exit code 1: one is lost, or a process failed.
    """
    return LoadStudy(processes, minutes, nests).run(output)
