"""From a corpus and an encoder to what is shipped: the schedule store and the calibration."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gnnperf.measure import Measurement
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import add_to_store, record_of
from gnnperf.store import Nest, Record, Store
from gnnperf.training import Corpus, CorpusMeasurement

MARGIN = 2.0
"""Times the farthest that any family lies from all others. Transfer between families works about as well from
far as from near, so that what is nothing like any of them is all that is left alone."""


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


def farthest_trusted(corpus: Corpus, bundle: Bundle) -> float:
    """Cosine distance up to which neighbours are trusted: `MARGIN` times the largest distance of a nest to
    the nearest of another family; 2, the largest there is, where all nests are of one family."""
    vectors = bundle.embed([nest.graph for nest in corpus.nests])
    families = np.array([nest.family for nest in corpus.nests])
    distance = np.where(families[:, None] == families[None], np.inf, 1.0 - vectors @ vectors.T)
    return float(min(2.0, MARGIN * distance.min(axis=1).max()))
