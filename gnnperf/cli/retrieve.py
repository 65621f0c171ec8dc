"""`gnnperf retrieve`: the main job."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from gnnperf.cli.options import kernel_options, measuring_options, open_session
from gnnperf.cli.output import Report, Verb
from gnnperf.cli.retrieval_view import measured_report, saved


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@kernel_options
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per nest."
)
@click.option("--model-only", is_flag=True, help="Rank schedules and measure nothing.")
@click.option("--explain", is_flag=True, help="Show the neighbours, and what was tried and refused, and why.")
@measuring_options
def retrieve(
    kernel: str, k: int, model_only: bool, explain: bool, output: Path | None, checkpoint: Path | None,
    store_location: str | None, no_store: bool, **asked: Any,
) -> Report:  # fmt: skip
    """Make a kernel faster with the schedules of kernels like it.

    KERNEL is path/to/file.py:name (a @dace.program, or a TVM PrimFunc, IRModule, list of TE tensors, a torch
    module with its example inputs in a tuple, or a function that returns one of these), an .sdfg/.sdfgz file,
    a saved TVM module (.json) or a torch exported program (.pt2). Every loop nest, or every task of a TVM
    kernel, is looked up in the schedule store; the k best candidates are compiled, verified against the plain
    program and timed beside the baseline; winners are put back and the whole kernel is verified and timed.
    The result is never slower than the baseline: what does not win beyond noise is not kept.
    """
    from gnnperf.errors import InputError

    if output is not None and model_only:
        raise InputError("--output is about what was measured to be fastest; leave out --model-only")
    session = open_session(checkpoint, store_location, no_store)
    run = partial(session.retrieve, kernel, k=k, model_only=model_only, **asked)
    result, failure = saved(run, output)
    return measured_report(result, failure, explain)
