"""From a corpus and an encoder to what is shipped: the schedule store and the calibration."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.retrieval.neighbours import CALIBRATION, Calibration
from gnnperf.retrieval.ranking import UNKNOWN, log_efficiencies, rank
from gnnperf.schedules import Recipe
from gnnperf.store import Neighbour, Nest, Record, Store
from gnnperf.training import Corpus, CorpusMeasurement, CorpusNest

GOOD_EFFICIENCY = 0.6
"""A transfer is good when the best of k candidates reaches this share of the best speed known. Trials are
measured before they are kept: a poor one costs seconds, an abstention all that was to be gained."""
WANTED_CONFIDENCE = 0.85
"""Share of held-out nests within the trusted distance that a transfer must be good for."""


def records_of(corpus: Corpus, device_name: str) -> list[Record]:
    """Every measurement of a corpus as a record."""
    return [
        _record(corpus, index, measurement, device_name)
        for index, nest in enumerate(corpus.nests)
        for measurement in corpus.measurements.get(nest.digest, {}).values()
    ]


def _record(corpus: Corpus, index: int, m: CorpusMeasurement, device_name: str) -> Record:
    nest = corpus.nests[index]
    speedup = m.baseline_s / m.runtime_s if m.baseline_s and m.runtime_s else None
    return record_of(
        Measurement(m.status, m.runtime_s, m.interval_s, baseline_s=m.baseline_s, speedup=speedup),
        nest_digest=nest.digest,
        kernel=nest.kernel,
        family=nest.family,
        frontend=nest.frontend,
        device_fingerprint=corpus.device,
        device_name=device_name,
        baseline=nest.baseline,
        schedule=json.dumps(m.schedule, sort_keys=True, separators=(",", ":")),
        schedule_kind=str(m.schedule["kind"]),
        # One moment for all: the same corpus gives the same store, record for record.
        created="2026-01-01T00:00:00+00:00",
        provenance=json.dumps({"corpus": corpus.digest, "origin": m.origin}),
    )


def build_store(corpus: Corpus, bundle: Bundle, folder: Path, device_name: str) -> Store:
    """A store of all nests and measurements of a corpus, embedded by the bundle."""
    store = Store.open(folder, create=True)
    nests = [Nest(n.digest, n.kernel, n.family, n.frontend) for n in corpus.nests]
    add_to_store(store, bundle, nests, [n.graph for n in corpus.nests], records_of(corpus, device_name))
    return store


@dataclass(frozen=True)
class Replayed:
    """One held-out nest: distance of its nearest neighbour, and what the best of the first k
    candidates reached of the best speed known (0: none was measured on it)."""

    digest: str
    family: str
    distance: float
    efficiency: float


def replay(
    corpus: Corpus,
    bundle: Bundle,
    held_out: Collection[str],
    k: int,
    neighbours: int = 48,
    reference: Collection[str] | None = None,
) -> list[Replayed]:
    """Retrieve for the nests of held-out families from those of `reference` (None: all other families),
    without measuring: only candidates that the corpus measured on the nest can be tried."""
    vectors = bundle.embed([n.graph for n in corpus.nests])
    records = _by_nest(corpus)
    allowed = set(corpus.families) if reference is None else set(reference)
    known = [i for i, n in enumerate(corpus.nests) if n.family in allowed and n.family not in held_out]
    results = []
    for i, nest in enumerate(corpus.nests):
        if nest.family not in held_out or not records.get(nest.digest):
            continue
        near = _nearest(corpus, vectors, records, i, known, neighbours)
        measured = {r.schedule for r in records[nest.digest] if r.status != "not_applicable"}
        candidates = rank(near, 10**6, partial(_predict, bundle, nest), partial(_among, measured))
        order = [_text(c.schedule) for c in candidates]
        efficiency = _efficiency(records[nest.digest], order, k)
        results.append(Replayed(nest.digest, nest.family, near[0].distance, efficiency))
    return results


def _predict(bundle: Bundle, nest: CorpusNest, recipes: Sequence[Recipe]) -> NDArray[np.float32]:
    return bundle.score([nest.graph], recipes)[0]


def _among(schedules: Collection[str], recipe: Recipe) -> bool:
    return _text(recipe) in schedules


def fixed_order(corpus: Corpus, held_out: Collection[str], k: int, reference: Collection[str]) -> list[float]:
    """What a model has to beat: efficiencies when every held-out nest tries the same schedules in one
    order, best on average over the nests of `reference` first."""
    records = _by_nest(corpus)
    known = [n for n in corpus.nests if n.family in reference]
    scores: dict[str, float] = {}
    for nest in known:
        for schedule, (efficiency, _) in log_efficiencies(records.get(nest.digest, ())).items():
            scores[schedule] = scores.get(schedule, 0.0) + efficiency - UNKNOWN
    order = sorted(scores, key=lambda schedule: -scores[schedule])
    return [
        _efficiency(records[n.digest], order, k)
        for n in corpus.nests
        if n.family in held_out and records.get(n.digest)
    ]


def _by_nest(corpus: Corpus) -> dict[str, list[Record]]:
    records: dict[str, list[Record]] = {}
    for record in records_of(corpus, "replay"):
        records.setdefault(record.nest_digest, []).append(record)
    return records


def _efficiency(records: Sequence[Record], order: Sequence[str], k: int) -> float:
    """Best of the first k schedules of an order that were measured and fit, over the best known."""
    measured = {r.schedule: r for r in records}
    fitting = [measured[s] for s in order if s in measured and measured[s].status != "not_applicable"]
    best = max([1.0, *(r.speedup or 0.0 for r in records)])
    return max([1.0, *(r.speedup or 0.0 for r in fitting[:k])]) / best


def _text(recipe: Recipe) -> str:
    return json.dumps(recipe.to_dict(), sort_keys=True, separators=(",", ":"))


def _nearest(
    corpus: Corpus, vectors: NDArray[np.float32], records: Mapping[str, Sequence[Record]], query: int,
    reference: Sequence[int], count: int,
) -> list[Neighbour]:  # fmt: skip
    distances = 1.0 - vectors[reference] @ vectors[query]
    order = np.argsort(distances, kind="stable")[:count]
    found = []
    for position in order:
        nest = corpus.nests[reference[int(position)]]
        key = Nest(nest.digest, nest.kernel, nest.family, nest.frontend)
        found.append(Neighbour(key, float(distances[position]), tuple(records.get(nest.digest, ()))))
    return found


def calibrate(replayed: Sequence[Replayed], k: int) -> Calibration:
    """The largest distance within which transfers were good often enough on held-out families.

    Every candidate is measured before it is kept, so that a wrong trust costs time, not speed. Hence, where
    even the nearest were not good often enough, half of them are trusted all the same; and where all were,
    the limit lies beyond the farthest, as far again."""
    ordered = sorted(replayed, key=lambda r: r.distance)
    best, confidence = 0, math.nan
    good = 0
    for count, result in enumerate(ordered, start=1):
        good += result.efficiency >= GOOD_EFFICIENCY
        if count >= 5 and good / count >= WANTED_CONFIDENCE:
            best, confidence = count, good / count
    if not best and ordered:
        best = (len(ordered) + 1) // 2
        confidence = sum(r.efficiency >= GOOD_EFFICIENCY for r in ordered[:best]) / best
    limit = ordered[best - 1].distance if best else 0.0
    if confidence >= WANTED_CONFIDENCE and best == len(ordered):
        limit *= 2.0
    return Calibration(max_distance=limit, confidence=None if math.isnan(confidence) else confidence, k=k)


def save_calibration(folder: Path, calibration: Calibration, replayed: Sequence[Replayed]) -> None:
    """Write the calibration with the curve behind it."""
    document = {
        **asdict(calibration),
        "good_efficiency": GOOD_EFFICIENCY,
        "held_out": [asdict(r) for r in replayed],
    }
    (folder / CALIBRATION).write_text(json.dumps(document, indent=1) + "\n")
