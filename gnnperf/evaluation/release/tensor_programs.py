"""`gnnperf train release tensor-programs`: cost model of scheduled tensor programs, and a store of traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gnnperf.corpus.reader import read_corpus
from gnnperf.evaluation.release import Progress, Trained, read_evaluation
from gnnperf.evaluation.trace_ranking.scores import rank_pool, summary
from gnnperf.nn import Bundle
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.store import Store
from gnnperf.training.traces.bundle import fit_bundle
from gnnperf.training.traces.corpus import HELD_OUT, load_tensor_corpus
from gnnperf.training.traces.data import pools_of
from gnnperf.training.traces.features import corpus_features
from gnnperf.training.traces.fit import JudgeFitSettings


def train_tensor_programs(
    corpus: Path,
    encoder: Bundle,
    evaluation: Path | None,
    seeds: range,
    settings: JudgeFitSettings,
    cache: Path,
    progress: Progress,
) -> Trained:
    """Train on all workloads of a corpus but those held out, whose schedules the model then ranks.

    Args:
        corpus: folder of measured schedules.
        encoder: embeds the unscheduled workloads of the store.
        evaluation: document of `gnnperf eval tensor-ranking`, whose figures of operator kinds that were held
            out are taken over; None for none of these.
        seeds: of the trainings that are averaged.
        settings: of each training.
        cache: folder where features of schedules are kept for the next time.

    Raises:
        InputError: no such corpus or evaluation.
    """
    known_of_kinds = read_evaluation(evaluation, "tensor-ranking") if evaluation else {}
    measured = load_tensor_corpus(corpus)
    with progress("reading schedules", len(measured.workloads)) as advance:
        pools = pools_of(measured, corpus_features(measured, cache, advance))
    known = [pool for pool in pools if pool.workload.split != HELD_OUT]
    asked = [pool for pool in pools if pool.workload.split == HELD_OUT]
    bundle = fit_bundle(measured, known, settings, seeds)
    rankings = [rank_pool(pool, bundle.score_encoded(pool.graphs).astype(float)) for pool in asked]
    provenance = replace(
        bundle.provenance,
        corpus={
            **bundle.provenance.corpus,
            "held_out_workloads": len(asked),
            "evaluated_on": known_of_kinds.get("settings", {}),
        },
        figures={**known_of_kinds.get("figures", {}), **(summary(rankings) if rankings else {})},
    )
    return Trained(
        replace(bundle, provenance=provenance),
        fill_store=lambda store: fill_store(read_corpus(corpus), encoder, Store.open(store, create=True)),
    )
