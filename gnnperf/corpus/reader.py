"""Reading a corpus folder: tasks and their records, whatever they are of."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gnnperf.corpus.record import CorpusRecord, CorpusTask
from gnnperf.errors import InputError
from gnnperf.measure.record_log import Line, log_files, read_lines


@dataclass(frozen=True)
class MeasuredTasks:
    """What a corpus folder holds.

    Attributes:
        folder: that was read. device: fingerprint of the machine that everything was measured on.
        tasks: by `task`, in order of first appearance.
        records: of each task, by `schedule_id`; where a schedule was measured again, the last one.
        sequence: the same records in the order of measuring.
        done: lines of the log about finished work, in its order.
    """

    folder: Path
    device: str
    tasks: dict[str, CorpusTask]
    records: dict[str, dict[str, CorpusRecord]]
    sequence: tuple[CorpusRecord, ...]
    done: list[Line]

    @cached_property
    def digest(self) -> str:
        """Hash of all schedules and their times, in the order of measuring: which corpus a model has learned
        from. Where and how the lines are stored does not matter."""
        content = hashlib.sha256()
        for record in self.sequence:
            schedule = record.schedule.get("trace", record.schedule)
            times = list(record.samples_s) or record.runtime_s
            content.update(json.dumps([record.task, schedule, times]).encode())
        return content.hexdigest()[:16]


def read_corpus(folder: Path, device: str | None = None) -> MeasuredTasks:
    """Read a corpus folder, sealed or not.

    A last line torn by an interrupted collection is ignored. Tasks without records, and records whose task is
    missing, are left out.

    Args:
        folder: that `gnnperf collect` or `gnnperf measure run` wrote.
        device: fingerprint of the machine to read; needed only where the corpus holds several.

    Raises:
        InputError: no such corpus, a damaged line (file and line are named), nothing measured, or several
            machines and none chosen.
    """
    for name in ("tasks", "records"):
        if not log_files(folder, name):
            raise InputError(
                f"expected a corpus folder with {name}.jsonl or {name}.jsonl.zst, got {folder}; "
                "give the folder that `gnnperf collect` wrote"
            )
    with _without_garbage_collection():
        return _read(folder, device)


def _read(folder: Path, device: str | None) -> MeasuredTasks:
    tasks = _tasks(folder)
    found = _records(folder, tasks)
    device = _choose_device(folder, {record.device for record in found.values()}, device)
    tasks = {name: task for name, task in tasks.items() if task.device == device}
    measured = tuple(r for r in found.values() if r.device == device and r.task in tasks)
    by_task: dict[str, dict[str, CorpusRecord]] = {record.task: {} for record in measured}
    for record in measured:
        by_task[record.task][record.schedule_id] = record
    tasks = {name: task for name, task in tasks.items() if name in by_task}
    done = [line for _, line in read_lines(folder, "done")]
    return MeasuredTasks(folder, device, tasks, {name: by_task[name] for name in tasks}, measured, done)


def _tasks(folder: Path) -> dict[str, CorpusTask]:
    tasks: dict[str, CorpusTask] = {}
    for where, line in read_lines(folder, "tasks"):
        task = CorpusTask.from_line(where, line)
        try:
            tasks.setdefault(task.task, task)
        except TypeError as error:
            raise _not_names(where, error) from error
    return tasks


def _records(folder: Path, tasks: Mapping[str, CorpusTask]) -> dict[tuple[str, str, str], CorpusRecord]:
    """By task, schedule and device, in the order of measuring."""
    found: dict[tuple[str, str, str], CorpusRecord] = {}
    for where, line in read_lines(folder, "records"):
        try:
            record = CorpusRecord.from_line(where, line, tasks.get(line.get("task", "")))
            if record.task in tasks:
                found[record.task, record.schedule_id, record.device] = record
        except TypeError as error:
            raise _not_names(where, error) from error
    return found


def _not_names(where: str, error: TypeError) -> InputError:
    """Of a line that has a list or a mapping, which have no hash, where a task or a schedule is named."""
    return InputError(f"{where}: expected names as text ({error}); collect it again")


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Traces are millions of small lists, none of them garbage: looking for it takes longer than reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _choose_device(folder: Path, found: set[str], device: str | None) -> str:
    if not found:
        raise InputError(f"{folder} holds no measured task; collect a corpus with `gnnperf collect`")
    if device is None and len(found) == 1:
        return next(iter(found))
    if device not in found:
        raise InputError(
            f"{folder} was measured on {', '.join(sorted(found))}, got device {device}; choose one of them "
            "(`data.device`)"
        )
    return device
