"""`gnnperf tune`: a search with measurements, warm-started by retrieval."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from gnnperf.cli.options import (
    checkpoint_option,
    is_default,
    kernel_options,
    measuring_options,
    own_store,
    refuse,
)
from gnnperf.cli.output import Report, Verb
from gnnperf.cli.pages import page_of_retrieval
from gnnperf.cli.retrieval_view import retrieval_view
from gnnperf.shipped import shipped_tensor_bundle


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@kernel_options
@checkpoint_option
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(1, 100_000),
    help="Schedules measured per nest, or task, those among them that your store knows from before.",
)  # fmt: skip
@measuring_options
@click.pass_context
def tune(
    ctx: click.Context, kernel: str, symbols: dict[str, float], inputs: str | None, seed: int,
    checkpoint: Path, trials: int, baseline: Any, budget: float | None, output: Path | None,
    store_location: str | None, no_store: bool, beside: str | None,
) -> Report:  # fmt: skip
    """Search for faster schedules than retrieval finds.

    KERNEL is as for `gnnperf retrieve`. The search starts from what retrieval finds: schedules of the nearest
    kernels are measured first, and what is searched next grows from them, by MetaSchedule's evolutionary
    search for a TVM kernel, by mutations for a DaCe kernel. Every schedule is verified; the best are judged
    as `retrieve` judges them. What is measured goes to your store, a round at a time: interrupt the search
    and run it again, or with more trials, and it goes on; `gnnperf retrieve` finds it, too.
    """
    started = time.monotonic()
    from gnnperf.frontends.tvm import is_tvm_kernel
    from gnnperf.retrieval.folder import check_output

    if output is not None:
        check_output(output)
    own = partial(own_store, store_location, no_store)
    if is_tvm_kernel(kernel):
        from gnnperf.cli.tensor import TensorJob, tune_tensor

        refuse(ctx, "a TVM kernel", "inputs", "seed", "baseline")
        if is_default(ctx, "checkpoint"):
            checkpoint = shipped_tensor_bundle()
        job = TensorJob(kernel, symbols, checkpoint, budget, output, beside, own, started)
        result, graphs, failure = tune_tensor(job, trials)
    else:
        from gnnperf.cli.nests import NestJob, tune_nests

        refuse(ctx, "a DaCe kernel", "beside")
        nests = NestJob(kernel, symbols, inputs, seed, checkpoint, baseline, budget, output, own, started)
        result, graphs, failure = tune_nests(nests, trials)
    return Report(
        result.to_dict(), retrieval_view(result, False), failure, partial(page_of_retrieval, result, graphs)
    )
