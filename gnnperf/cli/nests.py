"""`gnnperf retrieve` and `gnnperf tune` of a DaCe kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.cli.answers import Answer, answer, interrupted, notify, remembering
from gnnperf.cli.output import progress, to_json

if TYPE_CHECKING:
    from gnnperf.frontends.dace import BaselineName, DaceKernel
    from gnnperf.measure import Compiler
    from gnnperf.nn import Bundle
    from gnnperf.retrieval.query import Query
    from gnnperf.retrieval.report import Retrieval
    from gnnperf.retrieval.transfer import Transfer
    from gnnperf.store import Store


@dataclass(frozen=True)
class NestJob:
    """What is asked of a DaCe kernel. own: opens the user's store; None: there is none. started:
    `time.monotonic()` when the work began."""

    kernel: str
    symbols: dict[str, float]
    inputs: str | None
    seed: int
    checkpoint: Path
    baseline: BaselineName
    budget_s: float | None
    output: Path | None
    own: Callable[[Bundle], Store | None]
    started: float

    def load(self) -> DaceKernel:
        """Raises InputError."""
        from gnnperf.frontends.dace import load_kernel

        return load_kernel(self.kernel, self.symbols, self.inputs, self.seed)


def retrieve_nests(job: NestJob, k: int, model_only: bool) -> Answer:
    """Retrieve recipes for the nests of a kernel. Raises GnnperfError."""
    from gnnperf.measure import Compiler, Runner
    from gnnperf.retrieval.records import remember
    from gnnperf.retrieval.transfer import Options, Transfer

    common, mine = _parts(job)
    options = Options(k=k, baseline=job.baseline, budget_s=job.budget_s, model_only=model_only)
    transfer = Transfer(**common, options=options, notify=notify)
    with Compiler() as compiler, Runner() as runner:
        result, tuned, queries = transfer.run(compiler, runner)
        if mine is not None and not model_only:
            with remembering():
                remember(mine, queries, transfer.kernel.name, transfer.bundle, transfer.device)
        return _answer(job, transfer, result, tuned, queries, compiler)


def tune_nests(job: NestJob, trials: int) -> Answer:
    """Search recipes for the nests of a kernel. Raises GnnperfError."""
    from gnnperf.measure import Compiler, Runner
    from gnnperf.retrieval.records import memory_of
    from gnnperf.retrieval.transfer import Options
    from gnnperf.retrieval.tuning import Tuning

    common, mine = _parts(job)
    kernel, calibration = common["kernel"], replace(common["calibration"], confidence=None)
    nests = sum(u.skipped is None and u.nest.has_loops for u in kernel.units)
    memory = None if mine is None else memory_of(mine, kernel.name, common["bundle"], common["device"])
    options = Options(k=trials, baseline=job.baseline, budget_s=job.budget_s)
    with Compiler() as compiler, Runner() as runner, progress("tuning", trials * nests) as advance:
        tuning = Tuning(
            **{**common, "calibration": calibration},  # how sure one may be was learned from few trials
            options=options,
            trials=trials,
            memory=memory,
            advance=lambda count, doing: advance(count, doing=doing),
        )
        try:
            result, tuned, queries = tuning.run(compiler, runner)
        except KeyboardInterrupt:
            raise interrupted(tuning.measured, memory) from None
        return _answer(job, tuning, result, tuned, queries, compiler)


def _parts(job: NestJob) -> tuple[dict[str, Any], Store | None]:
    """(what every `Transfer` is made of, the user's store)."""
    from gnnperf.devices import describe_host
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.retrieval.neighbours import Calibration
    from gnnperf.store import Store

    kernel, bundle = job.load(), load_checkpoint(job.checkpoint, Bundle)
    released, mine = Store.open(job.checkpoint / "store"), job.own(bundle)
    common = {
        "kernel": kernel,
        "bundle": bundle,
        "stores": [released] if mine is None else [released, mine],
        "device": describe_host(),
        "calibration": Calibration.of(bundle),
        "started": job.started,
    }
    return common, mine


def _answer(
    job: NestJob, transfer: Transfer, result: Retrieval, tuned: Any, queries: list[Query], compiler: Compiler
) -> Answer:
    """tuned: the SDFG; None where the baseline was kept."""
    from gnnperf.retrieval.output import baseline_sdfg, write_output

    def write(folder: Path) -> None:
        kernel = transfer.kernel
        best = tuned if tuned is not None else baseline_sdfg(kernel, result.baseline_name)
        write_output(folder, kernel, best, to_json(result.to_dict()), compiler)

    return answer(result, {query.graph.digest: query.graph for query in queries}, job.output, write)
