"""Corpora of older formats, written anew: the only place that knows them.

Nests were `nests.jsonl` and `measurements.jsonl`, TVM workloads `workloads.jsonl` and `schedules.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gnnperf.errors import InputError
from gnnperf.measure.record_log import Line, RecordLog, log_files, read_lines

Convert = Callable[[Mapping[str, Any]], Line]


def convert_corpus(old: Path, new: Path) -> RecordLog:
    """Write what the folder `old` holds into `new`, sealed; the log, which is closed.

    Raises InputError: not a corpus of an older format, a damaged line, or `new` holds one already;
    CorpusError where `new` cannot be written.
    """
    kind = next((name for name in KINDS if log_files(old, name)), None)
    if kind is None:
        raise InputError(f"expected a corpus with nests.jsonl or workloads.jsonl, plain or .zst, got {old}")
    if log_files(new, "tasks"):
        raise InputError(f"expected a new folder, got {new}, which holds a corpus; give another")
    files = {name: _converted(old, source, convert) for name, (source, convert) in KINDS[kind].items()}
    log = RecordLog(new)
    try:
        for name, lines in files.items():
            log.add(name, *lines)
        log.seal()
    finally:
        log.close()
    return log


def _converted(folder: Path, name: str, convert: Convert) -> list[Line]:
    found = []
    for where, line in read_lines(folder, name):
        try:
            found.append(convert(line))
        except (KeyError, TypeError) as error:
            raise InputError(f"{where}: not a line of `{name}` ({error}); restore the file") from None
    return found


def _nest(line: Mapping[str, Any]) -> Line:
    kept = ("frontend", "graph", "profile", "device", "threads", "collected")
    return {
        "task": line["digest"], "name": line["kernel"], "family": line["family"],
        "parameters": line["symbols"],
        "baseline": {"name": line["baseline"], "runtime_s": line["baseline_s"]},
        **{key: line[key] for key in kept if key in line},
        **({"versions": {"compiler": line["compiler"]}} if "compiler" in line else {}),
    }  # fmt: skip


def _recipe(line: Mapping[str, Any]) -> Line:
    dropped = ("digest", "speedup", "speedup_interval")
    kept = {key: value for key, value in line.items() if key not in dropped and value not in (None, "")}
    return {"task": line["digest"], **kept}


def _workload(line: Mapping[str, Any]) -> Line:
    kept = ("split", "structural_hash", "flops", "target", "threads", "collected")
    return {
        "task": line["workload"], "name": line["workload"], "family": line["kind"], "frontend": "tvm",
        "parameters": line["params"],
        "baseline": {"name": line["baseline"], "samples_s": line["baseline_samples_s"]},
        "device": {"fingerprint": line["device"], "name": line["machine"]},
        "versions": {key: line[key] for key in ("tvm", "llvm", "driver") if key in line},
        **{key: line[key] for key in kept if key in line},
    }  # fmt: skip


def _trace(line: Mapping[str, Any]) -> Line:
    kept = {key: value for key, value in line.items() if key not in ("workload", "n", "trace")}
    return {
        "task": line["workload"], "schedule_id": str(line["n"]), **kept,
        "schedule": {"kind": "trace", "trace": line["trace"]},
    }  # fmt: skip


def _pass(line: Mapping[str, Any]) -> Line:
    kept = {key: value for key, value in line.items() if key != "workload"}
    return {"key": f"pass {line['pass']} {line['workload']}", "task": line["workload"], **kept}


KINDS: dict[str, dict[str, tuple[str, Convert]]] = {
    "nests": {"tasks": ("nests", _nest), "records": ("measurements", _recipe), "done": ("done", dict)},
    "workloads": {
        "tasks": ("workloads", _workload), "records": ("schedules", _trace), "done": ("done", _pass)
    },
}  # fmt: skip
"""By the file that tells the format: for each file of a log the one that it is made from, and how."""
