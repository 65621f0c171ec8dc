"""`gnnperf retrieve` of a TVM kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import to_json
from gnnperf.errors import GnnperfError
from gnnperf.shipped import shipped_bundle

if TYPE_CHECKING:
    from gnnperf.frontends.tvm import TvmTask
    from gnnperf.graph import ProgramGraph
    from gnnperf.nn import Bundle
    from gnnperf.retrieval.report import Retrieval
    from gnnperf.store import Store
    from gnnperf.tuning.tensor.server import BenchServer


def retrieve_tensor(
    kernel: str, symbols: dict[str, float], checkpoint: Path, k: int, budget_s: float | None,
    model_only: bool, output: Path | None, own: Callable[[Bundle], Store | None], started: float,
) -> tuple[Retrieval, dict[str, ProgramGraph], GnnperfError | None]:  # fmt: skip
    """Retrieve traces for the tasks of a kernel: the answer, graphs of the tasks by digest, and what went
    wrong in writing it.

    own: opens the user's store; None: there is none. Raises GnnperfError.
    """
    from gnnperf.frontends.tvm import load_tasks
    from gnnperf.frontends.tvm.fast_import import import_tvm
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
    from gnnperf.tuning.tensor.scope import objection
    from gnnperf.tuning.tensor.server import BenchServer

    set_runtime_threads()
    import_tvm(without_torch=not kernel.endswith(".pt2"))
    target = host_target()
    tasks = load_tasks(kernel, symbols, target)
    server = None
    if not model_only:
        # Forked before torch and the stores are loaded, and at work while they are.
        server = BenchServer([task.module for task in tasks], target)
        server.prepare(next((n for n, task in enumerate(tasks) if objection(task) is None), 0))
    with server or nullcontext():
        return _retrieve(kernel, tasks, target, checkpoint, server, k, budget_s, output, own, started)


def _retrieve(
    kernel: str, tasks: Sequence[TvmTask], target: Any, checkpoint: Path, server: BenchServer | None, k: int,
    budget_s: float | None, output: Path | None, own: Callable[[Bundle], Store | None], started: float,
) -> tuple[Retrieval, dict[str, ProgramGraph], GnnperfError | None]:  # fmt: skip
    from gnnperf.devices import describe_host
    from gnnperf.nn import load_bundle
    from gnnperf.nn.tensor import load_tensor_bundle
    from gnnperf.retrieval.tensor.output import write_output
    from gnnperf.retrieval.tensor.records import remember
    from gnnperf.retrieval.tensor.transfer import TensorOptions, TensorTransfer
    from gnnperf.store import Store

    model = load_tensor_bundle(checkpoint)
    bundle = load_bundle(shipped_bundle())
    released, mine = Store.open(checkpoint / "store"), own(bundle)
    name = Path(kernel).stem if ":" not in kernel else kernel.rpartition(":")[2]
    transfer = TensorTransfer(
        name,
        tasks,
        target,
        bundle,
        model,
        [released] if mine is None else [released, mine],
        describe_host(),
        server,
        TensorOptions(k=k, budget_s=budget_s),
        notify=lambda text: click.echo(f"gnnperf: {text}", err=True),
        started=started,
    )
    result, queries = transfer.run()
    graphs = {query.task.graph.digest: query.task.graph for query in queries}
    if mine is not None and server is not None:
        try:
            remember(mine, queries, name, bundle, transfer.device, target)
        except GnnperfError as error:  # the answer is worth more than the memory of it
            click.echo(f"gnnperf: nothing was remembered: {error}", err=True)
    if output is not None:
        try:
            write_output(output, name, tasks, queries, target, to_json(result.to_dict()))
        except GnnperfError as error:
            return result, graphs, error
    return result, graphs, None
