"""From a corpus of TVM schedules to the store that is released: workloads with their best traces."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.corpus.lines import read_lines
from gnnperf.errors import CorpusError, InputError, UnsupportedConstruct
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.measure.outcome import Outcome
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.retrieval.tensor.candidates import KIND
from gnnperf.schedules.traces import TraceDocument, document_of_json
from gnnperf.store import Nest, Record, Store

FRONTEND = "tvm"
BEST = 8
"""Traces kept of a workload."""


@dataclass(frozen=True)
class StoredWorkload:
    """A workload of a corpus as it is stored: its unscheduled graph, and records of its best traces."""

    name: str
    kind: str
    graph: ProgramGraph
    records: tuple[Record, ...]


def fill_store(
    corpus: Path, bundle: Bundle, store: Store, best: int = BEST, splits: Collection[str] = ("training",)
) -> int:
    """Add the best traces of every workload of a corpus folder (`TensorLog`) to a store; how many records.

    bundle: embeds the unscheduled graphs. splits: which workloads; what models are judged on is left out.
    Raises InputError where the folder has no such workload, CorpusError where it is damaged.
    """
    found = [w for w in read_corpus(corpus, best, splits) if w.records]
    if not found:
        raise InputError(
            f"expected a corpus of TVM schedules with workloads of {', '.join(splits)}, got {corpus}"
        )
    nests = [Nest(w.graph.digest, w.name, w.kind, FRONTEND) for w in found]
    records = [record for w in found for record in w.records]
    add_to_store(store, bundle, nests, [w.graph for w in found], records)
    return len(records)


def read_corpus(corpus: Path, best: int, splits: Collection[str]) -> Iterator[StoredWorkload]:
    """Workloads whose unscheduled form has a graph."""
    target = None
    schedules: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, line in read_lines(corpus, "schedules", CorpusError):
        schedules[line["workload"]].append(line)
    tvm = import_tvm()
    for _, about in read_lines(corpus, "workloads", CorpusError):
        if about["split"] not in splits:
            continue
        workload = Workload(about["kind"], about["params"], about["split"])
        target = tvm.target.Target(about["target"])
        task = TvmTask(workload.name, workload.build())
        try:
            graph = task.graph
        except UnsupportedConstruct:
            continue
        lines = _best(schedules[workload.name], best)
        records = tuple(_record(about, line, graph.digest, task, target) for line in lines)
        yield StoredWorkload(workload.name, workload.kind, graph, records)


def _best(lines: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """The fastest that were timed to the end, each trace once."""
    timed = [(Outcome.from_dict(line), line) for line in lines if line["status"] == "ok"]
    whole = [(o.runtime_s, n) for n, (o, _) in enumerate(timed) if o.runtime_s is not None and not o.once]
    found: dict[str, Mapping[str, Any]] = {}
    for _, n in sorted(whole):
        if len(found) == count:
            break
        found.setdefault(json.dumps(timed[n][1]["trace"]), timed[n][1])
    return list(found.values())


def _record(
    about: Mapping[str, Any], line: Mapping[str, Any], digest: str, task: TvmTask, target: Any
) -> Record:
    document: TraceDocument = document_of_json(line["trace"], task.module, target)
    return record_of(
        Measurement.from_samples(line["samples_s"], about["baseline_samples_s"]),
        nest_digest=digest,
        kernel=about["workload"],
        family=about["kind"],
        frontend=FRONTEND,
        device_fingerprint=about["device"],
        device_name=about["machine"],
        baseline=about["baseline"],
        schedule=document.to_json(),
        schedule_kind=KIND,
        # One moment for all of a day: the same corpus gives the same store, record for record.
        created=f"{about['collected']}T00:00:00+00:00",
        provenance=json.dumps(
            {
                "tvm": about["tvm"],
                "llvm": about["llvm"],
                "target": about["target"],
                "threads": about["threads"],
                "workload": {"kind": about["kind"], "params": about["params"]},
                "origin": line["origin"],
            }
        ),
    )
