"""`gnnperf train release tensor-programs`: cost model of scheduled tensor programs, and a store of traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gnnperf.corpus.reader import read_corpus
from gnnperf.errors import InputError
from gnnperf.evaluation.release import Progress, Trained, check_settings, read_evaluation
from gnnperf.evaluation.trace_ranking.scores import first_pick_ratio, rank_pool, summary
from gnnperf.nn import Bundle
from gnnperf.nn.traces import TensorBundle
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.store import Store
from gnnperf.training.traces.bundle import fit_bundle
from gnnperf.training.traces.corpus import HELD_OUT, load_tensor_corpus
from gnnperf.training.traces.data import SchedulePool, pools_of
from gnnperf.training.traces.features import corpus_features
from gnnperf.training.traces.fit import JudgeFitSettings

FEWEST_KINDS = 5
"""Held-out operator kinds that an interval over kinds can be of."""


def train_tensor_programs(
    corpus: Path,
    encoder: Bundle,
    evaluation: Path | None,
    seeds: range,
    settings: JudgeFitSettings,
    cache: Path,
    anyway: bool,
    progress: Progress,
) -> Trained:
    """Train on all workloads of a corpus but those held out, whose schedules the model then ranks.

    Args:
        corpus: folder of measured schedules.
        encoder: networks of loop nests, which embed the unscheduled workloads of the store, and as which the
            judge of graphs begins.
        evaluation: document of `gnnperf eval tensor-ranking`, whose figures of operator kinds that were held
            out are taken over; None for none of these.
        seeds: of the trainings that are averaged.
        settings: of each training.
        cache: folder where features of schedules are kept for the next time.
        anyway: also where the network does not help on the workloads held out.

    Raises:
        InputError: no such corpus or evaluation, or a network that does not help.
    """
    known_of_kinds = read_evaluation(evaluation, "tensor-ranking") if evaluation else {}
    measured = load_tensor_corpus(corpus)
    if evaluation:
        made_with = {"corpus_digest": measured.digest, "fit": settings, "began_as": encoder.encoder_id}
        check_settings(evaluation, known_of_kinds["settings"], made_with)
    with progress("reading schedules", len(measured.tasks)) as advance:
        pools = pools_of(measured, corpus_features(measured, cache, advance))
    known = [pool for pool in pools if pool.workload.split != HELD_OUT]
    asked = [pool for pool in pools if pool.workload.split == HELD_OUT]
    bundle = fit_bundle(measured, known, settings, seeds, encoder)
    figures = dict(known_of_kinds.get("figures", {}))
    if asked:
        figures |= _worth(bundle, asked, anyway)
    provenance = replace(
        bundle.provenance,
        corpus={
            **bundle.provenance.corpus,
            "held_out_workloads": len(asked),
            "evaluated_on": known_of_kinds.get("settings", {}),
        },
        figures=figures,
    )
    return Trained(
        replace(bundle, provenance=provenance),
        fill_store=lambda store: fill_store(read_corpus(corpus), encoder, Store.open(store, create=True)),
    )


def _worth(bundle: TensorBundle, asked: Sequence[SchedulePool], anyway: bool) -> dict[str, float]:
    """How a model ranks the schedules of workloads that it has not seen, and what its network is worth."""
    found = [bundle.describe(pool.graphs, features=False) for pool in asked]
    rankings = [rank_pool(pool, one.scores.astype(float)) for pool, one in zip(asked, found, strict=True)]
    without = [
        rank_pool(pool, one.judgements[1:].mean(0).astype(float))
        for pool, one in zip(asked, found, strict=True)
    ]
    kinds = [pool.workload.family for pool in asked]
    ratio, low, high = first_pick_ratio(rankings, without, kinds)
    if len({*kinds}) < FEWEST_KINDS and not anyway:
        raise InputError(
            f"expected workloads held out of at least {FEWEST_KINDS} operator kinds, which say whether the "
            f"network helps, got {len({*kinds})}; collect more, or give --anyway"
        )
    if low <= 1.0 and not anyway:
        raise InputError(
            f"expected a network that helps on workloads held out, got first picks {ratio:.3f} times as fast "
            f"as without it (95% interval {low:.3f} to {high:.3f}); collect more, or give --anyway"
        )
    return {
        **summary(rankings), "tvm_ratio_at_1": ratio, "tvm_ratio_at_1_low": low, "tvm_ratio_at_1_high": high
    }  # fmt: skip
