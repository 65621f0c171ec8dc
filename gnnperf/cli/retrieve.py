"""`gnnperf retrieve`: the main job."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.options import (
    beside_option,
    budget_option,
    checkpoint_option,
    is_default,
    kernel_options,
    output_option,
    own_store,
    refuse,
    store_options,
)
from gnnperf.cli.output import Report, Verb, to_json
from gnnperf.cli.pages import page_of_retrieval
from gnnperf.cli.retrieval_view import retrieval_view
from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped_tensor_bundle

if TYPE_CHECKING:
    from gnnperf.frontends.dace import DaceKernel
    from gnnperf.graph import ProgramGraph
    from gnnperf.nn import Bundle
    from gnnperf.retrieval.report import Retrieval
    from gnnperf.retrieval.transfer import Options
    from gnnperf.store import Store


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@kernel_options
@checkpoint_option
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@click.option(
    "--baseline", type=click.Choice(["auto", "simplify"]), default="auto", show_default=True,
    help="What to beat: DaCe's auto_optimize, or the plain program. Of a TVM kernel it is what TVM's default "
    "pipeline makes of it.",
)  # fmt: skip
@budget_option
@click.option("--model-only", is_flag=True, help="Rank schedules and measure nothing.")
@click.option("--explain", is_flag=True, help="Show the neighbours, and what was tried and refused, and why.")
@output_option
@store_options
@beside_option
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
        from gnnperf.frontends.dace import load_kernel
        from gnnperf.retrieval.transfer import Options

        refuse(ctx, "a DaCe kernel", "beside")
        loaded = load_kernel(kernel, symbols, inputs, seed)
        options = Options(k=k, baseline=baseline, budget_s=budget, model_only=model_only)
        result, graphs, failure = _retrieve_nests(loaded, options, checkpoint, output, own, started)
    return Report(
        result.to_dict(), retrieval_view(result, explain), failure, partial(page_of_retrieval, result, graphs)
    )


def _retrieve_nests(
    kernel: DaceKernel, options: Options, checkpoint: Path, output: Path | None,
    own: Callable[[Bundle], Store | None], started: float,
) -> tuple[Retrieval, dict[str, ProgramGraph], GnnperfError | None]:  # fmt: skip
    """Retrieve recipes for the nests of a DaCe kernel: the answer, graphs of the nests by digest, and what
    went wrong in writing it."""
    from gnnperf.devices import describe_host
    from gnnperf.measure import Compiler, Runner
    from gnnperf.nn import load_bundle
    from gnnperf.retrieval.neighbours import Calibration
    from gnnperf.retrieval.output import baseline_sdfg, write_output
    from gnnperf.retrieval.records import remember
    from gnnperf.retrieval.transfer import Transfer
    from gnnperf.store import Store

    bundle = load_bundle(checkpoint)
    released = Store.open(checkpoint / "store")
    mine = own(bundle)
    transfer = Transfer(
        kernel,
        bundle,
        [released] if mine is None else [released, mine],
        describe_host(),
        Calibration.load(checkpoint),
        options,
        notify=lambda text: click.echo(f"gnnperf: {text}", err=True),
        started=started,
    )
    with Compiler() as compiler, Runner() as runner:
        result, tuned, queries = transfer.run(compiler, runner)
        graphs = {query.graph.digest: query.graph for query in queries}
        if mine is not None and not options.model_only:
            try:
                remember(mine, queries, kernel.name, bundle, transfer.device)
            except GnnperfError as error:  # the answer is worth more than the memory of it
                click.echo(f"gnnperf: nothing was remembered: {error}", err=True)
        if output is not None:
            try:
                best = tuned if tuned is not None else baseline_sdfg(kernel, result.baseline_name)
                write_output(output, kernel, best, to_json(result.to_dict()), compiler)
            except GnnperfError as error:
                return result, graphs, error
    return result, graphs, None
