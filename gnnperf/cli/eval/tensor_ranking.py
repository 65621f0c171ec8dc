"""`gnnperf eval tensor-ranking`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from gnnperf.cli.eval.measured import interrupted, measure_rows
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.output import Report, Verb, progress, to_json


@click.command("tensor-ranking", cls=Verb, page=True)
@click.option(
    "--corpus", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder that scripts/collect_tensor.py wrote.  [default: the corpus that comes with gnnperf]",
)  # fmt: skip
@click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Where features of schedules are kept for the next time.  [default: ~/.cache/gnnperf/tensor]",
)  # fmt: skip
@click.option("--folds", default=6, show_default=True, type=click.IntRange(2), help="Folds of the kinds.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all training.")
@click.option("--workloads", "each_workload", is_flag=True, help="A row per workload too.")
@click.option("--quick", is_flag=True, help="Train briefly: a first look.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep what every model was worth: the same command goes on from there.",
)  # fmt: skip
def tensor_ranking(
    corpus: Path | None, cache: Path | None, folds: int, seed: int, each_workload: bool, quick: bool,
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

    from gnnperf.evaluation.cases import RowLog
    from gnnperf.evaluation.tensor_ranking import (
        RankingSettings,
        judged_of,
        ranking_steps,
        ranking_tasks,
        summarise,
    )
    from gnnperf.retrieval.folder import check_output
    from gnnperf.shipped import shipped
    from gnnperf.training.tensor.corpus import load_tensor_corpus
    from gnnperf.training.tensor.data import pools_of
    from gnnperf.training.tensor.features import corpus_features, default_cache
    from gnnperf.training.tensor.fit import DEFAULT_FIT, QUICK_FIT

    warnings.simplefilter("ignore")
    measured = load_tensor_corpus(corpus or shipped("checkpoints/corpus/tensor"))
    with progress("reading schedules", len(measured.workloads)) as advance:
        pools = pools_of(measured, corpus_features(measured, cache or default_cache(), advance))
    settings = RankingSettings(folds, QUICK_FIT if quick else DEFAULT_FIT, seed)
    steps = ranking_steps([*ranking_tasks(pools, settings)], settings)
    about = json.loads(to_json({"corpus_digest": measured.digest, **asdict(settings)}))
    if output is not None:
        check_output(output)
    rows = measure_rows("tensor-ranking", steps, RowLog(output, about))
    result = summarise(judged_of(rows), pools, settings, measured, each_workload)
    if output is not None:
        (output / "tensor-ranking.json").write_text(to_json(vars(result)) + "\n", encoding="utf-8")
    report = benchmark_report(result)
    return report if len(rows) == len(steps) else interrupted(report, len(rows), len(steps), output)
