"""From a corpus to a released store and its calibration, on a synthetic corpus without a device."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval.records import recipe
from synthetic import DEVICE, measurement, nest, nest_like, write_corpus

from gnnperf.nn import Bundle
from gnnperf.retrieval import Calibration, nearest
from gnnperf.retrieval.neighbours import CALIBRATION
from gnnperf.retrieval.release import Replayed, build_store, calibrate, records_of, replay, save_calibration
from gnnperf.schedules import Recipe
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


def test_replay_tries_on_a_held_out_nest_what_others_found(corpus: Corpus, bundle: Bundle) -> None:
    replayed = replay(corpus, bundle, {"exp"}, k=1)
    assert [r.family for r in replayed] == ["exp", "exp"]
    assert all(r.efficiency == 1.0 and 0 <= r.distance <= 2 for r in replayed)
    assert replay(corpus, bundle, set(), k=1) == []


def test_replay_counts_failures_as_candidates_but_not_what_does_not_fit(
    tmp_path: Path, bundle: Bundle
) -> None:
    """Others like UNFIT most, then WRONG, then FAST. On the held-out nest UNFIT costs no measurement,
    WRONG costs one and gains nothing."""
    near, held_out = nest_like([64, 64]), nest_like([64, 128])
    lines = [line(near.digest, s, t) for s, t in ((UNFIT, 0.1), (WRONG, 0.2), (FAST, 0.3))]
    lines.append(line(held_out.digest, UNFIT, None, status="not_applicable"))
    lines += [line(held_out.digest, s, t) for s, t in ((WRONG, None), (FAST, 0.5))]
    nests = [nest(near, "near"), nest(held_out, "held out")]
    corpus = load_corpus(write_corpus(tmp_path, nests, lines))
    (one,) = replay(corpus, bundle, {"held out"}, k=1)
    (two,) = replay(corpus, bundle, {"held out"}, k=2)
    assert (one.efficiency, two.efficiency) == (0.5, 1.0)  # 0.5: the baseline, half as fast as the best


def held_out(*pairs: tuple[float, float]) -> list[Replayed]:
    return [Replayed(f"d{i}", "f", distance, efficiency) for i, (distance, efficiency) in enumerate(pairs)]


def test_where_all_transfers_were_good_the_limit_lies_beyond_the_farthest() -> None:
    trusted = calibrate(held_out(*((0.1 * i, 0.9) for i in range(1, 8))), k=3)
    assert trusted == Calibration(pytest.approx(1.4), 1.0, 3)


def test_trust_ends_where_transfers_get_worse() -> None:
    """Seventeen good ones and four bad, nearest first: 17 of 20 is the wanted confidence; a fourth is not."""
    good, bad = [(0.01 * i, 1.0) for i in range(1, 18)], [(0.01 * i, 0.5) for i in range(18, 22)]
    trusted = calibrate(held_out(*good, *bad), k=3)
    assert trusted.max_distance == pytest.approx(0.20)
    assert trusted.confidence == pytest.approx(0.85)


def test_order_of_the_replays_does_not_matter() -> None:
    pairs = [(0.01 * i, 1.0 if i < 9 else 0.1) for i in range(1, 14)]
    assert calibrate(held_out(*pairs), 3) == calibrate(held_out(*pairs[::-1]), 3)


@pytest.mark.parametrize("worse", range(12))
def test_worse_transfers_are_never_trusted_farther(worse: int) -> None:
    """Monotone as long as some distance is trusted at all."""
    pairs = [(0.01 * i, 1.0) for i in range(1, 13)]
    before = calibrate(held_out(*pairs), 3)
    pairs[worse] = (pairs[worse][0], 0.0)
    after = calibrate(held_out(*pairs), 3)
    assert after.max_distance <= before.max_distance
    assert after.confidence is not None
    assert before.confidence is not None
    assert after.confidence <= before.confidence


def test_where_none_was_good_the_nearer_half_is_tried_with_little_confidence() -> None:
    trusted = calibrate(held_out(*((0.1 * i, 0.2) for i in range(1, 7))), 3)
    assert trusted.max_distance == pytest.approx(0.3)
    assert trusted.confidence == 0.0


def test_no_replays_trust_nothing() -> None:
    assert calibrate([], 3) == Calibration(0.0, None, 3)


def test_a_saved_calibration_is_read_back(tmp_path: Path) -> None:
    replayed = held_out((0.1, 0.9), (0.2, 0.7))
    calibration = calibrate(replayed, 3)
    save_calibration(tmp_path, calibration, replayed)
    assert Calibration.load(tmp_path) == calibration
    document = json.loads((tmp_path / CALIBRATION).read_text())
    assert [r["efficiency"] for r in document["held_out"]] == [0.9, 0.7]
    assert not any(isinstance(v, float) and math.isnan(v) for v in document.values())


def test_embeddings_of_the_corpus_are_on_the_unit_sphere(corpus: Corpus, bundle: Bundle) -> None:
    norms = np.linalg.norm(bundle.embed([n.graph for n in corpus.nests]), axis=1)
    assert norms == pytest.approx(1.0, abs=1e-5)
