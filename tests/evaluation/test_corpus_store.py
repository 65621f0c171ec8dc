"""From a corpus to a released store and its calibration, on a synthetic corpus without a device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.synthetic import DEVICE, measurement, nest, nest_like, write_corpus
from retrieval.records import recipe

from gnnperf.evaluation.corpus_store import build_store, farthest_trusted, records_of
from gnnperf.nn import Bundle
from gnnperf.retrieval import Calibration, nearest
from gnnperf.retrieval.confidence import FEATURES, Confidence, Rates
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Store
from gnnperf.training import Corpus, load_corpus

FAST, SLOW, WRONG, UNFIT = recipe(1), recipe(2), recipe(3), recipe(4)


def line(digest: str, schedule: Recipe, runtime_s: float | None, **changes: str) -> dict[str, Any]:
    """A measurement of a corpus."""
    return {**measurement(digest, schedule.id, runtime_s, **changes), "schedule": schedule.to_dict()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Three families of two sizes; `FAST` is best everywhere, `UNFIT` fits nowhere."""
    nests, measurements = [], []
    for operation in ("add", "mul", "exp"):
        for size in (64, 128):
            graph = nest_like([size, size], operation=operation)
            nests.append(nest(graph, operation))
            for schedule, runtime_s in ((FAST, 0.25), (SLOW, 0.5), (WRONG, None)):
                measurements.append(line(graph.digest, schedule, runtime_s))
            measurements.append(line(graph.digest, UNFIT, None, status="not_applicable"))
    return load_corpus(write_corpus(tmp_path_factory.mktemp("corpus"), nests, measurements))


def test_every_measurement_becomes_a_record(corpus: Corpus) -> None:
    records = records_of(corpus, "a CPU")
    assert len(records) == corpus.measurement_count == 24
    ok = [r for r in records if r.status == "ok"]
    assert {r.speedup for r in ok} == {4.0, 2.0}
    assert {r.device_fingerprint for r in records} == {DEVICE}
    assert all(r.speedup is None and r.runtime_s is None for r in records if r.status != "ok")
    assert all(json.loads(r.provenance)["corpus"] == corpus.digest for r in records)


def test_the_store_finds_every_nest_at_its_own_point(corpus: Corpus, bundle: Bundle, tmp_path: Path) -> None:
    store = build_store(corpus, bundle, tmp_path / "store", "a CPU")
    info = Store.open(tmp_path / "store").info()
    assert (info.nests, info.records) == (6, 24)
    for corpus_nest in corpus.nests:
        (vector,) = bundle.embed([corpus_nest.graph])
        (found,) = nearest([store], vector, 1, bundle.encoder_id, DEVICE)
        assert found.distance == pytest.approx(0.0, abs=1e-6)
        assert found.records[0].speedup == 4.0


def test_the_same_corpus_gives_the_same_records(corpus: Corpus, bundle: Bundle, tmp_path: Path) -> None:
    first = build_store(corpus, bundle, tmp_path / "first", "a CPU")
    again = build_store(corpus, bundle, tmp_path / "again", "a CPU")
    assert first.merge(again).records == 0


def test_trusted_are_nests_as_near_as_families_are_to_one_another(corpus: Corpus, bundle: Bundle) -> None:
    vectors = {n.digest: bundle.embed([n.graph])[0] for n in corpus.nests}
    gaps = [
        min(1.0 - float(vectors[a.digest] @ vectors[b.digest]) for b in corpus.nests if b.family != a.family)
        for a in corpus.nests
    ]
    assert farthest_trusted(corpus, bundle) == pytest.approx(2 * max(gaps), abs=1e-5)


def test_of_one_family_everything_is_trusted(corpus: Corpus, bundle: Bundle) -> None:
    one = replace(corpus, nests=tuple(replace(nest, family="all") for nest in corpus.nests))
    assert farthest_trusted(one, bundle) == 2.0


@pytest.mark.parametrize("confidence", [None, Confidence((0.5,) * len(FEATURES), -1.0, 0.9, Rates(1e9, 2e9))])
def test_a_saved_calibration_is_read_back(confidence: Confidence | None, bundle: Bundle) -> None:
    calibration = Calibration(0.25, confidence)
    assert Calibration.of(replace(bundle, calibration=calibration.to_dict())) == calibration
