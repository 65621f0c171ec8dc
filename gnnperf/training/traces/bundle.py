"""The cost model of tensor programs, trained on some workloads of a corpus, as a bundle that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.devices import vectors_of
from gnnperf.nn import Bundle, ModelProvenance
from gnnperf.nn.traces import TensorBundle
from gnnperf.training.traces.data import SchedulePool
from gnnperf.training.traces.fit import DEFAULT_FIT, JudgeFitSettings, fit_judges


def fit_bundle(
    corpus: MeasuredTasks,
    known: Sequence[SchedulePool],
    settings: JudgeFitSettings = DEFAULT_FIT,
    seeds: Sequence[int] = (0,),
    start: Bundle | None = None,
) -> TensorBundle:
    """Train all judges on the schedules of the workloads `known` of a corpus, the networks once with each
    seed. The bundle says what it has learned from, and has no figures. start: as of `fit_cost_model`."""
    models, trees = fit_judges(known, settings, seeds, start)
    about: dict[str, Any] = {
        "digest": corpus.digest,
        "device": corpus.device,
        "kinds": sorted({pool.workload.family for pool in known}),
        "workloads": len(known),
        "schedules": sum(len(pool.graphs) for pool in known),
        "began_as": None if start is None else start.encoder_id,
    }
    provenance = ModelProvenance(about, seeds=tuple(seeds))
    return TensorBundle(models, trees, provenance, vectors_of(corpus.device))
