"""From a corpus to what is retrieved: the records of a schedule store."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.corpus.record import CorpusRecord, CorpusTask
from gnnperf.errors import InputError, UnsupportedConstruct
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.graph import ProgramGraph
from gnnperf.retrieval.memory import add_to_store, record_of
from gnnperf.schedules.traces import document_of_json
from gnnperf.store import Nest, Record, Store

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

RECIPES, TRACES = 16, 8
"""The fastest of a nest, and of a workload, that are kept unless another number is given. With all of its
recipes, nothing better is found for nests whose family is left out."""
LEARNED_FROM = ("", "training")
"""Splits of tasks that a store may know: not what models are judged on."""
Words = Callable[[Mapping[str, Any]], str]
"""What a store has for a schedule of a corpus."""


@dataclass(frozen=True)
class StoredTask:
    """A task of a corpus as a store has it: where it lies in the space of embeddings is its graph's place."""

    nest: Nest
    graph: ProgramGraph
    records: list[Record]


def fill_store(corpus: MeasuredTasks, bundle: Bundle, store: Store, best: int | None = None) -> int:
    """Add the records of a corpus of nests or of TVM workloads to a store; how many there were.

    bundle: embeds the unscheduled graphs. best: keep the fastest of each task, this many; None: see
    `recipes_kept` and TRACES.
    Raises InputError where there is nothing to add.
    """
    found = [task for task in stored_tasks(corpus, best) if task.records]
    if not found:
        raise InputError(
            "expected a corpus of loop nests or TVM workloads that models may learn from, "
            f"got {corpus.folder}"
        )
    records = [record for task in found for record in task.records]
    add_to_store(store, bundle, [t.nest for t in found], [t.graph for t in found], records)
    return len(records)


def stored_tasks(corpus: MeasuredTasks, best: int | None = None) -> Iterator[StoredTask]:
    """The tasks of a corpus that models may learn from and that have a graph."""
    for task in corpus.tasks.values():
        if task.split not in LEARNED_FROM:
            continue
        words: Words = recipe_words
        measured: Collection[CorpusRecord] = corpus.records[task.task].values()
        if task.graph is not None:
            graph = task.graph
            measured = fastest(measured, best) if best else recipes_kept(measured)
        elif task.frontend == "tvm":
            try:
                graph, words = _of_workload(task)
            except UnsupportedConstruct:
                continue
            measured = fastest(measured, best or TRACES)
        else:
            continue
        nest = Nest(graph.digest, task.name, task.family, task.frontend)
        about = {
            "corpus": corpus.digest, "threads": task.threads, **task.about.get("versions", {}),
            **({"target": task.about["target"]} if "target" in task.about else {}),
        }  # fmt: skip
        records = records_of(
            nest, measured, words, about, baseline=task.baseline, device_fingerprint=corpus.device,
            device_name=task.machine,
            # One moment for all of a day: the same corpus gives the same store, record for record.
            created=f"{task.about.get('collected', '2026-01-01')[:10]}T00:00:00+00:00",
        )  # fmt: skip
        yield StoredTask(nest, graph, records)


def records_of(
    nest: Nest, measured: Iterable[CorpusRecord], words: Words, provenance: Mapping[str, Any], **about: Any
) -> list[Record]:
    """What was measured on a nest, for a store. about: the other fields of `Record`, of all of them."""
    return [
        record_of(
            m.measurement,
            nest_digest=nest.digest,
            kernel=nest.kernel,
            family=nest.family,
            frontend=nest.frontend,
            schedule=words(m.schedule),
            schedule_kind=str(m.schedule["kind"]),
            provenance=json.dumps({**provenance, "origin": m.origin}),
            **about,
        )
        for m in measured
    ]


def recipe_words(schedule: Mapping[str, Any]) -> str:
    """A recipe as a store has it."""
    return json.dumps(schedule, sort_keys=True, separators=(",", ":"))


def _of_workload(task: CorpusTask) -> tuple[ProgramGraph, Words]:
    """The unscheduled graph of a TVM workload, and how its traces are stored. Raises UnsupportedConstruct."""
    tvm = import_tvm()
    program = TvmTask(task.name, TvmWorkload(task.family, task.parameters, task.split).build())
    target = tvm.target.Target(task.about["target"])
    graph = program.graph
    return graph, lambda schedule: document_of_json(schedule["trace"], program.module, target).to_json()


def recipes_kept(measured: Collection[CorpusRecord]) -> list[CorpusRecord]:
    """What a store has of a nest: the fastest, and all that failed, which says what not to try."""
    return [*fastest(measured, RECIPES), *(m for m in measured if m.runtime_s is None)]


def fastest(measured: Iterable[CorpusRecord], count: int) -> list[CorpusRecord]:
    """The fastest that were timed to the end, each schedule once."""
    timed = [m for m in measured if m.runtime_s is not None and m.samples > 1]
    found: dict[str, CorpusRecord] = {}
    for m in sorted(timed, key=lambda m: m.runtime_s or 0.0):
        found.setdefault(json.dumps(m.schedule), m)
    return list(found.values())[:count]
