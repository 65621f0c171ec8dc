"""`gnnperf eval tensor-ranking`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.eval.trace_options import cache_option, corpus_option
from gnnperf.cli.options import quick_option
from gnnperf.cli.output import Report, Verb, progress

if TYPE_CHECKING:
    from gnnperf.corpus.reader import MeasuredTasks
    from gnnperf.evaluation.trace_ranking import RankingSettings
    from gnnperf.training.traces.data import SchedulePool


@dataclass(frozen=True)
class RankingStudy(Study):
    """Every model on every fold. each_workload: a row per workload too."""

    name = "tensor-ranking"

    corpus: MeasuredTasks
    pools: Sequence[SchedulePool]
    ranking: RankingSettings
    each_workload: bool

    def settings(self) -> Mapping[str, Any]:
        from gnnperf.evaluation.trace_ranking import describe

        return describe(self.pools, self.ranking, self.corpus)

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        from gnnperf.evaluation.trace_ranking import ranking_steps, ranking_tasks

        return ranking_steps([*ranking_tasks(self.pools, self.ranking)], self.ranking)

    def table(self, measured: Mapping[str, Row]) -> Rows:
        from gnnperf.evaluation.trace_ranking import judged_of, table

        return table(judged_of([*measured.values()]), self.pools, self.each_workload)

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        from gnnperf.evaluation.trace_ranking import headline

        return headline(table)


@click.command("tensor-ranking", cls=Verb, page=True)
@corpus_option
@cache_option
@click.option("--folds", default=6, show_default=True, type=click.IntRange(2), help="Folds of the kinds.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all training.")
@click.option(
    "--from-scratch", is_flag=True,
    help="The network begins with weights as drawn, not as that of loop nests: what that is worth.",
)  # fmt: skip
@click.option("--workloads", "each_workload", is_flag=True, help="A row per workload too.")
@quick_option
@output_option
def tensor_ranking(
    corpus: Path, cache: Path | None, folds: int, seed: int, from_scratch: bool, each_workload: bool,
    quick: bool, output: Path | None,
) -> Report:  # fmt: skip
    """Rank measured TVM schedules of workloads, and of operator kinds, that were not learned from.

    Beside our cost model stand its judges: network (over the scheduled graph), statements (a perceptron on
    what each costs) and trees; the network is three fifths of the score, and without_network the mean of the
    last two. Then MetaSchedule's XGBModel on its own features, a perceptron on these summed up (mlp), all
    trained on the same records, and random order. Figures tvm_network are of the network alone,
    tvm_without_network of the best without it. top1 and top5: best runtime over the best of the 1 or 5
    schedules ranked first, every workload weighted alike, and a schedule that fails counts as the unscheduled
    function. pairwise: share of pairs in the right order, ties left out. ratio: how much faster first picks
    are than those of without_network, every kind weighted alike, with the ends of the 95% interval over
    kinds. Ctrl-C gives the table of what there is.
    """
    import warnings

    from gnnperf.evaluation.trace_ranking import RankingSettings
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.shipped import shipped_bundle
    from gnnperf.training.traces.corpus import load_tensor_corpus
    from gnnperf.training.traces.data import pools_of
    from gnnperf.training.traces.features import corpus_features, default_cache
    from gnnperf.training.traces.fit import DEFAULT_FIT, QUICK_FIT

    warnings.simplefilter("ignore")
    measured = load_tensor_corpus(corpus)
    with progress("reading schedules", len(measured.tasks)) as advance:
        pools = pools_of(measured, corpus_features(measured, cache or default_cache(), advance))
    start = None if from_scratch else load_checkpoint(shipped_bundle(), Bundle)
    settings = RankingSettings(folds, QUICK_FIT if quick else DEFAULT_FIT, seed, start)
    return RankingStudy(measured, pools, settings, each_workload).run(output)
