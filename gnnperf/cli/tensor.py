"""`gnnperf retrieve` and `gnnperf tune` of a TVM kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.cli.answers import Answer, answer, interrupted, notify, remembering
from gnnperf.cli.output import progress, to_json
from gnnperf.shipped import shipped_bundle

if TYPE_CHECKING:
    from gnnperf.backends.tvm.server import BenchServer
    from gnnperf.frontends.tvm import TvmTask
    from gnnperf.frontends.tvm.whole_program import WholeProgram
    from gnnperf.nn import Bundle
    from gnnperf.retrieval.measured import Memory
    from gnnperf.retrieval.report import Retrieval
    from gnnperf.retrieval.tensor import TaskQuery, TensorTransfer
    from gnnperf.store import Store


@dataclass(frozen=True)
class TensorJob:
    """What is asked of a TVM kernel. own: opens the user's store; None: there is none. started:
    `time.monotonic()` when the work began."""

    kernel: str
    symbols: dict[str, float]
    checkpoint: Path
    budget_s: float | None
    output: Path | None
    beside: str | None
    own: Callable[[Bundle], Store | None]
    started: float

    @property
    def exported(self) -> bool:
        """Whether it is a program of PyTorch's."""
        return self.kernel.endswith(".pt2")

    @property
    def name(self) -> str:
        """Of the kernel, for people."""
        return Path(self.kernel).stem if ":" not in self.kernel else self.kernel.rpartition(":")[2]


def retrieve_tensor(job: TensorJob, k: int, model_only: bool) -> Answer:
    """Retrieve traces for the tasks of a kernel. Raises GnnperfError."""
    from gnnperf.retrieval.tensor.records import remember
    from gnnperf.retrieval.tensor.transfer import TensorOptions, TensorTransfer

    with _opened(job, not model_only) as (common, memory):
        options = TensorOptions(k=k, budget_s=job.budget_s)
        transfer = TensorTransfer(**common, options=options, notify=notify)
        result, queries = transfer.run()
        if memory is not None and not model_only:
            with remembering():
                remember(memory, queries, transfer.target)
        return _answer(job, transfer, result, queries)


def tune_tensor(job: TensorJob, trials: int) -> Answer:
    """Search schedules for the tasks of a kernel. Raises GnnperfError."""
    from gnnperf.retrieval.tensor.transfer import TensorOptions
    from gnnperf.retrieval.tensor.tuning import TensorTuning

    with _opened(job, True) as (common, memory), progress("tuning", trials * len(common["tasks"])) as advance:
        tuning = TensorTuning(
            **common,
            options=TensorOptions(budget_s=job.budget_s),
            trials=trials,
            memory=memory,
            advance=lambda count, doing: advance(count, doing=doing),
        )
        try:
            result, queries = tuning.run()
        except KeyboardInterrupt:
            raise interrupted(tuning.measured, memory) from None
        return _answer(job, tuning, result, queries)


@contextmanager
def _opened(job: TensorJob, measuring: bool) -> Iterator[tuple[dict[str, Any], Memory | None]]:
    """(what every `TensorTransfer` is made of, the user's store). Raises GnnperfError."""
    from gnnperf.backends.tvm.server import BenchServer
    from gnnperf.frontends.tvm.eligibility import objection
    from gnnperf.frontends.tvm.fast_import import import_tvm
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads

    set_runtime_threads()
    import_tvm(without_torch=not job.exported)
    target = host_target()
    tasks, programs = _loaded(job, target)
    server = None
    if measuring:
        # Forked before torch and the stores are loaded, and at work while they are.
        server = BenchServer([task.module for task in tasks], target, programs=programs)
        server.prepare(next((n for n, task in enumerate(tasks) if objection(task) is None), 0))
    with server or nullcontext():
        yield _parts(job, tasks, programs, target, server)


def _loaded(job: TensorJob, target: Any) -> tuple[Sequence[TvmTask], Sequence[WholeProgram]]:
    """Tasks, and the program that they are of, where it can be run as a whole."""
    from gnnperf.frontends.tvm import load_tasks
    from gnnperf.frontends.tvm.relax_programs import exported_program

    if not job.exported:
        return load_tasks(job.kernel, job.symbols, target), ()
    program = exported_program(Path(job.kernel), target)
    return program.tasks, [program]


def _parts(
    job: TensorJob, tasks: Sequence[TvmTask], programs: Sequence[WholeProgram], target: Any,
    server: BenchServer | None,
) -> tuple[dict[str, Any], Memory | None]:  # fmt: skip
    from gnnperf.devices import describe_host
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.nn.traces import TensorBundle
    from gnnperf.retrieval.tensor.records import memory_of
    from gnnperf.store import Store

    model = load_checkpoint(job.checkpoint, TensorBundle)
    bundle = load_checkpoint(shipped_bundle(), Bundle)
    released, mine = Store.open(job.checkpoint / "store"), job.own(bundle)
    device = describe_host()
    libraries, whole = [], None
    if job.beside is not None:
        from gnnperf.backends.tvm.competitors import Torch

        libraries.append(Torch(target))
    if job.exported:
        from gnnperf.backends.tvm.competitors import TORCH, torch_program
        from gnnperf.retrieval.tensor.whole import WholeKernel

        path = Path(job.kernel)
        whole = WholeKernel(path, programs[0], {TORCH: partial(torch_program, path)})
    common = {
        "kernel": job.name,
        "tasks": tasks,
        "target": target,
        "bundle": bundle,
        "model": model,
        "stores": [released] if mine is None else [released, mine],
        "lenders": [Store.open(shipped_bundle() / "store")] + ([] if mine is None else [mine]),
        "device": device,
        "server": server,
        "libraries": libraries,
        "whole": whole,
        "started": job.started,
    }
    return common, None if mine is None else memory_of(mine, job.name, bundle, device)


def _answer(
    job: TensorJob, transfer: TensorTransfer, result: Retrieval, queries: Sequence[TaskQuery]
) -> Answer:
    from gnnperf.retrieval.tensor.output import write_output

    def write(folder: Path) -> None:
        report = to_json(result.to_dict())
        program = transfer.whole.program if transfer.whole else None
        write_output(folder, job.name, transfer.tasks, queries, transfer.target, report, program)

    graphs = {query.task.graph.digest: query.task.graph for query in queries}
    return answer(result, graphs, job.output, write)
