"""From a corpus to a released store, on a synthetic corpus without a device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.synthetic import DEVICE, measurement, nest, nest_like, write_corpus
from retrieval.records import recipe

from gnnperf.corpus.reader import MeasuredTasks, read_corpus
from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle
from gnnperf.retrieval import nearest
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Store

FAST, SLOW, WRONG, UNFIT = recipe(1), recipe(2), recipe(3), recipe(4)


def line(digest: str, schedule: Recipe, runtime_s: float | None, **changes: str) -> dict[str, Any]:
    """A measurement of a corpus."""
    return {**measurement(digest, schedule.id, runtime_s, **changes), "schedule": schedule.to_dict()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> MeasuredTasks:
    """Three families of two sizes; `FAST` is best everywhere, `UNFIT` fits nowhere."""
    nests, measurements = [], []
    for operation in ("add", "mul", "exp"):
        for size in (64, 128):
            graph = nest_like([size, size], operation=operation)
            nests.append(nest(graph, operation))
            for schedule, runtime_s in ((FAST, 0.25), (SLOW, 0.5), (WRONG, None)):
                measurements.append(line(graph.digest, schedule, runtime_s))
            measurements.append(line(graph.digest, UNFIT, None, status="not_applicable"))
    return read_corpus(write_corpus(tmp_path_factory.mktemp("corpus"), nests, measurements))


def build(corpus: MeasuredTasks, bundle: Bundle, folder: Path, best: int | None = None) -> Store:
    store = Store.open(folder, create=True)
    fill_store(corpus, bundle, store, best)
    return store


def graphs(corpus: MeasuredTasks) -> list[ProgramGraph]:
    return [task.graph for task in corpus.tasks.values() if task.graph is not None]


def test_every_measurement_becomes_a_record(corpus: MeasuredTasks, bundle: Bundle, tmp_path: Path) -> None:
    store = build(corpus, bundle, tmp_path)
    records = [record for digest in corpus.tasks for record in store.records(digest)]
    assert len(records) == len(corpus.sequence) == 24
    ok = [r for r in records if r.status == "ok"]
    assert {r.speedup for r in ok} == {4.0, 2.0}
    assert {r.device_fingerprint for r in records} == {DEVICE}
    assert all(r.speedup is None and r.runtime_s is None for r in records if r.status != "ok")
    assert all(json.loads(r.provenance)["corpus"] == corpus.digest for r in records)


def test_the_store_finds_every_nest_at_its_own_point(
    corpus: MeasuredTasks, bundle: Bundle, tmp_path: Path
) -> None:
    store = build(corpus, bundle, tmp_path / "store")
    info = Store.open(tmp_path / "store").info()
    assert (info.nests, info.records) == (6, 24)
    for vector in bundle.embed(graphs(corpus)):
        (found,) = nearest([store], vector, 1, bundle.encoder_id, DEVICE)
        assert found.distance == pytest.approx(0.0, abs=1e-6)
        assert found.records[0].speedup == 4.0


def test_the_same_corpus_gives_the_same_records(
    corpus: MeasuredTasks, bundle: Bundle, tmp_path: Path
) -> None:
    first = build(corpus, bundle, tmp_path / "first")
    again = build(corpus, bundle, tmp_path / "again")
    assert first.merge(again).records == 0


def test_the_fastest_of_a_nest_are_kept_and_what_failed(bundle: Bundle, tmp_path: Path) -> None:
    graph = nest_like([64, 64])
    timed = [line(graph.digest, recipe(n), 1.0 + n) for n in range(1, 30)]
    failed = [line(graph.digest, recipe(n), None, status="timeout") for n in range(30, 33)]
    corpus = read_corpus(write_corpus(tmp_path / "corpus", [nest(graph, "map")], [*timed, *failed]))
    build(corpus, bundle, tmp_path / "store")
    kept = Store.open(tmp_path / "store").records(graph.digest)
    assert sorted(r.runtime_s for r in kept if r.status == "ok") == [2.0 + n for n in range(16)]
    assert sum(r.status == "timeout" for r in kept) == 3


def test_only_the_best_and_what_may_be_learned_from(
    corpus: MeasuredTasks, bundle: Bundle, tmp_path: Path
) -> None:
    store = build(corpus, bundle, tmp_path / "best", best=1)
    assert {r.speedup for digest in corpus.tasks for r in store.records(digest)} == {4.0}
    held_out = {name: replace(task, split="held_out") for name, task in corpus.tasks.items()}
    with pytest.raises(InputError, match="that models may learn from"):
        build(replace(corpus, tasks=held_out), bundle, tmp_path / "none")
