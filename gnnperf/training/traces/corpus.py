"""Reading a corpus of measured TVM schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gnnperf.corpus.reader import MeasuredTasks, read_corpus
from gnnperf.errors import InputError

HELD_OUT = "held_out"
"""Split of the workloads that models must not learn from."""


def load_tensor_corpus(folder: Path) -> MeasuredTasks:
    """Read a corpus folder of TVM workloads, sealed or not.

    Workloads without a schedule that ran are left out of its tasks and records: nothing can be said of the
    others. Raises InputError: not such a folder, damaged, or measured on several machines.
    """
    found = read_corpus(folder)
    if any("trace" not in record.schedule for record in found.sequence):
        raise InputError(f"expected a corpus of TVM schedules, got one of other schedules in {folder}")
    ran = {
        name: records
        for name, records in found.records.items()
        if any(record.status == "ok" for record in records.values())
    }
    if not ran:
        raise InputError(f"{folder} holds no schedule that ran; collect more with `gnnperf collect`")
    return replace(found, tasks={name: found.tasks[name] for name in ran}, records=ran)
