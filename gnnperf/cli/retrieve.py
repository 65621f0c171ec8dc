"""`gnnperf retrieve`: the main job."""

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
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@click.option("--model-only", is_flag=True, help="Rank schedules and measure nothing.")
@click.option("--explain", is_flag=True, help="Show the neighbours, and what was tried and refused, and why.")
@measuring_options
@click.option(
    "--gpu", metavar="NAME|YAML",
    help="KERNEL is a tunable GPU kernel, by name or a YAML file that describes it: propose K configurations "
    "for that GPU, and measure nothing. --output is then a JSON file for Kernel Tuner.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="PATH",
    help="With --gpu: tunable_kernels.parquet, measured on other GPUs, or its folder."
    "  [default: $GNNPERF_DATA]",
)  # fmt: skip
@click.pass_context
def retrieve(
    ctx: click.Context, kernel: str, symbols: dict[str, float], inputs: str | None, seed: int,
    checkpoint: Path, k: int,
    baseline: Any, budget: float | None, model_only: bool, explain: bool, output: Path | None,
    store_location: str | None, no_store: bool, beside: str | None, gpu: str | None, data: Path | None,
) -> Report:  # fmt: skip
    """Make a kernel faster with the schedules of kernels like it.

    KERNEL is path/to/file.py:name (a @dace.program, or a TVM PrimFunc, IRModule or list of TE tensors, or a
    function that returns one of these), an .sdfg/.sdfgz file, a saved TVM module (.json) or a torch exported
    program (.pt2). Every loop nest, or every task of a TVM kernel, is looked up in the schedule store; the k
    best candidates are compiled, verified against the plain program and timed beside the baseline; winners
    are put back and the whole kernel is verified and timed. The result is never slower than the baseline:
    what does not win beyond noise is not kept.
    """
    started = time.monotonic()
    if gpu is not None:
        from gnnperf.cli.configurations import retrieve_configurations

        own_bundle = None if is_default(ctx, "checkpoint") else checkpoint
        refuse(ctx, "a tunable kernel", "beside")
        return retrieve_configurations(kernel, gpu, k, symbols, data, own_bundle, output)
    from gnnperf.errors import InputError
    from gnnperf.frontends.tvm import is_tvm_kernel
    from gnnperf.retrieval.folder import check_output

    for option, given in (("--output", output), ("--beside", beside)):
        if given is not None and model_only:
            raise InputError(f"{option} is about what was measured to be fastest; leave out --model-only")
    if output is not None:
        check_output(output)
    own = partial(own_store, store_location, no_store)
    if is_tvm_kernel(kernel):
        from gnnperf.cli.tensor import TensorJob, retrieve_tensor

        refuse(ctx, "a TVM kernel", "inputs", "seed", "baseline")
        if is_default(ctx, "checkpoint"):
            checkpoint = shipped_tensor_bundle()
        job = TensorJob(kernel, symbols, checkpoint, budget, output, beside, own, started)
        result, graphs, failure = retrieve_tensor(job, k, model_only)
    else:
        from gnnperf.cli.nests import NestJob, retrieve_nests

        refuse(ctx, "a DaCe kernel", "beside")
        nests = NestJob(kernel, symbols, inputs, seed, checkpoint, baseline, budget, output, own, started)
        result, graphs, failure = retrieve_nests(nests, k, model_only)
    return Report(
        result.to_dict(), retrieval_view(result, explain), failure, partial(page_of_retrieval, result, graphs)
    )
