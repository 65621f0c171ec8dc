"""`gnnperf eval tensor-ranking`."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.output import Report, Verb, progress


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
def tensor_ranking(
    corpus: Path | None, cache: Path | None, folds: int, seed: int, each_workload: bool, quick: bool
) -> Report:
    """Rank measured TVM schedules of workloads, and of operator kinds, that were not learned from.

    Beside our cost model over scheduled graphs: MetaSchedule's XGBModel on its own features, a perceptron on
    the same features summed up, all trained on the same records, and random order. top1 and top5: best
    runtime over the best of the 1 or 5 schedules ranked first, every workload weighted alike. pairwise: share
    of pairs in the right order, ties left out.
    """
    import warnings

    from gnnperf.evaluation.tensor_ranking import RankingSettings, evaluate_ranking, ranking_tasks, summarise
    from gnnperf.evaluation.tensor_ranking.baselines import CONTENDERS
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
    tasks = [*ranking_tasks(pools, settings)]
    with progress("training", len(tasks) * len(CONTENDERS)) as advance:
        judged = evaluate_ranking(tasks, settings, advance)
    return benchmark_report(summarise(judged, pools, settings, measured, each_workload))
