"""`gnnperf eval tensor-ranking`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from gnnperf.cli.eval.measured import interrupted, measure_rows, row_log
from gnnperf.cli.eval.table import benchmark_report, write_document
from gnnperf.cli.eval.tensor_options import cache_option, corpus_option
from gnnperf.cli.output import Report, Verb, progress


@click.command("tensor-ranking", cls=Verb, page=True)
@corpus_option
@cache_option
@click.option("--folds", default=6, show_default=True, type=click.IntRange(2), help="Folds of the kinds.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all training.")
@click.option("--workloads", "each_workload", is_flag=True, help="A row per workload too.")
@click.option("--quick", is_flag=True, help="Train briefly: a first look.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep what every model was worth: the same command goes on from there.",
)  # fmt: skip
def tensor_ranking(
    corpus: Path, cache: Path | None, folds: int, seed: int, each_workload: bool, quick: bool,
    output: Path | None,
) -> Report:  # fmt: skip
    """Rank measured TVM schedules of workloads, and of operator kinds, that were not learned from.

    Beside our cost model over scheduled graphs: MetaSchedule's XGBModel on its own features, a perceptron on
    the same features summed up, all trained on the same records, and random order. top1 and top5: best
    runtime over the best of the 1 or 5 schedules ranked first, every workload weighted alike, and a schedule
    that fails counts as the unscheduled function. pairwise: share of pairs in the right order, ties left out.
    Ctrl-C gives the table of what there is.
    """
    import warnings

    from gnnperf.evaluation.trace_ranking import (
        RankingSettings,
        judged_of,
        ranking_steps,
        ranking_tasks,
        summarise,
    )
    from gnnperf.retrieval.folder import check_output
    from gnnperf.training.traces.corpus import load_tensor_corpus
    from gnnperf.training.traces.data import pools_of
    from gnnperf.training.traces.features import corpus_features, default_cache
    from gnnperf.training.traces.fit import DEFAULT_FIT, QUICK_FIT

    if output is not None:
        check_output(output)
    warnings.simplefilter("ignore")
    measured = load_tensor_corpus(corpus)
    with progress("reading schedules", len(measured.workloads)) as advance:
        pools = pools_of(measured, corpus_features(measured, cache or default_cache(), advance))
    settings = RankingSettings(folds, QUICK_FIT if quick else DEFAULT_FIT, seed)
    steps = ranking_steps([*ranking_tasks(pools, settings)], settings)
    about = {"corpus_digest": measured.digest, **asdict(settings)}
    rows = measure_rows("tensor-ranking", steps, row_log(output, about))
    result = summarise(judged_of(rows), pools, settings, measured, each_workload)
    write_document(result, output)
    report = benchmark_report(result)
    return report if len(rows) == len(steps) else interrupted(report, len(rows), len(steps), output)
