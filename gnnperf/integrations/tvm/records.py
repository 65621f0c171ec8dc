"""Databases that MetaSchedule wrote (`tvm.s_tir.meta_schedule.database.JSONDatabase`) into a schedule store.

They name the target that was tuned for, and no machine and no baseline. So the fingerprint is that of a
processor with the target's instructions, and speedups are relative to the median of what the search measured.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError, UnsupportedConstruct, first_line
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.frontends.tvm.tasks import single
from gnnperf.frontends.tvm.weights import PACKED_AHEAD, has_free_weights
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.memory import add_to_store, record_of
from gnnperf.schedules.traces import TraceDocument, document_of_json, roles_of
from gnnperf.store import Nest, Record, Store
from gnnperf.store.checks import record_problem
from gnnperf.store.schema import plain_name

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
BASELINE = "metaschedule-median"
"""The median of the schedules that were measured for a workload. TVM's builder drops what packs weights that
are free of layout, so that of such functions it is one of constant weights."""
FAMILY = "metaschedule"
FAILED_S = 1e9
"""From here on, what MetaSchedule writes as a runtime is its mark of a failure."""

_X86 = (("avx512f", "avx512"), ("avx2", "avx2"), ("avx", "avx"))


@dataclass
class Imported:
    """nests, records: how many were added. left_out: reasons, and how many tuning records each concerns."""

    nests: int = 0
    records: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Tuned:
    """A tuning record that ran, in so many seconds. task: that it is of: another function of the same graph
    may call its blocks otherwise."""

    seconds: float
    record: Any
    task: TvmTask


@dataclass
class _Workload:
    graph: ProgramGraph
    tuned: list[_Tuned] = field(default_factory=list)


def import_database(folder: Path, open_store: Callable[[], Store], bundle: Bundle, best: int) -> Imported:
    """Add the `best` fastest traces of every workload and processor to a store, embedded by the bundle.

    open_store: called once it is known that there is something to add. The same function with other shapes
    is another workload. Records for targets that are no processors are left out. Raises InputError where the
    folder is no such database, or nothing in it can be used.
    """
    records, created = _read(folder)
    done = Imported()
    found: dict[tuple[str, str, bool], _Workload] = {}
    tasks: dict[int, tuple[TvmTask, ProgramGraph] | str] = {}
    for record in records:
        seconds = [float(s) for s in record.run_secs or ()]
        fingerprint = target_fingerprint(record.target)
        key = record.workload.__chandle__()
        if key not in tasks:
            tasks[key] = _task(record.workload.mod)
        entry = tasks[key]
        if isinstance(entry, str):
            done.left_out[entry] += 1
        elif fingerprint is None:
            done.left_out[f"for the target {record.target.kind.name}: expected llvm, a processor"] += 1
        elif not seconds or statistics.median(seconds) >= FAILED_S:
            done.left_out["failed when they were measured"] += 1
        else:
            task, graph = entry
            free = has_free_weights(task.function)
            workload = found.setdefault((graph.digest, fingerprint, free), _Workload(graph))
            workload.tuned.append(_Tuned(statistics.median(seconds), record, task))
    if not found:
        reasons = "; ".join(f"{n} {why}" for why, n in done.left_out.items()) or "it is empty"
        raise InputError(f"nothing in {folder} can be used: {reasons}")
    _add(found, open_store(), bundle, best, created, done)
    return done


def _add(
    found: Mapping[tuple[str, str, bool], _Workload],
    store: Store,
    bundle: Bundle,
    best: int,
    created: str,
    done: Imported,
) -> None:
    by_digest = {digest: workload for (digest, *_), workload in found.items()}
    names = {digest: _name(workload.tuned[0].task) for digest, workload in by_digest.items()}
    records = [
        record
        for (digest, fingerprint, _), workload in found.items()
        for record in _records(workload, names[digest], fingerprint, best, created, done)
    ]
    nests = [Nest(digest, names[digest], FAMILY, TvmProgram.frontend) for digest in by_digest]
    add_to_store(store, bundle, nests, [w.graph for w in by_digest.values()], records)
    done.nests, done.records = len(by_digest), len(records)


def target_fingerprint(target: Any) -> str | None:
    """That of devices which run what was tuned for a target; None for what is no processor."""
    import tvm

    if target.kind.name != "llvm":
        return None
    triple = str(target.attrs.get("mtriple", "")) or str(
        tvm.get_global_func("target.llvm_get_system_triple")()
    )
    if triple.startswith("aarch64"):
        return f"cpu/aarch64/{'sve' if target.attrs.get('feature.has_sve') else 'neon'}"
    if not triple.startswith("x86_64"):
        return None
    has = tvm.get_global_func("target.target_has_feature")
    return f"cpu/x86_64/{next((isa for flag, isa in _X86 if has(flag, target)), 'sse2')}"


def _read(folder: Path) -> tuple[Sequence[Any], str]:
    """(tuning records, when the last of them was written)."""
    import_tvm()
    from tvm.s_tir.meta_schedule.database import JSONDatabase

    paths = [folder / WORKLOADS, folder / RECORDS]
    if missing := [path for path in paths if not path.is_file()]:
        raise InputError(
            f"expected a folder with {WORKLOADS} and {RECORDS}, as MetaSchedule writes them; "
            f"there is no {missing[0]}"
        )
    try:
        records = JSONDatabase(*map(str, paths), allow_missing=False).get_all_tuning_records()
    except Exception as error:  # TVM raises anything, of damaged files and of those of other versions
        raise InputError(
            f"cannot read {folder}: {first_line(error)}; expected a database of apache-tvm "
            f"{version('apache-tvm')}"
        ) from None
    modified = datetime.fromtimestamp(paths[1].stat().st_mtime, UTC)
    return list(records), modified.isoformat(timespec="microseconds")


def _task(module: Any) -> tuple[TvmTask, ProgramGraph] | str:
    """The task of a workload with its graph; or why it has none."""
    functions = list(module.functions.values())
    if len(functions) != 1:
        return f"of workloads with {len(functions)} functions: expected one"
    task = TvmTask("workload", single(functions[0]))
    try:
        return task, task.graph
    except UnsupportedConstruct as reason:
        return f"of workloads with {reason}"


def _name(task: TvmTask) -> str:
    """The block that does most of the work, and the shape of the result."""
    function = task.function
    anchor = roles_of(function).names["anchor"]
    return f"{anchor}-{'x'.join(str(int(n)) for n in function.params[-1].shape)}"


def _records(
    workload: _Workload, name: str, fingerprint: str, best: int, created: str, done: Imported
) -> list[Record]:
    baseline_s = statistics.median(one.seconds for one in workload.tuned)
    made: dict[str, Record] = {}
    for one in sorted(workload.tuned, key=lambda one: one.seconds):
        if len(made) == best:
            break
        tuned, task = one.record, one.task
        measured = Measurement.from_samples([float(s) for s in tuned.run_secs])
        document = document_of_json(tuned.trace.as_json(remove_postproc=False), task.module, tuned.target)
        record = record_of(
            replace(measured, baseline_s=baseline_s, speedup=baseline_s / one.seconds),
            nest_digest=workload.graph.digest,
            kernel=plain_name(name),
            family=FAMILY,
            frontend=TvmProgram.frontend,
            device_fingerprint=fingerprint,
            device_name=plain_name(str(tuned.target.attrs.get("mcpu", "unknown processor"))),
            baseline=BASELINE + PACKED_AHEAD if has_free_weights(task.function) else BASELINE,
            schedule=document.to_json(),
            schedule_kind=TraceDocument.kind,
            created=created,
            provenance=json.dumps({"database": "metaschedule", "target": str(tuned.target)}),
        )
        if problem := record_problem(record):
            done.left_out[problem] += 1
        else:
            made.setdefault(record.schedule, record)
    return list(made.values())
